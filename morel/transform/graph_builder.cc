#include "morel/transform/graph_builder.h"

namespace morel {
namespace {

// Arguments as a graph holds them: tensors of the outside become captured nodes.
Value inside(GraphBuilder& builder, const Value& value) {
  if (value.is_tensor()) return builder.capture(value.tensor());
  if (!value.is_list()) return value;
  Value::List list;
  for (const Value& item : value.list()) list.push_back(inside(builder, item));
  return Value(std::move(list));
}

}  // namespace

Value GraphBuilder::capture(const Tensor& tensor) {
  MOREL_CHECK(
      !tensor->is_symbolic(), Runtime,
      "a tensor of a graph that was compiled before is used outside of it; only what a compiled function returns "
      "can be used later");
  const auto found = captured_.find(tensor.get());
  if (found != captured_.end()) return found->second;
  Value value = graph_->add_capture(tensor);
  captured_.emplace(tensor.get(), value);
  return value;
}

Values GraphBuilder::emit(const OpDef& op, std::span<const Value> given) {
  SmallVector<Value, 8> mapped;
  for (const Value& value : given) mapped.push_back(inside(*this, value));
  Args args = complete_args(op, {mapped.data(), mapped.size()});
  const bool is_whole = is_primitive(op) || (keeps_ && keeps_(op));
  if (!is_whole) {
    const Syms results = op.compose(Call(*this, op, {args.data(), args.size()}));
    Values out;
    for (const Sym& result : results) {
      const Value& value = result.value();
      const Value full[] = {Ints{}, value};
      out.push_back(value.is_number() ? emit(find_op("full"), full)[0] : inside(*this, value));
    }
    return out;
  }
  for (size_t i = 0; i < args.size(); ++i)
    if ((op.schema.args[i].kinds & kRng) && args[i].is_none()) args[i] = emit(find_op("next_rng"), {})[0];
  Types types = result_types(op, {args.data(), args.size()});
  const size_t count = types.size();
  Node& node = graph_->add_node(op, op.name, std::move(args), std::move(types), place_);
  node.stops_gradient = stops_gradient_;
  Values out;
  for (size_t i = 0; i < count; ++i) out.push_back(node.output(static_cast<uint32_t>(i)));
  return out;
}

Values GraphBuilder::custom(std::span<const Value> inputs, std::span<const Value> outputs, Backward backward) {
  auto custom = std::make_shared<Custom>();
  custom->inputs = Values(inputs.begin(), inputs.end());
  custom->backward = std::move(backward);
  for (const Value& output : outputs) {
    const Value args[] = {output};
    custom->outputs.push_back(emit(find_op("view_as_self"), args)[0]);
    customs_[node_of(custom->outputs.back())] = custom;
  }
  return custom->outputs;
}

const GraphBuilder::Custom* GraphBuilder::find_custom(const Node* node) const {
  const auto found = customs_.find(node);
  return found == customs_.end() ? nullptr : found->second.get();
}

Value GraphBuilder::hooked(const Value& value, Value cotangent) const {
  const auto found = hooks_.find(node_of(value));
  if (found == hooks_.end() || cotangent.is_none()) return cotangent;
  for (const auto& [output, hook] : found->second) {
    if (output != value.output()) continue;
    if (Value replaced = hook(cotangent); !replaced.is_none()) cotangent = std::move(replaced);
  }
  return cotangent;
}

Value zeros_of(GraphBuilder& builder, const Value& like) {
  const Type type = type_of(like);
  const Value args[] = {Ints(type.shape), type.dtype};
  return builder.emit(find_op("zeros"), args)[0];
}

}  // namespace morel
