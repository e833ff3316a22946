// ONNX -> calls of operators, through a Builder: the one that runs them, or the one of a graph that is being built. A
// node is read by the mapping of an operator's entry (mapping.h), or by a rule of import_rules.h where ONNX says
// something that no one operator does.
#pragma once

#include <functional>
#include <unordered_map>

#include "morel/io/onnx/model.h"
#include "morel/ir/builder.h"

namespace morel::onnx {

// How the caller runs, or builds, control flow.
class ControlFlow {
 public:
  using Body = std::function<Values(std::span<const Value> state)>;
  virtual ~ControlFlow() = default;
  virtual Values branch(const Value& condition, const std::function<Values()>& then,
                        const std::function<Values()>& orelse) = 0;
  // While the first of the state is true: state = body(state).
  virtual Values loop(Values state, const Body& body) = 0;
};

struct Target {
  Builder& here;  // calls of the model
  Builder& now;   // what depends on nothing but constants
  ControlFlow& control;
};

// A value of the model. Of integers that are computed of sizes the numbers are known, though some may be expressions.
struct Item {
  Value value;
  std::optional<Ints> known;  // a scalar or a list; `value` may be missing then
  bool is_scalar = false;
  DType dtype = DType::Int64;  // of the known numbers
  bool is_constant = false;    // a tensor that does not depend on inputs or weights
  bool is_none() const { return value.is_none() && !known; }
};
using Items = std::vector<Item>;

class ImportedModel {
 public:
  // Raises NotImplemented with all nodes that have no operator.
  explicit ImportedModel(Model model);
  const std::vector<ValueInfo>& inputs() const { return inputs_; }  // those without a value in the file
  const std::vector<ValueInfo>& outputs() const { return model_.graph.outputs; }
  int64_t opset() const { return opset_; }
  // Float tensors of the file, which are the weights: name and value.
  const std::vector<std::pair<std::string, Tensor>>& weights() const { return weights_; }
  // `weights`: those to use, in the same order.
  Values call(const Target& target, std::span<const Value> inputs, std::span<const Value> weights) const;

 private:
  friend class Import;
  Model model_;
  int64_t opset_ = 1;
  std::vector<ValueInfo> inputs_;
  std::vector<std::pair<std::string, Tensor>> weights_;
  std::unordered_map<const TensorData*, Tensor> constants_;
};

}  // namespace morel::onnx
