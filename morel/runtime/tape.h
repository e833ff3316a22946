// The tape of PyNative mode: while a gradient scope is open on this thread, every differentiable call leaves a node
// which knows its inputs' nodes and keeps what its gradient rule reads. Backward runs the registry's rules through the
// EagerBuilder; inside an outer scope these calls are recorded again, which gives higher orders.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "morel/ops/opdef.h"

namespace morel {

class TapeNode;

// Where a cotangent flows: output `output` of `node`.
struct Edge {
  Ref<TapeNode> node;
  int32_t output = 0;
};

// Called with the cotangent of a tensor; returns its replacement, or None to keep it.
using GradHook = std::function<Value(const Value& cotangent)>;

class TapeNode : public RefCounted {
 public:
  // Cotangents of the inputs from those of the outputs (None: zero). `needs[i]`: edge i leads to something wanted.
  virtual Values backward(std::span<const Value> cotangents, std::span<const char> needs) = 0;
  // Tangents of the outputs from those of the inputs (None: does not move): the transpose of `backward`, which is
  // linear in the cotangents.
  virtual Values forward(std::span<const Value> tangents);
  // Drops what was kept for backward.
  virtual void release_saved() {}
  virtual std::string_view name() const = 0;

  uint64_t sequence = 0;  // later nodes have larger numbers: descending order is topological
  int32_t num_outputs = 1;
  Types out_types;
  SmallVector<Edge, 3> edges;
  std::vector<std::pair<int32_t, std::shared_ptr<GradHook>>> hooks;
};

// -- scopes --
// Depth of gradient scopes on this thread; calls are recorded when it is positive.
int grad_depth();
int set_grad_depth(int depth);  // returns the old one
class GradScope {
 public:
  GradScope();
  ~GradScope();
  GradScope(const GradScope&) = delete;
  GradScope& operator=(const GradScope&) = delete;
};
// Sets the depth for its lifetime: 0 stops recording.
class GradDepth {
 public:
  explicit GradDepth(int depth);
  ~GradDepth();
  GradDepth(const GradDepth&) = delete;
  GradDepth& operator=(const GradDepth&) = delete;

 private:
  int saved_;
};

bool requires_grad(const TensorImpl* tensor);
// A tensor that shares the data of `tensor` and is a new place to differentiate at; still linked to `tensor` for outer
// scopes.
Tensor make_input(const Tensor& tensor);
// Makes the tensor itself a place to differentiate at (a parameter); undone by clear_leaf.
// Returns false when it was one already.
bool make_leaf(const Tensor& tensor);
void clear_leaf(const Tensor& tensor);
// Makes tensors places to differentiate at for its lifetime, those that were not already.
class LeafScope {
 public:
  explicit LeafScope(std::span<const Tensor> tensors) {
    for (const Tensor& tensor : tensors)
      if (make_leaf(tensor)) made_.push_back(tensor);
  }
  ~LeafScope() {
    for (const Tensor& tensor : made_) clear_leaf(tensor);
  }
  LeafScope(const LeafScope&) = delete;
  LeafScope& operator=(const LeafScope&) = delete;

 private:
  std::vector<Tensor> made_;
};
// Same data, no gradient.
Tensor detach(const Tensor& tensor);

// Records one executed call. `args` are complete; `outs` get their links.
void record(const OpDef& op, std::span<const Value> args, std::span<Value> outs);
// In-place call: `target` (argument 0) was overwritten; `original` stands for it in `args`. Views update their base.
void record_in_place(const OpDef& op, std::span<const Value> args, const Tensor& target);
// Data of `target` changed without a record (no gradient flows): bumps the version.
void mark_changed(const Tensor& target);
// A node with a backward function of its own (custom bprop, hooks on cells): links `outs` to it.
void record_function(std::string name, std::span<const Tensor> inputs, std::span<Tensor> outs,
                     std::function<Values(std::span<const Value> cotangents)> backward);
void add_hook(const Tensor& tensor, std::shared_ptr<GradHook> hook);
// Those of a tensor that outlive scopes.
std::span<const std::shared_ptr<GradHook>> lasting_hooks(const Tensor& tensor);
void remove_hook(const Tensor& tensor, const std::shared_ptr<GradHook>& hook);

// Gradients of sum(outputs * seeds) at `inputs` (None where nothing flows). A None seed means ones. With keep_graph the
// tape can be used again.
Values backward(std::span<const Tensor> outputs, std::span<const Value> seeds, std::span<const Tensor> inputs,
                bool keep_graph);
// Tangents of `outputs` where `inputs` move by `tangents` (None where an output does not move). The tape stays.
Values push_forward(std::span<const Tensor> outputs, std::span<const Tensor> inputs, std::span<const Value> tangents);

}  // namespace morel
