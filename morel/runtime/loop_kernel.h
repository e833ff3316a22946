// A loop program ready to run: compiled ahead of time where the library has it, else interpreted.
#pragma once

#include <memory>

#include "morel/loops/program.h"

namespace morel {

class LoopKernel {
 public:
  LoopKernel(loops::LoopFn compiled, loops::Program program) : compiled_(compiled), program_(std::move(program)) {}
  void operator()(const loops::LoopArgs& args) const {
    if (compiled_) [[likely]] {
      compiled_(&args);
    } else {
      loops::interpret(program_, args);
    }
  }
  bool is_compiled() const { return compiled_ != nullptr; }

 private:
  loops::LoopFn compiled_;
  loops::Program program_;  // empty when compiled
};

// The kernel called `name`; `make` builds its program when the library lacks it.
template <class Make>
std::unique_ptr<LoopKernel> make_loop_kernel(const std::string& name, Make&& make);

// One operand of a nested loop: first element and strides in bytes for every axis of the iteration space.
struct LoopOperand {
  char* data;
  Strides strides;
};

// Runs `kernel` over the whole iteration space `shape`: merges axes, orders them by the strides of the last operand
// (the output), cuts large work into tasks.
void run_loop(const LoopKernel& kernel, const Shape& shape, std::span<LoopOperand> operands, const double* params);

}  // namespace morel

#include "morel/loops/library.h"

namespace morel {
template <class Make>
std::unique_ptr<LoopKernel> make_loop_kernel(const std::string& name, Make&& make) {
  if (const loops::LoopFn compiled = loops::find_loop(name))
    return std::make_unique<LoopKernel>(compiled, loops::Program{});
  return std::make_unique<LoopKernel>(nullptr, make());
}
}  // namespace morel
