// The C text in front of every generated file: types, helpers of one scalar, block copies, reductions over fixed lanes.
// It is plain C11 with GNU attributes, so the same file compiles for any machine.
#include "morel/codegen/c/emit.h"
#include "morel/codegen/c/plain.h"
#include "morel/codegen/c/scalar.h"
#include "morel/loops/program.h"

namespace morel::codegen {
namespace {

constexpr std::string_view basics = R"C(#include <complex.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

typedef struct {
  int64_t rows, n;
  char* const* pointers;
  const int64_t* row_strides;
  const int64_t* strides;
  const double* params;
  _Bool stream;
} morel_loop_args;

#define MOREL_INLINE static inline __attribute__((always_inline, unused))
#define MOREL_SHARED static __attribute__((noinline, unused))
#define MOREL_ARRAY __attribute__((aligned(64)))
/* Keeps a constant out of the compiler's sight: with a visible one GCC 12 moves arithmetic across selections, which then are
   no longer single instructions (minps, maxps), and clears small arrays by `rep stos`. */
#define MOREL_HIDE(x) __asm__("" : "+m"(x))
#if defined(__clang__)
#define MOREL_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define MOREL_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define MOREL_INDEPENDENT _Pragma("GCC ivdep")
#define MOREL_ROLLED _Pragma("GCC unroll 1") /* unrolled wholly, GCC 12 stores the sums of a loop in every turn */
#endif

)C";

constexpr std::string_view bits = R"C(MOREL_INLINE float morel_fma_f32(float x, float y, float z) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(x, y, z);
#else
  return x * y + z;
#endif
}
MOREL_INLINE double morel_fma_f64(double x, double y, double z) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fma(x, y, z);
#else
  return x * y + z;
#endif
}
MOREL_INLINE uint32_t morel_bits_f32(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }
MOREL_INLINE float morel_float_f32(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
MOREL_INLINE uint64_t morel_bits_f64(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }
MOREL_INLINE double morel_float_f64(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }

)C";

constexpr std::string_view passes =
    R"C(/* Elements of a pass that are treated together: whole vectors, or the rest of the row. */
MOREL_INLINE int64_t morel_chunk(int64_t left, int64_t limit, int64_t pad) {
  if (left < pad) return left;
  left &= -pad;
  return left < limit ? left : limit;
}
/* m >= 1 rounded up to whole vectors; knowing that it is no zero spares the compiler a remainder loop. */
MOREL_INLINE int64_t morel_padded(int64_t m, int64_t pad) {
  const int64_t padded = (m + (pad - 1)) & -pad;
  if (padded <= 0) __builtin_unreachable();
  return padded;
}
MOREL_INLINE int64_t morel_block_count(int64_t n) { return n < MOREL_BLOCK ? n : MOREL_BLOCK; }
)C";

constexpr std::string_view halves = R"C(
MOREL_INLINE float morel_from_bf16(uint16_t bits) { return morel_float_f32((uint32_t)bits << 16); }
MOREL_INLINE uint16_t morel_to_bf16(float x) {
  const uint32_t bits = morel_bits_f32(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (uint16_t)(x != x ? (bits >> 16) | 0x40u : rounded);
}
MOREL_INLINE float morel_round_bf16(float x) { return morel_from_bf16(morel_to_bf16(x)); }
/* float16 denormals become normal by a multiplication with a power of two, which is exact. */
MOREL_INLINE float morel_from_f16(uint16_t half) {
  const uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
  const uint32_t scaled = morel_bits_f32(morel_float_f32(magnitude) * 0x1p112f);
  const uint32_t bits = magnitude >= 0x0f800000u ? (magnitude | 0x7f800000u) : scaled;
  const uint32_t quiet = magnitude > 0x0f800000u ? 0x00400000u : 0u;
  return morel_float_f32(bits | quiet | ((uint32_t)(half & 0x8000u) << 16));
}
/* Results below 2^-14 are rounded by an addition that moves the last float16 bit to the last bit of the sum. */
MOREL_INLINE uint16_t morel_to_f16(float x) {
  const uint32_t bits = morel_bits_f32(x) & 0x7fffffffu;
  const uint32_t sign = (morel_bits_f32(x) >> 16) & 0x8000u;
  const uint32_t normal = (bits - 0x38000000u + 0xfffu + ((bits >> 13) & 1u)) >> 13;
  const uint32_t small = morel_bits_f32(morel_float_f32(bits) + 0.5f) - 0x3f000000u;
  uint32_t out = bits < 0x38800000u ? small : normal;
  out = bits >= 0x477ff000u ? 0x7c00u : out;
  out = bits > 0x7f800000u ? (0x7e00u | ((bits >> 13) & 0x3ffu)) : out;
  return (uint16_t)(out | sign);
}
MOREL_INLINE float morel_round_f16(float x) { return morel_from_f16(morel_to_f16(x)); }
)C";

