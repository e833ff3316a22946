// The backward pass over the tape: nodes in descending order of their sequence numbers, so every cotangent is complete
// when its node runs.
#include <algorithm>
#include <unordered_map>

#include "morel/runtime/device.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/tape.h"

namespace morel {
namespace {

struct Pending {
  Ref<TapeNode> node;
  Values cotangents;
  bool done = false;
};

class Pass {
 public:
  explicit Pass(std::span<const Tensor> inputs, bool keep_graph) : keep_graph_(keep_graph) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto* node = requires_grad(inputs[i].get()) ? static_cast<TapeNode*>(inputs[i]->grad.node.get()) : nullptr;
      if (!node) continue;
      targets_.emplace(node, std::make_pair(inputs[i]->grad.output, i));
      oldest_ = std::min(oldest_, node->sequence);
    }
    results_.resize(inputs.size());
  }

  void seed(const Tensor& output, Value cotangent) {
    if (!requires_grad(output.get())) return;
    Edge edge{Ref<TapeNode>(static_cast<TapeNode*>(output->grad.node.get())), output->grad.output};
    if (is_needed(edge.node.get())) add(edge, std::move(cotangent));
  }

  Values run() {
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), earlier);
      TapeNode* node = queue_.back();
      queue_.pop_back();
      const auto found = pending_.find(node);
      Pending current = std::move(found->second);
      pending_.erase(found);
      step(current);
    }
    return std::move(results_);
  }

 private:
  static bool earlier(const TapeNode* a, const TapeNode* b) { return a->sequence < b->sequence; }

  // Whether a target can be reached; only asked where others have nodes of their own on the tape.
  bool is_needed(TapeNode* root) {
    if (!keep_graph_) return true;
    std::vector<TapeNode*> stack{root};
    while (!stack.empty()) {
      TapeNode* node = stack.back();
      if (needed_.contains(node)) {
        stack.pop_back();
        continue;
      }
      bool ready = true, needed = targets_.contains(node);
      for (const Edge& edge : node->edges) {
        if (!edge.node || edge.node->sequence < oldest_) continue;
        const auto found = needed_.find(edge.node.get());
        if (found == needed_.end()) {
          stack.push_back(edge.node.get());
          ready = false;
        } else {
          needed |= found->second;
        }
      }
      if (!ready) continue;
      needed_.emplace(node, needed);
      stack.pop_back();
    }
    return needed_.at(root);
  }

  void add(const Edge& edge, Value cotangent) {
    auto [found, fresh] = pending_.try_emplace(edge.node.get());
    Pending& pending = found->second;
    if (fresh) {
      pending.node = edge.node;
      pending.cotangents.resize(static_cast<size_t>(edge.node->num_outputs));
      queue_.push_back(edge.node.get());
      std::push_heap(queue_.begin(), queue_.end(), earlier);
    }
    Value& sum = pending.cotangents[static_cast<size_t>(edge.output)];
    if (sum.is_none()) {
      sum = std::move(cotangent);
    } else {
      const Value terms[] = {sum, cotangent};
      sum = call_op(find_op("add"), terms)[0];
    }
  }

  void step(Pending& current) {
    TapeNode& node = *current.node;
    for (const auto& [output, hook] : node.hooks) {
      Value& cotangent = current.cotangents[static_cast<size_t>(output)];
      if (cotangent.is_none()) continue;
      if (Value replaced = (*hook)(cotangent); !replaced.is_none()) cotangent = std::move(replaced);
    }
    const auto range = targets_.equal_range(&node);
    for (auto at = range.first; at != range.second; ++at)
      results_[at->second.second] = current.cotangents[static_cast<size_t>(at->second.first)];
    SmallVector<char, 8> needs;
    bool any = false;
    for (const Edge& edge : node.edges) {
      needs.push_back(edge.node && is_needed(edge.node.get()));
      any |= needs.back() != 0;
    }
    if (any) {
      const DeviceScope scope(device_of(current.cotangents));
      Values grads = node.backward(current.cotangents, {needs.data(), needs.size()});
      current.cotangents.clear();
      for (size_t i = 0; i < node.edges.size() && i < grads.size(); ++i)
        if (needs[i] && !grads[i].is_none()) add(node.edges[i], std::move(grads[i]));
    }
    if (!keep_graph_) node.release_saved();
  }

  bool keep_graph_;
  uint64_t oldest_ = UINT64_MAX;  // of the targets; what is older does not depend on them
  std::unordered_multimap<TapeNode*, std::pair<int32_t, size_t>> targets_;
  std::unordered_map<TapeNode*, Pending> pending_;
  std::unordered_map<TapeNode*, bool> needed_;
  std::vector<TapeNode*> queue_;
  Values results_;
};

}  // namespace

Values backward(std::span<const Tensor> outputs, std::span<const Value> seeds, std::span<const Tensor> inputs,
                bool keep_graph) {
  Pass pass(inputs, keep_graph || grad_depth() > 0);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    Value seed = seeds[i];
    if (seed.is_none()) {
      seed = to_device(Tensor::full(output.shape(), output.dtype(), 1), output.device());
    } else {
      const Tensor given = seed.tensor();
      MOREL_CHECK(given.shape() == output.shape(), Value, "the sensitivity has shape ", to_string(given.shape()),
                  " but the output has shape ", to_string(output.shape()));
      if (given.dtype() != output.dtype()) seed = convert(given, output.dtype());
    }
    pass.seed(output, std::move(seed));
  }
  return pass.run();
}

}  // namespace morel
