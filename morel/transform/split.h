// A graph with its gradients, cut into what runs at the call and what runs in the backward pass.
#pragma once

#include "morel/ir/graph.h"

namespace morel {

// Results of `forward`: those of the graph, then what `backward` reads of it. Parameters of `backward`: these values,
// then the cotangents.
struct Halves {
  Ref<Graph> forward, backward;
};

// Takes the graph apart: its first `num_parameters` parameters, `num_nodes` nodes and `num_results` results make the
// forward half; the other parameters are cotangents and the other results gradients. Functions stay with the graph.
Halves split(Graph& graph, size_t num_parameters, size_t num_nodes, size_t num_results);

}  // namespace morel
