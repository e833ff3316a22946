// What a node becomes, by the rule that its operator's entry has.
#include <algorithm>

#include "morel/lite/converter/function.h"
#include "morel/loops/run/reduce.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/reduce.h"

namespace morel::lite {

void FunctionConverter::add_nodes(const Graph& graph) {
  for (const Ref<Node>& node : graph.nodes) {
    try {
      place_ = node->place;
      add_node(*node);
    } catch (Error& error) {
      const std::string place = "\nin a graph, from " + node->place;
      if (!node->place.empty() && error.message().find(place) == std::string::npos) error.append(place);
      throw;
    }
  }
}

void FunctionConverter::add_node(const Node& node) {
  Call call{node, *node.op, {}};
  for (size_t i = 0; i < node.args.size(); ++i) call.metas.push_back(meta_of(node.args[i], call.op.schema.args[i]));
  switch (call.op.control) {
    case Control::None: break;
    case Control::If: return add_if(call);
    case Control::While: return add_while(call);
    default:
      raise(ErrorKind::NotImplemented, "For '", display_name(call.op),
            "', a model for devices has no such control flow; it has 'if' and 'while'");
  }
  if (call.op.loop) return add_elementwise(call);
  if (call.op.view || call.op.views) return add_view(call);
  if (call.op.reduce) return add_reduce(call);
  if (call.op.rows) return add_rows(call);
  if (call.op.kernel) return add_kernel(call);
  raise(ErrorKind::Internal, "internal error: the composite '", call.op.name, "' is a node of a graph");
}

std::vector<FunctionConverter::Entry> FunctionConverter::add_results(const Call& call, Step& step) {
  const Types& types = call.node.types;
  const auto layouts = result_layouts(call.op, call.args(), {types.data(), types.size()});
  std::vector<Entry>& outs = entries_[&call.node];
  for (size_t i = 0; i < types.size(); ++i) {
    outs.push_back(add_in_arena(layouts[i], types[i].dtype));
    step.outs.push_back(outs.back().idx);
  }
  return outs;
}

void FunctionConverter::add_elementwise(const Call& call) {
  const DType dtype = elementwise_compute_dtype(call.op, call.args());
  Step step;
  step.kind = StepKind::Elementwise;
  step.name = elementwise_name(call.op, dtype);
  std::vector<Arg> parameters;
  for (size_t i = 0; i < call.node.args.size(); ++i) {
    const ArgSpec& spec = call.op.schema.args[i];
    if (!spec.is_tensor_like() && !(spec.kinds & kNumber)) {
      parameters.push_back(parameter_of(call, i));
      continue;
    }
    const DType wanted = call.op.bool_args >> i & 1 ? DType::Bool : dtype;
    step.signature.inputs.push_back(wanted);
    step.args.push_back(operand_of(call.node.args[i], wanted));
  }
  const size_t num_inputs = step.args.size();
  step.args.insert(step.args.end(), parameters.begin(), parameters.end());
  step.signature.outputs.push_back({elementwise_result_dtype(call.op, dtype), false});
  add_results(call, step);
  push(std::move(step));
  allow_reuse(call, num_inputs);
}

void FunctionConverter::add_view(const Call& call) {
  const ArgView view(call.op, call.args());
  Entry input = entry_of(call.node.args[0]);
  std::vector<Layout> layouts;
  if (call.op.views) {
    layouts = call.op.views(view, input.meta->layout);
  } else {
    std::optional<Layout> layout = call.op.view(view, input.meta->layout);
    if (!layout) {  // only what is contiguous can be viewed so
      input = copied(input, input.meta.dtype());
      layout = call.op.view(view, input.meta->layout);
    }
    layouts.push_back(std::move(*layout));
  }
  const int32_t buffer = function().values[static_cast<size_t>(input.idx)].buffer;
  std::vector<Entry> outs;
  for (const Layout& layout : layouts) outs.push_back(add_value(layout, input.meta.dtype(), buffer));
  entries_[&call.node] = std::move(outs);
}

// A copy whose reduced axes are one piece behind the others.
FunctionConverter::Entry FunctionConverter::reduced_last(const Entry& entry, const Ints& axes) {
  const int32_t buffer = function().values[static_cast<size_t>(entry.idx)].buffer;
  return copied(add_value(loops::reduced_last(entry.meta->layout, axes), entry.meta.dtype(), buffer),
                entry.meta.dtype());
}

void FunctionConverter::add_reduce(const Call& call) {
  const Type& type = call.node.types[0];
  Entry input = entry_of(call.node.args[0]);
  const int64_t rank = input.meta.rank();
  Ints axes = normalize_axes(call.op, "axis", call.node.args[1], rank);
  const ReduceTypes types = reduce_types(call.op, input.meta.dtype(), type.dtype);
  if (input.meta.dtype() != types.in) input = copied(input, types.in);
  const Entry out = add_in_arena(dense(type.shape), type.dtype);
  Entry result = types.out == type.dtype ? out : add_in_arena(dense(type.shape), types.out);
  const Entry whole = result;
  if (OpReduction(call.op).is_positional() && !loops::can_merge(input.meta, axes)) {
    input = reduced_last(input, axes);
    const int64_t count = static_cast<int64_t>(axes.size());
    axes.clear();
    for (int64_t axis = rank - count; axis < rank; ++axis) axes.push_back(axis);
    // Kept axes come first and in order, so the result lies as if it had no reduced axes.
    result = add_value(dense(reduced_shape(input.meta.shape(), axes, false)), types.out,
                       function().values[static_cast<size_t>(result.idx)].buffer);
  }
  Step step;
  step.kind = StepKind::Reduce;
  step.name = call.op.name;
  step.reduce = *call.op.reduce;
  step.args = {value_arg(input)};
  for (const int64_t axis : axes) step.axes.push_back(static_cast<int32_t>(axis));
  step.outs = {result.idx};
  push(std::move(step));
  if (whole.idx != out.idx) {
    Step copy;
    copy.kind = StepKind::Copy;
    copy.name = "copy";
    copy.args = {value_arg(whole)};
    copy.outs = {out.idx};
    push(std::move(copy));
  }
  entries_[&call.node] = {out};
}

void FunctionConverter::add_rows(const Call& call) {
  size_t lead = 0;
  while (call.node.args[lead].tag() != morel::Value::Tag::Node) ++lead;
  const DType dtype = entry_of(call.node.args[lead]).meta.dtype();
  Step step;
  step.kind = StepKind::Rows;
  step.name = rows_name(call.op, dtype);
  step.signature = rows_signature(call.op, dtype);
  step.has_across = can_go_across(call.op);
  step.has_columns = call.op.columns != nullptr;
  std::vector<Arg> parameters;
  int64_t rank = 1;
  for (size_t i = 0; i < call.node.args.size(); ++i) {
    const ArgSpec& spec = call.op.schema.args[i];
    const morel::Value& value = call.node.args[i];
    if (!spec.is_tensor_like() && !(spec.kinds & kNumber)) {
      if (spec.name != "axis") parameters.push_back(parameter_of(call, i));
      continue;
    }
    if (value.tag() == morel::Value::Tag::Node) rank = std::max(rank, entry_of(value).meta.rank());
    step.args.push_back(operand_of(value, step.signature.inputs[step.args.size()], step.has_columns));
  }
  const int axis_at = call.op.schema.find("axis");
  step.axis = static_cast<int32_t>(
      axis_at < 0 ? rank - 1
                  : normalize_axis(call.op, "axis", call.node.args[static_cast<size_t>(axis_at)].integer(), rank));
  const size_t num_inputs = step.args.size();
  step.args.insert(step.args.end(), parameters.begin(), parameters.end());
  add_results(call, step);
  push(std::move(step));
  allow_reuse(call, num_inputs);
}

void FunctionConverter::add_kernel(const Call& call) {
  MOREL_CHECK(!call.op.data_dependent, NotImplemented, "For '", display_name(call.op),
              "', the shape of the result depends on values, which a model for devices cannot hold");
  Step step;
  step.kind = StepKind::Kernel;
  step.name = call.op.name;
  for (size_t i = 0; i < call.node.args.size(); ++i)
    step.args.push_back(arg_of(call.node.args[i], call.op.schema.args[i]));
  if (!call.op.has(kInPlace)) {
    add_results(call, step);
    return push(std::move(step));
  }
  const Entry target = entry_of(call.node.args[0]);
  mark_written(target.idx);
  entries_[&call.node] = {target};
  push(std::move(step));
}

}  // namespace morel::lite
