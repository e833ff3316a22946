/* Convolution of int8: input and output [N, C, H, W] of any strides, weight [C_out, C_in / groups, kernel height,
   kernel width] without gaps. */
#include "morel_requantise.h"
#include "morel_tensor.h"

void morel_int8_convolution(const morel_tensor* x, const morel_tensor* weight, const morel_tensor* bias,
                            const int32_t* stride, const int32_t* padding, const int32_t* dilation, int32_t groups,
                            const morel_tensor* multiplier, const morel_tensor* shift, int32_t input_zero,
                            int32_t output_zero, const morel_tensor* y) {
  const int32_t outputs = y->shape[1] / groups, channels = weight->shape[1], height = weight->shape[2],
                width = weight->shape[3], step = dilation[1] * x->strides[3];
  for (int32_t n = 0; n < y->shape[0]; ++n) {
    for (int32_t c = 0; c < y->shape[1]; ++c) {
      const int8_t* image = (const int8_t*)x->data + n * x->strides[0] + c / outputs * channels * x->strides[1];
      const int8_t* filter = (const int8_t*)weight->data + c * channels * height * width;
      const int32_t start = bias ? ((const int32_t*)bias->data)[c] : 0;
      for (int32_t i = 0; i < y->shape[2]; ++i) {
        const int32_t top = i * stride[0] - padding[0];
        int32_t row_begin, row_end;
        morel_taps(top, dilation[0], height, x->shape[2], &row_begin, &row_end);
        for (int32_t j = 0; j < y->shape[3]; ++j) {
          const int32_t left = j * stride[1] - padding[2];
          int32_t begin, end, sum = start;
          morel_taps(left, dilation[1], width, x->shape[3], &begin, &end);
          for (int32_t k = 0; k < channels; ++k) {
            for (int32_t row = row_begin; row < row_end; ++row) {
              const int8_t* from = image + k * x->strides[1] + (top + row * dilation[0]) * x->strides[2] +
                                   left * x->strides[3] + begin * step;
              const int8_t* w = filter + (k * height + row) * width;
              for (int32_t column = begin; column < end; ++column, from += step)
                sum += (*from - input_zero) * w[column];
            }
          }
          ((int8_t*)y->data)[n * y->strides[0] + c * y->strides[1] + i * y->strides[2] + j * y->strides[3]] =
              morel_requantise(sum, ((const int32_t*)multiplier->data)[c], ((const int32_t*)shift->data)[c],
                               output_zero);
        }
      }
    }
  }
}
