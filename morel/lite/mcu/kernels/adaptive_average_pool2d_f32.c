/* Means of windows that cover float32 images [N, C, H, W]; y says how many. */
#include "morel_tensor.h"

void morel_adaptive_average_pool2d_f32(const morel_tensor* x, const int32_t* output_size, const morel_tensor* y) {
  (void)output_size;
  for (int32_t plane = 0; plane < y->shape[0] * y->shape[1]; ++plane) {
    const float* image = (const float*)x->data + morel_place(x, 0, 2, plane);
    for (int32_t i = 0; i < y->shape[2]; ++i) {
      const int32_t top = i * x->shape[2] / y->shape[2],
                    bottom = ((i + 1) * x->shape[2] + y->shape[2] - 1) / y->shape[2];
      for (int32_t j = 0; j < y->shape[3]; ++j) {
        const int32_t left = j * x->shape[3] / y->shape[3],
                      right = ((j + 1) * x->shape[3] + y->shape[3] - 1) / y->shape[3];
        float sum = 0;
        for (int32_t row = top; row < bottom; ++row)
          for (int32_t column = left; column < right; ++column)
            sum += image[row * x->strides[2] + column * x->strides[3]];
        ((float*)y->data)[morel_place(y, 0, 2, plane) + i * y->strides[2] + j * y->strides[3]] =
            sum / (float)((bottom - top) * (right - left));
      }
    }
  }
}
