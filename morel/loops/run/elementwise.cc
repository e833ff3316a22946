#include "morel/loops/run/elementwise.h"

#include <algorithm>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/loops/run/space.h"

namespace morel::loops {
namespace {

constexpr int max_rank = 16;
// Work below this many elements is not worth waking another core for.
constexpr int64_t parallel_elements = 32768;

int64_t task_grain(int64_t total) { return std::clamp<int64_t>(total / 64, 16384, 131072); }

// Whether the strides are those of a dense permutation of the axes (channels-last, transposed).
bool is_dense_permutation(const Shape& shape, const Strides& strides) {
  std::array<size_t, max_rank> order;
  size_t count = 0;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) order[count++] = i;
  std::sort(order.begin(), order.begin() + count, [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  Dim expected = 1;
  for (size_t i = 0; i < count; ++i) {
    if (strides[order[i]] != expected) return false;
    expected *= shape[order[i]];
  }
  return true;
}

// All tensors share one shape and lie dense in the same order: one flat loop.
bool run_flat(const Kernel& kernel, const ElementOperands& in, const Tensor& out) {
  int64_t strides[max_elementwise_operands + 1];
  char* data[max_elementwise_operands + 1];
  for (size_t i = 0; i < in.count; ++i) {
    const TensorImpl* impl = in.tensors[i];
    if (!impl) {
      data[i] = const_cast<char*>(in.scalars[i].data());
      strides[i] = 0;
      continue;
    }
    if (impl->layout.shape != out.shape()) return false;
    if (out.is_contiguous() ? !impl->contiguous : impl->layout.strides != out.strides()) return false;
    data[i] = static_cast<char*>(impl->data());
    strides[i] = size_of(impl->dtype);
  }
  data[in.count] = static_cast<char*>(out.data());
  strides[in.count] = size_of(out.dtype());
  const int64_t total = out.size();
  const bool stream = total * size_of(out.dtype()) >= streaming_bytes;
  const auto run = [&](int64_t begin, int64_t end) {
    char* at[max_elementwise_operands + 1];
    for (size_t i = 0; i <= in.count; ++i) at[i] = data[i] + begin * strides[i];
    const int64_t row_strides[max_elementwise_operands + 1] = {};
    kernel({1, end - begin, at, row_strides, strides, in.params.data(), stream});
  };
  if (total < parallel_elements) {
    if (total > 0) run(0, total);
  } else {
    parallel_for(total, task_grain(total), run);
  }
  return true;
}

}  // namespace

Strides broadcast_strides(const TensorImpl* tensor, const Shape& space) {
  Strides out;
  out.assign(space.size(), 0);
  const size_t shift = space.size() - tensor->layout.shape.size();
  for (size_t axis = 0; axis < tensor->layout.shape.size(); ++axis)
    if (tensor->layout.shape[axis] != 1) out[axis + shift] = tensor->layout.strides[axis] * size_of(tensor->dtype);
  return out;
}

const TensorImpl* find_donor(std::span<const TensorImpl* const> tensors, const Shape& shape) {
  for (const TensorImpl* impl : tensors) {
    if (!impl || impl->layout.shape != shape) continue;
    if (impl->contiguous) return nullptr;
    if (is_dense_permutation(impl->layout.shape, impl->layout.strides)) return impl;
  }
  return nullptr;
}

void run_loop(const Kernel& kernel, const Shape& shape, std::span<LoopOperand> operands, const double* params,
              bool stream) {
  LoopSpace(shape, operands, operands.back().strides).run(kernel, params, stream);
}

void run_elementwise(const Kernel& kernel, const ElementOperands& in, const Tensor& out) {
  if (run_flat(kernel, in, out)) return;
  const Shape& shape = out.shape();
  std::array<LoopOperand, max_elementwise_operands + 1> operands;
  for (size_t i = 0; i < in.count; ++i) {
    LoopOperand& operand = operands[i];
    operand.strides.assign(shape.size(), 0);
    const TensorImpl* impl = in.tensors[i];
    if (impl) operand = {static_cast<char*>(impl->data()), broadcast_strides(impl, shape)};
    else operand.data = const_cast<char*>(in.scalars[i].data());
  }
  operands[in.count] = {static_cast<char*>(out.data()), broadcast_strides(out.get(), shape)};
  run_loop(kernel, shape, std::span(operands.data(), in.count + 1), in.params.data());
}

void run_elementwise(const Kernel& kernel, std::span<const Value> inputs, std::span<Tensor> outputs) {
  MOREL_ASSERT(inputs.size() + outputs.size() <= max_loop_operands);
  const Shape& shape = outputs[0].shape();
  std::array<LoopOperand, max_loop_operands> operands;
  size_t count = 0;
  const auto add = [&](const TensorImpl* tensor) {
    operands[count++] = {static_cast<char*>(tensor->data()), broadcast_strides(tensor, shape)};
  };
  for (const Value& input : inputs) add(input.tensor_impl());
  for (const Tensor& output : outputs) add(output.get());
  const bool stream = outputs[0].size() * size_of(outputs[0].dtype()) >= streaming_bytes;
  run_loop(kernel, shape, {operands.data(), count}, nullptr, stream);
}

}  // namespace morel::loops
