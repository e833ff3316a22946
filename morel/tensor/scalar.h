// Python scalars as one element of a loop's operand.
#pragma once

#include "morel/tensor/value.h"

namespace morel {

// Writes `value` as one element of `dtype` to `out` (16 bytes suffice).
void store_scalar(const Value& value, DType dtype, void* out);

}  // namespace morel
