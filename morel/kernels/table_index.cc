// Indexing of the kernel table.
#include <vector>

#include "morel/kernels/index.h"
#include "morel/kernels/select.h"
#include "morel/kernels/table.h"
#include "morel/kernels/tensor_view.h"

namespace morel {
namespace {

using kernels::IndexArray;
using kernels::IndexRule;
using kernels::RowsShape;
using kernels::view_of;

int64_t product(const Shape& shape, size_t from, size_t to) {
  int64_t out = 1;
  for (size_t i = from; i < to; ++i) out *= shape[i];
  return out;
}

size_t axis_of(int64_t axis, const Shape& shape) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(std::max<size_t>(shape.size(), 1)) : axis);
}

std::vector<int64_t> positions_on_axis(const Tensor& indices, size_t axis, int64_t size) {
  const IndexArray array{indices.data(), indices.dtype(), numbers_of(indices.strides())};
  const IndexRule rule{"Gather", true, static_cast<int64_t>(axis)};
  return kernels::resolve_indices(rule, numbers_of(indices.shape()), {&array, 1}, {&size, 1});
}

RowsShape rows_around(const Shape& shape, size_t axis, DType dtype) {
  if (shape.empty()) return {dtype, 1, 1, 1};
  return {dtype, product(shape, 0, axis), shape[axis], product(shape, axis + 1, shape.size())};
}

// Advanced indexing of `input` (layout of axes only): which axes are indexed and where their positions lie.
struct Advanced {
  std::vector<size_t> indexed, kept;
  Shape broadcast;
  std::vector<int64_t> positions;  // row of the indexed axes, flattened, for each element of `broadcast`
  bool adjacent = true;
  size_t at = 0;  // axis of the result where `broadcast` stands
};

Shape broadcast_of(const std::vector<Tensor>& indices) {
  Shape out;
  for (const Tensor& index : indices) {
    const Shape& shape = index.shape();
    while (out.size() < shape.size()) out.insert(out.begin(), 1);
    for (size_t i = 0; i < shape.size(); ++i) {
      Dim& dim = out[out.size() - shape.size() + i];
      if (shape[i] != 1) dim = shape[i];
    }
  }
  return out;
}

Advanced resolve(const Shape& shape, const Value::List& given) {
  Advanced out;
  std::vector<Tensor> indices;
  Shape sizes;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i < given.size() && !given[i].is_none()) {
      out.indexed.push_back(i);
      indices.push_back(given[i].tensor());
      sizes.push_back(shape[i]);
    } else {
      out.kept.push_back(i);
    }
  }
  out.broadcast = broadcast_of(indices);
  std::vector<Strides> strides(indices.size());
  std::vector<IndexArray> arrays;
  for (size_t k = 0; k < indices.size(); ++k) {
    const Shape& own = indices[k].shape();
    strides[k].assign(out.broadcast.size(), 0);
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i] != 1) strides[k][out.broadcast.size() - own.size() + i] = indices[k].strides()[i];
    arrays.push_back({indices[k].data(), indices[k].dtype(), numbers_of(strides[k])});
  }
  const IndexRule rule{"Index", true, out.indexed.empty() ? 0 : static_cast<int64_t>(out.indexed[0])};
  out.positions = kernels::resolve_indices(rule, numbers_of(out.broadcast), arrays, numbers_of(sizes));
  for (size_t k = 1; k < out.indexed.size(); ++k) out.adjacent &= out.indexed[k] == out.indexed[k - 1] + 1;
  out.at = out.adjacent && !out.indexed.empty() ? out.indexed[0] : 0;
  return out;
}

// Axes of the input in the order [kept before, indexed, kept behind] in which the indexed axes are one block at `at`.
std::vector<size_t> block_order(const Advanced& advanced) {
  std::vector<size_t> order(advanced.kept.begin(), advanced.kept.begin() + static_cast<std::ptrdiff_t>(advanced.at));
  order.insert(order.end(), advanced.indexed.begin(), advanced.indexed.end());
  order.insert(order.end(), advanced.kept.begin() + static_cast<std::ptrdiff_t>(advanced.at), advanced.kept.end());
  return order;
}

Tensor permuted(const Tensor& tensor, const std::vector<size_t>& order) {
  Layout layout;
  layout.offset = tensor->layout.offset;
  for (const size_t axis : order) {
    layout.shape.push_back(tensor.shape()[axis]);
    layout.strides.push_back(tensor.strides()[axis]);
  }
  return tensor.with_layout(std::move(layout));
}

Tensor contiguous(const Tensor& tensor) {
  const Value value = tensor;
  return KernelCall{{&value, 1}, {}}.contiguous(0);
}

RowsShape rows_of(const Tensor& block, const Advanced& advanced) {
  const Shape& shape = block.shape();
  const size_t end = advanced.at + advanced.indexed.size();
  return {block.dtype(), product(shape, 0, advanced.at), product(shape, advanced.at, end),
          product(shape, end, shape.size())};
}

// Adds or writes `values` (already in the result's shape, contiguous) at the positions of `target`.
void scatter(const Tensor& target, const Advanced& advanced, const Tensor& values, kernels::ScatterOp op) {
  const std::vector<size_t> order = block_order(advanced);
  const Tensor view = permuted(target, order);
  const bool direct = view.is_contiguous();
  const Tensor block = direct ? view : contiguous(view);
  kernels::scatter_rows(block.data(), rows_of(block, advanced), advanced.positions, values.data(), op);
  if (!direct) kernels::copy(view_of(view), view_of(block));
}

