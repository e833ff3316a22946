// Vectorisation: a graph for one example as the same graph for a batch of them, whose axis is in front of every value
// that differs between examples. A call follows from its operator's entry, by the first of these ways that fits:
//   its own `vmap` rule;
//   leading axes: axes that broadcast or stay as they are take one more, arguments that name axes or sizes are adapted;
//   folding: the batch goes into an axis of a factor that all results have (images of a convolution, its groups);
//   `compose`: as other operators;
//   one call for each example, which needs to know their number.
#pragma once

#include "morel/transform/graph_builder.h"

namespace morel {

// A value in a batch: with its axis in front, or the same for all examples.
struct Batched {
  Value value;
  bool batched = false;
};

// The results of `graph` for a batch of `batch` examples, whose parameters are `operands`; captured tensors are the
// same for all. Control flow needs a builder of graphs.
std::vector<Batched> vmap(Builder& builder, const Graph& graph, std::span<const Batched> operands, Dim batch);

}  // namespace morel
