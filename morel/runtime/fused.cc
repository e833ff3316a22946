#include "morel/runtime/fused.h"

#include <unordered_map>

#include "morel/runtime/eager.h"
#include "morel/runtime/reduce.h"

namespace morel {

using Kind = FusedBody::Kind;

FusedLoop::FusedLoop(Ref<Graph> graph) : graph_(std::move(graph)), body_(describe_fused(*graph_)) {
  const Graph& body = *graph_;
  const auto kernel = [](loops::Program program) { return std::make_unique<LoopKernel>(std::move(program)); };
  switch (body_.kind) {
    case Kind::Elementwise: loop_ = kernel(fused_program(body)); break;
    case Kind::Rows: {
      rows_ = std::make_unique<RowsKernel>();
      loops::Program program = fused_program(body);
      rows_->signature = signature_of(program);
      rows_->rows = kernel(std::move(program));
      if (!body_.columns) break;
      program = fused_columns_program(body);
      rows_->columns_signature = signature_of(program);
      rows_->columns = kernel(std::move(program));
      break;
    }
    case Kind::Reduction:
      by_rows_ = kernel(fused_reduction_program(body, loops::ProgramKind::Rows));
      by_columns_ = kernel(fused_reduction_program(body, loops::ProgramKind::Columns));
      break;
  }
}

struct FusedLoop::Call {
  std::span<const Tensor> inputs;
  std::span<const Type> types;
  Shape space;
  bool other_order = false;  // elements of an input do not follow each other as those of the space do
};

bool FusedLoop::can_run(const Call& call) const {
  const int64_t elements = num_elements(call.space);
  if (body_.kind == Kind::Elementwise) return loop_->want(elements);
  if (elements == 0 || call.other_order) return false;
  if (body_.kind == Kind::Reduction) return by_rows_->want(elements) & by_columns_->want(elements);
  return has_plain_rows(call.space) &&
         (rows_->rows->want(elements) & (!rows_->columns || rows_->columns->want(elements)));
}

std::optional<Values> FusedLoop::run(std::span<const Tensor> inputs, std::span<const Type> types) const {
  Call call{inputs, types, {}};
  for (const Tensor& input : inputs)
    if (input.shape() != call.space) call.space = broadcast_shapes(find_op("fused"), call.space, input.shape());
  for (const Tensor& input : inputs) call.other_order |= input.shape() == call.space && !input.is_contiguous();
  if (!can_run(call)) return std::nullopt;
  switch (body_.kind) {
    case Kind::Elementwise: return elementwise(call);
    case Kind::Rows: return run_fused_rows(*rows_, call.space, inputs, types);
    case Kind::Reduction: return reduce(call);
  }
  return std::nullopt;
}

// Each result lies in memory as the operators by themselves would have it.
Values FusedLoop::elementwise(const Call& call) const {
  SmallVector<const TensorImpl*, 4> donors;
  if (call.other_order) {
    std::unordered_map<const Node*, const TensorImpl*> order;  // contiguous: none
    for (size_t i = 0; i < call.inputs.size(); ++i) order[graph_->parameters[i].get()] = call.inputs[i].get();
    for (const Ref<Node>& node : graph_->nodes) {
      const TensorImpl*& own = order[node.get()];
      for (const Value& arg : node->args) {
        if (own || !node_of(arg) || !same(shape_of(arg), body_.space) || node->op->has(kConverts)) continue;
        const TensorImpl* tensor = order.at(node_of(arg));
        if (!tensor || tensor->contiguous) break;
        own = find_donor({&tensor, 1}, call.space);
      }
    }
    for (const Value& result : graph_->results) donors.push_back(order.at(node_of(result)));
  }
  return run_fused_loop(*loop_, call.inputs, call.types, {donors.data(), donors.size()});
}

Values FusedLoop::reduce(const Call& call) const {
  const Node& node = *body_.reduce;
  ReduceLoop loop{*by_rows_, *by_columns_, {}};
  Values outs;
  const auto add = [&](const Tensor& tensor) {
    loop.operands.push_back({tensor.as<char>(), tensor.shape() == call.space ? size_of(tensor.dtype()) : 0});
  };
  for (const Tensor& input : call.inputs) add(input);
  for (const Type& type : call.types.first(call.types.size() - 1)) {
    outs.push_back(Tensor::empty(type.shape, type.dtype));
    add(outs.end()[-1].tensor());
  }
  const Type& wanted = call.types.back();
  const Tensor out = Tensor::empty(wanted.shape, compute_dtype(wanted.dtype));
  const Ints axes = normalize_axes(*node.op, "axis", node.args[1], static_cast<int64_t>(call.space.size()));
  reduce_loop(*node.op, loop, type_of(node.args[0]).dtype, call.space, axes, out, node.args[2].boolean());
  outs.push_back(convert(out, wanted.dtype));
  return outs;
}

}  // namespace morel
