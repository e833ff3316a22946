// Rewriting a graph node by node: the walk, what may share memory, and the table of local rules (rules.cc).
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "morel/transform/graph_builder.h"

namespace morel {

// Runs one operator now, on tensors; given by who can (runtime/eager.h: execute).
using Evaluator = Values (*)(const OpDef& op, std::span<const Value> args);
// How often each rule was applied, by its name.
using RuleCounts = std::map<std::string_view, int64_t>;

// The node whose memory a value lies in, seen through views and in-place operators.
const Node* root_of(const Value& value);

// Which values of a graph share memory with what is written in place, or with what leaves the graph.
class Sharing {
 public:
  explicit Sharing(const Graph& graph);
  bool is_written(const Node* node) const { return written_.contains(node); }
  bool leaves(const Node* node) const { return leaving_.contains(node); }
  // Whether no write changes a value while the graph runs.
  bool is_stable(const Value& value) const;
  // Whether `node` may read what `earlier` read, itself.
  bool reads_the_same(const Node& node, const Node& earlier) const;
  // Whether readers of the new tensor that `node` makes may read `value` instead: no write changes one of the two
  // alone, and the caller does not get the same memory twice.
  bool may_stand_for(const Node& node, const Value& value) const;

 private:
  std::unordered_set<const Node*> written_, leaving_;
  std::unordered_map<const Node*, int64_t> effects_before_;
  bool has_effects_ = false;
};

struct Match {
  Node& node;
  GraphBuilder& builder;  // adds nodes in front of it
  const Sharing& sharing;
  Evaluator evaluate;  // may be null
};

struct Rule {
  std::string_view name;
  std::string_view ops;  // operators by name, separated by spaces; @view and @elementwise are all of that kind
  // What stands for the outputs of the node: values of the same types with the same bits. Empty where the rule does not
  // apply, as when it raises: a rule learns only what is certain of sizes that are symbols.
  Values (*apply)(const Match& match);
};
std::span<const Rule> rules();

// Applies the rules to every node once, in order. Returns whether one applied.
bool apply_rules(Graph& graph, Evaluator evaluate, RuleCounts* counts);

// Walks the nodes in order, their arguments rewritten. `decide(node)` gives what stands for the outputs, or nothing to
// keep the node; nodes that it adds to the graph come before. Returns whether anything was replaced.
template <class F>
bool rewrite(Graph& graph, F&& decide) {
  std::unordered_map<const Node*, Values> replacements;
  const auto replaced = [&](const Value& value) {
    return map_inputs(value, [&](const Value& reference) {
      const auto found = replacements.find(node_of(reference));
      return found == replacements.end() ? reference : found->second[reference.output()];
    });
  };
  std::vector<Ref<Node>> nodes;
  nodes.swap(graph.nodes);
  for (const Ref<Node>& node : nodes) {
    for (Value& arg : node->args) arg = replaced(arg);
    Values stands = decide(*node);
    if (stands.empty()) graph.nodes.push_back(node);
    else replacements.emplace(node.get(), std::move(stands));
  }
  for (Value& result : graph.results) result = replaced(result);
  return !replacements.empty();
}

}  // namespace morel
