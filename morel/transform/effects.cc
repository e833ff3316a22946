#include "morel/transform/effects.h"

#include <algorithm>
#include <unordered_set>

#include "morel/transform/rewrite.h"

namespace morel {
namespace {

int64_t count_exchanges(std::span<const Ref<Node>> nodes) {
  const OpDef* exchange = &find_op("exchange_rng");
  return std::ranges::count_if(nodes, [&](const Ref<Node>& node) { return node->op == exchange; });
}

class Finder {
 public:
  void add(std::span<const Ref<Node>> nodes) {
    // Who sets the state and sets it back has drawn from a copy; who sets it once leaves another one.
    const int64_t exchanges = count_exchanges(nodes);
    const bool drew = found_.draws;
    for (const Ref<Node>& node : nodes) add(*node, false);
    if (exchanges) found_.draws = drew || exchanges == 1;
  }

  // `is_seen`: all that the node writes can be read by others, not only what it has from outside of its graph.
  void add(const Node& node, bool is_seen) {
    found_.talks |= talks(*node.op);
    found_.draws |= node.op->has(kEffect) && node.op->has(kRandom);
    if (is_written(*node.op, 0)) {
      if (is_seen) found_.writes = true;
      else for_each_written(node, [&](const Value& value) { found_.writes |= !root_of(value)->op; });
    }
    for (const Value& arg : node.args)
      if (arg.tag() == Value::Tag::Graph) add(*static_cast<const Graph*>(arg.graph()));
  }

  void add(const Graph& graph) {
    if (!graph.is_complete()) found_ = {true, true, true};
    else if (seen_.insert(&graph).second) add(std::span(graph.nodes));
  }

  const Effects& found() const { return found_; }

 private:
  Effects found_;
  std::unordered_set<const Graph*> seen_;
};

}  // namespace

Effects effects_of(const Node& node) {
  Finder finder;
  finder.add(node, true);
  return finder.found();
}

Effects effects_of(std::span<const Ref<Node>> nodes) {
  Finder finder;
  finder.add(nodes);
  return finder.found();
}

Effects effects_of(const Graph& graph) {
  Finder finder;
  finder.add(graph);
  return finder.found();
}

int64_t num_exchanges(const Graph& graph) { return count_exchanges(graph.nodes); }

}  // namespace morel
