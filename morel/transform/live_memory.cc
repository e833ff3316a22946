#include "morel/transform/live_memory.h"

#include "morel/ops/opdef.h"

namespace morel {

int64_t bytes_of(const Type& type, const Graph& graph) {
  // A function has the sizes of the graph that is being built.
  const SymbolicSizes* sizes = graph.sizes ? graph.sizes.get() : SymbolicSizes::current();
  const SymbolValues examples = sizes ? sizes->examples() : SymbolValues();
  return static_cast<int64_t>(num_elements(evaluate(type.shape, examples))) * size_of(type.dtype);
}

Root memory_root(const Value& value) {
  Root root{node_of(value), value.output()};
  while (root.node->op && (root.node->op->view || root.node->op->views || root.node->op->has(kInPlace))) {
    const Value& source = root.node->args[0];
    root = {node_of(source), source.output()};
  }
  return root;
}

LiveMemory::LiveMemory(const Graph& graph) {
  const size_t count = graph.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const Node& node = *graph.nodes[i];
    for (uint32_t k = 0; k < node.types.size(); ++k) {
      const Root root = memory_root(Value(Ref<RefCounted>(graph.nodes[i]), k));
      if (root == Root{&node, k}) lives_[root] = {bytes_of(node.types[k], graph), i, i};
    }
    for_each_input(node, [&](const Value& input) {
      if (const auto found = lives_.find(memory_root(input)); found != lives_.end()) found->second.last = i;
    });
  }
  for (const Value& result : graph.results)
    for_each_input(result, [&](const Value& value) {
      if (const auto found = lives_.find(memory_root(value)); found != lives_.end()) found->second.last = count;
    });
  std::vector<int64_t> changes(count + 2);
  for (const auto& [root, life] : lives_) {
    changes[life.first] += life.bytes;
    changes[life.last + 1] -= life.bytes;
  }
  int64_t alive = 0;
  for (size_t i = 0; i <= count; ++i) {
    alive += changes[i];
    if (alive > peak_bytes_) peak_bytes_ = alive, peak_ = i;
  }
}

const Life* LiveMemory::find(const Root& root) const {
  const auto found = lives_.find(root);
  return found == lives_.end() ? nullptr : &found->second;
}

}  // namespace morel
