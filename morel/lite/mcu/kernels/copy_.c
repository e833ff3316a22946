/* Writes the elements of a tensor, which broadcasts, into another one of the same type. */
#include "morel_tensor.h"

void morel_copy_(const morel_tensor* to, const morel_tensor* from) {
  const int32_t count = morel_count(to, 0, to->rank), shift = to->rank - from->rank;
  for (int32_t i = 0; i < count; ++i) {
    int32_t place = 0;
    for (int32_t rest = i, axis = to->rank; axis-- > 0; rest /= to->shape[axis])
      if (axis >= shift && from->shape[axis - shift] != 1)
        place += rest % to->shape[axis] * from->strides[axis - shift];
    memcpy(morel_at(to, morel_place(to, 0, to->rank, i)), morel_at(from, place), (size_t)to->item);
  }
}
