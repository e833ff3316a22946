// Elementwise operators without a name in ONNX, by their expressions.
#pragma once

#include "morel/ops/registry.h"

namespace morel::onnx {

// The result of an elementwise call as operators that ONNX has; null where its expression has something else.
Sym compose_loop(const Call& call, DType result);

}  // namespace morel::onnx
