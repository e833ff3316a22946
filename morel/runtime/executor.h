// Executor: a graph as a flat list of steps over numbered slots, ready to run again and again. What depends on sizes
// lies in an Instance, one for each signature (the types of the parameters).
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "morel/ir/graph.h"

namespace morel {

class Instance;
struct Operand;
struct Step;

class Executor {
 public:
  explicit Executor(Ref<Graph> graph);
  ~Executor();
  // One tensor for each parameter; one for each result. Safe to call from several threads at once. `symbols`: the
  // values of the whole graph's sizes; of a whole graph they are found in its parameters where they are not given.
  Values run(std::span<const Value> parameters, SymbolValues symbols = {}) const;

  // Of the instance that ran last; before the first run of one for the types that the graph declares.
  struct MemoryUse {
    size_t arena_bytes;  // planned
    size_t lower_bound;  // most planned bytes alive at a time
    size_t own_bytes;    // of values that are allocated by themselves: results, operands of control flow
  };
  MemoryUse memory_use() const;

  Graph& graph() const { return *graph_; }
  // As they were when the executor was made: passes may still change functions that other graphs call too.
  const std::vector<Ref<Node>>& parameters() const { return parameters_; }
  const std::vector<Ref<Node>>& captures() const { return captures_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Operand>& results() const { return results_; }
  // Slots of parameters and captures come first, in this order.
  size_t num_slots() const { return num_slots_; }

 private:
  // Of the functions that are called, each once.
  using Functions = std::unordered_map<const Graph*, std::unique_ptr<Executor>>;

  Executor(Ref<Graph> graph, Functions& functions);
  std::shared_ptr<const Instance> instance_for(std::span<const Value> parameters, SymbolValues symbols) const;
  void settle(const std::shared_ptr<const Instance>& trial, std::span<const Value> parameters) const;

  Ref<Graph> graph_;
  std::vector<Ref<Node>> parameters_, captures_;
  Functions functions_;  // of an outermost graph
  std::vector<Step> steps_;
  std::vector<Operand> results_;
  size_t num_slots_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const Instance>> instances_;  // the one used last comes first
};

}  // namespace morel
