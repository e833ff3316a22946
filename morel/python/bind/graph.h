// A finished graph as Python holds it.
#pragma once

#include <memory>
#include <vector>

#include "morel/runtime/executor.h"
#include "morel/runtime/graph_scope.h"

namespace morel::bind {

// Of a function, or of a branch with the tensors of outside that it reads.
struct PyGraph {
  Ref<Graph> graph;
  std::vector<Tensor> imports;
  std::unique_ptr<Executor> executor;
};

// The innermost graph that is being built on this thread.
GraphScope& open_scope();
void close_scope();
// Whether a graph can be called with tensors of these sizes.
bool serves(const Graph& graph, const std::vector<Tensor>& parameters);

}  // namespace morel::bind
