/* Dense layer of int8: input [..., k] of any strides, weight [n, k] and output [..., n] without gaps. */
#include "morel_requantise.h"
#include "morel_tensor.h"

void morel_int8_dense(const morel_tensor* x, const morel_tensor* weight, const morel_tensor* bias,
                      const morel_tensor* multiplier, const morel_tensor* shift, int32_t input_zero,
                      int32_t output_zero, const morel_tensor* y) {
  const int32_t n = weight->shape[0], k = weight->shape[1], rows = morel_count(x, 0, x->rank - 1);
  const int32_t step = x->strides[x->rank - 1];
  for (int32_t row = 0; row < rows; ++row) {
    const int8_t* first = (const int8_t*)x->data + morel_place(x, 0, x->rank - 1, row);
    const int8_t* w = (const int8_t*)weight->data;
    int8_t* out = (int8_t*)y->data + row * n;
    for (int32_t j = 0; j < n; ++j, w += k) {
      int32_t sum = bias ? ((const int32_t*)bias->data)[j] : 0;
      const int8_t* from = first;
      for (int32_t i = 0; i < k; ++i, from += step) sum += (*from - input_zero) * w[i];
      out[j] =
          morel_requantise(sum, ((const int32_t*)multiplier->data)[j], ((const int32_t*)shift->data)[j], output_zero);
    }
  }
}
