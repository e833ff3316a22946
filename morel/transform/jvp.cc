#include "morel/transform/jvp.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "morel/transform/grad.h"
#include "morel/transform/replay.h"
#include "morel/transform/simplify.h"

namespace morel {
namespace {

bool can_move(const Type& type) { return is_differentiable(type.dtype); }

// Removes the nodes from `first` on that the results do not need.
void keep_needed(Graph& graph, size_t first, const Values& results) {
  std::unordered_set<const Node*> needed;
  const auto mark = [&](const Value& value) { needed.insert(node_of(value)); };
  for (const Value& result : results) for_each_input(result, mark);
  for (size_t i = graph.nodes.size(); i-- > first;) {
    if (needed.contains(graph.nodes[i].get())) for_each_input(*graph.nodes[i], mark);
    else graph.nodes[i]->args.clear();
  }
  graph.nodes.erase(std::remove_if(graph.nodes.begin() + static_cast<int64_t>(first), graph.nodes.end(),
                                   [&](const Ref<Node>& node) { return !needed.contains(node.get()); }),
                    graph.nodes.end());
}

// The tangents of a call's results from those of its edges: the transpose of its gradient rule, whose own nodes go.
Values call_tangents(GraphBuilder& builder, Node& node, std::span<const Value> edges) {
  const OpDef& op = *node.op;
  const std::span<const Value> args(node.args.data(), node.args.size());
  if (op.derivative) {
    const Sym moved =
        op.derivative(builder, Sym(builder, args[0]), Sym(builder, node.output())) * Sym(builder, edges[0]);
    return {moved.dtype() == node.types[0].dtype ? moved.value() : builder("cast", moved, node.types[0].dtype).value()};
  }
  const bool integers = std::ranges::any_of(
      edges, [](const Value& tangent) { return !tangent.is_none() && is_integral(dtype_of_value(tangent)); });
  const size_t first = builder.graph().nodes.size();
  Values outs, douts, at, of, seeds;
  SmallVector<char, 8> needs;
  for (uint32_t i = 0; i < node.types.size(); ++i) {
    outs.push_back(node.output(i));
    const bool moves = can_move(node.types[i]) || (integers && is_integral(node.types[i].dtype));
    douts.push_back(moves ? zeros_of(builder, outs[i]) : Value());
    if (moves) at.push_back(douts[i]);
  }
  for (const Value& tangent : edges) needs.push_back(!tangent.is_none());
  const Values gradients =
      argument_gradients(builder, op, args, {outs.data(), outs.size()}, {node.types.data(), node.types.size()},
                         {douts.data(), douts.size()}, {needs.data(), needs.size()});
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!needs[i] || gradients[i].is_none()) continue;
    of.push_back(gradients[i]);
    seeds.push_back(edges[i]);
  }
  const Values found =
      graph_gradients(builder, {of.data(), of.size()}, {seeds.data(), seeds.size()}, {at.data(), at.size()}, first);
  keep_needed(builder.graph(), first, found);
  Values out;
  size_t next = 0;
  for (const Value& dout : douts) out.push_back(dout.is_none() ? Value() : found[next++]);
  return out;
}

// Values beside one another, and the tangents of those that move.
struct Group {
  Value::List values, tangents;
  std::vector<bool> moves;  // one for each value
  Value together() const {
    Value::List all(values);
    all.append(tangents.begin(), tangents.end());
    return Value(std::move(all));
  }
};

// Of the results of a graph, those that can move.
std::vector<size_t> movable(const Graph& graph) {
  std::vector<size_t> out;
  for (size_t i = 0; i < graph.results.size(); ++i)
    if (can_move(type_of(graph.results[i]))) out.push_back(i);
  return out;
}

class Forward {
 public:
  explicit Forward(GraphBuilder& builder) : builder_(builder) {}

  void set(const Value& value, Value tangent) {
    if (tangent.is_none()) return;
    Values& all = tangents_[node_of(value)];
    if (all.empty()) all.resize(node_of(value)->types.size());
    all[value.output()] = std::move(tangent);
  }
  Value of(const Value& value) const {
    const auto found = tangents_.find(node_of(value));
    return found == tangents_.end() || value.output() >= found->second.size() ? Value() : found->second[value.output()];
  }
  void fix(const Node* input) { inputs_.insert(input); }

  // The nodes from `first` on, in order: each is followed by what its tangents need, or all of that comes at the end.
  void run(size_t first, bool in_between) {
    std::vector<Ref<Node>>& nodes = builder_.graph().nodes;
    const std::vector<Ref<Node>> rest(nodes.begin() + static_cast<int64_t>(first), nodes.end());
    if (in_between) nodes.resize(first);
    for (const Ref<Node>& node : rest) {
      if (in_between) nodes.push_back(node);
      if (!inputs_.contains(node.get())) step(*node);
    }
  }