constexpr std::string_view half_blocks = R"C(
MOREL_SHARED float* morel_load_f16(float* to, const char* from, int64_t stride, int64_t m, int64_t padded) {
  int64_t i = 0;
  if (stride == 2) {
    const uint16_t* source = (const uint16_t*)from;
#if defined(__AVX512F__)
    for (; i + 16 <= m; i += 16) {
      _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(source + i))));
    }
#endif
#if defined(__F16C__)
    for (; i + 8 <= m; i += 8) _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(source + i))));
    for (; i < m; ++i) to[i] = _cvtsh_ss(source[i]);
#else
    for (; i < m; ++i) to[i] = morel_from_f16(source[i]);
#endif
  } else {
    for (; i < m; ++i) to[i] = morel_from_f16(*(const uint16_t*)(from + i * stride));
  }
  for (; i < padded; ++i) to[i] = 0;
  return to;
}
MOREL_SHARED void morel_save_f16(char* to, int64_t stride, const float* from, int64_t m) {
  int64_t i = 0;
  if (stride == 2) {
    uint16_t* target = (uint16_t*)to;
#if defined(__AVX512F__)
    for (; i + 16 <= m; i += 16) {
      _mm256_storeu_si256((__m256i*)(target + i), _mm512_cvtps_ph(_mm512_loadu_ps(from + i), 0));
    }
#endif
#if defined(__F16C__)
    for (; i + 8 <= m; i += 8) _mm_storeu_si128((__m128i*)(target + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
    for (; i < m; ++i) target[i] = _cvtss_sh(from[i], 0);
#else
    for (; i < m; ++i) target[i] = morel_to_f16(from[i]);
#endif
  } else {
    for (; i < m; ++i) *(uint16_t*)(to + i * stride) = morel_to_f16(from[i]);
  }
}
)C";

constexpr std::string_view integers = R"C(
#define MOREL_INTEGER(t, T, U, W, bits)                                                                             \
  MOREL_INLINE T morel_add_##t(T x, T y) { return (T)(U)((W)x + (W)y); }                                            \
  MOREL_INLINE T morel_sub_##t(T x, T y) { return (T)(U)((W)x - (W)y); }                                            \
  MOREL_INLINE T morel_mul_##t(T x, T y) { return (T)(U)((W)x * (W)y); }                                            \
  MOREL_INLINE T morel_neg_##t(T x) { return (T)(U)((W)0 - (W)x); }                                                 \
  MOREL_INLINE T morel_min_##t(T x, T y) { return x < y ? x : y; }                                                  \
  MOREL_INLINE T morel_max_##t(T x, T y) { return x > y ? x : y; }                                                  \
  MOREL_INLINE T morel_shl_##t(T x, T y) { return (U)y < bits ? (T)(U)((W)x << ((U)y & (bits - 1))) : (T)0; }       \
  MOREL_INLINE T morel_shr_##t(T x, T y) { return x >> ((U)y < bits ? (int)y : bits - 1) >> ((T)-1 > 0 && (U)y >= bits); } \
  static inline __attribute__((unused)) T morel_pow_##t(T x, T y) {                                                 \
    if (y < 0) return x == 1 ? (T)1 : x == (T)-1 ? ((y & 1) ? (T)-1 : (T)1) : (T)0;                                 \
    T out = 1;                                                                                                      \
    for (; y > 0; y = (T)(y >> 1), x = morel_mul_##t(x, x)) out = (y & 1) ? morel_mul_##t(out, x) : out;            \
    return out;                                                                                                     \
  }
#define MOREL_SIGNED(t, T, U, W, bits)                                                                              \
  MOREL_INTEGER(t, T, U, W, bits)                                                                                   \
  MOREL_INLINE T morel_abs_##t(T x) { return x < 0 ? morel_neg_##t(x) : x; }                                        \
  MOREL_INLINE T morel_trunc_div_##t(T x, T y) { return y == 0 ? (T)0 : y == -1 ? morel_neg_##t(x) : (T)(x / y); }  \
  MOREL_INLINE T morel_rem_##t(T x, T y) { return y == 0 || y == -1 ? (T)0 : (T)(x % y); }                          \
  MOREL_INLINE T morel_mod_##t(T x, T y) {                                                                          \
    const T rest = morel_rem_##t(x, y);                                                                             \
    return rest != 0 && (rest < 0) != (y < 0) ? (T)(rest + y) : rest;                                               \
  }                                                                                                                 \
  MOREL_INLINE T morel_floor_div_##t(T x, T y) {                                                                    \
    const T rest = morel_rem_##t(x, y), quotient = morel_trunc_div_##t(x, y);                                       \
    return rest != 0 && (rest < 0) != (y < 0) ? (T)(quotient - 1) : quotient;                                       \
  }
