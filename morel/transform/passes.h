// The passes that a finished graph goes through before it runs, in order.
#pragma once

#include "morel/ir/graph.h"

namespace morel {

// Runs all passes. With MOREL_DUMP=passes in the environment each stage is written as text to the folder
// $MOREL_DUMP_DIR (default: morel_dump): <graph>.<number>.<stage>.txt
void optimise(Graph& graph);

}  // namespace morel
