#include "morel/runtime/control.h"

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

Values joined(const Value& first, const Value& second) {
  const Value::List &a = items_of(first), &b = items_of(second);
  Values out(a.begin(), a.end());
  out.append(b.begin(), b.end());
  return out;
}

Values run(const Executor& graph, const Values& parameters) {
  return graph.run({parameters.data(), parameters.size()});
}

Values run_if(const Step& step, std::span<const Value> args) {
  const Value::List& operands = items_of(args[3]);
  return step.graphs[is_true(args[0]) ? 0 : 1]->run({operands.data(), operands.size()});
}

// The last state; where the node keeps them, also the states before every turn.
Values run_while(const Step& step, std::span<const Value> args, std::span<const Type> types) {
  const bool keeps = types.size() > args[2].list().size();
  Value state = args[2];
  Value::List states;
  for (;;) {
    const Values all = joined(state, args[3]);
    if (!is_true(run(*step.graphs[0], all)[0])) break;
    const Values next = run(*step.graphs[1], all);
    if (keeps) states.push_back(state);
    state = Value(Value::List(next.begin(), next.end()));
  }
  Values out(state.list().begin(), state.list().end());
  if (keeps) out.push_back(Value(std::move(states)));
  return out;
}

// Arguments: body, states, operands, cotangents of the last state.
Values run_while_grad(const Step& step, std::span<const Value> args, std::span<const Type> types) {
  const Value::List& states = items_of(args[1]);
  const size_t num_states = args[3].list().size(), num_results = types.size();
  Values out(args[3].list().begin(), args[3].list().end());
  for (size_t i = num_states; i < num_results; ++i) out.push_back(Tensor::full(types[i].shape, types[i].dtype, 0));
  for (size_t turn = states.size(); turn-- > 0;) {
    Values all = joined(states[turn], args[2]);
    for (size_t i = 0; i < num_states; ++i) all.push_back(out[i]);
    Values found = run(*step.graphs[0], all);
    for (size_t i = 0; i < num_results; ++i) {
      const Value terms[] = {out[i], found[i]};
      out[i] = i < num_states ? std::move(found[i]) : call_op(find_op("add"), terms)[0];
    }
  }
  return out;
}

}  // namespace

Values run_control(const Step& step, std::span<const Value> args, std::span<const Type> types) {
  switch (step.op->control) {
    case Control::If: return run_if(step, args);
    case Control::While: return run_while(step, args, types);
    case Control::WhileGrad: return run_while_grad(step, args, types);
    case Control::None:
    case Control::Fused: break;
  }
  raise(ErrorKind::Internal, "internal error: ", step.op->name, " is no control flow");
}

}  // namespace morel
