// One node of an expression over a block of elements.
#pragma once

#include <cstdint>

#include "morel/loops/expr.h"

namespace morel::loops {

// out[i] = op(args[0][i], ...) for i in [0, m); blocks hold values of the nodes' types (bool: one byte).
void evaluate(const ExprNode& node, const void* const* args, void* out, int64_t m);
void fill_constant(const ExprNode& node, void* out, int64_t m);
// Elements of a buffer to values of the compute type, and back.
void load_block(DType storage, const char* from, int64_t stride, void* out, int64_t m);
void store_block(DType storage, char* to, int64_t stride, const void* values, int64_t m);

}  // namespace morel::loops
