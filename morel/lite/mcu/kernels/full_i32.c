/* A tensor of one number of type int32. */
#define NAME morel_full_i32
#define ELEMENT int32_t
#define NUMBER int32_t
#include "morel_full.h"
void morel_full_i32(const int32_t* size, int32_t value, int32_t dtype, const morel_tensor* y);
