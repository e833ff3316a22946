#include "morel/transform/grad.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "morel/transform/replay.h"
#include "morel/transform/simplify.h"

namespace morel {
namespace {

bool is_differentiable_value(const Value& value) { return is_differentiable(dtype_of_value(value)); }

// Makes the backward graph of a branch, loop body or function: (its parameters, cotangents of its differentiable
// results) -> gradients of its differentiable parameters. The forward part is computed again.
void build_backward(const Ref<Graph>& graph, const Graph& forward) {
  graph->name = forward.name + "_grad";
  GraphBuilder builder(graph);
  std::vector<Value> parameters, wanted, outputs, seeds;
  for (const Ref<Node>& parameter : forward.parameters) {
    parameters.push_back(graph->add_parameter(parameter->types[0]));
    if (is_differentiable_value(parameters.back())) wanted.push_back(parameters.back());
  }
  const Values results = append_again(builder, forward, parameters);
  for (const Value& result : results) {
    if (!is_differentiable_value(result)) continue;
    outputs.push_back(result);
    seeds.push_back(graph->add_parameter(type_of(result)));
  }
  Values gradients = graph_gradients(builder, outputs, seeds, wanted);
  for (size_t i = 0; i < gradients.size(); ++i)
    graph->results.push_back(gradients[i].is_none() ? zeros_of(builder, wanted[i]) : gradients[i]);
  simplify(*graph);
}

Ref<Graph> backward_graph(const Graph& forward) {
  auto graph = make_ref<Graph>();
  build_backward(graph, forward);
  return graph;
}

// It is there before its body, which may call it.
const Ref<Graph>& backward_function(Graph& function) {
  if (function.backward) return function.backward;
  MOREL_CHECK(function.is_complete(), NotImplemented,
              "the gradient of a function that calls itself is not supported within that function");
  function.backward = make_ref<Graph>();
  function.backward->is_function = true;
  for (const Ref<Node>& parameter : function.parameters)
    if (is_differentiable(parameter->types[0].dtype)) function.backward->result_types.push_back(parameter->types[0]);
  build_backward(function.backward,
                 draws(function) ? *with_rng_state(function, function.parameters.size(), true) : function);
  return function.backward;
}

Value sum_of(GraphBuilder& builder, const Value& a, const Value& b) {
  const Value terms[] = {a, b};
  return a.is_none() ? b : builder.emit(find_op("add"), terms)[0];
}

// Whether a value is a sequence of what the turns of a loop made or found.
bool is_sequence(const Value& value) {
  const Node& node = *node_of(value);
  if (!node.op || (node.op->control != Control::While && node.op->control != Control::Scan)) return false;
  return value.output() >= node.args[node.args.size() - 2].list().size();
}

// Removes the sequences that the body does not read; one stays, which tells the number of turns.
void drop_unread(Graph& body, Value::List& sequences) {
  std::unordered_set<const Node*> read;
  const auto mark = [&](const Value& value) { read.insert(node_of(value)); };
  for (const Ref<Node>& node : body.nodes) for_each_input(*node, mark);
  for (const Value& result : body.results) for_each_input(result, mark);
  for (size_t i = sequences.size(); i-- > 0 && sequences.size() > 1;) {
    if (read.contains(body.parameters[i].get())) continue;
    sequences.erase(sequences.begin() + static_cast<int64_t>(i));
    body.parameters.erase(body.parameters.begin() + static_cast<int64_t>(i));
  }
}

// Cotangents of the values of a graph, summed up as they come; those of sequences are summed by the loop that reads
// them.
class Cotangents {
 public:
  explicit Cotangents(GraphBuilder& builder) : builder_(builder) {}
  void add(const Value& value, const Value& cotangent) {
    if (cotangent.is_none()) return;
    if (!is_differentiable(dtype_of_value(value)) && !integers_.contains(node_of(value))) return;
    Values& all = table_[node_of(value)];
    if (all.empty()) all.resize(node_of(value)->types.size());
    Value& sum = all[value.output()];
    if (is_sequence(value)) {
      Value::List terms = sum.is_none() ? Value::List() : sum.list();
      terms.push_back(cotangent);
      sum = Value(std::move(terms));
    } else {
      sum = sum_of(builder_, sum, cotangent);
    }
  }
  // From now on the integers that a node gives have cotangents too.
  void follow(const Node& node) { integers_.insert(&node); }
  bool follows(const Value& value) const { return integers_.contains(node_of(value)); }
  // The sum of a value whose terms are all there, with what its hooks make of it; asked for once.
  Value of(const Value& value) const {
    const auto found = table_.find(node_of(value));
    return found == table_.end() ? Value() : builder_.hooked(value, found->second[value.output()]);
  }
  // The same of all outputs of a node; empty where nothing flows back to it.
  Values of_outputs(Node& node) const {
    Values out;
    if (table_.contains(&node))
      for (uint32_t i = 0; i < node.types.size(); ++i) out.push_back(of(node.output(i)));
    return out;
  }

