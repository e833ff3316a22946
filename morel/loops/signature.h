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

}  // namespace morel::loops
