// Fusion: nodes over one iteration space become one `fused` node, whose body is a graph of them and whose code one loop
// (fused.h).
#pragma once

#include "morel/ir/graph.h"

namespace morel {

// Groups what can run as one loop; also within the graphs of `if` and `while`. Returns whether it changed the graph.
bool fuse(Graph& graph);

}  // namespace morel
