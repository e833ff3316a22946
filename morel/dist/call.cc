#include "morel/dist/call.h"

#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "morel/base/error.h"
#include "morel/dist/shards.h"
#include "morel/ops/registry.h"

namespace morel::dist {
namespace {

// Everything that the plan depends on, as bytes.
class Signature {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void add(const T& value) { text_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void add(const Value& value) {
    add(value.tag());
    switch (value.tag()) {
      case Value::Tag::Tensor: {
        const TensorImpl* impl = value.tensor_impl();
        add(impl->dtype);
        add(impl->layout.shape.size());
        for (const Dim size : impl->layout.shape) add(size.code());
        add(static_cast<const Shards*>(impl->shards.get())->sharding);
        return;
      }
      case Value::Tag::List:
        add(value.list().size());
        for (const Value& item : value.list()) add(item);
        return;
      case Value::Tag::Int: return add(value.integer());
      case Value::Tag::Ints:
        add(value.ints().size());
        for (const Dim number : value.ints()) add(number.code());
        return;
      default: text_ += to_string(value) + '\n';
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

Types result_types(const OpDef& op, std::span<const Value> args) {
  if (op.has(kInPlace)) return {Type{dtype_of_value(args[0]), shape_of(args[0])}};
  return op.infer(ArgView(op, args));
}

// Arguments that name sizes, as the process at `position` must give them.
Args local_arguments(const OpDef& op, std::span<const Value> args, const AxisMap& map, const CallPlan& plan,
                     int position) {
  Args out(args.begin(), args.end());
  const Mesh& mesh = plan.sharding.operands[0]->mesh();
  for (size_t i = 0; i < args.size(); ++i)
    if (op.schema.args[i].role == ArgRole::Shape && !args[i].is_none())
      out[i] = Ints(plan.sharding.results[0]->local_shape(position, plan.types[0].shape));
  for (size_t idx = 0; idx < map.factors.size(); ++idx)
    if (const Factor& factor = map.factors[idx]; factor.argument >= 0 && !plan.sharding.cuts[idx].empty())
      out[static_cast<size_t>(factor.argument)] =
          static_cast<int64_t>(factor.size) / mesh.size_along(plan.sharding.cuts[idx]);
  return out;
}

std::shared_ptr<const CallPlan> make_plan(const OpDef& op, std::span<const Value> args,
                                          std::span<const Tensor> operands) {
  auto plan = std::make_shared<CallPlan>();
  plan->types = result_types(op, args);
  const std::span<const Type> types(plan->types.data(), plan->types.size());
  const AxisMap map = axis_map(op, args, types);
  plan->derived = has_axes(op);
  std::vector<const Sharding*> shardings;
  for (const Tensor& tensor : operands) shardings.push_back(sharding_of(tensor));
  plan->sharding = propagate(op, args, map, types, shardings);
  const Mesh& mesh = shardings[0]->mesh();
  for (int position = 0; position < mesh.size(); ++position) {
    plan->arguments.push_back(local_arguments(op, args, map, *plan, position));
    bool nothing = false;
    for (size_t i = 0; i < operands.size(); ++i)
      nothing = nothing ||
                (operands[i].size() > 0 && plan->sharding.operands[i]->box(position, operands[i].shape()).is_empty());
    plan->has_nothing.push_back(nothing);
  }
  return plan;
}

}  // namespace

std::shared_ptr<const CallPlan> plan_call(const OpDef& op, std::span<const Value> args,
                                          std::span<const Tensor> operands) {
  constexpr size_t enough = 1 << 16;
  static std::mutex mutex;
  static auto& plans = *new std::unordered_map<std::string, std::shared_ptr<const CallPlan>>;
  Signature signature;
  signature.add(op.id);
  for (size_t i = 0; i < args.size(); ++i)
    if (!(op.schema.args[i].kinds & kRng)) signature.add(args[i]);
  const std::lock_guard lock(mutex);
  if (plans.size() > enough) plans.clear();
  auto& slot = plans[signature.text()];
  if (!slot) {
    try {
      slot = make_plan(op, args, operands);
    } catch (...) {
      plans.erase(signature.text());
      throw;
    }
  }
  return slot;
}

}  // namespace morel::dist
