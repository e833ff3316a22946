/* Sums of products of int8 as int8. */
#ifndef MOREL_REQUANTISE_H
#define MOREL_REQUANTISE_H

#include <stdint.h>

/* value * multiplier / 2^31, rounded to nearest, ties up, then * 2^shift, rounded to nearest, ties away from zero; plus
   zero, as int8. */
static inline int8_t morel_requantise(int32_t value, int32_t multiplier, int32_t shift, int32_t zero) {
  const int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
  const int64_t product = (int64_t)(int32_t)((uint32_t)value << left) * multiplier;
  const int32_t high = (int32_t)((product + ((int64_t)1 << 30)) >> 31);
  const int32_t mask = (int32_t)(((uint32_t)1 << right) - 1), rest = high & mask;
  const int32_t result = zero + (high >> right) + (rest > (mask >> 1) + (high < 0));
  return (int8_t)(result < -128 ? -128 : result > 127 ? 127 : result);
}

#endif
