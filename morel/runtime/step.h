// The steps of an executor: what of a graph's nodes does not depend on sizes.
#pragma once

#include <memory>
#include <vector>

#include "morel/ir/graph.h"
#include "morel/ops/opdef.h"
#include "morel/runtime/executor.h"
#include "morel/runtime/fused.h"

namespace morel {

// An argument: a constant, a slot, or a list of operands.
struct Operand {
  Value constant;
  int32_t slot = -1;
  uint32_t number_kinds = 0;  // what the schema takes instead of the tensor in the slot
  std::vector<Operand> items;

  bool is_slot() const { return slot >= 0; }
};

// The loop (Step::loop) that follows a kernel on its result.
struct StepEpilogue {
  Operand inputs;                 // nothing stands for the product
  size_t product = 0;             // its position
  std::vector<uint32_t> outputs;  // of the kernel: results of the step after those of the loop
  Types types;                    // of the kernel's outputs
};

struct Step {
  const OpDef* op = nullptr;  // of a fused node with an epilogue: of its kernel
  Ref<Node> node;
  std::vector<Operand> args;
  int32_t first_out = 0;       // slot of the first result
  std::vector<int32_t> outs;   // slots of the results, -1 where nobody reads one
  std::vector<int32_t> freed;  // slots that nobody reads later
  std::vector<std::unique_ptr<Executor>> graphs;
  const std::unique_ptr<Executor>* function = nullptr;  // of a call
  std::unique_ptr<FusedLoop> loop;                      // of a fused node
  std::unique_ptr<StepEpilogue> epilogue;

  bool is_read(size_t result) const { return outs[result] >= 0; }
};

}  // namespace morel
