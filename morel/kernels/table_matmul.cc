// Matrix products of the kernel table, and sums of int8.
#include "morel/kernels/gemm.h"
#include "morel/kernels/int8.h"
#include "morel/kernels/table.h"

namespace morel {
namespace {

// A tensor whose last two axes the product can read as they lie: converted to `dtype` if need be.
Tensor operand(const KernelCall& call, size_t idx, DType dtype) {
  const Tensor tensor = call.tensor(idx);
  return tensor.dtype() == dtype ? tensor : call.contiguous(idx, dtype);
}

// args: input [..., m, k], mat2 [..., k, n]; outs: [..., m, n].
void matrix_product(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor a = operand(call, 0, out.dtype()), b = operand(call, 1, out.dtype());
  const size_t rank = out.shape().size();
  Gemm problem;
  problem.dtype = out.dtype();
  problem.m = out.dim(static_cast<int64_t>(rank) - 2);
  problem.n = out.dim(static_cast<int64_t>(rank) - 1);
  problem.k = a.dim(a.rank() - 1);
  problem.a = a.data();
  problem.b = b.data();
  problem.c = out.data();
  const auto set = [](const Tensor& tensor, int64_t& row, int64_t& col) {
    row = tensor.strides()[tensor.shape().size() - 2];
    col = tensor.strides()[tensor.shape().size() - 1];
  };
  set(a, problem.a_row, problem.a_col);
  set(b, problem.b_row, problem.b_col);
  set(out, problem.c_row, problem.c_col);
  const auto stride_at = [&](const Tensor& tensor, size_t axis) -> int64_t {
    const size_t shift = rank - tensor.shape().size();
    return axis < shift || tensor.shape()[axis - shift] == 1 ? Dim(0) : tensor.strides()[axis - shift];
  };
  for (size_t axis = 0; axis + 2 < rank; ++axis)
    problem.batch.push_back({out.shape()[axis], stride_at(a, axis), stride_at(b, axis), stride_at(out, axis)});
  problem.epilogue = call.epilogue;
  gemm(problem);
}

// args: input [..., k], weight [n, k], bias [n] or None; outs: [..., n].
void dense(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor x = call.contiguous(0, out.dtype()), weight = operand(call, 1, out.dtype());
  Gemm problem;
  problem.dtype = out.dtype();
  problem.n = weight.dim(0);
  problem.k = weight.dim(1);
  problem.m = problem.n ? out.size() / problem.n : 0;
  problem.a = x.data();
  problem.a_row = problem.k;
  problem.b = weight.data();
  problem.b_row = weight.strides()[1];
  problem.b_col = weight.strides()[0];
  problem.c = out.data();
  problem.c_row = problem.n;
  Tensor bias;
  if (call.has(2)) {
    bias = call.contiguous(2, out.dtype());
    problem.bias = bias.data();
  }
  problem.epilogue = call.epilogue;
  gemm(problem);
}

// args: input, weight, bias, then what int8 results need.
void quantised_dense(const KernelCall& call) {
  const Int8Operands given(call, 3);
  const Tensor x = call.contiguous(0);
  const int64_t n = given.weight().dim(0), k = given.weight().dim(1), rows = n ? call.outs[0].size() / n : 0;
  int8_dense(x.as<int8_t>(), given.weight().as<int8_t>(), given.bias(), given.to(), rows, k, n,
             call.outs[0].as<int8_t>());
}

// args: input, other, input_factor, other_factor, input_zero, other_zero, multiplier, shift, output_zero.
void quantised_add(const KernelCall& call) {
  const Tensor x = call.contiguous(0), y = call.contiguous(1);
  const auto number = [&](size_t idx) { return static_cast<int32_t>(call.integer(idx)); };
  const int32_t multiplier = number(6), shift = number(7);
  int8_add(x.as<int8_t>(), y.as<int8_t>(), {number(2), number(3), number(4), number(5)},
           {&multiplier, &shift, 0, number(8)}, x.size(), call.outs[0].as<int8_t>());
}

}  // namespace

std::span<const KernelEntry> matmul_kernels() {
  static constexpr KernelEntry entries[] = {
      {"matrix_product", matrix_product, "gemm"},
      {"dense", dense, "gemm"},
      {"int8_dense", quantised_dense},
      {"int8_add", quantised_add},
  };
  return selected<entries>;
}

}  // namespace morel
