// The loops of one fused node of a graph.
#pragma once

#include <memory>
#include <optional>

#include "morel/kernels/epilogue.h"
#include "morel/loops/run/rows.h"
#include "morel/loops/run/space.h"
#include "morel/transform/fused.h"

namespace morel {

// A loop on the parts of a kernel's result.
class LoopEpilogue final : public Epilogue {
 public:
  LoopEpilogue(const loops::Kernel& kernel, loops::LoopSpace space) : kernel_(kernel), space_(space) {}
  void run(const Part& part) const override { space_.run_part(kernel_, part.begin, part.rows, part.step, part.n); }

 private:
  const loops::Kernel& kernel_;
  loops::LoopSpace space_;
};

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
  // To follow on the parts of inputs[product]; nothing while code is missing. Only of elementwise loops.
  std::optional<LoopEpilogue> as_epilogue(std::span<const Value> inputs, std::span<Tensor> outs, size_t product) const;
  const Type& parameter(size_t idx) const { return graph_->parameters[idx]->types[0]; }

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
