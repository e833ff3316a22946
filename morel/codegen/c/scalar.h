// C text of one scalar operation. OpenCL C is the same text: its prelude (opencl/emit.h) gives a meaning to the few
// names that differ, so there is one printer.
#pragma once

#include <span>
#include <string>

#include "morel/loops/program.h"

namespace morel::codegen {

std::string c_type(DType dtype);          // of a value: _Bool, int8_t, float, float _Complex ...
std::string c_storage_type(DType dtype);  // of an element in memory: bool, halves and integers as unsigned bits
std::string c_literal(std::complex<double> value, DType dtype);
// `args` are C expressions without side effects (names or literals).
std::string c_operation(const loops::ExprNode& node, std::span<const std::string> args);

inline bool is_arg(loops::ReduceOp op) { return op == loops::ReduceOp::ArgMin || op == loops::ReduceOp::ArgMax; }
std::string identity(loops::ReduceOp op, DType dtype);
// Name of the macro or function that combines two values.
std::string combiner(loops::ReduceOp op, DType dtype);
// The functions that this text calls: a part of every prelude.
std::string scalar_prelude();

}  // namespace morel::codegen
