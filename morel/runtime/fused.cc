#include "morel/runtime/fused.h"

#include <array>
#include <unordered_map>

#include "morel/ops/call.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/loop_kernel.h"
#include "morel/runtime/reduce.h"

namespace morel {

using Kind = FusedBody::Kind;

namespace {

// A body of one operator on the parameters as they come: it has a kernel of its own already.
bool is_operator_itself(const Graph& body) {
  if (body.nodes.size() != 1 || body.results.size() != 1) return false;
  const Node& node = *body.nodes[0];
  bool good = node.op->is_elementwise() && node.args.size() == body.parameters.size();
  for (size_t i = 0; good && i < node.args.size(); ++i) good = node_of(node.args[i]) == body.parameters[i].get();
  return good;
}

}  // namespace

FusedLoop::FusedLoop(Ref<Graph> graph) : graph_(std::move(graph)), body_(describe_fused(*graph_)) {
  const Graph& body = *graph_;
  const auto kernel = [](loops::Program program) { return std::make_unique<LateKernel>(std::move(program)); };
  switch (body_.kind) {
    case Kind::Elementwise:
      program_ = fused_program(body);
      if (is_operator_itself(body)) {
        const OpDef& op = *body.nodes[0]->op;
        const DType dtype = elementwise_compute_dtype(op, body.nodes[0]->args);
        loop_ = make_loop_kernel(elementwise_name(op, dtype), [&] { return program_; });
      } else {
        loop_ = kernel(program_);
      }
      break;
    case Kind::Rows: {
      rows_ = std::make_unique<loops::RowsKernel>();
      program_ = fused_program(body);
      rows_->signature = signature_of(program_);
      rows_->rows = kernel(program_);
      if (!body_.columns) break;
      rows_->columns = kernel(fused_columns_program(body));
      rows_->sum = &partial_sums();
      break;
    }
    case Kind::Reduction:
      by_rows_ = kernel(fused_reduction_program(body, loops::ProgramKind::Rows));
      by_columns_ = kernel(fused_reduction_program(body, loops::ProgramKind::Columns));
      break;
  }
}

struct FusedLoop::Call {
  std::span<const Value> inputs;
  Shape space;
  bool other_order = false;  // elements of an input do not follow each other as those of the space do
  explicit Call(std::span<const Value> given) : inputs(given) {
    for (const Value& input : inputs)
      if (shape_of(input) != space) space = broadcast_shapes(find_op("fused"), space, shape_of(input));
    for (const Value& input : inputs) other_order |= shape_of(input) == space && !input.tensor_impl()->contiguous;
  }
};

bool FusedLoop::can_run(const Call& call) const {
  const int64_t elements = num_elements(call.space);
  if (body_.kind == Kind::Elementwise) return loop_->want(elements);
  if (elements == 0 || call.other_order) return false;
  if (body_.kind == Kind::Reduction) return by_rows_->want(elements) & by_columns_->want(elements);
  return has_plain_rows(call.space) &&
         (rows_->rows->want(elements) & (!rows_->columns || rows_->columns->want(elements)));
}

bool FusedLoop::run(std::span<const Value> inputs, std::span<Tensor> outs) const {
  const Call call(inputs);
  if (!can_run(call)) return false;
  switch (body_.kind) {
    case Kind::Elementwise: loops::run_elementwise(*loop_, inputs, outs); break;
    case Kind::Rows: run_rows(call, outs); break;
    case Kind::Reduction: reduce(call, outs); break;
  }
  return true;
}

std::optional<LoopEpilogue> FusedLoop::as_epilogue(std::span<const Value> inputs, std::span<Tensor> outs,
                                                   size_t product) const {
  const Shape& space = inputs[product].tensor_impl()->layout.shape;
  if (!loop_->want(num_elements(space))) return std::nullopt;
  MOREL_ASSERT(inputs.size() + outs.size() <= loops::max_loop_operands);
  std::array<loops::LoopOperand, loops::max_loop_operands> operands;
  size_t count = 0;
  const auto add = [&](const TensorImpl* tensor) {
    operands[count++] = {static_cast<char*>(tensor->data()), loops::broadcast_strides(tensor, space)};
  };
  for (const Value& input : inputs) add(input.tensor_impl());
  for (const Tensor& out : outs) add(out.get());
  return LoopEpilogue(*loop_, loops::LoopSpace(space, {operands.data(), count}, operands[product].strides));
}

bool FusedLoop::can_store_over(size_t input, size_t result) const {
  const size_t output = graph_->parameters.size() + result;
  return body_.kind != Kind::Reduction && !body_.columns &&
         loops::can_store_over(program_, static_cast<int64_t>(input), static_cast<int64_t>(output));
}

SmallVector<Layout, 4> FusedLoop::layouts(std::span<const Value> inputs, std::span<const Type> types) const {
  const Call call(inputs);
  SmallVector<Layout, 4> out;
  for (const Type& type : types) out.push_back({type.shape, contiguous_strides(type.shape), 0});
  if (!call.other_order || body_.kind != Kind::Elementwise) return out;
  std::unordered_map<const Node*, const TensorImpl*> order;  // contiguous: none
  for (size_t i = 0; i < inputs.size(); ++i) order[graph_->parameters[i].get()] = inputs[i].tensor_impl();
  for (const Ref<Node>& node : graph_->nodes) {
    const TensorImpl*& own = order[node.get()];
    for (const Value& arg : node->args) {
      if (own || !node_of(arg) || !same(shape_of(arg), body_.space) || node->op->has(kConverts)) continue;
      const TensorImpl* tensor = order.at(node_of(arg));
      if (!tensor || tensor->contiguous) break;
      own = loops::find_donor({&tensor, 1}, call.space);
    }
  }
  for (size_t i = 0; i < types.size(); ++i)
    if (const TensorImpl* donor = order.at(node_of(graph_->results[i]))) out[i].strides = donor->layout.strides;
  return out;
}

void FusedLoop::run_rows(const Call& call, std::span<Tensor> outs) const {
  loops::RowOperands in;
  for (const Value& input : call.inputs) in.tensors[in.count++] = input.tensor_impl();
  loops::run_rows(*rows_, in, call.space, call.space.size() - 1, outs);
}

void FusedLoop::reduce(const Call& call, std::span<Tensor> outs) const {
  const Node& node = *body_.reduce;
  loops::ReduceLoop loop{*by_rows_, *by_columns_, {}};
  const auto add = [&](const TensorImpl* tensor) {
    loop.operands.push_back(
        {static_cast<char*>(tensor->data()), tensor->layout.shape == call.space ? size_of(tensor->dtype) : 0});
  };
  for (const Value& input : call.inputs) add(input.tensor_impl());
  for (const Tensor& out : outs.first(outs.size() - 1)) add(out.get());
  const Tensor& wanted = outs.back();
  const DType computed = compute_dtype(wanted.dtype());
  const Tensor out = computed == wanted.dtype() ? wanted : Tensor::empty(wanted.shape(), computed);
  const Ints axes = normalize_axes(*node.op, "axis", node.args[1], static_cast<int64_t>(call.space.size()));
  loops::reduce(OpReduction(*node.op), loop, type_of(node.args[0]).dtype, call.space, axes, out,
                node.args[2].boolean());
  if (computed != wanted.dtype()) copy_into(wanted, out);
}

}  // namespace morel