#define MOREL_UNSIGNED(t, T, W, bits)                                                                               \
  MOREL_INTEGER(t, T, T, W, bits)                                                                                   \
  MOREL_INLINE T morel_trunc_div_##t(T x, T y) { return y == 0 ? (T)0 : (T)(x / y); }                               \
  MOREL_INLINE T morel_rem_##t(T x, T y) { return y == 0 ? (T)0 : (T)(x % y); }                                     \
  MOREL_INLINE T morel_mod_##t(T x, T y) { return morel_rem_##t(x, y); }                                            \
  MOREL_INLINE T morel_floor_div_##t(T x, T y) { return morel_trunc_div_##t(x, y); }
MOREL_SIGNED(i8, int8_t, uint8_t, uint32_t, 8)
MOREL_SIGNED(i16, int16_t, uint16_t, uint32_t, 16)
MOREL_SIGNED(i32, int32_t, uint32_t, uint32_t, 32)
MOREL_SIGNED(i64, int64_t, uint64_t, uint64_t, 64)
MOREL_UNSIGNED(u8, uint8_t, uint32_t, 8)
MOREL_UNSIGNED(u16, uint16_t, uint32_t, 16)
MOREL_UNSIGNED(u32, uint32_t, uint32_t, 32)
MOREL_UNSIGNED(u64, uint64_t, uint64_t, 64)
)C";

constexpr std::string_view floats = R"C(
#define MOREL_FLOAT(t, T, s)                                                                              \
  MOREL_INLINE T morel_min_##t(T x, T y) {                                                                \
    const T least = y < x ? y : x;                                                                        \
    return y != y ? y : least;                                                                            \
  }                                                                                                       \
  MOREL_INLINE T morel_max_##t(T x, T y) {                                                                \
    const T most = y > x ? y : x;                                                                         \
    return y != y ? y : most;                                                                             \
  }                                                                                                       \
  MOREL_INLINE T morel_mod_##t(T x, T y) {                                                                \
    const T rest = fmod##s(x, y);                                                                         \
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;                                          \
  }
MOREL_FLOAT(f32, float, f)
MOREL_FLOAT(f64, double, )
MOREL_INLINE int morel_isnan_f32(float x) { return x != x; }
MOREL_INLINE int morel_isnan_f64(double x) { return x != x; }
MOREL_INLINE uint64_t morel_to_u64(double x) {
  return x >= 0x1p63 ? (uint64_t)(int64_t)(x - 0x1p63) ^ (1ull << 63) : (uint64_t)(int64_t)x;
}
)C";

