/* Running sums of float32 along an axis, kept in double. */
#include "morel_tensor.h"

void morel_cumsum_f32(const morel_tensor* x, int32_t axis, int32_t dtype, const morel_tensor* y) {
  (void)dtype; /* that of y */
  axis = morel_axis(x, axis);
  const int32_t outer = morel_count(y, 0, axis), inner = morel_count(y, axis + 1, y->rank);
  for (int32_t i = 0; i < outer; ++i) {
    for (int32_t k = 0; k < inner; ++k) {
      const float* from = (const float*)x->data + morel_place(x, 0, axis, i) + morel_place(x, axis + 1, x->rank, k);
      float* out = (float*)y->data + morel_place(y, 0, axis, i) + morel_place(y, axis + 1, y->rank, k);
      double sum = 0;
      for (int32_t j = 0; j < y->shape[axis]; ++j) {
        sum += (double)from[j * x->strides[axis]];
        out[j * y->strides[axis]] = (float)sum;
      }
    }
  }
}
