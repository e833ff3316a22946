// Eager execution: runs an operator now, on the device of its inputs, and records it on the tape where a gradient is
// wanted.
#pragma once

#include "morel/kernels/epilogue.h"
#include "morel/ops/registry.h"

namespace morel {

// The builder that runs.
class EagerBuilder final : public Builder {
 public:
  Values emit(const OpDef& op, std::span<const Value> args) override;
  static EagerBuilder& instance();
};

// One call: fills in defaults, checks kinds, passes the active dispatch layers, runs, records. `args` may lack trailing
// arguments that have defaults.
Values call_op(const OpDef& op, std::span<const Value> args);
// In-place form of an out-of-place operator: the result goes into argument 0, whose shape and dtype stay. Returns
// argument 0.
Tensor call_in_place(const OpDef& op, std::span<const Value> args);
// That a result of this shape and dtype can be written to `target`, in either mode.
void check_fits(const OpDef& op, const Shape& shape, DType dtype, const Tensor& target);
// Same for C++ users by name: call("matmul", {x, y}).
Values call(std::string_view name, std::initializer_list<Value> args);

// Runs without recording; arguments complete and checked.
Values execute(const OpDef& op, std::span<const Value> args);
// By its compose rule.
Values execute_composite(const OpDef& op, std::span<const Value> args);

// Takes calls away from execute(), below the tape: those on distributed tensors (TensorImpl::shards), once there are
// some.
class ExecutionLayer {
 public:
  virtual ~ExecutionLayer() = default;
  virtual bool takes(const OpDef& op, std::span<const Value> args) = 0;
  virtual Values execute(const OpDef& op, std::span<const Value> args) = 0;
  // copy_into() of distributed tensors.
  virtual void copy_into(const Tensor& target, const Tensor& source) = 0;
};
ExecutionLayer* set_execution_layer(ExecutionLayer* next);  // returns the one before; null: none

// -- calls whose results lie where the caller wants them; arguments complete, not recorded --
// The layouts of results of these types, contiguous but where the operator prefers another order. Reads no data of
// `args`. Not for views.
SmallVector<Layout, 2> result_layouts(const OpDef& op, std::span<const Value> args, std::span<const Type> types);
// Runs with `outs` of these layouts; in-place operators have none. epilogue: of operators that allow it (kEpilogue).
void execute_into(const OpDef& op, std::span<const Value> args, std::span<Tensor> outs,
                  const Epilogue* epilogue = nullptr);

// Contiguous copy of a tensor (itself when it is contiguous already); conversion to another dtype. Not recorded.
Tensor contiguous(const Tensor& tensor);
Tensor convert(const Tensor& tensor, DType dtype);
// Copies (and converts) the elements of `source` into `target`, broadcasting. Not recorded, the version stays.
void copy_into(const Tensor& target, const Tensor& source);

// -- executors of the kinds of rules (elementwise.cc, reduce.cc, rows.cc) --
Tensor execute_elementwise(const OpDef& op, std::span<const Value> args);
void elementwise_into(const OpDef& op, std::span<const Value> args, const Tensor& out);
// Strides of a result of this shape where it is not contiguous.
std::optional<Strides> elementwise_strides(const OpDef& op, std::span<const Value> args, const Shape& shape);
void reduce_into(const OpDef& op, std::span<const Value> args, const Tensor& out);
void rows_into(const OpDef& op, std::span<const Value> args, std::span<Tensor> outs);

}  // namespace morel
