// What a loop program reads and writes, in the order of its buffers: all that a caller needs to know of a kernel.
#pragma once

#include "morel/base/small_vector.h"
#include "morel/tensor/dtype.h"

namespace morel::loops {

struct LoopSignature {
  struct Output {
    DType dtype;
    bool per_row;  // one element for each row
  };
  SmallVector<DType, 6> inputs;
  SmallVector<Output, 3> outputs;
  SmallVector<DType, 2> scratch;
};

// From what an upper layer says of a program with fields of the same names.
template <class S>
LoopSignature signature_from(const S& from) {
  LoopSignature out;
  for (const auto& x : from.inputs) out.inputs.push_back(x);
  for (const auto& x : from.outputs) out.outputs.push_back({x.dtype, x.per_row});
  for (const auto& x : from.scratch) out.scratch.push_back(x);
  return out;
}

}  // namespace morel::loops
