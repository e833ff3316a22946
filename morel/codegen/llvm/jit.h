// Compiles loop programs for this machine through LLVM's ORC. This is the interface of libmorel_llvm.so, which
// libmorel.so opens when it first needs it (runtime/jit.h); nothing of LLVM shows here.
#pragma once

#include <cstdint>

#include "morel/loops/program.h"

namespace morel::codegen {

struct JitStats {
  int64_t compiled = 0;     // by LLVM, in this process
  int64_t memory_hits = 0;  // asked for again
  int64_t disk_hits = 0;    // found on disk
};

struct JitInterface {
  // Compiles, or finds a program of the same content that was compiled before. Thread-safe. Null when that fails.
  loops::LoopFn (*compile)(const loops::Program& program);
  JitStats (*stats)();
};

// The one symbol that is looked up by name. It changes with what it returns.
inline constexpr const char* jit_interface_symbol = "morel_jit_interface_1";

}  // namespace morel::codegen
