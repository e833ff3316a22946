// Constant folding: what depends on nothing from outside is computed when the graph is compiled.
#pragma once

#include "morel/transform/rewrite.h"

namespace morel {

// Small results become captured tensors that nobody else has. Returns how many nodes were computed for good.
int64_t fold_constants(Graph& graph, Evaluator evaluate);

}  // namespace morel
