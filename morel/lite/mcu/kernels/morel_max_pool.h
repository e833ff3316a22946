/* The largest element of each window of images [N, C, H, W], and its place in the image; defines the function `NAME`
   for elements of type `ELEMENT`. NaN counts as largest. */
#include "morel_tensor.h"

void NAME(const morel_tensor* x, const int32_t* kernel, const int32_t* stride, const int32_t* padding,
          const int32_t* dilation, int32_t ceil_mode, const morel_tensor* y, const morel_tensor* places) {
  (void)ceil_mode; /* y says how many windows there are */
  for (int32_t plane = 0; plane < y->shape[0] * y->shape[1]; ++plane) {
    const ELEMENT* image = (const ELEMENT*)x->data + morel_place(x, 0, 2, plane);
    for (int32_t i = 0; i < y->shape[2]; ++i) {
      const int32_t top = i * stride[0] - padding[0];
      int32_t row_begin, row_end;
      morel_taps(top, dilation[0], kernel[0], x->shape[2], &row_begin, &row_end);
      for (int32_t j = 0; j < y->shape[3]; ++j) {
        const int32_t left = j * stride[1] - padding[2];
        int32_t begin, end, place = -1;
        ELEMENT best = 0;
        morel_taps(left, dilation[1], kernel[1], x->shape[3], &begin, &end);
        for (int32_t row = top + row_begin * dilation[0]; row < top + row_end * dilation[0]; row += dilation[0]) {
          for (int32_t column = left + begin * dilation[1]; column < left + end * dilation[1]; column += dilation[1]) {
            const ELEMENT value = image[row * x->strides[2] + column * x->strides[3]];
            if (place >= 0 && !(value > best) && value == value) continue;
            best = value;
            place = row * x->shape[3] + column;
          }
        }
        ((ELEMENT*)y->data)[morel_place(y, 0, 2, plane) + i * y->strides[2] + j * y->strides[3]] = best;
        if (places->data)
          ((int32_t*)places->data)[morel_place(places, 0, 2, plane) + i * places->strides[2] + j * places->strides[3]] =
              place;
      }
    }
  }
}
