#include "morel/transform/simplify.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "morel/transform/effects.h"

namespace morel {
namespace {

bool is_repeatable(const Node& node) { return !effects_of(node).any() && !node.op->has(kRandom); }

// The call as text; equal for calls that compute the same. Tensors and nodes by address.
void append_key(const Value& value, std::string& key) {
  const auto append = [&](const void* data, size_t size) { key.append(static_cast<const char*>(data), size); };
  const auto tag = value.tag();
  append(&tag, sizeof tag);
  switch (tag) {
    case Value::Tag::Node: {
      const RefCounted* node = value.node();
      const uint32_t output = value.output();
      append(&node, sizeof node);
      append(&output, sizeof output);
      break;
    }
    case Value::Tag::Float: {
      const double number = value.number();
      append(&number, sizeof number);
      break;
    }
    case Value::Tag::Complex: {
      const std::complex<double> number = value.complex();
      append(&number, sizeof number);
      break;
    }
    case Value::Tag::Floats: {
      const size_t count = value.floats().size();
      append(&count, sizeof count);
      append(value.floats().data(), count * sizeof(double));
      break;
    }
    case Value::Tag::Graph: {
      const RefCounted* graph = value.graph();
      append(&graph, sizeof graph);
      break;
    }
    case Value::Tag::List: {
      const size_t count = value.list().size();
      append(&count, sizeof count);
      for (const Value& item : value.list()) append_key(item, key);
      break;
    }
    default: key += to_string(value) + '\0';
  }
}

std::string key_of(const Node& node) {
  std::string key(reinterpret_cast<const char*>(&node.op), sizeof node.op);
  key += std::to_string(node.types.size());  // of two loops one may keep its sequences
  key += node.stops_gradient;
  for (const Value& arg : node.args) append_key(arg, key);
  return key;
}

}  // namespace

bool remove_dead_nodes(Graph& graph) {
  std::unordered_set<const Node*> live;
  const auto mark = [&](const Value& value) { live.insert(node_of(value)); };
  for (const Value& result : graph.results) for_each_input(result, mark);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = *graph.nodes[i];
    if (effects_of(node).any()) live.insert(&node);
    if (live.contains(&node)) for_each_input(node, mark);
  }
  const auto dead = [&](const Ref<Node>& node) { return !live.contains(node.get()); };
  // From the last to the first: a node's users are gone before itself.
  std::vector<Ref<Node>> kept;
  bool changed = false;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (!dead(graph.nodes[i])) continue;
    graph.nodes[i]->args.clear();
    changed = true;
  }
  for (Ref<Node>& node : graph.nodes)
    if (!dead(node)) kept.push_back(std::move(node));
  graph.nodes.swap(kept);
  return std::erase_if(graph.captures, dead) != 0 || changed;
}

bool share_equal_nodes(Graph& graph) {
  std::unordered_map<std::string, Ref<Node>> seen;
  std::unordered_set<const Node*> overwritten;
  for (const Ref<Node>& node : graph.nodes)
    for_each_written(*node, [&](const Value& value) { overwritten.insert(root_of(value)); });
  return rewrite(graph, [&](Node& node) {
    Values stands;
    if (effects_of(node).writes) seen.clear();  // what was read before may be another value now
    if (!is_repeatable(node) || overwritten.contains(&node)) return stands;
    const auto [found, fresh] = seen.try_emplace(key_of(node), Ref<Node>(&node));
    if (fresh) return stands;
    for (uint32_t i = 0; i < node.types.size(); ++i) stands.push_back(found->second->output(i));
    return stands;
  });
}

void simplify(Graph& graph, Evaluator evaluate, RuleCounts* counts) {
  for (const Ref<Node>& node : graph.nodes) {
    if (node->op->control == Control::Fused) continue;
    for_each_body(*node, [&](Graph& body) { simplify(body, evaluate, counts); });
  }
  remove_dead_nodes(graph);
  while (apply_rules(graph, evaluate, counts) | share_equal_nodes(graph)) {
  }
  remove_dead_nodes(graph);
}

}  // namespace morel
