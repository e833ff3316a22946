// Row-wise loop kernels over whole tensors: a loop program along one axis, for every position of the other axes. Rows
// whose elements are neighbours in memory run one after the other; where neighbours belong to different rows, or rows
// are very short, many rows run side by side (the `across` program). The choice follows from shapes and strides alone.
#pragma once

#include <memory>

#include "morel/loops/run/elementwise.h"
#include "morel/loops/run/reduce.h"
#include "morel/loops/signature.h"

namespace morel::loops {

// The loops of a row-wise operator, or of a fused group with such ones.
struct RowsKernel {
  LoopSignature signature;
  std::unique_ptr<Kernel> rows, across;
  std::unique_ptr<Kernel> columns;  // a companion that sums over all rows; needs
  const Reduction* sum = nullptr;   // what adds its partial sums
};

// Buffers that such a kernel has at most.
inline constexpr size_t max_row_buffers = 24;
using RowOperands = Operands<max_row_buffers>;
inline constexpr size_t max_row_rank = 16;

// Runs rows along `axis` of `space`, to which the operands broadcast. `outs` are contiguous; those of the columns
// kernel come last, and tensors must be contiguous for it.
void run_rows(const RowsKernel& kernel, const RowOperands& in, const Shape& space, size_t axis, std::span<Tensor> outs);

}  // namespace morel::loops
