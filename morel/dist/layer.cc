#include "morel/dist/layer.h"

#include <algorithm>
#include <utility>

#include "morel/base/error.h"
#include "morel/ops/call.h"
#include "morel/ops/registry.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/tape.h"
#include "morel/tensor/generator.h"

namespace morel::dist {
namespace {

thread_local CallNotes notes;

bool any_distributed(std::span<const Value> args) {
  return std::any_of(args.begin(), args.end(), [](const Value& arg) {
    if (arg.is_list()) return any_distributed({arg.list().data(), arg.list().size()});
    return arg.is_tensor() && arg.tensor_impl()->shards;
  });
}

const Mesh& mesh_of(const OpDef& op, std::span<const Value> args) {
  const Mesh* mesh = nullptr;
  for (const Value& value : tensors_of(op, args)) {
    if (!value.tensor_impl()->shards) continue;
    const Mesh* other = &sharding_of(value.tensor())->mesh();
    MOREL_CHECK(!mesh || mesh == other, Value, "For '", display_name(op), "', one tensor is on the mesh ",
                to_string(*mesh), " and another one on ", to_string(*other));
    mesh = other;
  }
  return *mesh;
}

// Arguments with `fn` applied to every tensor, those of lists included.
template <class F>
Value with_tensors(const Value& value, F& fn) {
  if (value.is_tensor()) return fn(value.tensor());
  if (!value.is_list()) return value;
  Value::List list;
  for (const Value& item : value.list()) list.push_back(with_tensors(item, fn));
  return Value(std::move(list));
}
template <class F>
Args with_tensors(std::span<const Value> args, F fn) {
  Args out;
  for (const Value& arg : args) out.push_back(with_tensors(arg, fn));
  return out;
}

void check_writable(const Tensor& target) {
  MOREL_CHECK(
      !target->shards || !shards_of(target)->copied_view, NotImplemented,
      "a view of a distributed tensor whose pieces had to be moved for it cannot be changed in place, since the "
      "tensor would not change; change the tensor itself, or redistribute it first");
}

// One call, on all positions of the mesh that this process stands for.
class DistributedCall {
 public:
  DistributedCall(const OpDef& op, std::span<const Value> args)
      : op_(op), mesh_(mesh_of(op, args)), here_(world().positions(mesh_)) {
    if (op.has(kInPlace)) check_writable(args[0].tensor());
    args_ = with_tensors(args, [&](const Tensor& tensor) -> Value {
      if (tensor->shards) return operands_.emplace_back(tensor);
      MOREL_CHECK(!(op.has(kInPlace) && operands_.empty()), Value, "For '", display_name(op),
                  "', a plain tensor cannot be changed in place by distributed ones");
      const Sharding* whole = Sharding::replicated(&mesh_, tensor.shape().size());
      const Type type{tensor.dtype(), tensor.shape()};
      return operands_.emplace_back(make_distributed(whole, type, copies_of(tensor)));
    });
  }

  Values run() {
    if (op_.data_dependent) return run_whole();
    plan_ = plan_call(op_, {args_.data(), args_.size()}, operands_);
    ++notes.calls;
    notes.cuts_reduction |= plan_->sharding.cuts_reduction;
    notes.gathers |= plan_->sharding.gathers;
    notes.underived |= !plan_->derived;
    move_operands();
    std::vector<std::vector<Tensor>> results(plan_->types.size());
    for (size_t i = 0; i < here_.size(); ++i) {
      Values outs = at_position(i);
      for (size_t k = 0; k < results.size() && !op_.has(kInPlace); ++k) results[k].push_back(outs[k].tensor());
    }
    move_back();
    if (op_.has(kInPlace)) return {args_[0]};
    Values outs;
    for (size_t k = 0; k < results.size(); ++k) outs.push_back(wrapped(k, std::move(results[k])));
    return outs;
  }

 private:
  // A plain tensor at every position; where the call writes into it, the others have to leave it alone.
  std::vector<Tensor> copies_of(const Tensor& tensor) const {
    std::vector<Tensor> out(here_.size(), tensor);
    const Value value = tensor;
    for (size_t i = 1; i < out.size() && op_.has(kItemwise); ++i)
      out[i] = morel::execute(find_op("clone"), {&value, 1})[0].tensor();
    return out;
  }

  void move_operands() {
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Tensor& tensor = operands_[i];
      const Plan& way = plan(sharding_of(tensor), plan_->sharding.operands[i], tensor.shape());
      note_traffic(way);
      parts_.push_back(redistribute(way, tensor.shape(), tensor.dtype(), shards_of(tensor)->parts));
      versions_.emplace_back();
      for (Tensor& part : parts_.back()) {
        if (op_.has(kItemwise)) part = contiguous(part);  // what updates write has to be dense
        versions_.back().push_back(part->storage->version());
      }
    }
  }

