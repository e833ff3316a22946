#include "morel/runtime/tape.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "morel/ops/call.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/graph_scope.h"

namespace morel {
namespace {

thread_local int depth = 0;
std::atomic<uint64_t> next_sequence{1};

// Stands for an argument that the gradient rule does not read: its type alone.
class TypeOnly final : public TypedNode {
 public:
  explicit TypeOnly(Type type) : type_(std::move(type)) {}
  const Type& type(uint32_t) const override { return type_; }

 private:
  Type type_;
};

// A place to differentiate at; passes the cotangent on to outer scopes.
class PlaceNode final : public TapeNode {
 public:
  Values backward(std::span<const Value> cotangents, std::span<const char>) override {
    return edges.empty() ? Values{} : Values{cotangents[0]};
  }
  Values forward(std::span<const Value> tangents) override { return {tangents[0]}; }
  std::string_view name() const override { return "input"; }
};

class FunctionNode final : public TapeNode {
 public:
  FunctionNode(std::string name, std::function<Values(std::span<const Value>)> fn)
      : name_(std::move(name)), fn_(std::move(fn)) {}
  Values backward(std::span<const Value> cotangents, std::span<const char>) override {
    MOREL_CHECK(fn_, Runtime, "the tape was used for a gradient already and is gone; keep the graph to use it twice");
    return fn_(cotangents);
  }
  void release_saved() override { fn_ = nullptr; }
  std::string_view name() const override { return name_; }

 private:
  std::string name_;
  std::function<Values(std::span<const Value>)> fn_;
};

struct SavedVersion {
  const Storage* storage;
  uint32_t version;
};

// One call of an operator.
class OpNode final : public TapeNode {
 public:
  OpNode(const OpDef& op, std::span<const Value> args, std::span<const Value> outs);
  Values backward(std::span<const Value> cotangents, std::span<const char> needs) override;
  Values forward(std::span<const Value> tangents) override;
  void release_saved() override {
    args_.clear();
    outs_.clear();
    versions_.clear();
    released_ = true;
  }
  std::string_view name() const override { return op_.name; }

 private:
  void add_edge(const Value& arg);
  Value keep(const Value& arg, bool saved);
  Values linked_outs();

