/* Convolution: images [N, C, H, W] and weight [C_out, C_in / groups, kernel height, kernel width] of any strides. A
   kernel is a file that defines NAME, the ELEMENT of images and weight, the SUM of their products, its OPTIONS (further
   parameters, each with a comma behind it), VALUE(x), what an element of the image stands for, and RESULT(sum, c), what
   becomes of a sum of output channel c; TAP: how far apart the taps of a filter's row lie. */
#include "morel_tensor.h"

void NAME(const morel_tensor* x, const morel_tensor* weight, const morel_tensor* bias, const int32_t* stride,
          const int32_t* padding, const int32_t* dilation, int32_t groups, OPTIONS const morel_tensor* y) {
  const int32_t outputs = y->shape[1] / groups, channels = weight->shape[1], height = weight->shape[2],
                width = weight->shape[3], step = dilation[1] * x->strides[3];
  for (int32_t n = 0; n < y->shape[0]; ++n) {
    for (int32_t c = 0; c < y->shape[1]; ++c) {
      const ELEMENT* image = (const ELEMENT*)x->data + n * x->strides[0] + c / outputs * channels * x->strides[1];
      const ELEMENT* filter = (const ELEMENT*)weight->data + c * weight->strides[0];
      for (int32_t i = 0; i < y->shape[2]; ++i) {
        const int32_t top = i * stride[0] - padding[0];
        int32_t row_begin, row_end;
        morel_taps(top, dilation[0], height, x->shape[2], &row_begin, &row_end);
        for (int32_t j = 0; j < y->shape[3]; ++j) {
          const int32_t left = j * stride[1] - padding[2];
          int32_t begin, end;
          SUM sum = 0;
          morel_taps(left, dilation[1], width, x->shape[3], &begin, &end);
          for (int32_t k = 0; k < channels; ++k) {
            for (int32_t row = row_begin; row < row_end; ++row) {
              const ELEMENT* from = image + k * x->strides[1] + (top + row * dilation[0]) * x->strides[2] +
                                    left * x->strides[3] + begin * step;
              const ELEMENT* w = filter + k * weight->strides[1] + row * weight->strides[2] + begin * TAP;
              for (int32_t column = begin; column < end; ++column, from += step, w += TAP) sum += VALUE(*from) * *w;
            }
          }
          ((ELEMENT*)y->data)[n * y->strides[0] + c * y->strides[1] + i * y->strides[2] + j * y->strides[3]] =
              RESULT(sum, c);
        }
      }
    }
  }
}
