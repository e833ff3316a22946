// Reduction of a tensor into an existing one; also used where partial results of other kernels are combined.
#pragma once

#include "morel/ops/registry.h"

namespace morel {

// out = op over `axes` (sorted, non-negative) of input. `out` has the shape of the result and a dtype that the library
// reduces input's dtype to (has_reduce_program). Positional operators need axes that can be merged into one.
void reduce_into(const OpDef& op, const Tensor& input, const Ints& axes, const Tensor& out, bool keep_dims);

}  // namespace morel
