// C text of one scalar operation.
#pragma once

#include <span>
#include <string>

#include "morel/loops/expr.h"

namespace morel::codegen {

std::string c_type(DType dtype);          // of a value: _Bool, int8_t, float, float _Complex ...
std::string c_storage_type(DType dtype);  // of an element in memory: bool, halves and integers as unsigned bits
std::string c_literal(std::complex<double> value, DType dtype);
// `args` are C expressions without side effects (names or literals).
std::string c_operation(const loops::ExprNode& node, std::span<const std::string> args);

}  // namespace morel::codegen