  const OpDef& op_;
  Args args_;
  Values outs_;
  SmallVector<SavedVersion, 3> versions_;
  bool released_ = false;
};

Edge edge_of(const TensorImpl* tensor) {
  if (!tensor->grad.node) return {};
  return {Ref<TapeNode>(static_cast<TapeNode*>(tensor->grad.node.get())), tensor->grad.output};
}

void link(TensorImpl* tensor, TapeNode* node, int32_t output) {
  tensor->grad = {Ref<RefCounted>(node), output};
  tensor->grad_version = tensor->storage->version();
}

// Where a view lies in its base as if the base were in C order: shape, strides and offset as as_strided takes them. A
// distance in the memory of the base is a sum of steps along its axes, found from the largest stride on.
std::array<Value, 3> place_in_base(const TensorImpl& view, const TensorImpl& base) {
  const Layout& outer = base.layout;
  const Strides wanted = contiguous_strides(outer.shape);
  Ints order;
  for (size_t axis = 0; axis < outer.shape.size(); ++axis)
    if (outer.shape[axis] > 1 && outer.strides[axis] > 0) order.push_back(axis);
  std::sort(order.begin(), order.end(), [&](Dim a, Dim b) {
    return outer.strides[static_cast<size_t>(a)] > outer.strides[static_cast<size_t>(b)];
  });
  const auto translated = [&](int64_t distance) {
    int64_t out = 0;
    for (const Dim axis : order) {
      const int64_t stride = outer.strides[static_cast<size_t>(axis)];
      out += distance / stride * wanted[static_cast<size_t>(axis)];
      distance %= stride;
    }
    return out;
  };
  const int64_t offset = view.layout.offset - outer.offset;
  if (base.contiguous) return {Ints(view.layout.shape), Ints(view.layout.strides), offset};
  Ints strides;
  for (size_t axis = 0; axis < view.layout.shape.size(); ++axis)
    strides.push_back(view.layout.shape[axis] > 1 ? translated(view.layout.strides[axis]) : int64_t{0});
  return {Ints(view.layout.shape), strides, translated(offset)};
}

// A view whose storage was changed in place through another tensor: its gradient comes from the base now.
void refresh(TensorImpl* view) {
  if (!view->base || view->grad_version == view->storage->version()) return;
  TensorImpl* base = view->base.get();
  view->grad = {};
  view->grad_version = view->storage->version();
  if (!base->grad.node) return;
  const std::array<Value, 3> place = place_in_base(*view, *base);
  const Value args[] = {Tensor(view->base), place[0], place[1], place[2]};
  Value out = Tensor(Ref<TensorImpl>(view));
  record(find_op("as_strided"), args, {&out, 1});
}

Tensor alias(const Tensor& tensor) { return tensor.with_layout(tensor->layout); }

OpNode::OpNode(const OpDef& op, std::span<const Value> args, std::span<const Value> outs) : op_(op) {
  sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < args.size(); ++i) {
    add_edge(args[i]);
    const bool idle = op.saves.crosswise && i < 2 && !(args[1 - i].is_tensor() && args[1 - i].tensor_impl()->grad.node);
    args_.push_back(keep(args[i], (op.saves.args >> i & 1) && !idle));
  }
  num_outputs = static_cast<int32_t>(outs.size());
  for (size_t i = 0; i < outs.size(); ++i) {
    const Tensor out = outs[i].tensor();
    out_types.push_back(Type{out.dtype(), out.shape()});
    // The link from an output to its node would be a cycle, so an unlinked alias is kept.
    outs_.push_back(op.saves.outs >> i & 1 ? keep(alias(out), true) : Value());
  }
}

void OpNode::add_edge(const Value& arg) {
  if (arg.is_tensor()) {
    edges.push_back(edge_of(arg.tensor_impl()));
  } else if (arg.is_list()) {
    for (const Value& item : arg.list()) add_edge(item);
  }
}

Value OpNode::keep(const Value& arg, bool saved) {
  if (arg.is_list()) {
    Value::List list;
    for (const Value& item : arg.list()) list.push_back(keep(item, saved));
    return Value(std::move(list));
  }
  if (!arg.is_tensor()) return arg;
  const TensorImpl* impl = arg.tensor_impl();
  if (!saved) return Value(Ref<RefCounted>(new TypeOnly({impl->dtype, impl->layout.shape})), 0);
  versions_.push_back({impl->storage.get(), impl->storage->version()});
  return arg;
}

// The outputs that were kept, as they were; for outer scopes they are this node's.
Values OpNode::linked_outs() {
  MOREL_CHECK(!released_, Runtime,
              "the tape was used for a gradient already and is gone; keep the graph to use it twice");
  for (const SavedVersion& saved : versions_)
    MOREL_CHECK(saved.storage->version() == saved.version, Runtime, "For '", display_name(op_),
                "', a tensor that its gradient needs was changed in place after the call (version ",
                saved.storage->version(), ", expected ", saved.version,
                "); use the out-of-place operator or copy the tensor first");
  Values outs;
  for (size_t i = 0; i < outs_.size(); ++i) {
    if (outs_[i].is_tensor() && depth > 0) {
      const Tensor out = alias(outs_[i].tensor());
      link(out.get(), this, static_cast<int32_t>(i));
      outs.push_back(out);
    } else {
      outs.push_back(outs_[i]);
    }
  }
  return outs;
}

Values OpNode::backward(std::span<const Value> cotangents, std::span<const char> needs) {
  return argument_gradients(EagerBuilder::instance(), op_, args_, linked_outs(), out_types, cotangents, needs);
}

Values OpNode::forward(std::span<const Value> tangents) {
  if (!op_.derivative) return TapeNode::forward(tangents);
  EagerBuilder& builder = EagerBuilder::instance();
  const Values outs = linked_outs();
  const Sym slope = op_.derivative(builder, Sym(builder, args_[0]), Sym(builder, outs[0]));
  const Value cast[] = {(slope * Sym(builder, tangents[0])).value(), out_types[0].dtype};
  return builder.emit(find_op("cast"), cast);
}

// Parameters outlive the gradient that records how they were changed: afterwards their values are given ones again.
thread_local std::vector<Tensor> changed_parameters;

void forget_changes() {
  for (const Tensor& parameter : std::exchange(changed_parameters, {})) clear_leaf(parameter);
}

}  // namespace

// -- scopes --

int grad_depth() { return depth; }
int set_grad_depth(int value) { return std::exchange(depth, value); }
GradScope::GradScope() { ++depth; }
GradScope::~GradScope() {
  if (--depth == 0) forget_changes();
}
GradDepth::GradDepth(int value) : saved_(depth) { depth = value; }
GradDepth::~GradDepth() {
  depth = saved_;
  if (depth == 0) forget_changes();
}

bool requires_grad(const TensorImpl* tensor) {
  if (tensor->is_symbolic()) return GraphScope::current() != nullptr;
  if (tensor->base && tensor->grad_version != tensor->storage->version()) refresh(const_cast<TensorImpl*>(tensor));
  return static_cast<bool>(tensor->grad.node);
}

