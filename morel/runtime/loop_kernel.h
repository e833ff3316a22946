// A loop program ready to run: compiled ahead of time where the library has it, else while the program runs.
#pragma once

#include <memory>
#include <optional>

#include "morel/ir/builder.h"
#include "morel/loops/program.h"
#include "morel/ops/registry.h"
#include "morel/runtime/jit.h"

namespace morel {

class LoopKernel {
 public:
  explicit LoopKernel(loops::LoopFn compiled) : compiled_(compiled) {}
  explicit LoopKernel(loops::Program program) : late_(std::make_shared<LateLoop>(std::move(program))) {}
  void operator()(const loops::LoopArgs& args) const {
    if (compiled_) [[likely]] {
      compiled_(&args);
    } else {
      late_->run(args);
    }
  }
  // Notes that code for so many elements is wanted; whether it is there.
  bool want(int64_t elements) const { return compiled_ || late_->want(elements); }
  bool is_compiled() const { return compiled_ || late_->is_compiled(); }

 private:
  loops::LoopFn compiled_ = nullptr;
  std::shared_ptr<LateLoop> late_;  // when the library lacks the kernel
};

// The kernel called `name`; `make` builds its program when the library lacks it.
template <class Make>
std::unique_ptr<LoopKernel> make_loop_kernel(const std::string& name, Make&& make);

// One operand of a nested loop: first element and strides in bytes for every axis of the iteration space.
struct LoopOperand {
  char* data;
  Strides strides;
};

// Buffers that a kernel of run_loop has at most.
inline constexpr int max_loop_operands = 16;
// Runs `kernel` over the whole iteration space `shape`: merges axes, orders them by the strides of the last operand
// (the output), cuts large work into tasks. stream: LoopArgs::stream.
void run_loop(const LoopKernel& kernel, const Shape& shape, std::span<LoopOperand> operands, const double* params,
              bool stream = false);
// The loops of a row-wise operator, or of a fused group with such ones.
struct RowsKernel {
  RowsSignature signature;
  std::unique_ptr<LoopKernel> rows, across;
  RowsSignature columns_signature;
  std::unique_ptr<LoopKernel> columns;
};
// Buffers that such a kernel has at most.
inline constexpr size_t max_row_buffers = 24;
// Runs rows along the last axis of `space`, to which the inputs broadcast; the results of the columns kernel come last.
void run_fused_rows(const RowsKernel& kernel, const Shape& space, std::span<const Value> inputs,
                    std::span<Tensor> outputs);
// Strides in bytes of a tensor over an iteration space to which it is broadcast.
Strides broadcast_strides(const TensorImpl* tensor, const Shape& space);
// The first tensor of an elementwise result's shape decides about its order in memory: none where that is contiguous.
const TensorImpl* find_donor(std::span<const TensorImpl* const> tensors, const Shape& shape);
// Runs `kernel` over tensors that broadcast to the shape of its outputs.
void run_fused_loop(const LoopKernel& kernel, std::span<const Value> inputs, std::span<Tensor> outputs);

}  // namespace morel

#include "morel/loops/library.h"

namespace morel {
template <class Make>
std::unique_ptr<LoopKernel> make_loop_kernel(const std::string& name, Make&& make) {
  if (const loops::LoopFn compiled = loops::find_loop(name)) return std::make_unique<LoopKernel>(compiled);
  return std::make_unique<LoopKernel>(make());
}
}  // namespace morel
