#include "morel/kernels/gemm_block.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "morel/base/error.h"
#include "morel/kernels/selection.h"

#define MOREL_SIMD_FILE "morel/kernels/gemm_simd.inc"
#include "morel/kernels/simd.h"

namespace morel {

// Whether matrices of a selected dtype are multiplied in this one.
static consteval bool is_multiplied(DType block) {
  for (int i = 0; i < num_dtypes; ++i)
    if (is_selected("gemm", DType(i)) && block_dtype(DType(i)) == block) return true;
  return false;
}

GemmBlockFn gemm_block_kernel(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      if constexpr (is_multiplied(DType::Float32)) return MOREL_SIMD_CALL(gemm_block_float32);
      break;
    case DType::Float64:
      if constexpr (is_multiplied(DType::Float64)) return MOREL_SIMD_CALL(gemm_block_float64);
      break;
    case DType::Int32:
      if constexpr (is_multiplied(DType::Int32)) return MOREL_SIMD_CALL(gemm_block_int32);
      break;
    case DType::Int64:
      if constexpr (is_multiplied(DType::Int64)) return MOREL_SIMD_CALL(gemm_block_int64);
      break;
    default: break;
  }
  raise(ErrorKind::Internal, "internal error: no block kernel for ", info(dtype).name, ".");
}

void widen_halves(DType from, const void* source, float* target, int64_t n) {
  if (from == DType::Float16) {
    MOREL_SIMD_CALL(widen_float16_run)(static_cast<const Float16*>(source), target, n);
  } else {
    MOREL_SIMD_CALL(widen_bfloat16_run)(static_cast<const BFloat16*>(source), target, n);
  }
}

void narrow_halves(DType to, const float* source, void* target, int64_t n) {
  if (to == DType::Float16) {
    MOREL_SIMD_CALL(narrow_float16_run)(source, static_cast<Float16*>(target), n);
  } else {
    MOREL_SIMD_CALL(narrow_bfloat16_run)(source, static_cast<BFloat16*>(target), n);
  }
}

namespace {

struct Scratch {
  static constexpr std::align_val_t alignment{64};
  void* data = nullptr;
  int64_t size = 0;
  ~Scratch() { ::operator delete(data, alignment); }
  void* at_least(int64_t bytes) {
    if (bytes > size) {
      ::operator delete(std::exchange(data, nullptr), alignment);
      size = 0;
      data = ::operator new(static_cast<size_t>(bytes), alignment);
      size = bytes;
    }
    return data;
  }
};

}  // namespace

void* gemm_scratch(ScratchSlot slot, int64_t bytes) {
  thread_local Scratch slots[static_cast<int>(ScratchSlot::StagedBias) + 1];
  return slots[static_cast<int>(slot)].at_least(bytes);
}

}  // namespace morel
