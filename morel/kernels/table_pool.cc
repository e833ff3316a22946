// Pooling of the kernel table.
#include "morel/kernels/pool.h"
#include "morel/kernels/table.h"
#include "morel/kernels/tensor_view.h"

namespace morel {
namespace {

using kernels::view_of;

// kernel_size, stride, padding (top, bottom, left, right), dilation from argument `first` on.
kernels::PoolWindow window_at(const KernelCall& call, size_t first) {
  const Ints &kernel = call.ints(first), &stride = call.ints(first + 1), &padding = call.ints(first + 2), &dilation = call.ints(first + 3);
  return {{kernel[0], kernel[1]}, {stride[0], stride[1]}, {padding[0], padding[2]}, {dilation[0], dilation[1]}};
}

// padding, count_include_pad, divisor_override; `first` is the position of kernel_size.
kernels::AverageRule rule_at(const KernelCall& call, size_t first) {
  const Ints& padding = call.ints(first + 2);
  return {call.flag(first + 5), call.integer(first + 6), {padding[1], padding[3]}};
}

// args: input, kernel_size, stride, padding, dilation, ceil_mode; outs: values, indices.
void max_pool2d_with_indices(const KernelCall& call) {
  kernels::max_pool2d(view_of(call.outs[0]), view_of(call.outs[1]), view_of(call.tensor(0)), window_at(call, 1));
}

// args: dout, indices, size, kernel_size, stride, padding, dilation.
void max_pool2d_grad(const KernelCall& call) {
  kernels::max_pool2d_backward(view_of(call.outs[0]), view_of(call.tensor(0)), view_of(call.tensor(1)));
}

// args: input, kernel_size, stride, padding, dilation, ceil_mode, count_include_pad, divisor_override.
void average_pool2d(const KernelCall& call) {
  kernels::average_pool2d(view_of(call.outs[0]), view_of(call.tensor(0)), window_at(call, 1), rule_at(call, 1));
}

// args: dout, size, kernel_size, ... as above.
void average_pool2d_grad(const KernelCall& call) {
  kernels::average_pool2d_backward(view_of(call.outs[0]), view_of(call.tensor(0)), window_at(call, 2), rule_at(call, 2));
}

}  // namespace

std::span<const KernelEntry> pool_kernels() {
  static constexpr KernelEntry entries[] = {
      {"max_pool2d_with_indices", max_pool2d_with_indices},
      {"max_pool2d_grad", max_pool2d_grad},
      {"average_pool2d", average_pool2d},
      {"average_pool2d_grad", average_pool2d_grad},
  };
  return entries;
}

}  // namespace morel
