// Executor: a graph as a flat list of steps over numbered slots, ready to run again and again. A slot is freed after
// the last step that reads it.
#pragma once

#include <memory>
#include <vector>

#include "morel/ir/graph.h"

namespace morel {

class Executor {
 public:
  explicit Executor(Ref<Graph> graph);
  ~Executor();
  // One tensor for each parameter; one for each result. Safe to call from several threads at once.
  Values run(std::span<const Value> parameters) const;
  Graph& graph() const { return *graph_; }

 private:
  struct Operand;
  struct Step;

  Values call(const Step& step, std::vector<Value>& slots) const;
  Values run_fused(const Step& step, const Value::List& operands) const;
  Values run_while(const Step& step, const Args& args) const;
  Values run_while_grad(const Step& step, const Args& args) const;

  Ref<Graph> graph_;
  std::vector<Step> steps_;
  std::vector<Operand> results_;
  size_t num_slots_ = 0;
};

}  // namespace morel
