// The reduction of an operator's entry.
#pragma once

#include "morel/loops/run/reduce.h"
#include "morel/ops/registry.h"

namespace morel {

class OpReduction final : public loops::Reduction {
 public:
  explicit OpReduction(const OpDef& op) : Reduction(*op.reduce), entry_(op) {}
  const loops::Kernel& kernel(DType in, DType out, loops::ProgramKind kind) const override;

 private:
  const OpDef& entry_;
};

// To what the input is converted, and in what type the result is computed before it is converted to `wanted`: pairs
// that the library has.
struct ReduceTypes {
  DType in, out;
};
ReduceTypes reduce_types(const OpDef& op, DType in, DType wanted);

// Adds the partial sums of columns kernels.
const loops::Reduction& partial_sums();

}  // namespace morel
