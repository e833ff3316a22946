// Reductions of whole tensors. Whatever set of axes is reduced, the work becomes passes of two kernels: Rows (the
// reduced axis is the innermost one in memory) and Columns (a kept axis is innermost). How a pass is cut into tasks and
// partial results follows from shape and strides alone, so results are the same bits for every number of threads.
#pragma once

#include "morel/loops/run/kernel.h"
#include "morel/tensor/tensor.h"

namespace morel::loops {

// What is reduced how, and its kernels.
struct Reduction {
  ReduceOp op;
  explicit Reduction(ReduceOp reduce) : op(reduce) {}
  virtual ~Reduction() = default;
  virtual const Kernel& kernel(DType in, DType out, ProgramKind kind) const = 0;
  bool is_positional() const { return op == ReduceOp::ArgMin || op == ReduceOp::ArgMax; }
};

// out = op over `axes` (sorted, non-negative) of input. `out` has the shape of the result and a dtype that there are
// kernels for. Positional operators need axes that can be merged into one.
void reduce(const Reduction& op, const Tensor& input, const Ints& axes, const Tensor& out, bool keep_dims);
// Whether the axes follow each other in memory as they do in the shape.
bool can_merge(const Tensor& input, const Ints& axes);

// The layout with the reduced axes in one piece behind the others, so that positions count along all of them.
Layout reduced_last(const Layout& layout, const Ints& axes);

// What a reduction reduces, where a loop computes it from contiguous tensors of the same shape and from scalars.
struct ReduceLoop {
  struct Operand {
    char* data;
    int64_t stride;  // in bytes from element to element; 0 for scalars
  };
  const Kernel &rows, &columns;  // the operands, then the result
  SmallVector<Operand, 8> operands;
};
// out = op over `axes` of the elements of `space`, which have the type `in`. `out` has the type in which op computes.
// The order is that of a contiguous tensor.
void reduce(const Reduction& op, const ReduceLoop& loop, DType in, const Shape& space, const Ints& axes,
            const Tensor& out, bool keep_dims);

}  // namespace morel::loops
