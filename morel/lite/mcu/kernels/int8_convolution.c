/* Convolution of int8 with results of int8; the weight has no gaps. */
#include "morel_requantise.h"
#define NAME morel_int8_convolution
#define ELEMENT int8_t
#define SUM int32_t
#define OPTIONS const morel_tensor *multiplier, const morel_tensor *shift, int32_t input_zero, int32_t output_zero,
#define VALUE(x) ((x)-input_zero)
#define RESULT(sum, c)                                                                                                 \
  morel_requantise((sum) + (bias ? ((const int32_t*)bias->data)[c] : 0), ((const int32_t*)multiplier->data)[c],        \
                   ((const int32_t*)shift->data)[c], output_zero)
#define TAP 1
#include "morel_convolution.h"
void morel_int8_convolution(const morel_tensor* x, const morel_tensor* weight, const morel_tensor* bias,
                            const int32_t* stride, const int32_t* padding, const int32_t* dilation, int32_t groups,
                            const morel_tensor* multiplier, const morel_tensor* shift, int32_t input_zero,
                            int32_t output_zero, const morel_tensor* y);
