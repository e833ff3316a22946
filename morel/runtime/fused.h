// The loops of one fused node of a graph.
#pragma once

#include <memory>
#include <optional>

#include "morel/loops/run/rows.h"
#include "morel/transform/fused.h"

namespace morel {

class FusedLoop {
 public:
  explicit FusedLoop(Ref<Graph> body);
  // Where results of these types lie: as the operators by themselves would have them. Reads no data of `inputs`.
  SmallVector<Layout, 4> layouts(std::span<const Value> inputs, std::span<const Type> types) const;
  // Whether a result may lie where an input lies.
  bool can_store_over(size_t input, size_t result) const;
  // False, and nothing done, while code is missing or where operands lie in memory such that the operators by
  // themselves would work in another order.
  bool run(std::span<const Value> inputs, std::span<Tensor> outs) const;

 private:
  struct Call;  // operands and the space that they span
  bool can_run(const Call& call) const;
  void run_rows(const Call& call, std::span<Tensor> outs) const;
  void reduce(const Call& call, std::span<Tensor> outs) const;

  Ref<Graph> graph_;
  FusedBody body_;
  loops::Program program_;                               // Elementwise, Rows
  std::unique_ptr<loops::Kernel> loop_;                  // Elementwise
  std::unique_ptr<loops::RowsKernel> rows_;              // Rows
  std::unique_ptr<loops::Kernel> by_rows_, by_columns_;  // Reduction
};

}  // namespace morel