 private:
  void step(Node& node) {
    if (const auto* custom = builder_.find_custom(&node)) {  // when the last of its outputs is there
      if (node_of(custom->outputs.back()) == &node) step_custom(*custom);
      return;
    }
    if (node.op->has(kNoGrad) || node.stops_gradient) return;
    Values edges;
    for_each_input(node, [&](const Value& input) { edges.push_back(of(input)); });
    if (std::ranges::all_of(edges, &Value::is_none)) return;
    builder_.set_place(node.place);
    if (node.op->control != Control::None) return step_control(node);
    if (!node.op->grad) return expand(node);
    const Values found = call_tangents(builder_, node, {edges.data(), edges.size()});
    for (uint32_t i = 0; i < found.size(); ++i) set(node.output(i), found[i]);
  }

  // An operator without a rule of its own: what it is composed of is written out beside it.
  void expand(Node& node) {
    const size_t first = builder_.graph().nodes.size();
    const Syms results = node.op->compose(Call(builder_, *node.op, {node.args.data(), node.args.size()}));
    run(first, true);
    for (uint32_t i = 0; i < results.size(); ++i)
      if (node_of(results[i].value())) set(node.output(i), of(results[i].value()));
  }

  void step_custom(const GraphBuilder::Custom& custom) {
    if (std::ranges::all_of(custom.inputs, [&](const Value& input) { return !node_of(input) || !of(input); })) return;
    const size_t first = builder_.graph().nodes.size();
    Values douts, outputs, seeds;
    for (const Value& output : custom.outputs) douts.push_back(zeros_of(builder_, output));
    const Values gradients = custom.backward({douts.data(), douts.size()});
    for (size_t i = 0; i < custom.inputs.size() && i < gradients.size(); ++i) {
      if (!node_of(custom.inputs[i]) || !of(custom.inputs[i]) || gradients[i].is_none()) continue;
      outputs.push_back(gradients[i]);
      seeds.push_back(of(custom.inputs[i]));
    }
    const Values found = graph_gradients(builder_, {outputs.data(), outputs.size()}, {seeds.data(), seeds.size()},
                                         {douts.data(), douts.size()}, first);
    for (size_t i = 0; i < found.size(); ++i) set(custom.outputs[i], found[i]);
  }

  // With `all`, everything that can move does, if only by zeros.
  Group group(const Value::List& values, bool all) {
    Group out;
    for (const Value& value : values) {
      Value tangent = can_move(type_of(value)) ? of(value) : Value();
      if (tangent.is_none() && all && can_move(type_of(value))) tangent = zeros_of(builder_, value);
      out.values.push_back(value);
      out.moves.push_back(!tangent.is_none());
      if (!tangent.is_none()) out.tangents.push_back(std::move(tangent));
    }
    return out;
  }

  void set_movable(Node& node, const Graph& graph, const Values& found, size_t first) {
    for (const size_t i : movable(graph)) set(node.output(static_cast<uint32_t>(i)), found[first++]);
  }

  void step_control(Node& node);
  void step_loop(Node& node);

  GraphBuilder& builder_;
  std::unordered_map<const Node*, Values> tangents_;
  std::unordered_set<const Node*> inputs_;
};

// What a graph computes, once more, and the tangents of those results that can move.
struct Joint {
  Values results, tangents;
};

// Fills a graph whose parameters are groups: each the parameters of `forward`, then tangents of those which move.
Joint join(const Ref<Graph>& graph, const Graph& forward, std::initializer_list<const Group*> groups) {
  graph->name = forward.name + "_tangent";
  GraphBuilder builder(graph);
  Values given, moving, by;
  for (const Group* group : groups) {
    const size_t first = given.size();
    for (size_t i = 0; i < group->moves.size(); ++i)
      given.push_back(graph->add_parameter(forward.parameters[first + i]->types[0]));
    for (size_t i = 0; i < group->moves.size(); ++i) {
      if (!group->moves[i]) continue;
      moving.push_back(given[first + i]);
      by.push_back(graph->add_parameter(type_of(given[first + i])));
    }
  }
  Joint out;
  out.results = append_again(builder, forward, {given.data(), given.size()});
  out.tangents = graph_tangents(builder, {out.results.data(), out.results.size()}, {moving.data(), moving.size()},
                                {by.data(), by.size()});
  Values movable_ones;
  for (const size_t i : movable(forward))
    movable_ones.push_back(out.tangents[i].is_none() ? zeros_of(builder, out.results[i]) : out.tangents[i]);
  out.tangents = std::move(movable_ones);
  return out;
}

// A function of its own for the tangents of a function, where everything that can move does. It is there before its
// body, which may call it.
const Ref<Graph>& tangent_function(Graph& function, const Group& operands) {
  if (function.tangent) return function.tangent;
  MOREL_CHECK(function.is_complete(), NotImplemented,
              "the tangent of a function that calls itself is not supported within that function");
  function.tangent = make_ref<Graph>();
  function.tangent->is_function = true;
  for (const size_t i : movable(function)) function.tangent->result_types.push_back(function.result_types[i]);
  const Ref<Graph> forward =
      draws(function) ? with_rng_state(function, function.parameters.size(), true) : Ref<Graph>(&function);
  function.tangent->results = join(function.tangent, *forward, {&operands}).tangents;
  simplify(*function.tangent);
  return function.tangent;
}

