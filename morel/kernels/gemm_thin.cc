#include <utility>

#include "morel/base/error.h"
#include "morel/kernels/gemm_block.h"
#include "morel/kernels/selection.h"

#define MOREL_SIMD_FILE "morel/kernels/gemm_thin_simd.inc"
#include "morel/kernels/simd.h"

namespace morel {

GemmBlockFn gemm_thin_kernel(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      if constexpr (is_selected("gemm", DType::Float32)) return MOREL_SIMD_CALL(gemm_thin_float32);
      break;
    case DType::Float64:
      if constexpr (is_selected("gemm", DType::Float64)) return MOREL_SIMD_CALL(gemm_thin_float64);
      break;
    case DType::Float16:
      if constexpr (is_selected("gemm", DType::Float16)) return MOREL_SIMD_CALL(gemm_thin_float16);
      break;
    case DType::BFloat16:
      if constexpr (is_selected("gemm", DType::BFloat16)) return MOREL_SIMD_CALL(gemm_thin_bfloat16);
      break;
    default: break;
  }
  raise(ErrorKind::Internal, "internal error: no thin kernel for ", info(dtype).name, ".");
}

}  // namespace morel
