// General matrix product over our thread pool: C = activation(alpha * A B + beta * C + bias), row-major thinking, with
// free strides on both axes of every matrix, so transposes are stride swaps.
//
// Who computes: our own kernels for every dtype and shape (gemm_simd.inc; gemm_thin_simd.inc where reading B is the
// cost), oneDNN for large float32 tiles and for bfloat16 where the CPU multiplies it in hardware. Work is cut into
// tiles by shape alone.
#pragma once

#include <cstdint>

#include "morel/base/small_vector.h"
#include "morel/kernels/epilogue.h"
#include "morel/tensor/dtype.h"

namespace morel {

enum class GemmActivation : uint8_t { None, Relu };

// One batch axis: number of items and how far apart (elements) they lie in each matrix; stride 0 broadcasts (not for
// C).
struct GemmBatchAxis {
  int64_t size = 1;
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
};

struct Gemm {
  DType dtype = DType::Float32;  // of all matrices; halves are multiplied and summed in float32
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;       // m x k
  int64_t a_row = 0, a_col = 1;  // strides in elements
  const void* b = nullptr;       // k x n
  int64_t b_row = 0, b_col = 1;
  void* c = nullptr;  // m x n; must not overlap a and b
  int64_t c_row = 0, c_col = 1;
  double alpha = 1;
  double beta = 0;             // with 0, C is only written
  const void* bias = nullptr;  // n contiguous elements, added to each row; null: none
  GemmActivation activation = GemmActivation::None;
  SmallVector<GemmBatchAxis, 4> batch;  // outermost first
  const Epilogue* epilogue = nullptr;   // on C, which is dense and row-major then

  // Contiguous row-major matrices.
  static Gemm contiguous(DType dtype, int64_t m, int64_t n, int64_t k, const void* a, bool transpose_a, const void* b,
                         bool transpose_b, void* c);
};

void gemm(const Gemm& problem);

}  // namespace morel
