#include "morel/transform/old_values.h"

#include <algorithm>
#include <map>

#include "morel/transform/effects.h"
#include "morel/transform/rewrite.h"

namespace morel {
namespace {

// An in-place operator that gives the new value, which all that is to see the change reads.
bool gives_new_value(const OpDef& op) { return op.has(kInPlace) && !op.has(kEffect); }

// The memory of a value of before a change, if changes of it are seen by their results alone: not of parts, and of
// strange layouts.
const Node* memory_before(const Value& value, const Node& change) {
  const Node* node = node_of(value);
  for (; node->op && (node->op->view || node->op->views || node->op->has(kInPlace)); node = node_of(node->args[0]))
    if (node == &change || node->op->views) return nullptr;
  return node->captured && !node->captured->contiguous ? nullptr : node;
}

// A loop that keeps its states for a gradient keeps the first ones as they are given, in their memory.
bool keeps_states(const Node& node) {
  return node.op->control == Control::While && node.types.size() > node.args[node.args.size() - 2].list().size();
}

void copy_first_states(GraphBuilder& builder) {
  std::vector<Ref<Node>>& nodes = builder.graph().nodes;
  std::unordered_set<const Node*> changed_later;
  for (size_t i = nodes.size(); i-- > 0;) {
    const Ref<Node> node = nodes[i];
    if (gives_new_value(*node->op)) changed_later.insert(root_of(node->args[0]));
    if (!keeps_states(*node)) continue;
    const size_t end = nodes.size();
    builder.set_place(node->place);
    for (Value& arg : node->args)
      arg = map_inputs(arg, [&](const Value& value) {
        const Node* memory = memory_before(value, *node);
        if (!memory || memory->op || !changed_later.contains(memory)) return value;
        return builder.emit(find_op("clone"), {&value, 1})[0];
      });
    std::rotate(nodes.begin() + static_cast<ptrdiff_t>(i), nodes.begin() + static_cast<ptrdiff_t>(end), nodes.end());
  }
}

}  // namespace

void keep_old_values(Graph& graph) {
  GraphBuilder builder{Ref<Graph>(&graph)};
  std::vector<Ref<Node>>& nodes = graph.nodes;
  copy_first_states(builder);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Ref<Node> change = nodes[i];
    if (!gives_new_value(*change->op)) continue;
    const Node* memory = root_of(change->args[0]);
    if (!memory || memory->op) continue;
    std::map<std::pair<const Node*, uint32_t>, Value> copies;
    const size_t end = nodes.size();
    builder.set_place(change->place);
    const auto kept = [&](const Value& value) {
      if (memory_before(value, *change) != memory) return value;
      Value& copy = copies[{node_of(value), value.output()}];
      if (copy.is_none()) copy = builder.emit(find_op("clone"), {&value, 1})[0];
      return copy;
    };
    for (size_t j = i + 1; j < end; ++j) {
      if (nodes[j]->op->has(kInPlace)) continue;
      for (Value& arg : nodes[j]->args) arg = map_inputs(arg, kept);
    }
    for (Value& result : graph.results) result = map_inputs(result, kept);
    std::rotate(nodes.begin() + static_cast<ptrdiff_t>(i), nodes.begin() + static_cast<ptrdiff_t>(end), nodes.end());
    i += nodes.size() - end;
  }
}

}  // namespace morel
