// The ahead-of-time library: loop programs compiled at build time, for several instruction sets.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "morel/loops/program.h"

namespace morel::loops {

// Instruction sets of x86-64 that the library is compiled for, lowest first; other machines have one, the compiler's
// default.
enum class Isa : uint8_t { Sse4, Avx2, Avx512 };
inline constexpr int num_isas = 3;

struct LibraryEntry {
  std::string_view name;
  LoopFn functions[num_isas];  // null where the kernel is not compiled; on other machines only the first is set
};

// Defined by the generated loops_table.cc, sorted by name.
std::span<const LibraryEntry> library();

// Name of an operator's reduction: "sum.f32.f32.rows".
std::string reduction_name(std::string_view op, DType in, DType out, ProgramKind kind);

// Highest instruction set of this machine, lowered by MOREL_ISA=sse4|avx2|avx512; -1 when there is none that we have
// kernels for, or when MOREL_KERNELS=interp asks for the interpreter.
int active_isa();
// The compiled kernel of a program; null when the library lacks it (then interpret() runs it).
LoopFn find_loop(std::string_view program_name);

}  // namespace morel::loops
