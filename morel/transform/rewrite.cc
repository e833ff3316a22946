#include "morel/transform/rewrite.h"

#include "morel/transform/effects.h"

namespace morel {
namespace {

bool passes_memory_on(const OpDef& op) { return op.view || op.views || op.has(kInPlace); }

// A value, and the nodes through which it sees the memory of its root.
void mark(const Value& value, std::unordered_set<const Node*>& out) {
  const Node* node = node_of(value);
  while (node && out.insert(node).second && node->op && passes_memory_on(*node->op)) node = node_of(node->args[0]);
}

using RulesOfOp = std::unordered_map<const OpDef*, std::vector<const Rule*>>;

RulesOfOp rules_by_op() {
  RulesOfOp out;
  for (const Rule& rule : rules()) {
    for (const std::string_view name : split_text(rule.ops, ' ')) {
      if (name[0] != '@') {
        const OpDef* op = registry().find(name);
        MOREL_CHECK(op, Internal, "the rule ", rule.name, " is for the operator ", name, ", which does not exist");
        out[op].push_back(&rule);
        continue;
      }
      for (const OpDef& op : registry().ops())
        if (name == "@view" ? op.view != nullptr : op.is_elementwise()) out[&op].push_back(&rule);
    }
  }
  return out;
}

bool fits(const Node& node, const Values& stands) {
  bool same = stands.size() == node.types.size();
  for (size_t i = 0; same && i < stands.size(); ++i) same = type_of(stands[i]) == node.types[i];
  return same;
}

// What the rule gives. Nothing stays of one that does not apply, or that needs to know more of a size.
Values applied(const Rule& rule, const Match& match) {
  std::vector<Ref<Node>>& nodes = match.builder.graph().nodes;
  const size_t before = nodes.size();
  Values out;
  try {
    out = rule.apply(match);
  } catch (const Error&) {
    out.clear();
  }
  if (!out.empty() && fits(match.node, out)) return out;
  while (nodes.size() > before) nodes.pop_back();
  return {};
}

}  // namespace

const Node* root_of(const Value& value) {
  const Node* node = node_of(value);
  while (node && node->op && passes_memory_on(*node->op)) node = node_of(node->args[0]);
  return node;
}

Sharing::Sharing(const Graph& graph) {
  int64_t effects = 0;
  for (const Ref<Node>& node : graph.nodes) {
    const bool writes = effects_of(*node).writes;
    effects_before_[node.get()] = writes ? ++effects : effects;
    // A branch may give its operands back.
    for_each_written(*node, [&](const Value& value) { mark(value, written_); });
    if (node->op->control != Control::None) for_each_input(*node, [&](const Value& value) { mark(value, leaving_); });
  }
  for (const Value& result : graph.results) for_each_input(result, [&](const Value& value) { mark(value, leaving_); });
  has_effects_ = effects > 0;
}

bool Sharing::is_stable(const Value& value) const {
  const Node* root = root_of(value);
  if (!root || is_written(root)) return false;
  // Memory from outside may be known there under several names.
  const bool is_ours = root->op && root->op->control == Control::None;
  return is_ours || !has_effects_;
}

bool Sharing::reads_the_same(const Node& node, const Node& earlier) const {
  const auto a = effects_before_.find(&node), b = effects_before_.find(&earlier);
  if (a != effects_before_.end() && b != effects_before_.end() && a->second == b->second) return true;
  bool stable = true;
  for_each_input(earlier, [&](const Value& value) { stable = stable && is_stable(value); });
  return stable;
}

bool Sharing::may_stand_for(const Node& node, const Value& value) const {
  return !leaves(&node) && !is_written(&node) && is_stable(value);
}

bool apply_rules(Graph& graph, Evaluator evaluate, RuleCounts* counts) {
  static const RulesOfOp table = rules_by_op();
  const Sharing sharing(graph);
  GraphBuilder builder{Ref<Graph>(&graph)};
  const SymbolicSizes::Use nothing_is_assumed(nullptr);
  return rewrite(graph, [&](Node& node) -> Values {
    const auto found = table.find(node.op);
    // A gradient that is still to be taken must stop where it did.
    if (found == table.end() || node.stops_gradient || sharing.is_written(&node)) return {};
    builder.set_place(node.place);
    for (const Rule* rule : found->second) {
      Values stands = applied(*rule, {node, builder, sharing, evaluate});
      if (stands.empty()) continue;
      if (counts) ++(*counts)[rule->name];
      return stands;
    }
    return {};
  });
}

}  // namespace morel
