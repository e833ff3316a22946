#include "morel/transform/replay.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "morel/transform/rewrite.h"

namespace morel {
namespace {

int64_t count_exchanges(std::span<const Ref<Node>> nodes) {
  const OpDef* exchange = &find_op("exchange_rng");
  return std::ranges::count_if(nodes, [&](const Ref<Node>& node) { return node->op == exchange; });
}

bool moves(std::span<const Ref<Node>> nodes, std::unordered_set<const Graph*>& seen) {
  if (const int64_t count = count_exchanges(nodes)) return count == 1;
  return std::ranges::any_of(nodes, [&](const Ref<Node>& node) {
    if (node->op == &find_op("next_rng")) return true;
    return std::ranges::any_of(node->args, [&](const Value& arg) {
      if (arg.tag() != Value::Tag::Graph) return false;
      const auto& part = *static_cast<const Graph*>(arg.graph());
      if (!part.is_complete()) return true;
      return seen.insert(&part).second && moves(part.nodes, seen);
    });
  });
}

bool writes_outside(const Node& node) {
  if (!has_effect(*node.op) || node.op->has(kRandom)) return false;
  bool found = false;
  for_each_input(node.args[0], [&](const Value& written) { found |= !root_of(written)->op; });
  return found;
}

bool writes(const Graph& graph, std::unordered_set<const Graph*>& seen) {
  return std::ranges::any_of(graph.nodes, [&](const Ref<Node>& node) {
    return writes_outside(*node) || std::ranges::any_of(node->args, [&](const Value& arg) {
             if (arg.tag() != Value::Tag::Graph) return false;
             const auto& part = *static_cast<const Graph*>(arg.graph());
             return seen.insert(&part).second && writes(part, seen);
           });
  });
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

int64_t num_exchanges(const Graph& graph) { return count_exchanges(graph.nodes); }

bool moves_rng(std::span<const Ref<Node>> nodes) {
  std::unordered_set<const Graph*> seen;
  return moves(nodes, seen);
}

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
  Values results = append_copy(builder.graph(), writes(graph) ? *without_writes(graph) : graph, arguments);
  if (replays) builder.emit(find_op("exchange_rng"), {rng.data(), 1});
  return results;
}

bool writes(const Node& node) {
  return has_effect(*node.op) || std::ranges::any_of(node.args, [](const Value& arg) {
           return arg.tag() == Value::Tag::Graph && writes(*static_cast<const Graph*>(arg.graph()));
         });
}

bool writes(const Graph& graph) {
  std::unordered_set<const Graph*> seen;
  return writes(graph, seen);
}

Ref<Graph> without_writes(const Graph& graph) {
  Ref<Graph> out = copy_of(graph);
  std::unordered_map<const Node*, Value> unwritten;
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
      if (!writes(part)) continue;
      MOREL_CHECK(!part.is_function, NotImplemented,
                  "the gradient of a function that calls itself and changes Parameters or running statistics is not "
                  "supported (",
                  node->place, ")");
      arg = Value::of_graph(without_writes(part));
    }
    if (writes_outside(*node)) unwritten.emplace(node.get(), node->args[0]);
  }
  for (Value& result : out->results) result = replaced(result);
  std::erase_if(out->nodes, [&](const Ref<Node>& node) { return unwritten.contains(node.get()); });
  return out;
}

}  // namespace morel
