// Between gemm.cc, which cuts a product into blocks, and gemm_simd.inc, which computes one block on one thread.
#pragma once

#include <cstdint>

#include "morel/tensor/dtype.h"

namespace morel {

// C = relu?(alpha * A B + beta * C + bias), all of the function's element type; C's columns are contiguous.
struct GemmBlock {
  int64_t m, n, k;
  const void* a;
  int64_t a_row, a_col;
  const void* b;
  int64_t b_row, b_col;
  void* c;
  int64_t c_row;
  double alpha, beta;
  const void* bias;  // n elements or null
  bool relu;
};

// Steps of a sum through which A and B lie evenly: all of a product's; a convolution's where its image does. Before
// them, so many elements of A and B are skipped.
struct GemmRun {
  int64_t skip_a, skip_b, k;
};

// Products with at most this many rows, whose B is contiguous along one axis and larger than the second-level cache's
// share, go to the thin kernels.
inline constexpr int64_t thin_rows = 16;

// The type whose block kernel multiplies matrices of `dtype`: complex ones go as planes, integers modulo a power of
// two.
constexpr DType block_dtype(DType dtype) {
  switch (dtype) {
    case DType::Float64:
    case DType::Complex128: return DType::Float64;
    case DType::Int64:
    case DType::UInt64: return DType::Int64;
    default: return is_float(dtype) || is_complex(dtype) ? DType::Float32 : DType::Int32;
  }
}

using GemmBlockFn = void (*)(const GemmBlock& block);
// The best version of this machine. The block kernels take float32, float64, int32 or int64 matrices; the thin ones
// float64, float32, float16 or bfloat16 (A, B, C and bias alike).
GemmBlockFn gemm_block_kernel(DType dtype);
GemmBlockFn gemm_thin_kernel(DType dtype);
// Between a half type and float32.
void widen_halves(DType from, const void* source, float* target, int64_t n);
void narrow_halves(DType to, const float* source, void* target, int64_t n);

// Memory of this thread for packed panels and converted blocks: at least `bytes`, aligned to 64. A slot's memory is
// valid until the same thread asks for more of the same slot.
enum class ScratchSlot { PackedA, PackedB, StagedA, StagedB, StagedC, StagedBias };
void* gemm_scratch(ScratchSlot slot, int64_t bytes);

}  // namespace morel