 private:
  GraphBuilder& builder_;
  std::unordered_map<const Node*, Values> table_;
  std::unordered_set<const Node*> integers_;
};

class Sweep {
 public:
  Sweep(GraphBuilder& builder, std::span<const Value> inputs) : builder_(builder), cotangents_(builder) {
    for (const Value& input : inputs) {
      depends_.insert(node_of(input));
      targets_.insert(node_of(input));
      if (is_integral(dtype_of_value(input))) cotangents_.follow(*node_of(input));
    }
  }

  // Nodes [first, last) of the graph, marked before, latest first; `inputs` lie before them or among them.
  void run(size_t first, size_t last) {
    for (size_t i = last; i-- > first;) {
      const Ref<Node> node = builder_.graph().nodes[i];  // the list grows meanwhile
      if (depends_.contains(node.get())) step(*node);
    }
  }
  Cotangents& cotangents() { return cotangents_; }

  // Finds which of the nodes depend on the inputs; before their results get cotangents.
  void mark(size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const Node& node = *builder_.graph().nodes[i];
      if (const auto* custom = builder_.find_custom(&node)) {
        bool any = false;
        for (const Value& input : custom->inputs) any |= depends_.contains(node_of(input));
        if (any)
          for (const Value& output : custom->outputs) depends_.insert(node_of(output));
      }
      if (node.op->has(kNoGrad) || node.stops_gradient) continue;
      for_each_input(node, [&](const Value& input) {
        if (!depends_.contains(node_of(input))) return;
        depends_.insert(&node);
        // Integers that are made of floats are constant; control flow passes on cotangents of floats alone.
        if (cotangents_.follows(input) && is_integral(node.types[0].dtype) && node.op->control == Control::None)
          cotangents_.follow(node);
      });
    }
  }

 private:
  bool reads_dependent(const Node& node) const {
    bool found = false;
    for_each_input(node, [&](const Value& input) { found |= depends_.contains(node_of(input)); });
    return found;
  }

  void step(Node& node) {
    if (targets_.contains(&node) && !reads_dependent(node)) return;  // else it was changed in place since
    if (const auto* custom = builder_.find_custom(&node)) {
      if (node_of(custom->outputs[0]) == &node) step_custom(*custom);
      return;
    }
    const Values douts = cotangents_.of_outputs(node);
    if (douts.empty()) return;
    builder_.set_place(node.place);
    if (node.op->control != Control::None) return step_control(node, douts);
    if (!node.op->grad) return expand(node, douts);
    SmallVector<char, 8> needs;
    SmallVector<Value, 8> edges;
    for_each_input(node, [&](const Value& input) {
      edges.push_back(input);
      needs.push_back(depends_.contains(node_of(input)));
    });
    if (std::ranges::count(needs, 1) == 0) return;
    Values outs;
    for (uint32_t i = 0; i < node.types.size(); ++i) outs.push_back(node.output(i));
    const Values grads = argument_gradients(builder_, *node.op, {node.args.data(), node.args.size()},
                                            {outs.data(), outs.size()}, {node.types.data(), node.types.size()},
                                            {douts.data(), douts.size()}, {needs.data(), needs.size()});
    for (size_t i = 0; i < edges.size(); ++i)
      if (needs[i]) cotangents_.add(edges[i], grads[i]);
  }

