/* A tensor of one number of type float32. */
#define NAME morel_full_f32
#define ELEMENT float
#define NUMBER float
#include "morel_full.h"
void morel_full_f32(const int32_t* size, float value, int32_t dtype, const morel_tensor* y);
