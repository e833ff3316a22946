// Loop programs as C text: one function per program. A row is treated in blocks; buffers that are contiguous are used
// in place, all others (strided, broadcast, float16, the rest of a row that is no whole vector) pass through a small
// block on the stack. So there is one vectorisable loop per stage, whatever the strides are, and it never needs a
// remainder loop.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "morel/loops/program.h"

namespace morel::codegen {

// Text in front of all kernels of a file.
std::string c_prelude();
// Instances of the prelude's reductions that the program calls: lines that must appear once in a file, before it.
std::set<std::string> c_requirements(const loops::Program& program);
// `add.f32`, `avx2` -> `morel_add_f32_avx2`.
std::string c_symbol(std::string_view program_name, std::string_view isa);
// The function, with external linkage: void symbol(const morel_loop_args*).
std::string c_function(const loops::Program& program, const std::string& symbol);

}  // namespace morel::codegen
