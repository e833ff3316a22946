// Elementwise loop kernels over whole tensors: broadcasting, merging of axes, tasks.
#pragma once

#include <array>
#include <span>

#include "morel/loops/run/kernel.h"
#include "morel/tensor/value.h"

namespace morel::loops {

// One operand of a nested loop: first element and strides in bytes for every axis of the iteration space.
struct LoopOperand {
  char* data;
  Strides strides;
};

// Runs `kernel` over the whole iteration space `shape`: merges axes, orders them by the strides of the last operand
// (the output), cuts large work into tasks. stream: LoopArgs::stream.
void run_loop(const Kernel& kernel, const Shape& shape, std::span<LoopOperand> operands, const double* params,
              bool stream = false);

// What a kernel reads: tensors or numbers of the types that its program has, and parameters.
template <size_t max>
struct Operands {
  std::array<const TensorImpl*, max> tensors{};  // null for a number
  std::array<std::array<char, 16>, max> scalars;
  std::array<double, max> params{};
  size_t count = 0, num_params = 0;
};
inline constexpr size_t max_elementwise_operands = 6;
using ElementOperands = Operands<max_elementwise_operands>;

// One pass of a kernel with one output over operands that broadcast to the shape of `out`.
void run_elementwise(const Kernel& kernel, const ElementOperands& in, const Tensor& out);
// The same for tensors alone and several outputs.
void run_elementwise(const Kernel& kernel, std::span<const Value> inputs, std::span<Tensor> outputs);

// Strides in bytes of a tensor over an iteration space to which it is broadcast.
Strides broadcast_strides(const TensorImpl* tensor, const Shape& space);
// The first tensor of an elementwise result's shape decides about its order in memory: none where that is contiguous.
const TensorImpl* find_donor(std::span<const TensorImpl* const> tensors, const Shape& shape);

}  // namespace morel::loops
