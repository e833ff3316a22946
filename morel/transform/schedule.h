// Schedule: the order of nodes in which a run needs least memory at a time.
#pragma once

#include "morel/ir/graph.h"

namespace morel {

// Updates of many Parameters become several that run as soon as their gradients are there.
bool schedule_updates(Graph& graph);

}  // namespace morel