  // The outputs of a custom function follow one another; the first of them, met last, has all their cotangents.
  void step_custom(const GraphBuilder::Custom& custom) {
    Values douts;
    bool any = false;
    for (const Value& output : custom.outputs) {
      douts.push_back(cotangents_.of(output));
      any |= !douts.back().is_none();
    }
    if (!any) return;
    for (size_t i = 0; i < douts.size(); ++i)
      if (douts[i].is_none()) douts[i] = zeros_of(builder_, custom.outputs[i]);
    const Values grads = custom.backward({douts.data(), douts.size()});
    for (size_t i = 0; i < custom.inputs.size() && i < grads.size(); ++i)
      if (node_of(custom.inputs[i]) && depends_.contains(node_of(custom.inputs[i])))
        cotangents_.add(custom.inputs[i], grads[i]);
  }

  // Cotangents of the differentiable ones among the first `count` outputs, zeros where nothing flowed back.
  Value::List seeds_of(Node& node, size_t count, const Values& douts) {
    Value::List out;
    for (uint32_t i = 0; i < count; ++i) {
      if (!is_differentiable(node.types[i].dtype)) continue;
      out.push_back(douts[i].is_none() ? zeros_of(builder_, node.output(i)) : douts[i]);
    }
    return out;
  }

  void add_gradients(std::span<const Value> arguments, const Values& gradients) {
    size_t next = 0;
    for (const Value& argument : arguments)
      if (is_differentiable_value(argument)) cotangents_.add(argument, gradients[next++]);
  }

  void step_control(Node& node, const Values& douts) {
    const auto graph = [&](size_t arg) -> Graph& { return *static_cast<Graph*>(node.args[arg].graph()); };
    const auto with_seeds = [&](size_t operands, bool replays) {
      Value::List out = node.args[operands].list();
      if (replays) out.push_back(rng_before(builder_, node));
      for (const Value& seed : seeds_of(node, node.types.size(), douts)) out.push_back(seed);
      return Value(std::move(out));
    };
    if (node.op->control == Control::If) {
      const bool replays = draws(graph(1)) || draws(graph(2));
      const auto backward = [&](const Graph& branch) {
        return Value::of_graph(
            backward_graph(replays ? *with_rng_state(branch, branch.parameters.size(), true) : branch));
      };
      const Value args[] = {node.args[0], backward(graph(1)), backward(graph(2)), with_seeds(3, replays)};
      return add_gradients(node.args[3].list(), builder_.emit(*node.op, args));
    }
    if (node.op->control == Control::Call) {
      const Value function = Value::of_graph(backward_function(graph(0)));
      const Value args[] = {function, with_seeds(1, draws(graph(0)))};
      return add_gradients(node.args[1].list(), builder_.emit(*node.op, args));
    }
    if (draws(graph(1))) carry_rng_state(builder_, node);
    step_loop(node, graph(1), douts);
  }

