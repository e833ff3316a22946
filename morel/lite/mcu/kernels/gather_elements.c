/* y[i, j, ...] = x[indices[i, j, ...], j, ...] for axis 0, alike for others. */
#include "morel_tensor.h"

void morel_gather_elements(const morel_tensor* x, int32_t axis, const morel_tensor* indices, const morel_tensor* y) {
  axis = morel_axis(x, axis);
  const int32_t count = morel_count(y, 0, y->rank);
  for (int32_t i = 0; i < count; ++i) {
    int32_t place = morel_index(indices, morel_place(indices, 0, y->rank, i), x->shape[axis]) * x->strides[axis];
    for (int32_t rest = i, k = y->rank; k-- > 0; rest /= y->shape[k])
      if (k != axis) place += rest % y->shape[k] * x->strides[k];
    memcpy(morel_at(y, morel_place(y, 0, y->rank, i)), morel_at(x, place), (size_t)y->item);
  }
}
