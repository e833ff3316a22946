// Clean-up of a graph.
#pragma once

#include "morel/transform/rewrite.h"

namespace morel {

// Removes nodes whose results nobody reads and that have no effect, and captures that nobody reads. Returns whether it
// changed the graph.
bool remove_dead_nodes(Graph& graph);
// One node instead of several that compute the same from the same. Returns whether it changed the graph.
bool share_equal_nodes(Graph& graph);
// Both of the above and the local rules (rules.cc) until nothing changes, also within branches and loop bodies. What
// stops a gradient stays, so that gradients may be taken afterwards.
void simplify(Graph& graph, Evaluator evaluate = nullptr, RuleCounts* counts = nullptr);

}  // namespace morel
