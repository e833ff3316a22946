// GraphBuilder: the Builder that adds nodes to a graph. A composite is written out as what it is composed of; what is
// left are primitives with inferred types.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "morel/ir/graph.h"
#include "morel/ops/call.h"

namespace morel {

class GraphBuilder final : public Builder {
 public:
  explicit GraphBuilder(Ref<Graph> graph) : graph_(std::move(graph)) {}
  Values emit(const OpDef& op, std::span<const Value> given) override;
  Graph& graph() const { return *graph_; }
  const Ref<Graph>& graph_ref() const { return graph_; }

  // The node that stands for a tensor outside of the graph, as it is after the in-place changes so far.
  Value capture(const Tensor& tensor);
  // Later captures of `tensor` read `value`.
  void set_captured(const Tensor& tensor, Value value) { captured_[tensor.get()] = std::move(value); }
  // Nodes made from now on let no gradient through.
  void set_stops_gradient(bool stops) { stops_gradient_ = stops; }
  // Composites that become nodes as they are.
  using Keeps = bool (*)(const OpDef& op);
  void set_keeps(Keeps keeps) { keeps_ = keeps; }
  Keeps keeps() const { return keeps_; }
  // Where nodes come from: the user's line.
  void set_place(std::string place) { place_ = std::move(place); }

  // A node whose gradient is `backward` (from the cotangents of its outputs to those of `inputs`), not its operator's
  // rule: custom bprop. Adds one node for each of `outputs`, which it passes through.
  using Backward = std::function<Values(std::span<const Value> cotangents)>;
  Values custom(std::span<const Value> inputs, std::span<const Value> outputs, Backward backward);
  struct Custom {
    Values inputs, outputs;
    Backward backward;
  };
  // The custom function that `node` is an output of; null for other nodes.
  const Custom* find_custom(const Node* node) const;

  // What a gradient puts in the place of the cotangent of `value` once that is known; none: it stays. Hooks run in
  // order.
  using Hook = std::function<Value(const Value& cotangent)>;
  void add_hook(const Value& value, Hook hook) { hooks_[node_of(value)].emplace_back(value.output(), std::move(hook)); }
  Value hooked(const Value& value, Value cotangent) const;

 private:
  Ref<Graph> graph_;
  std::unordered_map<const TensorImpl*, Value> captured_;
  std::unordered_map<const Node*, std::shared_ptr<Custom>> customs_;
  std::unordered_map<const Node*, std::vector<std::pair<uint32_t, Hook>>> hooks_;
  std::string place_;
  bool stops_gradient_ = false;
  Keeps keeps_ = nullptr;
};

// Zeros of the type of a value.
Value zeros_of(GraphBuilder& builder, const Value& like);

}  // namespace morel
