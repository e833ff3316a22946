// Reduction of a tensor into an existing one; also used where partial results of other kernels are combined.
#pragma once

#include "morel/ops/registry.h"
#include "morel/runtime/loop_kernel.h"

namespace morel {

// out = op over `axes` (sorted, non-negative) of input. `out` has the shape of the result and a dtype that the library
// reduces input's dtype to (has_reduce_program). Positional operators need axes that can be merged into one.
void reduce_into(const OpDef& op, const Tensor& input, const Ints& axes, const Tensor& out, bool keep_dims);

// The reduced axes in one piece behind the others, so that positions count along all of them; contiguous.
Tensor reduced_last(const Tensor& input, const Ints& axes);

// What a reduction reduces, where a loop computes it from contiguous tensors of the same shape and from scalars.
struct ReduceLoop {
  struct Operand {
    char* data;
    int64_t stride;  // in bytes from element to element; 0 for scalars
  };
  const LoopKernel &rows, &columns;  // the operands, then the result
  SmallVector<Operand, 8> operands;
};
// out = op over `axes` of the elements of `space`, which have the type `in`. `out` has the type in which op computes.
// The order is that of reduce_into for a contiguous tensor.
void reduce_loop(const OpDef& op, const ReduceLoop& loop, DType in, const Shape& space, const Ints& axes,
                 const Tensor& out, bool keep_dims);

}  // namespace morel
