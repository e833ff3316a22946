// A loop program ready to run.
#pragma once

#include "morel/loops/program.h"

namespace morel::loops {

// Buffers that a kernel has at most; a row-wise one may have more (rows.h).
inline constexpr int max_loop_operands = 16;
// Results of this many bytes are stored past the caches, which would read every line first only to overwrite it, and
// from which most of the result would be gone before anybody reads it.
inline constexpr int64_t streaming_bytes = int64_t{16} << 20;

class Kernel {
 public:
  explicit Kernel(LoopFn compiled = nullptr) : compiled_(compiled) {}
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  void operator()(const LoopArgs& args) const {
    if (compiled_) [[likely]] {
      compiled_(&args);
    } else {
      run_late(args);
    }
  }
  // Notes that code for so many elements is wanted; whether it is there.
  virtual bool want(int64_t elements) const { return true; }

 protected:
  virtual void run_late(const LoopArgs&) const {}  // without compiled code

 private:
  LoopFn compiled_;
};

}  // namespace morel::loops
