#include "morel/transform/live_memory.h"

#include <algorithm>
#include <numeric>

#include "morel/ops/opdef.h"
#include "morel/transform/fused.h"

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

namespace {

// Whether it is a loop that may write a result over an operand that has the same type.
bool stores_over(const Node& node) {
  if (node.op->control == Control::Fused) return !producer_of(*static_cast<Graph*>(node.args[0].graph()));
  return node.op->is_elementwise() || (node.op->rows && !node.op->columns);
}

}  // namespace

LiveMemory::LiveMemory(const Graph& graph) : graph_(graph) {
  const size_t count_nodes = graph.nodes.size();
  const auto add_uses = [&](const Value& value, size_t position) {
    for_each_input(value, [&](const Value& input) {
      const auto found = lives_of_.find(memory_root(input));
      if (found == lives_of_.end()) return;
      std::vector<size_t>& uses = lives_[found->second[0]].uses;
      if (uses.empty() || uses.back() != position) uses.push_back(position);
    });
  };
  for (size_t i = 0; i < count_nodes; ++i) {
    Node& node = *graph.nodes[i];
    for (uint32_t k = 0; k < node.types.size(); ++k) {
      const Root root = memory_root(node.output(k));
      if (root != Root{&node, k}) continue;
      lives_of_[root].push_back(lives_.size());
      lives_.push_back({root, node.types[k], bytes_of(node.types[k], graph), i});
    }
    for (const Value& arg : node.args) add_uses(arg, i);
  }
  for (const Value& result : graph.results) add_uses(result, count_nodes);
  alive_.resize(count_nodes + 2);
  shared_.resize(count_nodes + 1);
  for (const Life& life : lives_) {
    alive_[life.first] += life.bytes;
    alive_[life.last() + 1] -= life.bytes;
  }
  std::partial_sum(alive_.begin(), alive_.end(), alive_.begin());
  alive_.pop_back();
  for (size_t i = 0; i < count_nodes; ++i) find_shared(i);
}

void LiveMemory::count(const Life& life, int64_t sign) {
  for (size_t i = life.first; i <= life.last(); ++i) alive_[i] += sign * life.bytes;
}

void LiveMemory::find_shared(size_t position) {
  shared_[position] = 0;
  if (position >= graph_.nodes.size() || !stores_over(*graph_.nodes[position])) return;
  const Node& node = *graph_.nodes[position];
  std::vector<const Life*> taken;
  for (const Type& type : node.types) {
    const Life* over = nullptr;
    for_each_input(node, [&](const Value& input) {
      const Life* life = find(memory_root(input), position);
      if (life && !over && life->last() == position && life->type == type && std::ranges::count(taken, life) == 0)
        over = life;
    });
    if (!over) continue;
    taken.push_back(over);
    shared_[position] += over->bytes;
  }
}

size_t LiveMemory::peak() const {
  size_t out = 0;
  for (size_t i = 1; i < alive_.size(); ++i)
    if (bytes_at(i) > bytes_at(out)) out = i;
  return out;
}

size_t LiveMemory::index_of(const Root& root, size_t position) const {
  const auto found = lives_of_.find(root);
  if (found == lives_of_.end()) return lives_.size();
  const std::vector<size_t>& indices = found->second;
  size_t i = indices.size() - 1;
  while (i > 0 && lives_[indices[i]].first > position) --i;
  return indices[i];
}

const Life* LiveMemory::find(const Root& root, size_t position) const {
  const size_t idx = index_of(root, position);
  return idx < lives_.size() ? &lives_[idx] : nullptr;
}

void LiveMemory::make_again(const Root& root, size_t position) {
  const size_t idx = index_of(root, position);
  Life again = lives_[idx];
  count(again, -1);
  std::vector<size_t>& before = lives_[idx].uses;
  before.erase(std::ranges::lower_bound(before, position), before.end());
  again.first = position;
  again.uses.erase(again.uses.begin(), std::ranges::lower_bound(again.uses, position));
  count(lives_[idx], 1);
  count(again, 1);
  std::vector<size_t>& indices = lives_of_[root];
  indices.insert(std::ranges::find(indices, idx) + 1, lives_.size());
  const size_t last_before = lives_[idx].last();
  lives_.push_back(std::move(again));
  find_shared(last_before);
  find_shared(lives_.back().last());
}

void LiveMemory::add_use(const Root& root, size_t position) {
  const size_t idx = index_of(root, position);
  if (idx == lives_.size()) return;
  Life& life = lives_[idx];
  const size_t last_before = life.last();
  const auto place = std::ranges::lower_bound(life.uses, position);
  if (place != life.uses.end() && *place == position) return;
  count(life, -1);
  life.uses.insert(place, position);
  count(life, 1);
  find_shared(last_before);
  find_shared(position);
}

}  // namespace morel
