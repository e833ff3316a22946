#include "morel/transform/replay.h"

#include <algorithm>
#include <unordered_map>

#include "morel/transform/rewrite.h"

namespace morel {
namespace {

// Whether a node changes what its graph has from outside, or reaches further.
bool reaches_outside(const Node& node) {
  bool found = talks(*node.op);
  if (is_written(*node.op, 0)) for_each_written(node, [&](const Value& value) { found |= !root_of(value)->op; });
  return found;
}

Ref<Graph> copy_of(const Graph& graph) {
  auto out = make_ref<Graph>();
  out->name = graph.name;
  std::vector<Value> arguments;
  for (const Ref<Node>& parameter : graph.parameters) arguments.push_back(out->add_parameter(parameter->types[0]));
  out->results = append_copy(*out, graph, arguments);
  return out;
}

}  // namespace

Ref<Graph> with_rng_state(const Graph& graph, size_t place, bool replays) {
  auto out = make_ref<Graph>();
  out->name = graph.name;
  GraphBuilder builder(out);
  std::vector<Value> arguments;
  for (const Ref<Node>& parameter : graph.parameters) arguments.push_back(out->add_parameter(parameter->types[0]));
  const Value state[] = {out->add_parameter({DType::Int64, Shape{2}})};
  std::rotate(out->parameters.begin() + static_cast<int64_t>(place), out->parameters.end() - 1, out->parameters.end());
  if (replays) builder.emit(find_op("exchange_rng"), state);
  out->results = append_copy(*out, graph, arguments);
  return out;
}

Value rng_before(GraphBuilder& builder, Node& node) {
  std::vector<Ref<Node>>& nodes = builder.graph().nodes;
  Value state = builder.emit(find_op("rng_state"), {})[0];
  Ref<Node> made = std::move(nodes.back());
  nodes.pop_back();
  nodes.insert(std::ranges::find(nodes, Ref<Node>(&node)), std::move(made));
  return state;
}

void carry_rng_state(GraphBuilder& builder, Node& node) {
  const auto graph = [&](size_t arg) -> Graph& { return *static_cast<Graph*>(node.args[arg].graph()); };
  Value::List carry = node.args[2].list();
  MOREL_CHECK(!draws(graph(0)), NotImplemented,
              "the gradient of a 'while' on a tensor whose condition draws random numbers is not supported");
  const Ref<Graph> body = with_rng_state(graph(1), carry.size(), true);
  GraphBuilder inside(body);
  body->results.push_back(inside.emit(find_op("rng_state"), {})[0]);
  node.args[0] = Value::of_graph(with_rng_state(graph(0), carry.size(), false));
  node.args[1] = Value::of_graph(body);
  carry.push_back(rng_before(builder, node));
  node.types.push_back(type_of(carry.back()));
  node.args[2] = Value(std::move(carry));
}

Values append_again(GraphBuilder& builder, const Graph& graph, std::span<const Value> arguments) {
  const bool replays = num_exchanges(graph) > 0;
  const Values rng = replays ? builder.emit(find_op("rng_state"), {}) : Values();
  Values results =
      append_copy(builder.graph(), effects_of(graph).is_seen() ? *without_effects(graph) : graph, arguments);
  if (replays) builder.emit(find_op("exchange_rng"), {rng.data(), 1});
  return results;
}

Ref<Graph> without_effects(const Graph& graph) {
  Ref<Graph> out = copy_of(graph);
  std::unordered_map<const Node*, Value> unwritten;  // none for nodes without results
  const auto replaced = [&](const Value& value) {
    return map_inputs(value, [&](const Value& input) {
      const auto found = unwritten.find(node_of(input));
      return found == unwritten.end() ? input : found->second;
    });
  };
  for (const Ref<Node>& node : out->nodes) {
    for (Value& arg : node->args) {
      arg = replaced(arg);
      if (arg.tag() != Value::Tag::Graph) continue;
      const auto& part = *static_cast<const Graph*>(arg.graph());
      if (!effects_of(part).is_seen()) continue;
      MOREL_CHECK(!part.is_function, NotImplemented,
                  "the gradient of a function that calls itself and prints, or changes Parameters or running "
                  "statistics, is not supported (",
                  node->place, ")");
      arg = Value::of_graph(without_effects(part));
    }
    if (reaches_outside(*node)) unwritten.emplace(node.get(), node->types.empty() ? Value() : node->args[0]);
  }
  for (Value& result : out->results) result = replaced(result);
  std::erase_if(out->nodes, [&](const Ref<Node>& node) { return unwritten.contains(node.get()); });
  return out;
}

}  // namespace morel
