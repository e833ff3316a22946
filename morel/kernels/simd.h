// The one mechanism of the hand-written kernels for several instruction sets.
//
// A kernel's vector code lies in a file `NAME_simd.inc`, written once with the types and functions of simd_vector.inc
// inside `namespace morel::MOREL_SIMD { ... }`. Its `NAME.cc` first includes every header it needs, and then
//     #define MOREL_SIMD_FILE "morel/kernels/NAME_simd.inc"
//     #include "morel/kernels/simd.h"
// which compiles the file once per instruction set (a namespace each: sse4, avx2, avx512; or `generic` alone on other
// machines), and calls `MOREL_SIMD_CALL(function)(arguments)`, which picks the best one of this machine at run time.
// The environment variable MOREL_ISA=sse4|avx2|avx512 lowers the choice.
//
// Why `#pragma GCC target` and not target_clones: clones are made after generic vectors were split for the base
// machine, and their resolvers run before sanitizers are ready. Why headers come first: an inline function of a header
// that is compiled under a target pragma could be the copy that the linker keeps for all.
#ifndef MOREL_KERNELS_SIMD_H_
#define MOREL_KERNELS_SIMD_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "morel/tensor/dtype.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define MOREL_X86 1
#else
#define MOREL_X86 0
#endif

namespace morel {

// The element types that kernels are compiled for, a bit each: all, but in a library for one device (cmake/lite.cmake).
#ifndef MOREL_DTYPE_MASK
#define MOREL_DTYPE_MASK 0xffffffffu
#endif
constexpr bool is_compiled(DType dtype) { return MOREL_DTYPE_MASK >> static_cast<int>(dtype) & 1; }

enum class Isa : uint8_t { Generic, Sse4, Avx2, Avx512 };
// The best instruction set of this machine that MOREL_ISA allows; fixed at the first call.
Isa best_isa();

#if defined(MOREL_ONLY_AVX2)  // a library for one device (cmake/lite.cmake)
#define MOREL_SIMD_CALL(...) (&::morel::avx2::__VA_ARGS__)
#elif MOREL_X86
#define MOREL_SIMD_CALL(...)                                                                                           \
  (::morel::best_isa() == ::morel::Isa::Avx512 ? &::morel::avx512::__VA_ARGS__                                         \
   : ::morel::best_isa() == ::morel::Isa::Avx2 ? &::morel::avx2::__VA_ARGS__                                           \
                                               : &::morel::sse4::__VA_ARGS__)
#else
#define MOREL_SIMD_CALL(...) (&::morel::generic::__VA_ARGS__)
#endif

// Vector values only pass between functions that are inlined into each other.
#define MOREL_INLINE inline __attribute__((always_inline))
#define MOREL_INLINE_LAMBDA __attribute__((always_inline))
#define MOREL_UNROLL _Pragma("GCC unroll 64")

}  // namespace morel
#endif  // MOREL_KERNELS_SIMD_H_

#ifdef MOREL_SIMD_FILE
// Stays off to the end of the file, where templates are instantiated.
#pragma GCC diagnostic ignored "-Wpsabi"
#if MOREL_X86
#ifndef MOREL_ONLY_AVX2
#pragma GCC push_options
#pragma GCC target("sse4.2,popcnt")
#define MOREL_SIMD sse4
#define MOREL_SIMD_BYTES 16
#include "morel/kernels/simd_vector.inc"
#include MOREL_SIMD_FILE
#undef MOREL_SIMD
#undef MOREL_SIMD_BYTES
#pragma GCC pop_options
#endif

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,popcnt,lzcnt")
#define MOREL_SIMD avx2
#define MOREL_SIMD_BYTES 32
#include "morel/kernels/simd_vector.inc"
#include MOREL_SIMD_FILE
#undef MOREL_SIMD
#undef MOREL_SIMD_BYTES
#pragma GCC pop_options

#ifndef MOREL_ONLY_AVX2
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,popcnt,lzcnt")
#define MOREL_SIMD avx512
#define MOREL_SIMD_BYTES 64
#include "morel/kernels/simd_vector.inc"
#include MOREL_SIMD_FILE
#undef MOREL_SIMD
#undef MOREL_SIMD_BYTES
#pragma GCC pop_options
#endif
#else
#define MOREL_SIMD generic
#define MOREL_SIMD_BYTES 16
#include "morel/kernels/simd_vector.inc"
#include MOREL_SIMD_FILE
#undef MOREL_SIMD
#undef MOREL_SIMD_BYTES
#endif
#undef MOREL_SIMD_FILE
#endif
