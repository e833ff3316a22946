// Converter: a graph -> the plan that a device runs (lite/plan.h). What a step becomes follows from the operator's
// entry: a loop, rows or reduction names its ahead-of-time programs, a view is a layout, a kernel its row of the kernel
// table.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "morel/ir/graph.h"
#include "morel/lite/container.h"

namespace morel::lite {

struct ConvertOptions {
  std::vector<std::string> inputs, outputs;                  // names, in order; missing ones are made up
  std::vector<std::pair<Tensor, std::string>> weight_names;  // of captured tensors
  bool fixed_sizes = false;                                  // the plan serves the sizes of the example only
};

struct Converted {
  Plan plan;
  std::vector<std::byte> weights;
};

// The graph is simplified but not fused (transform/passes.h). NotImplementedError, naming operator and source line, for
// what a device cannot run: shapes that depend on values, sequences, recursion.
Converted convert(const Graph& graph, const ConvertOptions& options);

}  // namespace morel::lite
