// A loop program ready to run: compiled ahead of time where the library has it, else while the program runs.
#pragma once

#include <memory>
#include <string>

#include "morel/loops/library.h"
#include "morel/loops/run/kernel.h"
#include "morel/runtime/jit.h"

namespace morel {

// A program that the library lacks.
class LateKernel final : public loops::Kernel {
 public:
  explicit LateKernel(loops::Program program) : late_(std::make_shared<LateLoop>(std::move(program))) {}
  bool want(int64_t elements) const override { return late_->want(elements); }
  bool is_compiled() const { return late_->is_compiled(); }

 private:
  void run_late(const loops::LoopArgs& args) const override { late_->run(args); }
  std::shared_ptr<LateLoop> late_;
};

// The kernel called `name`; `make` builds its program when the library lacks it.
template <class Make>
std::unique_ptr<loops::Kernel> make_loop_kernel(const std::string& name, Make&& make) {
  if (const loops::LoopFn compiled = loops::find_loop(name)) return std::make_unique<loops::Kernel>(compiled);
  return std::make_unique<LateKernel>(make());
}

}  // namespace morel
