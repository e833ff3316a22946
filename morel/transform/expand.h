// Expand: kernels as other operators, where these run in one loop with what follows.
#pragma once

#include "morel/ir/graph.h"

namespace morel {

// Writes out kernels that wait for memory (kCheap) and are defined as other operators, bit by bit, where elementwise
// ones read the result: it need not be written and read in between, and what comes of it is cheap to compute again.
bool expand(Graph& graph);

}  // namespace morel
