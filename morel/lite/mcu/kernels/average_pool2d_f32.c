/* Means of the windows of float32 images [N, C, H, W]. */
#include "morel_tensor.h"

/* Positions of a window that lie inside of the padded image. */
static int32_t padded_taps(int32_t start, int32_t step, int32_t taps, int32_t padded_end) {
  const int32_t count = start < padded_end ? (padded_end - start + step - 1) / step : 0;
  return count < taps ? count : taps;
}

void morel_average_pool2d_f32(const morel_tensor* x, const int32_t* kernel, const int32_t* stride,
                              const int32_t* padding, const int32_t* dilation, int32_t ceil_mode,
                              int32_t count_include_pad, int32_t divisor_override, const morel_tensor* y) {
  (void)ceil_mode; /* y says how many windows there are */
  for (int32_t plane = 0; plane < y->shape[0] * y->shape[1]; ++plane) {
    const float* image = (const float*)x->data + morel_place(x, 0, 2, plane);
    for (int32_t i = 0; i < y->shape[2]; ++i) {
      const int32_t top = i * stride[0] - padding[0];
      int32_t row_begin, row_end;
      morel_taps(top, dilation[0], kernel[0], x->shape[2], &row_begin, &row_end);
      for (int32_t j = 0; j < y->shape[3]; ++j) {
        const int32_t left = j * stride[1] - padding[2];
        int32_t begin, end;
        float sum = 0;
        morel_taps(left, dilation[1], kernel[1], x->shape[3], &begin, &end);
        for (int32_t row = row_begin; row < row_end; ++row)
          for (int32_t column = begin; column < end; ++column)
            sum += image[(top + row * dilation[0]) * x->strides[2] + (left + column * dilation[1]) * x->strides[3]];
        int32_t divisor = divisor_override;
        if (!divisor && count_include_pad)
          divisor = padded_taps(top, dilation[0], kernel[0], x->shape[2] + padding[1]) *
                    padded_taps(left, dilation[1], kernel[1], x->shape[3] + padding[3]);
        else if (!divisor) divisor = (row_end - row_begin) * (end - begin);
        ((float*)y->data)[morel_place(y, 0, 2, plane) + i * y->strides[2] + j * y->strides[3]] = sum / (float)divisor;
      }
    }
  }
}