constexpr std::string_view copies = R"C(
/* Elements of any stride to and from a contiguous block; the block is padded with zeros to whole vectors. */
typedef struct __attribute__((may_alias)) { uint64_t part[2]; } morel_16;
/* `size` bytes and zeros up to `padded`; the last few by masked instructions where there are any. */
MOREL_INLINE void morel_copy_bytes(void* to, const char* from, int64_t size, int64_t padded) {
#if defined(__AVX512BW__)
  int64_t i = 0;
  for (; i + 64 <= size; i += 64) _mm512_storeu_si512((char*)to + i, _mm512_loadu_si512(from + i));
  for (; i < padded; i += 64) {
    const __mmask64 mask = i < size ? ~0ull >> (64 - (size - i)) : 0;
    _mm512_storeu_si512((char*)to + i, _mm512_maskz_loadu_epi8(mask, from + i));
  }
#else
  memcpy(to, from, (size_t)size);
  if (padded > size) memset((char*)to + size, 0, (size_t)(padded - size));
#endif
}
MOREL_INLINE void morel_save_bytes(char* to, const char* from, int64_t size) {
#if defined(__AVX512BW__)
  int64_t i = 0;
  for (; i + 64 <= size; i += 64) _mm512_storeu_si512(to + i, _mm512_loadu_si512(from + i));
  if (i < size) _mm512_mask_storeu_epi8(to + i, ~0ull >> (64 - (size - i)), _mm512_loadu_si512(from + i));
#else
  memcpy(to, from, (size_t)size);
#endif
}
/* Whole cache lines go to memory without being read into the cache first. */
MOREL_INLINE void morel_stream_lines(char* to, const char* from, int64_t size) {
#if defined(__SSE2__)
  for (int64_t i = 0; i < size; i += 64) {
#if defined(__AVX512F__)
    _mm512_stream_si512((__m512i*)(to + i), _mm512_loadu_si512(from + i));
#elif defined(__AVX__)
    for (int part = 0; part < 64; part += 32) {
      _mm256_stream_si256((__m256i*)(to + i + part), _mm256_loadu_si256((const __m256i*)(from + i + part)));
    }
#else
    for (int part = 0; part < 64; part += 16) {
      _mm_stream_si128((__m128i*)(to + i + part), _mm_loadu_si128((const __m128i*)(from + i + part)));
    }
#endif
  }
#else
  memcpy(to, from, (size_t)size);
#endif
}
MOREL_SHARED void morel_stream(char* to, const char* from, int64_t size) {
  int64_t head = (int64_t)(-(uintptr_t)to & 63);
  if (head > size) head = size;
  const int64_t end = head + ((size - head) & -64);
  memcpy(to, from, (size_t)head);
  morel_stream_lines(to + head, from + head, end - head);
  memcpy(to + end, from + end, (size_t)(size - end));
}
MOREL_INLINE void morel_stream_end(void) {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}
MOREL_INLINE void morel_prefetch(const char* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i);
}
#define MOREL_COPY(size, T)                                                                                           \
  MOREL_SHARED void* morel_load_##size(void* to, const char* from, int64_t stride, int64_t m, int64_t padded) {       \
    T* target = (T*)to;                                                                                               \
    if (stride == size) {                                                                                             \
      morel_copy_bytes(to, from, m * size, padded * size);                                                            \
      return to;                                                                                                      \
    }                                                                                                                 \
    if (stride == 0 && m > 0) {                                                                                       \
      const T value = *(const T*)from;                                                                                \
      for (int64_t i = 0; i < m; ++i) target[i] = value;                                                              \
    } else {                                                                                                          \
      for (int64_t i = 0; i < m; ++i) target[i] = *(const T*)(from + i * stride);                                     \
    }                                                                                                                 \
    if (padded > m) memset((char*)to + m * size, 0, (size_t)((padded - m) * size));                                   \
    return to;                                                                                                        \
  }                                                                                                                   \
  MOREL_SHARED void morel_save_##size(char* to, int64_t stride, const void* from, int64_t m) {                        \
    const T* source = (const T*)from;                                                                                 \
    if (stride == size) {                                                                                             \
      morel_save_bytes(to, (const char*)from, m * size);                                                              \
    } else {                                                                                                          \
      for (int64_t i = 0; i < m; ++i) *(T*)(to + i * stride) = source[i];                                             \
    }                                                                                                                 \
  }
typedef uint8_t __attribute__((may_alias)) morel_1;
typedef uint16_t __attribute__((may_alias)) morel_2;
typedef uint32_t __attribute__((may_alias)) morel_4;
typedef uint64_t __attribute__((may_alias)) morel_8;
MOREL_COPY(1, morel_1)
MOREL_COPY(2, morel_2)
MOREL_COPY(4, morel_4)
MOREL_COPY(8, morel_8)
MOREL_COPY(16, morel_16)
)C";

constexpr std::string_view combiners = R"C(
#define MOREL_PLUS(x, y) ((x) + (y))
#define MOREL_TIMES(x, y) ((x) * (y))
#define MOREL_OR(x, y) ((x) | (y))
#define MOREL_AND(x, y) ((x) & (y))
)C";

