#include "morel/runtime/executor.h"

#include <unordered_map>

#include "morel/runtime/eager.h"
#include "morel/runtime/loop_kernel.h"
#include "morel/runtime/tape.h"
#include "morel/transform/fuse.h"

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

}  // namespace

// An argument: a constant, a slot, or a list of operands.
struct Executor::Operand {
  Value constant;
  int32_t slot = -1;
  uint32_t number_kinds = 0;  // what the schema takes instead of a tensor
  std::vector<Operand> items;

  Value get(const std::vector<Value>& slots) const {
    if (slot >= 0) {
      const Value& value = slots[static_cast<size_t>(slot)];
      return number_kinds ? number_of(value.tensor(), number_kinds) : value;
    }
    if (items.empty()) return constant;
    Value::List list;
    for (const Operand& item : items) list.push_back(item.get(slots));
    return Value(std::move(list));
  }
};

struct Executor::Step {
  const OpDef* op = nullptr;
  const Node* node = nullptr;
  std::vector<Operand> args;
  std::vector<int32_t> outs;   // slots of the results, -1 where nobody reads one
  std::vector<int32_t> freed;  // slots that nobody reads later
  std::vector<std::unique_ptr<Executor>> graphs;
  std::unique_ptr<LoopKernel> loop;  // of a fused node
};

Executor::~Executor() = default;

Executor::Executor(Ref<Graph> graph) : graph_(std::move(graph)) {
  verify(*graph_);
  std::unordered_map<const Node*, int32_t> first_slot;
  for (const auto* list : {&graph_->parameters, &graph_->captures, &graph_->nodes}) {
    for (const Ref<Node>& node : *list) {
      first_slot[node.get()] = static_cast<int32_t>(num_slots_);
      num_slots_ += node->types.size();
    }
  }
  std::vector<bool> read_later(num_slots_);
  const auto slot_of = [&](const Value& value) {
    return first_slot.at(node_of(value)) + static_cast<int32_t>(value.output());
  };
  const auto operand_of = [&](const Value& value, auto& self) -> Operand {
    Operand out;
    if (value.tag() == Value::Tag::Node) {
      out.slot = slot_of(value);
    } else if (value.is_list() && !value.list().empty()) {
      for (const Value& item : value.list()) out.items.push_back(self(item, self));
    } else {
      out.constant = value;
    }
    return out;
  };
  for (const Value& result : graph_->results) {
    results_.push_back(operand_of(result, operand_of));
    for_each_input(result, [&](const Value& value) { read_later[static_cast<size_t>(slot_of(value))] = true; });
  }
  steps_.resize(graph_->nodes.size());
  for (size_t i = steps_.size(); i-- > 0;) {
    const Node& node = *graph_->nodes[i];
    Step& step = steps_[i];
    step.op = node.op;
    step.node = &node;
    const int32_t first = first_slot[&node];
    for (size_t k = 0; k < node.types.size(); ++k) {
      const int32_t slot = first + static_cast<int32_t>(k);
      step.outs.push_back(read_later[static_cast<size_t>(slot)] ? slot : -1);
    }
    for_each_input(node, [&](const Value& value) {
      const auto slot = static_cast<size_t>(slot_of(value));
      if (read_later[slot]) return;
      read_later[slot] = true;
      step.freed.push_back(static_cast<int32_t>(slot));
    });
    for (size_t k = 0; k < node.args.size(); ++k) {
      step.args.push_back(operand_of(node.args[k], operand_of));
      const ArgSpec& spec = node.op->schema.args[k];
      if (!spec.is_tensor_like()) step.args.back().number_kinds = spec.kinds;
      if (node.args[k].tag() == Value::Tag::Graph)
        step.graphs.push_back(std::make_unique<Executor>(Ref<Graph>(static_cast<Graph*>(node.args[k].graph()))));
    }
    if (node.op->control == Control::Fused)
      step.loop = std::make_unique<LoopKernel>(fused_program(step.graphs[0]->graph()));
  }
}

namespace {

bool is_true(const Value& condition) {
  const Tensor flag = convert(condition.tensor(), DType::Bool);
  return *flag.as<bool>();
}

Values joined(const Value& first, const Value& second) {
  Values out(first.list().begin(), first.list().end());
  if (!second.is_list()) return out;
  for (const Value& value : second.list()) out.push_back(value);
  return out;
}

}  // namespace

