#include "morel/runtime/instance.h"

#include "morel/runtime/control.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/tape.h"

namespace morel {
namespace {

// A tensor where the schema has a number, or the state of random numbers.
Value number_of(const Tensor& tensor, uint32_t kinds) {
  if (kinds & kRng) return Ints{tensor.as<int64_t>()[0], tensor.as<int64_t>()[1]};
  const DType dtype = tensor.dtype();
  if (dtype == DType::Bool) return *tensor.as<bool>();
  if (is_integral(dtype)) return *convert(tensor, DType::Int64).as<int64_t>();
  return *convert(tensor, DType::Float64).as<double>();
}

// What an operand is in a run.
Value get(const Operand& operand, const Value& constant, std::span<const Value> slots) {
  if (operand.is_slot()) {
    const Value& value = slots[static_cast<size_t>(operand.slot)];
    return operand.number_kinds ? number_of(value.tensor(), operand.number_kinds) : value;
  }
  if (operand.items.empty()) return constant;
  Value::List list;
  for (size_t i = 0; i < operand.items.size(); ++i) list.push_back(get(operand.items[i], constant.list()[i], slots));
  return Value(std::move(list));
}

Ints evaluate(const Ints& dims, SymbolValues symbols) {
  Ints out;
  for (const Dim dim : dims) out.push_back(evaluate(dim, symbols));
  return out;
}

// An argument as far as it does not change between runs of an instance.
Value evaluate(const Operand& operand, SymbolValues symbols) {
  const Value& constant = operand.constant;
  if (constant.tag() == Value::Tag::Size) return evaluate(constant.dim(), symbols);
  if (constant.tag() == Value::Tag::Ints) return evaluate(constant.ints(), symbols);
  if (operand.items.empty()) return constant;
  Value::List list;
  for (const Operand& item : operand.items) list.push_back(evaluate(item, symbols));
  return Value(std::move(list));
}

}  // namespace

Instance::Instance(const Executor& executor, std::span<const Value> parameters, SymbolValues symbols)
    : executor_(executor), symbols_(symbols.begin(), symbols.end()), types_(executor.num_slots()) {
  if (executor.graph().sizes) bind_sizes(executor.graph(), parameters, symbols_);
  // A sequence, which only loops read, has no type of its own.
  for (const Value& parameter : parameters) signature_.push_back(parameter.is_list() ? Type() : type_of(parameter));
  std::copy(signature_.begin(), signature_.end(), types_.begin());
  size_t slot = parameters.size();
  for (const Ref<Node>& capture : executor.graph().captures) types_[slot++] = type_of(capture->captured);
  for (const Step& step : executor.steps()) {
    auto type = types_.begin() + step.first_out;
    for (const Type& general : step.node->types) *type++ = {general.dtype, evaluate(general.shape, symbols_)};
    Args& args = args_.emplace_back();
    for (const Operand& operand : step.args) args.push_back(evaluate(operand, symbols_));
  }
}

bool Instance::fits(std::span<const Value> parameters, SymbolValues symbols) const {
  if (!executor_.graph().sizes && !std::equal(symbols.begin(), symbols.end(), symbols_.begin(), symbols_.end()))
    return false;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].is_list() &&
        (shape_of(parameters[i]) != signature_[i].shape || dtype_of_value(parameters[i]) != signature_[i].dtype))
      return false;
  return true;
}

std::span<const Type> Instance::types_of(const Step& step) const {
  return {types_.data() + step.first_out, step.outs.size()};
}

Values Instance::call(const Step& step, std::span<const Value> args) const {
  switch (step.op->control) {
    case Control::None: {
      Values outs = execute(*step.op, args);
      if (step.op->has(kInPlace)) mark_changed(args[0].tensor());
      return outs;
    }
    case Control::Fused: {  // as one loop; until its code is there, operator by operator
      const Value::List& operands = args[1].list();
      SmallVector<Tensor, 8> inputs;
      for (const Value& operand : operands) inputs.push_back(operand.tensor());
      if (std::optional<Values> outs = step.loop->run({inputs.data(), inputs.size()}, types_of(step))) return *outs;
      return step.graphs[0]->run({operands.data(), operands.size()}, symbols_);
    }
    default: return run_control(step, args, symbols_);
  }
}

Values Instance::run(std::span<const Value> parameters) const {
  const GradDepth pause(0);
  std::vector<Value> slots(executor_.num_slots());
  std::copy(parameters.begin(), parameters.end(), slots.begin());
  size_t slot = parameters.size();
  for (const Ref<Node>& capture : executor_.graph().captures) slots[slot++] = capture->captured;
  for (size_t i = 0; i < args_.size(); ++i) {
    const Step& step = executor_.steps()[i];
    try {
      Args args;
      for (size_t k = 0; k < step.args.size(); ++k) args.push_back(get(step.args[k], args_[i][k], slots));
      Values outs = call(step, {args.data(), args.size()});
      for (size_t k = 0; k < step.outs.size(); ++k)
        if (step.outs[k] >= 0) slots[static_cast<size_t>(step.outs[k])] = std::move(outs[k]);
    } catch (Error& error) {
      const std::string place = "\nin a compiled graph, from " + step.node->place;
      if (!step.node->place.empty() && error.message().find(place) == std::string::npos) error.append(place);
      throw;
    }
    for (const int32_t freed : step.freed) slots[static_cast<size_t>(freed)] = Value();
  }
  Values out;
  for (const Operand& result : executor_.results()) out.push_back(get(result, result.constant, slots));
  return out;
}

}  // namespace morel
