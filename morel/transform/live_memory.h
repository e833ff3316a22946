// How much memory a graph needs, node by node, as far as types tell.
#pragma once

#include <unordered_map>
#include <vector>

#include "morel/ir/graph.h"

namespace morel {

// For the sizes with which the graph was built.
int64_t bytes_of(const Type& type, const Graph& graph);

// The value in whose memory another one lies: what views and in-place results were made of.
struct Root {
  const Node* node = nullptr;
  uint32_t output = 0;
  bool operator==(const Root&) const = default;
  struct Hash {
    size_t operator()(const Root& root) const { return std::hash<const Node*>()(root.node) ^ root.output; }
  };
};
Root memory_root(const Value& value);

// Memory of a value of a graph, from the node at `first` to that at `last` (positions among the nodes; the number of
// nodes for what is returned).
struct Life {
  int64_t bytes = 0;
  size_t first = 0, last = 0;
};

class LiveMemory {
 public:
  explicit LiveMemory(const Graph& graph);
  // Null for parameters and captures.
  const Life* find(const Root& root) const;
  // The position at which the most is alive, and how much that is.
  size_t peak() const { return peak_; }
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  std::unordered_map<Root, Life, Root::Hash> lives_;
  size_t peak_ = 0;
  int64_t peak_bytes_ = 0;
};

}  // namespace morel
