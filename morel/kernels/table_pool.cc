// Pooling of the kernel table.
#include "morel/kernels/pool.h"
#include "morel/kernels/table.h"
#include "morel/kernels/tensor_view.h"

namespace morel {
namespace {

using kernels::view4;

// kernel_size, stride, padding (top, bottom, left, right), dilation from argument `first` on.
Pool2d window_at(const KernelCall& call, size_t first) {
  const Ints &kernel = call.ints(first), &stride = call.ints(first + 1), &padding = call.ints(first + 2),
             &dilation = call.ints(first + 3);
  Pool2d pool;
  pool.dtype = call.outs[0].dtype();
  pool.kernel = {kernel[0], kernel[1]};
  pool.stride = {stride[0], stride[1]};
  pool.padding = {padding[0], padding[1], padding[2], padding[3]};
  pool.dilation = {dilation[0], dilation[1]};
  return pool;
}

// As above, then ceil_mode, count_include_pad, divisor_override.
Pool2d average_at(const KernelCall& call, size_t first) {
  Pool2d pool = window_at(call, first);
  pool.count_include_pad = call.flag(first + 5);
  pool.divisor_override = call.integer(first + 6);
  return pool;
}

Pool2d adaptive(const KernelCall& call) {
  Pool2d pool;
  pool.dtype = call.outs[0].dtype();
  pool.adaptive = true;
  return pool;
}

void max_pool(const KernelCall& call, const Pool2d& pool) {
  const Tensor& indices = call.outs[1];
  max_pool2d_forward(pool, view4(call.tensor(0)), view4(call.outs[0]), indices ? view4(indices) : View4());
}

// args: input, kernel_size, stride, padding, dilation, ceil_mode; outs: values, indices.
void max_pool2d_with_indices(const KernelCall& call) { max_pool(call, window_at(call, 1)); }

Tensor indices(const KernelCall& call) {
  const Tensor given = call.tensor(1);
  return given.dtype() == DType::Int32 ? given : call.contiguous(1, DType::Int32);
}

// args: dout, indices, size, kernel_size, stride, padding, dilation.
void max_pool2d_grad(const KernelCall& call) {
  max_pool2d_backward(window_at(call, 3), view4(call.tensor(0)), view4(indices(call)), view4(call.outs[0]));
}

// args: input, kernel_size, stride, padding, dilation, ceil_mode, count_include_pad, divisor_override.
void average_pool2d(const KernelCall& call) {
  average_pool2d_forward(average_at(call, 1), view4(call.tensor(0)), view4(call.outs[0]));
}

// args: dout, size, kernel_size, ... as above.
void average_pool2d_grad(const KernelCall& call) {
  average_pool2d_backward(average_at(call, 2), view4(call.tensor(0)), view4(call.outs[0]));
}

// args: input, output_size; outs: values, indices.
void adaptive_max_pool2d_with_indices(const KernelCall& call) { max_pool(call, adaptive(call)); }

// args: dout, indices, size.
void adaptive_max_pool2d_grad(const KernelCall& call) {
  max_pool2d_backward(adaptive(call), view4(call.tensor(0)), view4(indices(call)), view4(call.outs[0]));
}

// args: input, output_size.
void adaptive_average_pool2d(const KernelCall& call) {
  average_pool2d_forward(adaptive(call), view4(call.tensor(0)), view4(call.outs[0]));
}

// args: dout, size.
void adaptive_average_pool2d_grad(const KernelCall& call) {
  average_pool2d_backward(adaptive(call), view4(call.tensor(0)), view4(call.outs[0]));
}

}  // namespace

std::span<const KernelEntry> pool_kernels() {
  constexpr uint32_t indices = 1 << 1;
  static constexpr KernelEntry entries[] = {
      {"max_pool2d_with_indices", max_pool2d_with_indices, {}, nullptr, indices},
      {"max_pool2d_grad", max_pool2d_grad},
      {"average_pool2d", average_pool2d},
      {"average_pool2d_grad", average_pool2d_grad},
      {"adaptive_max_pool2d_with_indices", adaptive_max_pool2d_with_indices, {}, nullptr, indices},
      {"adaptive_max_pool2d_grad", adaptive_max_pool2d_grad},
      {"adaptive_average_pool2d", adaptive_average_pool2d},
      {"adaptive_average_pool2d_grad", adaptive_average_pool2d_grad},
  };
  return selected<entries>;
}

}  // namespace morel
