// Names of C that OpenCL C lacks or spells otherwise; with them it reads the text of c/scalar.h.
#include "morel/codegen/c/scalar.h"
#include "morel/codegen/opencl/emit.h"

namespace morel::codegen {
namespace {

constexpr std::string_view dialect = R"C(#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
#define _Bool bool
#define half half_name /* a type here, a name in C */
#define INT64_MAX ((int64_t)0x7fffffffffffffffUL)
#define INT64_MIN ((int64_t)0x8000000000000000UL)
#define UINT64_MAX 0xffffffffffffffffUL
#define MOREL_INLINE static inline
#define __builtin_inff() as_float(0x7f800000u)
#define __builtin_inf() as_double(0x7ff0000000000000UL)
#define __builtin_nanf(text) as_float(0x7fc00000u)
#define __builtin_nan(text) as_double(0x7ff8000000000000UL)
#define __builtin_fabsf fabs
#define __builtin_fabs fabs
#define __builtin_sqrtf sqrt
#define __builtin_sqrt sqrt
#define __builtin_floorf floor
#define __builtin_floor floor
#define __builtin_ceilf ceil
#define __builtin_ceil ceil
#define __builtin_truncf trunc
#define __builtin_trunc trunc
#define __builtin_rintf rint
#define __builtin_rint rint
#define fmodf fmod
#define powf pow
#define atan2f atan2
#define lgammaf lgamma
#define expf exp
#define exp2f exp2
#define expm1f expm1
#define logf log
#define log2f log2
#define log10f log10
#define log1pf log1p
#define sinf sin
#define cosf cos
#define tanf tan
#define asinf asin
#define acosf acos
#define atanf atan
#define sinhf sinh
#define coshf cosh
#define tanhf tanh
#define asinhf asinh
#define acoshf acosh
#define atanhf atanh
#define erff erf
#define erfcf erfc
MOREL_INLINE float morel_fma_f32(float x, float y, float z) { return fma(x, y, z); }
MOREL_INLINE double morel_fma_f64(double x, double y, double z) { return fma(x, y, z); }
MOREL_INLINE uint32_t morel_bits_f32(float x) { return as_uint(x); }
MOREL_INLINE float morel_float_f32(uint32_t bits) { return as_float(bits); }
MOREL_INLINE uint64_t morel_bits_f64(double x) { return as_ulong(x); }
MOREL_INLINE double morel_float_f64(uint64_t bits) { return as_double(bits); }
)C";

}  // namespace

std::string opencl_prelude() {
  return std::string(dialect) + "#define MOREL_LANES " + std::to_string(loops::num_lanes) + "\n#define MOREL_BLOCK " +
         std::to_string(loops::block_size) + "\n" + scalar_prelude();
}

}  // namespace morel::codegen
