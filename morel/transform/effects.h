// Effects: what nodes and graphs do beside giving results, also in the branches, bodies and functions that they hold.
#pragma once

#include "morel/ops/call.h"
#include "morel/transform/graph_builder.h"

namespace morel {

// What the flags of an operator say: whether argument `idx` of it is memory that it changes (the first one of an
// in-place operator, the lists of an update), and whether it reaches what is neither memory nor random numbers.
inline bool is_written(const OpDef& op, size_t idx) {
  return op.has(kInPlace) ? idx == 0 : op.has(kEffect) && op.has(kItemwise);
}
inline bool talks(const OpDef& op) { return op.has(kEffect) && !op.has(kRandom) && !is_written(op, 0); }

struct Effects {
  bool writes = false;                              // memory that others may read
  bool draws = false;                               // moves the generator of random numbers on
  bool talks = false;                               // reaches what is neither (prints)
  bool is_seen() const { return writes || talks; }  // by others than those that draw
  bool any() const { return is_seen() || draws; }
};

Effects effects_of(const Node& node);
Effects effects_of(std::span<const Ref<Node>> nodes);
// What it does to values that it made itself does not count. Of an unfinished function everything must be expected.
Effects effects_of(const Graph& graph);

// How often a graph sets the generator's state: not at all, to replay, or also back to what it was.
int64_t num_exchanges(const Graph& graph);
// Whether what a graph draws depends on the generator's state before it.
inline bool draws(const Graph& graph) { return num_exchanges(graph) == 0 && effects_of(graph).draws; }

// Calls fn(value) for every input whose memory a node changes, as far as one can tell.
template <class F>
void for_each_written(const Node& node, F&& fn) {
  if (node.op->control != Control::None) {
    if (effects_of(node).writes) for_each_input(node, fn);
    return;
  }
  for (size_t i = 0; i < node.args.size(); ++i)
    if (is_written(*node.op, i)) for_each_input(node.args[i], fn);
}

}  // namespace morel