Shape result_shape(const Shape& shape, const Advanced& advanced) {
  Shape out;
  for (size_t i = 0; i < advanced.at; ++i) out.push_back(shape[advanced.kept[i]]);
  out.append(advanced.broadcast.begin(), advanced.broadcast.end());
  for (size_t i = advanced.at; i < advanced.kept.size(); ++i) out.push_back(shape[advanced.kept[i]]);
  return out;
}

// args: input, indices, axis.
void take_axis(const KernelCall& call) {
  const Tensor input = call.contiguous(0), indices = call.tensor(1);
  const size_t axis = axis_of(call.integer(2), input.shape());
  const RowsShape rows = rows_around(input.shape(), axis, input.dtype());
  kernels::gather_rows(call.outs[0].data(), input.data(), rows, positions_on_axis(indices, axis, rows.rows));
}

// args: dout, indices, size, axis.
void take_axis_grad(const KernelCall& call) {
  const Tensor dout = call.contiguous(0), indices = call.tensor(1);
  const Tensor& out = call.outs[0];
  const size_t axis = axis_of(call.integer(3), out.shape());
  const RowsShape rows = rows_around(out.shape(), axis, out.dtype());
  kernels::gather_rows_backward(out.data(), rows, positions_on_axis(indices, axis, rows.rows), dout.data());
}

// args: input, indices.
void index(const KernelCall& call) {
  const Tensor input = call.tensor(0);
  const Advanced advanced = resolve(input.shape(), call.args[1].list());
  const Tensor block = contiguous(permuted(input, block_order(advanced)));
  kernels::gather_rows(call.outs[0].data(), block.data(), rows_of(block, advanced), advanced.positions);
}

// args: dout, indices, size.
void index_grad(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Advanced advanced = resolve(out.shape(), call.args[1].list());
  kernels::fill_zero(view_of(out));
  scatter(out, advanced, call.contiguous(0), kernels::ScatterOp::Add);
}

// args: input, indices, values, accumulate; in place.
void index_put_(const KernelCall& call) {
  const Tensor target = call.tensor(0), given = call.tensor(2);
  const Advanced advanced = resolve(target.shape(), call.args[1].list());
  const Shape shape = result_shape(target.shape(), advanced);
  // values broadcast to the shape of target[indices]
  Layout layout{shape, Strides(shape.size(), 0), given->layout.offset};
  MOREL_CHECK(given.shape().size() <= shape.size(), Value, "For 'IndexPut', values of shape ", to_string(given.shape()),
              " cannot be broadcast to ", to_string(shape));
  const size_t shift = shape.size() - given.shape().size();
  for (size_t i = 0; i < given.shape().size(); ++i) {
    MOREL_CHECK(given.shape()[i] == 1 || given.shape()[i] == shape[i + shift], Value,
                "For 'IndexPut', values of shape ", to_string(given.shape()), " cannot be broadcast to ",
                to_string(shape));
    if (given.shape()[i] != 1) layout.strides[i + shift] = given.strides()[i];
  }
  const Value spread = given.with_layout(std::move(layout));
  const Tensor values = KernelCall{{&spread, 1}, {}}.contiguous(0, target.dtype());
  scatter(target, advanced, values, call.flag(3) ? kernels::ScatterOp::Add : kernels::ScatterOp::Set);
}

// args: input, dim, index.
void gather_elements(const KernelCall& call) {
  const Tensor input = call.tensor(0), indices = call.tensor(2);
  const int64_t axis = static_cast<int64_t>(axis_of(call.integer(1), input.shape()));
  kernels::gather_elements({"GatherElements"}, view_of(call.outs[0]), view_of(input), view_of(indices), axis);
}

void scatter_along(const KernelCall& call, kernels::ScatterOp op) {
  const Tensor input = call.tensor(0), indices = call.tensor(2);
  const Tensor source = call.contiguous(3, input.dtype());
  const Tensor& out = call.outs[0];
  kernels::copy(view_of(out), view_of(input));
  const int64_t axis = static_cast<int64_t>(axis_of(call.integer(1), input.shape()));
  // The index may be smaller than the source.
  Layout layout{indices.shape(), source.strides(), source->layout.offset};
  kernels::scatter_elements({"ScatterElements"}, view_of(out), view_of(indices),
                            view_of(source.with_layout(std::move(layout))), axis, op);
}

// args: input, dim, index, src.
void scatter_add_elements(const KernelCall& call) { scatter_along(call, kernels::ScatterOp::Add); }
void scatter_elements(const KernelCall& call) { scatter_along(call, kernels::ScatterOp::Set); }

// args: input; the output's size depends on the values.
void nonzero(const KernelCall& call) {
  const Tensor input = call.tensor(0);
  call.outs[0] = Tensor::empty({kernels::count_nonzero(view_of(input)), input.rank()}, DType::Int64);
  kernels::nonzero(call.outs[0].as<int64_t>(), view_of(input));
}

}  // namespace

std::span<const KernelEntry> index_kernels() {
  static constexpr KernelEntry entries[] = {
      {"take_axis", take_axis},
      {"take_axis_grad", take_axis_grad},
      {"index", index},
      {"index_grad", index_grad},
      {"index_put_", index_put_},
      {"gather_elements", gather_elements},
      {"scatter_add_elements", scatter_add_elements},
      {"scatter_elements", scatter_elements},
      {"nonzero", nonzero},
  };
  return selected<entries>;
}

}  // namespace morel
