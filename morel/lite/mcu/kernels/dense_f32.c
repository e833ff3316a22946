/* Dense layer of float32: input [..., k] and weight [n, k] of any strides, output [..., n] without gaps. */
#include "morel_tensor.h"

void morel_dense_f32(const morel_tensor* x, const morel_tensor* weight, const morel_tensor* bias,
                     const morel_tensor* y) {
  const int32_t n = weight->shape[0], k = weight->shape[1], rows = morel_count(x, 0, x->rank - 1);
  const int32_t step = x->strides[x->rank - 1];
  for (int32_t row = 0; row < rows; ++row) {
    const float* from = (const float*)x->data + morel_place(x, 0, x->rank - 1, row);
    for (int32_t j = 0; j < n; ++j) {
      const float* w = (const float*)weight->data + j * weight->strides[0];
      float sum = 0;
      for (int32_t i = 0; i < k; ++i) sum += from[i * step] * w[i * weight->strides[1]];
      ((float*)y->data)[row * n + j] = bias ? sum + ((const float*)bias->data)[j] : sum;
    }
  }
}
