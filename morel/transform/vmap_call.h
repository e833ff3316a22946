// Vectorisation of one call (see vmap.h for the ways).
#pragma once

#include "morel/transform/vmap.h"

namespace morel {

// The same value for each of `batch` examples, as a view.
Value spread(Builder& builder, const Value& value, Dim batch);

// The arguments of one call, some of them batches.
class VmapArgs {
 public:
  VmapArgs(Builder& builder, Dim batch) : builder_(builder), batch_(batch) {}
  void add(Value value, bool batched) {
    values_.push_back(std::move(value));
    batched_.push_back(batched);
  }
  Builder& builder() const { return builder_; }
  Dim batch() const { return batch_; }
  size_t size() const { return values_.size(); }
  std::span<const Value> values() const { return {values_.data(), values_.size()}; }
  std::span<const char> flags() const { return {batched_.data(), batched_.size()}; }
  const Value& operator[](size_t idx) const { return values_[idx]; }
  bool batched(size_t idx) const { return batched_[idx] != 0; }
  bool any() const { return std::find(batched_.begin(), batched_.end(), 1) != batched_.end(); }
  void set(size_t idx, Value value) { values_[idx] = std::move(value); }
  // Makes argument `idx` a batch.
  void spread_argument(size_t idx);

 private:
  Builder& builder_;
  Dim batch_;
  SmallVector<Value, 8> values_;
  SmallVector<char, 8> batched_;
};

using NestedVmap = std::function<std::vector<Batched>(const Graph& graph, std::span<const Batched> operands)>;

// Results of the call of `node` (which has the types for one example) with `args`, all of them batches.
Values vmap_call(VmapArgs args, const Node& node, const NestedVmap& nested);

}  // namespace morel
