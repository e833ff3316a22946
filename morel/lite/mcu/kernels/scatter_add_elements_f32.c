/* A copy of x with source[i, j, ...] added at [indices[i, j, ...], j, ...] for axis 0, alike for others, in order. */
#include "morel_tensor.h"

void morel_scatter_add_elements_f32(const morel_tensor* x, int32_t axis, const morel_tensor* indices,
                                    const morel_tensor* source, const morel_tensor* y) {
  axis = morel_axis(x, axis);
  const int32_t count = morel_count(y, 0, y->rank), changes = morel_count(indices, 0, indices->rank);
  float* out = (float*)y->data;
  for (int32_t i = 0; i < count; ++i)
    out[morel_place(y, 0, y->rank, i)] = ((const float*)x->data)[morel_place(x, 0, x->rank, i)];
  for (int32_t i = 0; i < changes; ++i) {
    int32_t place = morel_index(indices, morel_place(indices, 0, indices->rank, i), y->shape[axis]) * y->strides[axis];
    int32_t from = 0;
    for (int32_t rest = i, k = indices->rank; k-- > 0; rest /= indices->shape[k]) {
      if (k != axis) place += rest % indices->shape[k] * y->strides[k];
      from += rest % indices->shape[k] * source->strides[k];
    }
    out[place] += ((const float*)source->data)[from];
  }
}
