// Convolutions of the kernel table.
#include "morel/kernels/conv.h"
#include "morel/kernels/conv_direct.h"
#include "morel/kernels/int8.h"
#include "morel/kernels/table.h"
#include "morel/kernels/tensor_view.h"

namespace morel {
namespace {

using kernels::view4;

// stride, padding, dilation, groups from argument 3 on.
Conv2d window_of(const KernelCall& call, DType dtype) {
  const Ints &stride = call.ints(3), &padding = call.ints(4), &dilation = call.ints(5);
  Conv2d conv;
  conv.dtype = dtype;
  conv.groups = call.integer(6);
  conv.stride = {stride[0], stride[1]};
  conv.padding = {padding[0], padding[1], padding[2], padding[3]};
  conv.dilation = {dilation[0], dilation[1]};
  return conv;
}

Tensor operand(const KernelCall& call, size_t idx, DType dtype) {
  const Tensor tensor = call.tensor(idx);
  return tensor.dtype() == dtype ? tensor : call.contiguous(idx, dtype);
}

// args: input, weight, bias, ...
void convolution(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor input = operand(call, 0, out.dtype()), weight = operand(call, 1, out.dtype());
  const Tensor bias = call.has(2) ? call.contiguous(2, out.dtype()) : Tensor();
  if (call.prepared) {
    static_cast<const DirectConv*>(call.prepared)->run(view4(input), bias ? bias.as<float>() : nullptr, view4(out));
    return run_epilogue(call.epilogue, out.size());
  }
  conv2d_forward(window_of(call, out.dtype()), view4(input), view4(weight), bias ? bias.data() : nullptr, view4(out),
                 call.epilogue);
}

std::unique_ptr<Prepared> prepare_convolution(const KernelCall& call, uint64_t constants) {
  const Tensor input = call.tensor(0), weight = call.tensor(1);
  const DType dtype = call.outs[0].dtype();
  if (!(constants >> 1 & 1) || input.dtype() != dtype || weight.dtype() != dtype) return nullptr;
  return DirectConv::make(window_of(call, dtype), view4(input), view4(weight), view4(call.outs[0]));
}

// args: dout, weight, size, ...
void convolution_input_grad(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor dout = operand(call, 0, out.dtype()), weight = operand(call, 1, out.dtype());
  conv2d_backward_data(window_of(call, out.dtype()), view4(dout), view4(weight), view4(out), call.epilogue);
}

// args: dout, input, size, ...
void convolution_weight_grad(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor dout = operand(call, 0, out.dtype()), input = operand(call, 1, out.dtype());
  conv2d_backward_weight(window_of(call, out.dtype()), view4(input), view4(dout), view4(out), nullptr);
}

// args: input, weight, bias, ... as above, then what int8 results need.
void quantised_convolution(const KernelCall& call) {
  const Int8Operands given(call, 7);
  const int64_t kernel[] = {given.weight().dim(2), given.weight().dim(3)};
  int8_convolution(window_of(call, DType::Int8), view4(call.tensor(0)), given.weight().as<int8_t>(), kernel,
                   given.bias(), given.to(), view4(call.outs[0]));
}

}  // namespace

std::span<const KernelEntry> conv_kernels() {
  static constexpr KernelEntry entries[] = {
      {"convolution", convolution, "gemm", prepare_convolution},
      {"convolution_input_grad", convolution_input_grad, "gemm"},
      {"convolution_weight_grad", convolution_weight_grad, "gemm"},
      {"int8_convolution", quantised_convolution},
  };
  return selected<entries>;
}

}  // namespace morel
