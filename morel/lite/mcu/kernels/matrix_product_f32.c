/* Products of float32 matrices [..., m, k] and [..., k, n]; leading axes broadcast. */
#include "morel_tensor.h"

/* Where matrix `index` of the leading axes of y begins in t. */
static int32_t matrix_at(const morel_tensor* t, const morel_tensor* y, int32_t index) {
  int32_t place = 0;
  for (int32_t axis = y->rank - 2; axis-- > 0;) {
    const int32_t own = axis - (y->rank - t->rank);
    if (own >= 0 && t->shape[own] != 1) place += index % y->shape[axis] * t->strides[own];
    index /= y->shape[axis];
  }
  return place;
}

void morel_matrix_product_f32(const morel_tensor* a, const morel_tensor* b, const morel_tensor* y) {
  const int32_t m = y->shape[y->rank - 2], n = y->shape[y->rank - 1], k = a->shape[a->rank - 1];
  const int32_t a_row = a->strides[a->rank - 2], a_column = a->strides[a->rank - 1];
  const int32_t b_row = b->strides[b->rank - 2], b_column = b->strides[b->rank - 1];
  const int32_t batch = morel_count(y, 0, y->rank - 2);
  for (int32_t index = 0; index < batch; ++index) {
    const float* x = (const float*)a->data + matrix_at(a, y, index);
    const float* w = (const float*)b->data + matrix_at(b, y, index);
    float* out = (float*)y->data + matrix_at(y, y, index);
    for (int32_t i = 0; i < m; ++i) {
      for (int32_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int32_t l = 0; l < k; ++l) sum += x[i * a_row + l * a_column] * w[l * b_row + j * b_column];
        out[i * y->strides[y->rank - 2] + j * y->strides[y->rank - 1]] = sum;
      }
    }
  }
}