  Values at_position(size_t i) {
    const int position = here_[i];
    if (plan_->has_nothing[static_cast<size_t>(position)]) return nothing_at(position);
    size_t next = 0;
    const auto part = [&](const Tensor&) -> Value { return parts_[next++][i]; };
    const Args& local = plan_->arguments[static_cast<size_t>(position)];
    Args args = with_tensors({args_.data(), args_.size()}, part);
    for (size_t k = 0; k < args.size(); ++k)
      if (!args[k].is_tensor() && !args[k].is_list()) args[k] = local[k];
    if (op_.has(kRandom)) place_random(args, position);
    return morel::execute(op_, {args.data(), args.size()});
  }

  // Random numbers are those of the elements' places in the whole result.
  void place_random(Args& args, int position) const {
    for (size_t k = 0; k < args.size(); ++k)
      if (op_.schema.args[k].kinds & kRng)
        args[k] = random_part(args_[k], plan_->sharding.results[0]->box(position, plan_->types[0].shape),
                              plan_->types[0].shape);
  }

  // Where a part has no elements of an index that is cut: empty results, and sums of nothing.
  Values nothing_at(int position) const {
    Values outs;
    for (size_t k = 0; k < plan_->types.size(); ++k) {
      const Sharding* result = plan_->sharding.results[k];
      outs.push_back(
          identities(result->local_shape(position, plan_->types[k].shape), plan_->types[k].dtype, result->combine()));
    }
    return outs;
  }

  // Operands that were changed in place but lay elsewhere for the call.
  void move_back() {
    for (size_t i = 0; i < operands_.size(); ++i) {
      bool changed = op_.has(kInPlace) && i == 0;
      for (size_t k = 0; k < parts_[i].size(); ++k)
        changed = changed || parts_[i][k]->storage->version() != versions_[i][k];
      if (!changed) continue;
      const Sharding *now = plan_->sharding.operands[i], *wanted = sharding_of(operands_[i]);
      const Plan& way = plan(now, wanted, operands_[i].shape());
      note_traffic(way);
      const std::vector<Tensor> back =
          redistribute(way, operands_[i].shape(), operands_[i].dtype(), std::move(parts_[i]));
      const std::vector<Tensor>& parts = shards_of(operands_[i])->parts;
      for (size_t k = 0; k < parts.size(); ++k)
        if (parts[k].get() != back[k].get()) morel::copy_into(parts[k], back[k]);
    }
  }

  // Result `k`; of a view, one whose changes reach the operand where the parts are views.
  Value wrapped(size_t k, std::vector<Tensor> parts) const {
    Tensor out = make_distributed(plan_->sharding.results[k], plan_->types[k], std::move(parts));
    if (!op_.view && !op_.views) return out;
    const Tensor& input = operands_[0];
    const ArgView call(op_, {args_.data(), args_.size()});
    std::optional<Layout> layout;
    if (op_.view) layout = op_.view(call, input->layout);
    if (op_.views) layout = op_.views(call, input->layout)[k];
    if (!layout) return out;
    const bool of_copy = shards_of(input)->copied_view;
    const std::vector<Tensor>&own = shards_of(input)->parts, &views = shards_of(out)->parts;
    for (size_t i = 0; i < own.size(); ++i) {
      if (!of_copy && (views[i].size() == 0 || views[i]->storage == own[i]->storage)) continue;
      out->shards = Ref<RefCounted>(new Shards(plan_->sharding.results[k], views, true));
      return out;
    }
    Tensor view = Tensor::from_storage(input->storage, std::move(*layout), out.dtype());
    view->shards = out->shards;
    if (grad_depth() > 0) {
      view->base = input->base ? input->base : input.impl();
      view->grad_version = view->storage->version();
    }
    return view;
  }

