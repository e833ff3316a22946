// A step of a plan with its tensors, checked once so that it runs unchecked.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "morel/kernels/call.h"
#include "morel/lite/plan.h"
#include "morel/lite/sizes.h"

namespace morel::lite {

class BoundStep {
 public:
  virtual ~BoundStep() = default;
  virtual void run() = 0;
};

// The tensors of the values and the sizes of one function.
struct Scope {
  const Function& function;
  std::span<const Tensor> tensors;
  const SizeValues& sizes;
  const std::vector<bool>& is_read;  // of buffers: whether a step reads it, or the caller
  const Tensor& at(int32_t value) const { return tensors[static_cast<size_t>(value)]; }
  size_t buffer_of(int32_t value) const {
    return static_cast<size_t>(function.values[static_cast<size_t>(value)].buffer);
  }
};

// Of a step without bodies. What the step asks for and this library has not, or shapes that do not fit to a loop, are
// errors now.
std::unique_ptr<BoundStep> bind_step(const Step& step, const Scope& scope);

// Whether the one element of a tensor is true.
bool is_true(const Tensor& tensor);

}  // namespace morel::lite