constexpr std::string_view folds =
    R"C(#define MOREL_HALVE(half, combine)                                                            \
  for (int l = 0; l < half; ++l) x[l] = combine(x[l], x[l + half]);
/* Combines the lanes of a row into x[0]. */
#define MOREL_FOLD(T, combine)                                                                \
  T x[MOREL_LANES / 2]; /* small enough for registers */                                      \
  for (int l = 0; l < MOREL_LANES / 2; ++l) x[l] = combine(row[l], row[l + MOREL_LANES / 2]); \
  MOREL_HALVE(16, combine) MOREL_HALVE(8, combine) MOREL_HALVE(4, combine) MOREL_HALVE(2, combine) MOREL_HALVE(1, combine)
/* Adds a block of m elements to the lanes of a row; combines the lanes. */
#define MOREL_REDUCE(name, T, identity, combine)                                              \
  MOREL_SHARED void morel_reduce_##name(T* restrict row, const T* restrict x, int64_t m) {    \
    const int64_t whole = m & -MOREL_LANES;                                                            \
    if (whole) {                                                                              \
      T lane[MOREL_LANES], start = identity;                                                           \
      MOREL_HIDE(start);                                                                      \
      for (int l = 0; l < MOREL_LANES; ++l) lane[l] = start;                                           \
      MOREL_ROLLED                                                                            \
      for (int64_t i = 0; i < whole; i += MOREL_LANES) {                                      \
        for (int l = 0; l < MOREL_LANES; ++l) lane[l] = combine(lane[l], x[i + l]);                    \
      }                                                                                       \
      for (int l = 0; l < MOREL_LANES; ++l) row[l] = combine(row[l], lane[l]);                         \
    }                                                                                         \
    for (int64_t l = 0; l < m - whole; ++l) row[l] = combine(row[l], x[whole + l]);           \
  }                                                                                           \
  MOREL_SHARED T morel_fold_##name(const T* row) {                                            \
    MOREL_FOLD(T, combine)                                                                    \
    return x[0];                                                                              \
  }
)C";

constexpr std::string_view comparisons = R"C(#define MOREL_NAN(x) ((x) != (x))
#define MOREL_GREATER(x, y) ((x) > (y))
#define MOREL_LESS(x, y) ((x) < (y))
#define MOREL_LARGER(x, y) ((y) > (x) ? (y) : (x))
#define MOREL_SMALLER(x, y) ((y) < (x) ? (y) : (x))
)C";

constexpr std::string_view extremes =
    R"C(/* The largest (smallest) float: NaN is looked for aside and in pairs, which keeps the chain of dependent operations short. */
#define MOREL_EXTREME(name, T, I, identity, combine, beyond)                                  \
  MOREL_SHARED void morel_reduce_##name(T* restrict row, const T* restrict x, int64_t m) {    \
    enum { half = MOREL_LANES / 2 };                                                          \
    const int64_t whole = m & -MOREL_LANES;                                                   \
    if (whole) {                                                                              \
      T low[half], high[half], start = identity;                                              \
      I nan[half], none = 0;                                                                  \
      MOREL_HIDE(start);                                                                      \
      MOREL_HIDE(none);                                                                       \
      for (int l = 0; l < half; ++l) low[l] = high[l] = start, nan[l] = none;                 \
      MOREL_ROLLED                                                                            \
      for (int64_t i = 0; i < whole; i += MOREL_LANES) {                                      \
        for (int l = 0; l < half; ++l) {                                                      \
          const T a = x[i + l], b = x[i + half + l];                                          \
          low[l] = beyond(low[l], a);                                                         \
          high[l] = beyond(high[l], b);                                                       \
          nan[l] |= __builtin_isunordered(a, b) ? -1 : 0;                                     \
        }                                                                                     \
      }                                                                                       \
      for (int l = 0; l < half; ++l) {                                                        \
        row[l] = combine(row[l], nan[l] ? (T)NAN : low[l]);                                   \
        row[half + l] = combine(row[half + l], high[l]);                                      \
      }                                                                                       \
    }                                                                                         \
    for (int64_t l = 0; l < m - whole; ++l) row[l] = combine(row[l], x[whole + l]);           \
  }                                                                                           \
  MOREL_SHARED T morel_fold_##name(const T* row) {                                            \
    int nan = 0;                                                                              \
    for (int l = 0; l < MOREL_LANES; ++l) nan |= MOREL_NAN(row[l]);                           \
    MOREL_FOLD(T, beyond)                                                                     \
    return nan ? (T)NAN : x[0];                                                               \
  }
