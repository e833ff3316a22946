/* Max pooling of int8. */
#define NAME morel_max_pool2d_with_indices_i8
#define ELEMENT int8_t
#include "morel_max_pool.h"
void morel_max_pool2d_with_indices_i8(const morel_tensor* x, const int32_t* kernel, const int32_t* stride,
                                      const int32_t* padding, const int32_t* dilation, int32_t ceil_mode,
                                      const morel_tensor* y, const morel_tensor* places);
