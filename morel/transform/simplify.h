// Clean-up passes. Each returns whether it changed the graph.
#pragma once

#include "morel/ir/graph.h"

namespace morel {

// Removes nodes whose results nobody reads and that have no effect, and captures that nobody reads.
bool remove_dead_nodes(Graph& graph);
// One node instead of several that compute the same from the same.
bool share_equal_nodes(Graph& graph);
// Conversions to the type at hand (casts, reshapes, sums over nothing): the input stands for the result.
bool remove_identities(Graph& graph);
// All of the above until nothing changes.
void simplify(Graph& graph);

}  // namespace morel