Tensor make_input(const Tensor& tensor) {
  MOREL_CHECK(
      !tensor->is_symbolic(), Runtime,
      "a tensor of a graph that was compiled before is used outside of it; only what a compiled function returns "
      "can be used later");
  const Tensor out = alias(tensor);
  auto node = make_ref<PlaceNode>();
  node->out_types.push_back({tensor.dtype(), tensor.shape()});
  node->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  if (depth > 0 && requires_grad(tensor.get())) node->edges.push_back(edge_of(tensor.get()));
  link(out.get(), node.get(), 0);
  return out;
}

bool make_leaf(const Tensor& tensor) {
  if (tensor->grad.node) return false;
  auto node = make_ref<PlaceNode>();
  node->out_types.push_back({tensor.dtype(), tensor.shape()});
  node->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  link(tensor.get(), node.get(), 0);
  for (const auto& hook : lasting_hooks(tensor)) node->hooks.emplace_back(0, hook);
  return true;
}

void clear_leaf(const Tensor& tensor) { tensor->grad = {}; }

Tensor detach(const Tensor& tensor) { return alias(tensor); }

// -- recording --

// Whether the gradient at an integer is asked for. Integers that are made of floats are constant.
static bool follows_integers(std::span<const Value> args) {
  return std::ranges::any_of(args, [](const Value& arg) {
    if (arg.is_list()) return follows_integers({arg.list().data(), arg.list().size()});
    return arg.is_tensor() && is_integral(arg.tensor_impl()->dtype) && arg.tensor_impl()->grad.node;
  });
}

void record(const OpDef& op, std::span<const Value> args, std::span<Value> outs) {
  auto node = make_ref<OpNode>(op, args, outs);
  for (size_t i = 0; i < outs.size(); ++i) {
    TensorImpl* out = outs[i].tensor_impl();
    if (is_differentiable(out->dtype) || (is_integral(out->dtype) && follows_integers(args)))
      link(out, node.get(), static_cast<int32_t>(i));
  }
}

void mark_changed(const Tensor& target) {
  target->storage->bump_version();
  target->grad_version = target->storage->version();
  if (!target->base) return;
  TensorImpl* base = target->base.get();
  if (!base->grad.node) base->grad_version = base->storage->version();
}

void record_in_place(const OpDef& op, std::span<const Value> args, const Tensor& target) {
  target->storage->bump_version();
  const Ref<TensorImpl>& whole = target->base ? target->base : target.impl();
  if (whole->is_parameter) changed_parameters.emplace_back(whole);
  Value out = target;
  record(op, args, {&out, 1});
  if (!target->base) return;
  // base = as_strided_scatter(base, target): the data is there already, only the link changes.
  const std::array<Value, 3> place = place_in_base(*target.get(), *target->base);
  const Value scatter[] = {Tensor(target->base), target, place[0], place[1], place[2]};
  Value result = Tensor(target->base);
  record(find_op("as_strided_scatter"), scatter, {&result, 1});
}

void record_function(std::string name, std::span<const Tensor> inputs, std::span<Tensor> outs,
                     std::function<Values(std::span<const Value>)> backward) {
  auto node = make_ref<FunctionNode>(std::move(name), std::move(backward));
  node->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  node->num_outputs = static_cast<int32_t>(outs.size());
  for (const Tensor& input : inputs) node->edges.push_back(input ? edge_of(input.get()) : Edge{});
  for (size_t i = 0; i < outs.size(); ++i) {
    node->out_types.push_back({outs[i].dtype(), outs[i].shape()});
    link(outs[i].get(), node.get(), static_cast<int32_t>(i));
  }
}

using LastingHooks = Boxed<std::vector<std::shared_ptr<GradHook>>>;

std::span<const std::shared_ptr<GradHook>> lasting_hooks(const Tensor& tensor) {
  if (!tensor->extra) return {};
  return static_cast<const LastingHooks*>(tensor->extra.get())->value;
}

void add_hook(const Tensor& tensor, std::shared_ptr<GradHook> hook) {
  if (tensor->is_parameter || !tensor->grad.node) {
    if (!tensor->extra) tensor->extra = Ref<RefCounted>(new LastingHooks({}));
    static_cast<LastingHooks*>(tensor->extra.get())->value.push_back(hook);
  }
  if (tensor->grad.node)
    static_cast<TapeNode*>(tensor->grad.node.get())->hooks.emplace_back(tensor->grad.output, std::move(hook));
}

void remove_hook(const Tensor& tensor, const std::shared_ptr<GradHook>& hook) {
  if (tensor->extra) std::erase(static_cast<LastingHooks*>(tensor->extra.get())->value, hook);
  if (tensor->grad.node)
    std::erase_if(static_cast<TapeNode*>(tensor->grad.node.get())->hooks,
                  [&](const auto& entry) { return entry.second == hook; });
}

}  // namespace morel
