// Recompute: values that are cheap to compute are not kept while the most memory is in use.
#pragma once

#include "morel/ir/graph.h"

namespace morel {

// Computes them again in front of the first node behind the peak that reads them, from what is there anyway, as long as
// that lowers the peak and costs little. Returns whether it changed the graph.
bool recompute_cheap(Graph& graph);

}  // namespace morel
