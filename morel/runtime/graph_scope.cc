#include "morel/runtime/graph_scope.h"

#include <algorithm>

#include "morel/runtime/eager.h"
#include "morel/runtime/tape.h"

namespace morel {
namespace {

thread_local GraphScope* current_scope = nullptr;

Ref<Graph> named_graph(std::string name) {
  auto graph = make_ref<Graph>();
  graph->name = std::move(name);
  return graph;
}

GradLink link_of(const Value& value) { return {Ref<RefCounted>(value.node()), static_cast<int32_t>(value.output())}; }
Value value_of_link(const GradLink& link) { return Value(link.node, static_cast<uint32_t>(link.output)); }

}  // namespace

Value view_again(GraphBuilder& builder, const Tensor& view, const Value& root) {
  const Value args[] = {root, Ints(view.shape()), Ints(view.strides()),
                        view->layout.offset - view->base->layout.offset};
  return builder.emit(find_op("as_strided"), args)[0];
}

// Nothing is recorded on the tape while a scope is open; a depth of 0 means that no gradient is wanted (no_grad).
GraphScope::GraphScope(std::string name)
    : outer_(current_scope), grad_depth_(set_grad_depth(1)), builder_(named_graph(std::move(name))) {
  current_scope = this;
  if (outer_) builder_.set_keeps(outer_->builder_.keeps());
}
GraphScope::~GraphScope() {
  current_scope = outer_;
  set_grad_depth(grad_depth_);
}
GraphScope* GraphScope::current() { return current_scope; }

Tensor GraphScope::add_parameter(const Type& type) { return tensor_of(builder_.graph().add_parameter(type)); }

Tensor GraphScope::tensor_of(Value value) const {
  const Type type = type_of(value);
  return Tensor::symbolic({type.shape, contiguous_strides(type.shape), 0}, type.dtype, link_of(value));
}

bool GraphScope::owns(const Tensor& tensor) const {
  return static_cast<const Node*>(tensor->symbol.node.get())->graph == &builder_.graph();
}

GraphScope::Change* GraphScope::find_change(const Tensor& tensor) {
  const auto found =
      std::ranges::find(changes_, tensor.get(), [](const Change& change) { return change.tensor.get(); });
  return found == changes_.end() ? nullptr : &*found;
}

Value GraphScope::value_of(const Tensor& tensor) {
  if (const Change* change = find_change(tensor)) return change->value;
  if (!tensor->is_symbolic()) {
    if (const auto found = stand_ins_.find(tensor.get()); found != stand_ins_.end()) return found->second;
    MOREL_CHECK(!tensor->shards, NotImplemented,
                "distributed tensors are not supported in compiled functions yet; run the function in PyNative mode");
    if (!outer_) return builder_.capture(tensor);
    // Inside of an inner graph it is an operand like any other.
    return value_of(outer_->tensor_of(outer_->value_of(tensor)));
  }
  if (owns(tensor)) {
    if (tensor->base) {
      const Value now = value_of(Tensor{tensor->base});
      if (!is_same(link_of(now), tensor->grad)) {
        tensor->symbol = link_of(view_again(builder_, tensor, now));
        tensor->grad = link_of(now);
      }
    }
    return value_of_link(tensor->symbol);
  }
  if (tensor->base)
    if (const Change* change = find_change(Tensor{tensor->base})) return view_again(builder_, tensor, change->value);
  MOREL_CHECK(
      outer_, Runtime,
      "a tensor of a graph that was compiled before is used outside of it; only what a compiled function returns "
      "can be used later");
  const Value outer = outer_->value_of(tensor);
  Value& inner = imported_[node_of(outer)][outer.output()];
  if (inner.is_none()) {
    inner = builder_.graph().add_parameter(type_of(outer));
    imports_.push_back(outer_->tensor_of(outer));
  }
  return inner;
}

Value GraphScope::map(const Value& value) {
  if (value.is_tensor()) return value_of(value.tensor());
  if (!value.is_list()) return value;
  Value::List list;
  for (const Value& item : value.list()) list.push_back(map(item));
  return Value(std::move(list));
}

// The result of a view operator remembers its base, so that in-place changes find it.
Tensor GraphScope::view_of(const OpDef& op, std::span<const Value> given, Value value) const {
  Tensor out = tensor_of(value);
  if (!op.view || given.empty() || !given[0].is_tensor()) return out;
  const Tensor input = given[0].tensor();
  const Args args = complete_args(op, given);
  const Tensor root{input->base ? input->base : input.impl()};
  if (!root->contiguous) return out;
  std::optional<Layout> layout = op.view(ArgView(op, {args.data(), args.size()}), input->layout);
  if (!layout) return out;
  out = Tensor::symbolic(std::move(*layout), out.dtype(), out->symbol);
  out->base = root.impl();
  out->grad = link_of(const_cast<GraphScope*>(this)->value_of(root));
  return out;
}

Values GraphScope::call(const OpDef& op, std::span<const Value> given) {
  if (op.has(kInPlace)) return {call_in_place(op, given)};
  SmallVector<Value, 8> args;
  for (const Value& value : given) args.push_back(map(value));
  builder_.set_stops_gradient(grad_depth() == 0);
  const Values results = builder_.emit(op, {args.data(), args.size()});
  Values out;
  for (const Value& result : results) {
    const bool is_tensor = result.tag() == Value::Tag::Node;
    out.push_back(is_tensor ? Value(results.size() == 1 ? view_of(op, given, result) : tensor_of(result)) : result);
  }
  return out;
}

Tensor GraphScope::call_in_place(const OpDef& op, std::span<const Value> given) {
  const Tensor target = given[0].tensor();
  SmallVector<Value, 8> args;
  for (const Value& value : given) args.push_back(map(value));
  const std::span<const Value> all(args.data(), args.size());
  builder_.set_stops_gradient(grad_depth() == 0);
  if (op.has(kInPlace) && !target->is_symbolic() && !outer_) {  // a kernel that changes a captured tensor where it is
    builder_.set_captured(target, builder_.emit(op, all)[0]);
    return target;
  }
  Value result;
  if (!op.has(kInPlace)) {
    result = builder_.emit(op, all)[0];
  } else if (op.compose) {
    const Args full = complete_args(op, all);
    if (op.infer) op.infer(ArgView(op, {full.data(), full.size()}));  // for its checks
    result = op.compose(Call(builder_, op, {full.data(), full.size()}))[0].value();
  } else {
    const Value copied[] = {args[0]};
    args[0] = builder_.emit(find_op("clone"), copied)[0];
    result = builder_.emit(op, {args.data(), args.size()})[0];
  }
  const Type type = type_of(result);
  check_fits(op, type.shape, type.dtype, target);
  assign(target, result);
  return target;
}

void GraphScope::assign(const Tensor& tensor, Value value) {
  if (dtype_of_value(value) != tensor.dtype()) {
    const Value cast[] = {value, tensor.dtype()};
    value = builder_.emit(find_op("cast"), cast)[0];
  }
  if (tensor->is_symbolic() ? !tensor->base && !owns(tensor) : outer_ != nullptr) {
    if (Change* change = find_change(tensor)) *change = {tensor, std::move(value), true};
    else changes_.push_back({tensor, std::move(value), true});
    return;
  }
  if (!tensor->is_symbolic()) {
    const Value args[] = {builder_.capture(tensor), value};
    return builder_.set_captured(tensor, builder_.emit(find_op("copy_"), args)[0]);
  }
  if (!tensor->base) {
    tensor->symbol = link_of(value);
    return;
  }
  const Tensor root{tensor->base};
  const Value args[] = {value_of(root), value, Ints(tensor.shape()), Ints(tensor.strides()),
                        tensor->layout.offset - root->layout.offset};
  assign(root, builder_.emit(find_op("as_strided_scatter"), args)[0]);
  if (!owns(tensor)) return;  // of an enclosing scope: read from its base again
  tensor->symbol = link_of(value);
  tensor->grad = link_of(value_of(root));
}

}  // namespace morel
