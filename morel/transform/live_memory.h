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

// Memory of a value from the position of the node that makes it to that of the last one that reads it.
struct Life {
  Root root;
  Type type;
  int64_t bytes = 0;
  size_t first = 0;
  std::vector<size_t> uses = {};  // positions of readers, in order; the number of nodes for what is returned
  size_t last() const { return uses.empty() ? first : uses.back(); }
};

// Which values of a graph are alive at its nodes. Where a loop may write its result over an operand that dies there,
// both need the memory of one.
class LiveMemory {
 public:
  explicit LiveMemory(const Graph& graph);
  const std::vector<Life>& lives() const { return lives_; }
  int64_t bytes_at(size_t position) const { return alive_[position] - shared_[position]; }
  size_t peak() const;  // the position at which the most is alive
  int64_t peak_bytes() const { return bytes_at(peak()); }
  // The life of a value as the node at `position` reads it, or would; null for parameters and captures.
  const Life* find(const Root& root, size_t position) const;

  // From the node at `position` on a value is another one, made again in front of it.
  void make_again(const Root& root, size_t position);
  // One more node reads a value.
  void add_use(const Root& root, size_t position);

 private:
  size_t index_of(const Root& root, size_t position) const;
  void count(const Life& life, int64_t sign);
  void find_shared(size_t position);

  const Graph& graph_;
  std::vector<Life> lives_;
  std::unordered_map<Root, std::vector<size_t>, Root::Hash> lives_of_;  // of a value, in order
  std::vector<int64_t> alive_, shared_;                                 // bytes, by position
};

}  // namespace morel
