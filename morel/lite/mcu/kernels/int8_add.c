/* Sum of two int8 tensors of one shape and any strides; y has no gaps. */
#include "morel_requantise.h"
#include "morel_tensor.h"

void morel_int8_add(const morel_tensor* x, const morel_tensor* other, int32_t x_factor, int32_t other_factor,
                    int32_t x_zero, int32_t other_zero, int32_t multiplier, int32_t shift, int32_t output_zero,
                    const morel_tensor* y) {
  const int32_t count = morel_count(y, 0, y->rank);
  for (int32_t i = 0; i < count; ++i) {
    const int32_t a = ((const int8_t*)x->data)[morel_place(x, 0, x->rank, i)],
                  b = ((const int8_t*)other->data)[morel_place(other, 0, other->rank, i)];
    ((int8_t*)y->data)[i] =
        morel_requantise((a - x_zero) * x_factor + (b - other_zero) * other_factor, multiplier, shift, output_zero);
  }
}