// As one loop; until its code is there, operator by operator.
Values Executor::run_fused(const Step& step, const Value::List& operands) const {
  const Types& types = step.node->types;
  if (!step.loop->want(num_elements(types[0].shape))) return step.graphs[0]->run({operands.data(), operands.size()});
  SmallVector<Tensor, 8> inputs;
  for (const Value& operand : operands) inputs.push_back(operand.tensor());
  return run_fused_loop(*step.loop, {inputs.data(), inputs.size()}, {types.data(), types.size()});
}

Values Executor::call(const Step& step, std::vector<Value>& slots) const {
  Args args;
  for (const Operand& operand : step.args) args.push_back(operand.get(slots));
  switch (step.op->control) {
    case Control::None: {
      Values outs = execute(*step.op, {args.data(), args.size()});
      if (step.op->has(kInPlace)) mark_changed(args[0].tensor());
      return outs;
    }
    case Control::If: {
      const Value::List none;
      const Value::List& operands = args[3].is_list() ? args[3].list() : none;
      return step.graphs[is_true(args[0]) ? 0 : 1]->run({operands.data(), operands.size()});
    }
    case Control::Fused: return run_fused(step, args[1].list());
    case Control::While: return run_while(step, args);
    case Control::WhileGrad: return run_while_grad(step, args);
  }
  return {};
}

// The last state; where the node keeps them, also the states before every turn.
Values Executor::run_while(const Step& step, const Args& args) const {
  const bool keeps = step.node->types.size() > args[2].list().size();
  Value state = args[2];
  Value::List states;
  for (;;) {
    const Values all = joined(state, args[3]);
    if (!is_true(step.graphs[0]->run({all.data(), all.size()})[0])) break;
    const Values next = step.graphs[1]->run({all.data(), all.size()});
    if (keeps) states.push_back(state);
    state = Value(Value::List(next.begin(), next.end()));
  }
  Values out(state.list().begin(), state.list().end());
  if (keeps) out.push_back(Value(std::move(states)));
  return out;
}

// Arguments: body, states, operands, cotangents of the last state.
Values Executor::run_while_grad(const Step& step, const Args& args) const {
  const Value::List none;
  const Value::List& states = args[1].is_list() ? args[1].list() : none;
  const size_t num_states = args[3].list().size(), num_results = step.node->types.size();
  Values out(args[3].list().begin(), args[3].list().end());
  for (size_t i = num_states; i < num_results; ++i)
    out.push_back(Tensor::full(step.node->types[i].shape, step.node->types[i].dtype, 0));
  for (size_t turn = states.size(); turn-- > 0;) {
    Values all = joined(states[turn], args[2]);
    for (size_t i = 0; i < num_states; ++i) all.push_back(out[i]);
    Values found = step.graphs[0]->run({all.data(), all.size()});
    for (size_t i = 0; i < num_results; ++i) {
      const Value terms[] = {out[i], found[i]};
      out[i] = i < num_states ? std::move(found[i]) : call_op(find_op("add"), terms)[0];
    }
  }
  return out;
}

Values Executor::run(std::span<const Value> parameters) const {
  const GradDepth pause(0);
  std::vector<Value> slots(num_slots_);
  std::copy(parameters.begin(), parameters.end(), slots.begin());
  for (size_t i = 0; i < graph_->captures.size(); ++i)
    slots[graph_->parameters.size() + i] = graph_->captures[i]->captured;
  for (const Step& step : steps_) {
    try {
      Values outs = call(step, slots);
      for (size_t k = 0; k < step.outs.size(); ++k)
        if (step.outs[k] >= 0) slots[static_cast<size_t>(step.outs[k])] = std::move(outs[k]);
    } catch (Error& error) {
      if (!step.node->place.empty()) error.append("\nin a compiled graph, from " + step.node->place);
      throw;
    }
    for (const int32_t slot : step.freed) slots[static_cast<size_t>(slot)] = Value();
  }
  Values out;
  for (const Operand& result : results_) out.push_back(result.get(slots));
  return out;
}

}  // namespace morel
