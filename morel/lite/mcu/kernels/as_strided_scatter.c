/* A copy of x without gaps, with the elements of src at the places that strides and an offset name. */
#include "morel_tensor.h"

void morel_as_strided_scatter(const morel_tensor* x, const morel_tensor* src, const int32_t* size,
                              const int32_t* stride, int32_t offset, const morel_tensor* y) {
  const int32_t count = morel_count(x, 0, x->rank), places = morel_count(src, 0, src->rank);
  (void)size; /* that of src */
  for (int32_t i = 0; i < count; ++i)
    memcpy(morel_at(y, i), morel_at(x, morel_place(x, 0, x->rank, i)), (size_t)y->item);
  for (int32_t i = 0; i < places; ++i) {
    int32_t place = offset;
    for (int32_t rest = i, axis = src->rank; axis-- > 0; rest /= src->shape[axis])
      place += rest % src->shape[axis] * stride[axis];
    memcpy(morel_at(y, place), morel_at(src, morel_place(src, 0, src->rank, i)), (size_t)y->item);
  }
}
