// The loops of one fused node of a graph.
#pragma once

#include <memory>
#include <optional>

#include "morel/runtime/loop_kernel.h"
#include "morel/transform/fused.h"

namespace morel {

class FusedLoop {
 public:
  explicit FusedLoop(Ref<Graph> body);
  // The results; nothing while code is missing or where operands lie in memory such that the operators by themselves
  // would work in another order.
  std::optional<Values> run(std::span<const Tensor> inputs, std::span<const Type> types) const;

 private:
  struct Call;  // operands and the space that they span
  bool can_run(const Call& call) const;
  Values elementwise(const Call& call) const;
  Values reduce(const Call& call) const;

  Ref<Graph> graph_;
  FusedBody body_;
  std::unique_ptr<LoopKernel> loop_;                  // Elementwise
  std::unique_ptr<RowsKernel> rows_;                  // Rows
  std::unique_ptr<LoopKernel> by_rows_, by_columns_;  // Reduction
};

}  // namespace morel
