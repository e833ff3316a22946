#include "morel/transform/replay.h"

#include <algorithm>
#include <unordered_set>

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

}  // namespace morel
