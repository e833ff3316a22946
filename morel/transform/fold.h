// Constant folding: what depends on nothing from outside is computed when the graph is compiled.
#pragma once

#include "morel/transform/rewrite.h"

namespace morel {

// Small results become captured tensors that nobody else has. Returns how many nodes were computed for good.
// freezes: captured tensors keep their values, so what depends on them alone is computed too, unless it is larger.
int64_t fold_constants(Graph& graph, Evaluator evaluate, bool freezes = false);

}  // namespace morel
