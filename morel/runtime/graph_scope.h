// While a GraphScope is open on a thread, operators called there are not run but become nodes of its graph. Tensors are
// then symbolic: handles with shape and dtype of a node's output; in-place operators replace what a handle stands for.
#pragma once

#include <string>
#include <vector>

#include "morel/transform/graph_builder.h"

namespace morel {

// Whether two symbolic tensors stand for the same output of a node.
inline bool is_same(const GradLink& a, const GradLink& b) {
  return a.node.get() == b.node.get() && a.output == b.output;
}

// What a view reads now that the tensor it is a view of has the value `root`.
Value view_again(GraphBuilder& builder, const Tensor& view, const Value& root);

class GraphScope {
 public:
  explicit GraphScope(std::string name);
  ~GraphScope();
  GraphScope(const GraphScope&) = delete;
  GraphScope& operator=(const GraphScope&) = delete;
  static GraphScope* current();  // null when none is open on this thread

  GraphBuilder& builder() { return builder_; }
  Tensor add_parameter(const Type& type);
  // The node that stands for a tensor here. One of an enclosing scope becomes a further parameter; its value there is
  // in imports().
  Value value_of(const Tensor& tensor);
  Tensor tensor_of(Value value) const;
  // Makes `tensor` stand for another value of the same shape; views write through to their base.
  void assign(const Tensor& tensor, Value value);
  // What tensors of enclosing scopes stand for in this one: those that were changed here in place, and those that were
  // given a value at its start. Whoever ends the scope passes the values on.
  struct Change {
    Tensor tensor;
    Value value;
    bool is_written;
  };
  const std::vector<Change>& changes() const { return changes_; }
  void start_from(const Tensor& tensor, Value value) { changes_.push_back({tensor, std::move(value), false}); }
  // Until they are cleared, value_of gives stand-ins for tensors of outside.
  void set_stand_in(const Tensor& tensor, Value value) { stand_ins_[tensor.get()] = std::move(value); }
  void clear_stand_ins() { stand_ins_.clear(); }
  // Values of the enclosing scope, one for each parameter added by value_of.
  const std::vector<Tensor>& imports() const { return imports_; }

  // The calls that runtime/eager.h makes here instead.
  Values call(const OpDef& op, std::span<const Value> given);
  Tensor call_in_place(const OpDef& op, std::span<const Value> given);

 private:
  Value map(const Value& value);
  bool owns(const Tensor& tensor) const;  // a symbolic one
  Change* find_change(const Tensor& tensor);
  Tensor view_of(const OpDef& op, std::span<const Value> given, Value value) const;

  GraphScope* outer_;
  int grad_depth_;
  GraphBuilder builder_;
  std::vector<Tensor> imports_;
  std::vector<Change> changes_;
  std::unordered_map<const TensorImpl*, Value> stand_ins_;
  std::unordered_map<const Node*, std::unordered_map<uint32_t, Value>> imported_;
};

}  // namespace morel