  // Operators whose results' shapes depend on values: everywhere on the whole tensors.
  Values run_whole() {
    ++notes.calls;
    notes.underived = true;
    std::vector<std::vector<Tensor>> whole;
    for (const Tensor& tensor : operands_) {
      const Plan& way = plan(sharding_of(tensor), Sharding::replicated(&mesh_, tensor.shape().size()), tensor.shape());
      note_traffic(way);
      whole.push_back(redistribute(way, tensor.shape(), tensor.dtype(), shards_of(tensor)->parts));
    }
    std::vector<std::vector<Tensor>> results;
    for (size_t i = 0; i < here_.size(); ++i) {
      size_t next = 0;
      const Args args =
          with_tensors({args_.data(), args_.size()}, [&](const Tensor&) -> Value { return whole[next++][i]; });
      const Values outs = morel::execute(op_, {args.data(), args.size()});
      results.resize(outs.size());
      for (size_t k = 0; k < outs.size(); ++k) results[k].push_back(outs[k].tensor());
    }
    Values outs;
    for (std::vector<Tensor>& parts : results) {
      const Type type{parts[0].dtype(), parts[0].shape()};
      outs.push_back(make_distributed(Sharding::replicated(&mesh_, type.shape.size()), type, std::move(parts)));
    }
    return outs;
  }

  const OpDef& op_;
  const Mesh& mesh_;
  const std::vector<int>& here_;
  Args args_;
  std::vector<Tensor> operands_;
  std::shared_ptr<const CallPlan> plan_;
  std::vector<std::vector<Tensor>> parts_;  // of each operand, at each position
  std::vector<std::vector<uint32_t>> versions_;
};

class Layer final : public ExecutionLayer {
 public:
  // Composites are left to their rule, whose calls come here.
  bool takes(const OpDef& op, std::span<const Value> args) override {
    return is_primitive(op) && any_distributed(args);
  }

  Values execute(const OpDef& op, std::span<const Value> args) override {
    MOREL_CHECK(op.control == Control::None, NotImplemented, "For '", display_name(op),
                "', distributed tensors are not supported in compiled functions yet");
    if (op.compose && !has_axes(op)) return execute_composite(op, args);
    if (op.has(kItemwise)) return execute_items(op, args);
    return DistributedCall(op, args).run();
  }

  void copy_into(const Tensor& target, const Tensor& source) override {
    check_writable(target);
    const Sharding* sharding = sharding_of(target);
    const Shape& shape = target.shape();
    const Value args[] = {source, Ints(shape)};
    const Tensor spread = source.shape() == shape ? source : morel::execute(find_op("broadcast_to"), args)[0].tensor();
    const GradDepth pause(0);
    const Tensor moved = distribute(spread, sharding);
    for (size_t i = 0; i < shards_of(target)->parts.size(); ++i)
      morel::copy_into(shards_of(target)->parts[i], shards_of(moved)->parts[i]);
  }

 private:
  // One call for each item of the lists, whose tensors have nothing to do with those of other items.
  static Values execute_items(const OpDef& op, std::span<const Value> args) {
    for (size_t item = 0; item < args[0].list().size(); ++item) {
      Args one(args.begin(), args.end());
      for (Value& arg : one)
        if (arg.is_list() && !arg.list().empty()) arg = Value(Value::List{arg.list()[item]});
      const std::span<const Value> all(one.data(), one.size());
      if (any_distributed(all)) {
        DistributedCall(op, all).run();
      } else {
        morel::execute(op, all);
      }
    }
    return {};
  }
};

}  // namespace

void use_layer() {
  static Layer& layer = *[] {
    auto* made = new Layer;
    set_execution_layer(made);
    return made;
  }();
  static_cast<void>(layer);
}

CallNotes take_notes() { return std::exchange(notes, {}); }

Value random_part(const Value& rng, const Box& box, const Shape& whole) {
  Ints out(rng.ints().begin(), rng.ints().begin() + 2);
  out.append(whole.begin(), whole.end());
  out.append(box.start.begin(), box.start.end());
  return out;
}

Tensor create(const OpDef& op, std::span<const Value> given, const Sharding* sharding) {
  Args args = complete_args(op, given);
  for (size_t k = 0; k < args.size(); ++k)
    if ((op.schema.args[k].kinds & kRng) && args[k].is_none()) args[k] = default_generator().next();
  const Type type = op.infer(ArgView(op, {args.data(), args.size()}))[0];
  MOREL_CHECK(sharding->rank() == type.shape.size(), Value, "the layout ", to_string(*sharding), " does not fit ",
              to_string(type));
  std::vector<Tensor> parts;
  for (const int position : world().positions(sharding->mesh())) {
    const Box box = sharding->box(position, type.shape);
    Args local(args);
    for (size_t k = 0; k < args.size(); ++k) {
      if (op.schema.args[k].role == ArgRole::Shape) local[k] = Ints(box.size.begin(), box.size.end());
      if (op.schema.args[k].kinds & kRng) local[k] = random_part(args[k], box, type.shape);
    }
    parts.push_back(morel::execute(op, {local.data(), local.size()})[0].tensor());
  }
  return make_distributed(sharding, type, std::move(parts));
}

}  // namespace morel::dist
