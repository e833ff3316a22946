// Loop programs compiled while the program runs, for signatures that the library lacks. The compiler is a library of
// its own, libmorel_llvm.so, opened from the folder of libmorel.so when it is first needed; without it, or with
// MOREL_JIT=off, such programs are interpreted, with the same results bit for bit.
#pragma once

#include <atomic>
#include <memory>

#include "morel/codegen/llvm/jit.h"
#include "morel/loops/program.h"

namespace morel {

// The compiled kernel, now; null when there is no compiler or it fails. Thread-safe.
loops::LoopFn jit_compile(const loops::Program& program);
codegen::JitStats jit_stats();  // zeros while no compiler is loaded
// The program as this machine computes it: where the library's kernels have no fused multiply-add, nor do others.
loops::Program for_this_machine(loops::Program program);

// A program that is interpreted until its code is there. A thread in the background compiles what has been at work for
// a while (MOREL_JIT=now: at once, in front of the first call).
class LateLoop : public std::enable_shared_from_this<LateLoop> {
 public:
  explicit LateLoop(loops::Program program) : program_(for_this_machine(std::move(program))) {}
  void run(const loops::LoopArgs& args);
  bool is_compiled() const { return compiled_.load(std::memory_order_relaxed) != nullptr; }
  // Notes that code for so many elements was wanted; whether it is there.
  bool want(int64_t elements);
  void compile();  // by the thread in the background

 private:
  void count(int64_t elements);

  std::atomic<loops::LoopFn> compiled_{nullptr};
  std::atomic<int64_t> work_{0};
  const loops::Program program_;
};

}  // namespace morel
