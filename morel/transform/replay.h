// Branches, bodies and functions whose gradient computes them again: they must draw the same random numbers, and what
// they change outside of themselves must not change twice.
#pragma once

#include "morel/transform/graph_builder.h"

namespace morel {

// How often a graph sets the generator's state: not at all, to replay, or also back to what it was.
int64_t num_exchanges(const Graph& graph);
// Whether the generator's state is another one after the graph, which may draw in functions that it calls.
bool moves_rng(std::span<const Ref<Node>> nodes);
inline bool moves_rng(const Graph& graph) {
  return !graph.is_complete() || moves_rng(std::span(graph.nodes));  // of an unfinished function nothing is known
}
// Whether what a graph draws depends on the generator's state before it.
inline bool draws(const Graph& graph) { return num_exchanges(graph) == 0 && moves_rng(graph); }
// The same graph with the generator's state before it as parameter number `place`. With `replays` it sets that state,
// so that it draws the same numbers whenever it runs.
Ref<Graph> with_rng_state(const Graph& graph, size_t place, bool replays);
// The generator's state before a node of the builder's graph runs.
Value rng_before(GraphBuilder& builder, Node& node);
// The generator's state becomes part of that of a `while` whose body draws, so that it is kept for every turn.
void carry_rng_state(GraphBuilder& builder, Node& node);

// What a graph computes, once more, among the nodes of the builder's graph: without its changes of memory, and the
// generator stays as it was.
Values append_again(GraphBuilder& builder, const Graph& graph, std::span<const Value> arguments);

// Whether a graph changes memory that it did not make, as running statistics and the Parameters of an optimizer.
bool writes(const Graph& graph);
// Whether a node changes what others may read, itself or in a branch, body or function.
bool writes(const Node& node);
// The same graph without such changes: what reads the changed memory reads it as it is then.
Ref<Graph> without_writes(const Graph& graph);

}  // namespace morel
