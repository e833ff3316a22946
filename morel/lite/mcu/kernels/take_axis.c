/* Slices of x along an axis at the indices, whose axes take its place. */
#include "morel_tensor.h"

void morel_take_axis(const morel_tensor* x, const morel_tensor* indices, int32_t axis, const morel_tensor* y) {
  axis = morel_axis(x, axis);
  const int32_t after = axis + indices->rank;
  const int32_t outer = morel_count(x, 0, axis), count = morel_count(indices, 0, indices->rank),
                inner = morel_count(x, axis + 1, x->rank);
  for (int32_t i = 0; i < outer; ++i) {
    for (int32_t j = 0; j < count; ++j) {
      const int32_t index = morel_index(indices, morel_place(indices, 0, indices->rank, j), x->shape[axis]);
      for (int32_t k = 0; k < inner; ++k)
        memcpy(
            morel_at(y,
                     morel_place(y, 0, axis, i) + morel_place(y, axis, after, j) + morel_place(y, after, y->rank, k)),
            morel_at(x, morel_place(x, 0, axis, i) + index * x->strides[axis] + morel_place(x, axis + 1, x->rank, k)),
            (size_t)y->item);
    }
  }
}
