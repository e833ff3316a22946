#include "morel/transform/split.h"

#include <unordered_map>
#include <unordered_set>

#include "morel/transform/simplify.h"

namespace morel {
namespace {

using Nodes = std::vector<Ref<Node>>;

void move_nodes(Nodes& from, Nodes& to, Graph* graph) {
  for (Ref<Node>& node : from) node->graph = graph;
  to = std::move(from);
}

}  // namespace

Halves split(Graph& graph, size_t num_parameters, size_t num_nodes, size_t num_results) {
  std::unordered_set<const Node*> first;
  for (size_t i = 0; i < num_nodes; ++i) first.insert(graph.nodes[i].get());
  while (share_equal_nodes(graph) | remove_dead_nodes(graph)) {  // which add no nodes: each has its half
  }
  Halves out{make_ref<Graph>(), make_ref<Graph>()};
  out.forward->name = graph.name;
  out.forward->sizes = graph.sizes;
  out.backward->name = graph.name + "_grad";

  Nodes parameters(graph.parameters.begin(), graph.parameters.begin() + static_cast<int64_t>(num_parameters));
  Nodes cotangents(graph.parameters.begin() + static_cast<int64_t>(num_parameters), graph.parameters.end());
  Nodes before, after;
  for (const Ref<Node>& node : graph.nodes) (first.contains(node.get()) ? before : after).push_back(node);
  for (const Nodes* inputs : {&parameters, &graph.captures})
    for (const Ref<Node>& node : *inputs) first.insert(node.get());
  out.forward->results.append(graph.results.begin(), graph.results.begin() + static_cast<int64_t>(num_results));

  std::unordered_map<const Node*, std::unordered_map<uint32_t, Value>> kept;
  const auto across = [&](const Value& value) {
    if (!first.contains(node_of(value))) return value;
    Value& stands = kept[node_of(value)][value.output()];
    if (stands.is_none()) {
      stands = out.backward->add_parameter(node_of(value)->types[value.output()]);
      out.forward->results.push_back(value);
    }
    return stands;
  };
  for (const Ref<Node>& node : after)
    for (Value& arg : node->args) arg = map_inputs(arg, across);
  for (size_t i = num_results; i < graph.results.size(); ++i)
    out.backward->results.push_back(map_inputs(graph.results[i], across));

  move_nodes(parameters, out.forward->parameters, out.forward.get());
  move_nodes(graph.captures, out.forward->captures, out.forward.get());
  move_nodes(before, out.forward->nodes, out.forward.get());
  move_nodes(after, out.backward->nodes, out.backward.get());
  for (Ref<Node>& node : cotangents) {
    node->graph = out.backward.get();
    out.backward->parameters.push_back(std::move(node));
  }
  graph.parameters.clear();
  graph.nodes.clear();
  graph.results.clear();
  return out;
}

}  // namespace morel
