// Values that are read after their memory was changed in place.
#pragma once

#include "morel/ir/graph.h"

namespace morel {

// Copies each value of memory of outside in front of the node that changes it, for what reads it later: gradients of
// what read it before, and strings.
void keep_old_values(Graph& graph);

}  // namespace morel
