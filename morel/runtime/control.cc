#include "morel/runtime/control.h"

#include "morel/base/stack.h"
#include "morel/runtime/eager.h"

namespace morel {
namespace {

bool is_true(const Value& condition) {
  const Tensor flag = convert(condition.tensor(), DType::Bool);
  return *flag.as<bool>();
}

// The items of a list that may be empty.
const Value::List& items_of(const Value& value) {
  static const Value::List none;
  return value.is_list() ? value.list() : none;
}

void append(Values& values, const Value& list) { values.append(items_of(list).begin(), items_of(list).end()); }

Values run(const Executor& graph, const Values& parameters, SymbolValues symbols) {
  return graph.run({parameters.data(), parameters.size()}, symbols);
}

Values run_if(const Step& step, std::span<const Value> args, SymbolValues symbols) {
  const Value::List& operands = items_of(args[3]);
  return step.graphs[is_true(args[0]) ? 0 : 1]->run({operands.data(), operands.size()}, symbols);
}

Values run_call(const Step& step, std::span<const Value> args, SymbolValues symbols) {
  const Executor& function = **step.function;
  const std::string& name = function.graph().name;
  MOREL_CHECK(!stack_is_low(), Runtime, "the compiled function '", name.substr(0, name.find('.')),
              "' calls itself too deeply for the stack");
  const Value::List& operands = items_of(args[1]);
  return function.run({operands.data(), operands.size()}, symbols);
}

// The last state, and the kept sequences.
Values run_while(const Step& step, std::span<const Value> args, size_t num_results, SymbolValues symbols) {
  Values state(items_of(args[2]).begin(), items_of(args[2]).end());
  std::vector<Value::List> kept(num_results - state.size());
  for (;;) {
    Values all(state);
    append(all, args[3]);
    if (!is_true(run(*step.graphs[0], all, symbols)[0])) break;
    Values next = run(*step.graphs[1], all, symbols);
    for (size_t i = 0; i < kept.size(); ++i)
      if (step.is_read(state.size() + i)) kept[i].push_back(state[i]);
    state = std::move(next);
  }
  for (Value::List& sequence : kept) state.push_back(Value(std::move(sequence)));
  return state;
}

// The last carry, the items made, and the kept sequences; all sequences in the order of the turns.
Values run_scan(const Step& step, std::span<const Value> args, size_t num_results, SymbolValues symbols) {
  const Value::List& sequences = items_of(args[2]);
  Values carry(items_of(args[3]).begin(), items_of(args[3]).end());
  const size_t turns = items_of(sequences[0]).size(), num_carry = carry.size();
  const size_t num_items = step.graphs[0]->graph().results.size() - num_carry;
  std::vector<Value::List> made(num_results - num_carry);
  for (Value::List& sequence : made) sequence.resize(turns);
  for (size_t i = 0; i < turns; ++i) {
    const size_t turn = args[0].boolean() ? turns - 1 - i : i;
    Values all;
    for (const Value& sequence : sequences) {
      MOREL_ASSERT(sequence.list().size() == turns);
      all.push_back(sequence.list()[turn]);
    }
    all.append(carry.begin(), carry.end());
    append(all, args[4]);
    const Values next = run(*step.graphs[0], all, symbols);
    for (size_t k = 0; k < made.size(); ++k)
      if (step.is_read(num_carry + k)) made[k][turn] = k < num_items ? next[num_carry + k] : carry[k - num_items];
    std::copy(next.begin(), next.begin() + static_cast<int64_t>(num_carry), carry.begin());
  }
  for (Value::List& sequence : made) carry.push_back(Value(std::move(sequence)));
  return carry;
}

}  // namespace

Values run_control(const Step& step, std::span<const Value> args, SymbolValues symbols) {
  switch (step.op->control) {
    case Control::If: return run_if(step, args, symbols);
    case Control::Call: return run_call(step, args, symbols);
    case Control::While: return run_while(step, args, step.outs.size(), symbols);
    case Control::Scan: return run_scan(step, args, step.outs.size(), symbols);
    case Control::None:
    case Control::Fused: break;
  }
  raise(ErrorKind::Internal, "internal error: ", step.op->name, " is no control flow");
}

}  // namespace morel