void Forward::step_control(Node& node) {
  const auto graph = [&](size_t arg) -> Graph& { return *static_cast<Graph*>(node.args[arg].graph()); };
  if (node.op->control == Control::While || node.op->control == Control::Scan) return step_loop(node);
  const bool is_call = node.op->control == Control::Call;
  Group operands = group(node.args[is_call ? 1 : 3].list(), is_call);
  const bool replays = is_call ? draws(graph(0)) : draws(graph(1)) || draws(graph(2));
  if (replays) {
    operands.values.push_back(rng_before(builder_, node));
    operands.moves.push_back(false);
  }
  if (is_call) {
    const Value args[] = {Value::of_graph(tangent_function(graph(0), operands)), operands.together()};
    return set_movable(node, graph(0), builder_.emit(*node.op, args), 0);
  }
  const auto branch = [&](size_t arg) {
    const Graph& plain = graph(arg);
    auto out = make_ref<Graph>();
    out->results =
        join(out, replays ? *with_rng_state(plain, plain.parameters.size(), true) : plain, {&operands}).tangents;
    simplify(*out);
    return Value::of_graph(out);
  };
  const Value args[] = {node.args[0], branch(1), branch(2), operands.together()};
  set_movable(node, graph(1), builder_.emit(*node.op, args), 0);
}

// A loop that carries the tangents of its state as well.
void Forward::step_loop(Node& node) {
  const auto graph = [&](size_t arg) -> Graph& { return *static_cast<Graph*>(node.args[arg].graph()); };
  const bool is_scan = node.op->control == Control::Scan;
  if (!is_scan && draws(graph(1))) carry_rng_state(builder_, node);
  const Graph& body = graph(1);
  const size_t last = node.args.size() - 1;
  const Group sequences = is_scan ? group(node.args[2].list(), false) : Group();
  const Group carry = group(node.args[last - 1].list(), true), operands = group(node.args[last].list(), false);

  auto turn = make_ref<Graph>();
  Joint found = join(turn, body, {&sequences, &carry, &operands});
  const auto num_carry = static_cast<int64_t>(carry.values.size());
  turn->results.append(found.results.begin(), found.results.begin() + num_carry);
  turn->results.append(found.tangents.begin(), found.tangents.end());
  simplify(*turn);

  Values outs;
  if (is_scan) {
    const Value args[] = {node.args[0], Value::of_graph(turn), sequences.together(), carry.together(),
                          operands.together()};
    outs = builder_.emit(*node.op, args);
  } else {
    auto condition = make_ref<Graph>();
    condition->results = join(condition, graph(0), {&carry, &operands}).results;
    simplify(*condition);
    const Value args[] = {Value::of_graph(condition), Value::of_graph(turn), carry.together(), operands.together()};
    outs = builder_.emit(*node.op, args);
  }
  set_movable(node, body, outs, carry.values.size());
  if (node.types.size() == body.results.size()) return;
  // What the state was before every turn is kept, and so are its tangents.
  Node& joint = *node_of(outs[0]);
  auto kept = static_cast<uint32_t>(joint.types.size() + carry.values.size());
  const Value all = carry.together();
  for (const Value& value : all.list()) joint.types.push_back(type_of(value));
  for (size_t i = 0; i < carry.moves.size(); ++i)
    if (carry.moves[i]) set(node.output(static_cast<uint32_t>(body.results.size() + i)), joint.output(kept++));
}

}  // namespace

Values graph_tangents(GraphBuilder& builder, std::span<const Value> outputs, std::span<const Value> inputs,
                      std::span<const Value> tangents) {
  Forward forward(builder);
  std::unordered_set<const Node*> moving, by;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (tangents[i].is_none()) continue;
    forward.set(inputs[i], tangents[i]);
    forward.fix(node_of(inputs[i]));
    moving.insert(node_of(inputs[i]));
    by.insert(node_of(tangents[i]));
  }
  // Inputs that are no nodes come before all of these. Where the tangents are there before what moves, no value waits.
  const std::vector<Ref<Node>>& nodes = builder.graph().nodes;
  const auto is_input = [&](const Ref<Node>& node) { return moving.contains(node.get()); };
  auto begin = std::ranges::find_if(nodes, is_input);
  if (begin == nodes.end() || static_cast<size_t>(std::ranges::count_if(nodes, is_input)) < moving.size())
    begin = nodes.begin();
  const bool in_between =
      std::none_of(begin, nodes.end(), [&](const Ref<Node>& node) { return by.contains(node.get()); });
  forward.run(static_cast<size_t>(begin - nodes.begin()), in_between);
  Values out;
  for (const Value& output : outputs) out.push_back(node_of(output) ? forward.of(output) : Value());
  return out;
}

}  // namespace morel