/* Position of the first largest (smallest) element or NaN; a lane without an element has index -1. I counts groups of MOREL_LANES. */
#define MOREL_ARG(name, T, I, before)                                                                                 \
  MOREL_SHARED void morel_reduce_##name(T* restrict row, int64_t* restrict index, const T* restrict x, int64_t m, int64_t j) { \
    const int64_t whole = m & -MOREL_LANES;                                                                                    \
    if (whole) {                                                                                                      \
      T lane[MOREL_LANES];                                                                                                     \
      I group[MOREL_LANES];                                                                                                    \
      for (int l = 0; l < MOREL_LANES; ++l) lane[l] = x[l], group[l] = 0;                                                      \
      for (int64_t i = MOREL_LANES; i < whole; i += MOREL_LANES) {                                                                      \
        for (int l = 0; l < MOREL_LANES; ++l) {                                                                                \
          const T value = x[i + l];                                                                                   \
          const int better = before(value, lane[l]) | (MOREL_NAN(value) & !MOREL_NAN(lane[l]));                       \
          lane[l] = better ? value : lane[l];                                                                         \
          group[l] = better ? (I)(i / MOREL_LANES) : group[l];                                                                 \
        }                                                                                                             \
      }                                                                                                               \
      for (int l = 0; l < MOREL_LANES; ++l) {                                                                                  \
        const T value = lane[l], best = row[l];                                                                       \
        const int better = (index[l] < 0) | before(value, best) | (MOREL_NAN(value) & !MOREL_NAN(best));              \
        row[l] = better ? value : best;                                                                               \
        index[l] = better ? j + MOREL_LANES * (int64_t)group[l] + l : index[l];                                                \
      }                                                                                                               \
    }                                                                                                                 \
    for (int64_t l = 0; l < m - whole; ++l) {                                                                         \
      const T value = x[whole + l], best = row[l];                                                                    \
      const int better = (index[l] < 0) | before(value, best) | (MOREL_NAN(value) & !MOREL_NAN(best));                \
      row[l] = better ? value : best;                                                                                 \
      index[l] = better ? j + whole + l : index[l];                                                                   \
    }                                                                                                                 \
  }                                                                                                                   \
  MOREL_SHARED int64_t morel_fold_##name(T* row, int64_t* index) {                                                    \
    for (int half = MOREL_LANES / 2; half; half /= 2) {                                                                            \
      for (int l = 0; l < half; ++l) {                                                                                \
        const T value = row[l + half], best = row[l];                                                                 \
        if (index[l + half] < 0) continue;                                                                            \
        const int same = (value == best) | (MOREL_NAN(value) & MOREL_NAN(best));                                      \
        const int better = (index[l] < 0) | before(value, best) | (MOREL_NAN(value) & !MOREL_NAN(best)) |             \
                           (same & (index[l + half] < index[l]));                                                     \
        if (better) row[l] = value, index[l] = index[l + half];                                                       \
      }                                                                                                               \
    }                                                                                                                 \
    return index[0] < 0 ? 0 : index[0];                                                                               \
  }
)C";

}  // namespace

std::string c_prelude() {
  std::string text = "/* Generated by morel-loopgen: do not edit. */\n";
  text += "#define MOREL_LANES " + std::to_string(loops::num_lanes) + "\n";
  text += "#define MOREL_BLOCK " + std::to_string(loops::block_size) + "\n";
  for (std::string_view part :
       {basics, bits, passes, halves, half_blocks, integers, floats, copies, combiners, folds, comparisons, extremes})
    text += part;
  return text;
}

std::string plain_prelude() {
  return "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n\n"
         "#define MOREL_INLINE static inline __attribute__((always_inline, unused))\n" +
         std::string(bits) +
         // The functions are written once for signed and unsigned types.
         "#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wtype-limits\"\n" + scalar_prelude() +
         "#pragma GCC diagnostic pop\n";
}

std::string scalar_prelude() {
  std::string text;
  for (std::string_view part : {halves, integers, floats, combiners, comparisons}) text += part;
  return text;
}

}  // namespace morel::codegen
