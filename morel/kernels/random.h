// Counter-based random numbers: Philox4x32-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
// An element's value is a function of the seed, the call's offset and the element's index alone, so it does not depend
// on threads, on the instruction set (but for the last bits of logarithms, sines and multiply-adds) or on how an array
// is sharded.
//
// Counter = {block (64 bit), offset (64 bit)}, key = seed. One block of four 32-bit words serves four elements of
// float32 or a half type, or two of float64 or an integer type. Every call must use an offset of its own.
#pragma once

#include <cstdint>

#include "morel/tensor/dtype.h"

namespace morel::kernels {

struct RandomStream {
  uint64_t seed = 0;
  uint64_t offset = 0;
  int64_t first = 0;  // index of the call's first element in the whole (sharded) array
};

// The four words of one block.
void philox_block(uint64_t seed, uint64_t offset, uint64_t block, uint32_t words[4]);

// Float dtypes below are Float16, BFloat16, Float32 and Float64; arrays are dense.

// [low, high): multiples of 2^-24 (2^-53 for float64, 2^-11 and 2^-8 for the halves) before scaling.
void random_uniform(void* out, DType dtype, int64_t n, double low, double high, const RandomStream& stream);
// Box and Muller's method on pairs of elements.
void random_normal(void* out, DType dtype, int64_t n, double mean, double deviation, const RandomStream& stream);
// Normal numbers within [mean + low * deviation, mean + high * deviation], by inversion; low and high in units of the
// deviation.
void random_truncated_normal(void* out, DType dtype, int64_t n, double mean, double deviation, double low, double high,
                             const RandomStream& stream);
// Density rate * exp(-rate * x).
void random_exponential(void* out, DType dtype, int64_t n, double rate, const RandomStream& stream);
// One with the given probability, else zero; any dtype. The second form reads one float32 probability per element.
void random_bernoulli(void* out, DType dtype, int64_t n, double probability, const RandomStream& stream);
void random_bernoulli(void* out, DType dtype, int64_t n, const float* probabilities, const RandomStream& stream);
// Integers in [low, high), integer dtypes.
void random_integers(void* out, DType dtype, int64_t n, int64_t low, int64_t high, const RandomStream& stream);
// 0 .. n - 1 in random order (Fisher and Yates), Int32 or Int64.
void random_permutation(void* out, DType dtype, int64_t n, const RandomStream& stream);

// out = input / keep_probability with that probability, else 0. The backward pass is the same call on the gradient with
// the same stream. `mask` (may be null) gets the choices. Float dtypes; out may be input.
void dropout(void* out, bool* mask, const void* input, DType dtype, int64_t n, double keep_probability,
             const RandomStream& stream);

}  // namespace morel::kernels
