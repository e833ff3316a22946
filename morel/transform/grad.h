// Reverse-mode differentiation of a graph by source transformation: the gradient is more nodes of the same graph, made
// by the operators' rules, so it can be differentiated again.
#pragma once

#include "morel/transform/graph_builder.h"

namespace morel {

// Gradients of sum(outputs * seeds) at `inputs`, None where nothing flows. A None seed means ones. All are values of
// the builder's graph; of its nodes only those from `first` on are looked at.
Values graph_gradients(GraphBuilder& builder, std::span<const Value> outputs, std::span<const Value> seeds,
                       std::span<const Value> inputs, size_t first = 0);

}  // namespace morel
