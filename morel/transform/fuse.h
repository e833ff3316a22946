// Fusion: elementwise nodes over one shape become one `fused` node, whose body is a graph of them and whose code one
// loop.
#pragma once

#include "morel/ir/graph.h"
#include "morel/loops/program.h"

namespace morel {

// Groups what can run as one loop; also within the graphs of `if` and `while`. Returns whether it changed the graph.
bool fuse(Graph& graph);

// The loop of a fused node's body: one input for each parameter, one output for each result.
loops::Program fused_program(const Graph& body);

}  // namespace morel
