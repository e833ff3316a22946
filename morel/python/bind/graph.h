// A finished graph as Python holds it.
#pragma once

#include <memory>
#include <vector>

#include "morel/runtime/executor.h"

namespace morel::bind {

// Of a function, or of a branch with the tensors of outside that it reads.
struct PyGraph {
  Ref<Graph> graph;
  std::vector<Tensor> imports;
  std::unique_ptr<Executor> executor;
};

}  // namespace morel::bind
