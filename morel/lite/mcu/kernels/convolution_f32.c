/* Convolution of float32. */
#define NAME morel_convolution_f32
#define ELEMENT float
#define SUM float
#define OPTIONS
#define VALUE(x) (x)
#define TAP weight->strides[3]
#define RESULT(sum, c) ((sum) + (bias ? ((const float*)bias->data)[c] : 0))
#include "morel_convolution.h"
void morel_convolution_f32(const morel_tensor* x, const morel_tensor* weight, const morel_tensor* bias,
                           const int32_t* stride, const int32_t* padding, const int32_t* dilation, int32_t groups,
                           const morel_tensor* y);