  // The gradient of a loop, `while` or `scan`, is a scan in the other direction, which carries the cotangents of the
  // carry and the gradients of the operands, and makes those of the sequences.
  void step_loop(Node& node, const Graph& body, const Values& douts) {
    const size_t last = node.args.size() - 1;
    const bool is_scan = node.op->control == Control::Scan;
    const Value::List none, &sequences = is_scan ? node.args[2].list() : none;
    const Value::List &carry = node.args[last - 1].list(), &operands = node.args[last].list();
    const size_t first_kept = body.results.size();
    if (node.types.size() == first_kept)  // keeps them from now on
      for (const Value& value : carry) node.types.push_back(type_of(value));

    auto turn = make_ref<Graph>();
    turn->name = body.name + "_turn";
    GraphBuilder builder(turn);
    Value::List read, start = seeds_of(node, carry.size(), douts);
    std::vector<Value> given, seeds, kept, sums;
    const auto read_turn = [&](const Value& sequence) {
      read.push_back(sequence);
      return turn->add_parameter(type_of(sequence));
    };
    const auto cotangent_of = [&](size_t output) {
      Value sum;
      if (output < douts.size() && !douts[output].is_none())
        for (const Value& term : douts[output].list()) sum = sum_of(builder, sum, read_turn(term));
      return sum;
    };
    for (const Value& sequence : sequences) given.push_back(read_turn(sequence));
    for (size_t i = 0; i < carry.size(); ++i)
      given.push_back(read_turn(node.output(static_cast<uint32_t>(first_kept + i))));
    std::vector<Value> items;
    for (size_t i = carry.size(); i < first_kept; ++i) items.push_back(cotangent_of(i));
    for (size_t i = 0; i < carry.size(); ++i)
      if (is_differentiable_value(carry[i])) kept.push_back(cotangent_of(first_kept + i));
    for (const Value& seed : start) seeds.push_back(turn->add_parameter(type_of(seed)));
    for (const Value& operand : operands) {
      if (!is_differentiable_value(operand)) continue;
      start.push_back(zeros_of(builder_, operand));
      sums.push_back(turn->add_parameter(type_of(operand)));
    }
    for (const Value& operand : operands) given.push_back(turn->add_parameter(type_of(operand)));
    given.insert(given.end(), seeds.begin(), seeds.end());
    for (size_t i = 0; i < items.size(); ++i) {
      const Value& like = body.results[carry.size() + i];
      if (is_differentiable_value(like)) given.push_back(items[i].is_none() ? zeros_of(builder, like) : items[i]);
    }

    const Values found = append_copy(*turn, *backward_graph(body), given);
    const size_t num_items = found.size() - kept.size() - sums.size();
    for (size_t i = num_items; i < found.size(); ++i) {
      const size_t k = i - num_items;
      const Value& with = k < kept.size() ? kept[k] : sums[k - kept.size()];
      turn->results.push_back(with.is_none() ? found[i] : sum_of(builder, with, found[i]));
    }
    turn->results.append(found.begin(), found.begin() + static_cast<int64_t>(num_items));
    simplify(*turn);
    drop_unread(*turn, read);
    const Value args[] = {!(is_scan && node.args[0].boolean()), Value::of_graph(turn), Value(std::move(read)),
                          Value(std::move(start)), Value(operands)};
    Values gradients = builder_.emit(find_op("scan"), args);
    SmallVector<Value, 8> arguments;
    for (const Value::List* list : {&carry, &operands, &sequences})
      for (const Value& value : *list) arguments.push_back(value);
    add_gradients({arguments.data(), arguments.size()}, gradients);
  }

  // An operator without a rule of its own: what it is composed of is written out beside it and differentiated.
  void expand(const Node& node, const Values& douts) {
    MOREL_CHECK(node.op->compose, Internal, "operator ", node.name, " has no gradient");
    const size_t first = builder_.graph().nodes.size();
    const Syms results = node.op->compose(Call(builder_, *node.op, {node.args.data(), node.args.size()}));
    const size_t last = builder_.graph().nodes.size();
    mark(first, last);
    for (size_t i = 0; i < results.size() && i < douts.size(); ++i)
      if (node_of(results[i].value())) cotangents_.add(results[i].value(), douts[i]);
    run(first, last);
  }

  GraphBuilder& builder_;
  Cotangents cotangents_;
  std::unordered_set<const Node*> depends_, targets_;
};

}  // namespace

Values graph_gradients(GraphBuilder& builder, std::span<const Value> outputs, std::span<const Value> seeds,
                       std::span<const Value> inputs, size_t first) {
  Sweep sweep(builder, inputs);
  const size_t last = builder.graph().nodes.size();
  sweep.mark(first, last);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!node_of(outputs[i])) continue;
    Value seed = i < seeds.size() ? seeds[i] : Value();
    const Type type = type_of(outputs[i]);
    if (seed.is_none()) {
      const Value ones[] = {Ints(type.shape), type.dtype};
      seed = builder.emit(find_op("ones"), ones)[0];
    }
    sweep.cotangents().add(outputs[i], seed);
  }
  sweep.run(first, last);
  Values out;
  for (const Value& input : inputs) out.push_back(sweep.cotangents().of(input));
  return out;
}

}  // namespace morel
