// The forward pass over the tape: nodes in ascending order of their sequence numbers, so all tangents of a node's
// inputs are there when it runs.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "morel/runtime/device.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/tape.h"

namespace morel {
namespace {

TapeNode* node_behind(const Tensor& tensor) {
  return requires_grad(tensor.get()) ? static_cast<TapeNode*>(tensor->grad.node.get()) : nullptr;
}

// The nodes from which the outputs were made, in the order in which they were; `ends` have nothing before them.
std::vector<TapeNode*> nodes_before(std::span<const Tensor> outputs,
                                    const std::unordered_map<TapeNode*, Values>& ends) {
  std::unordered_set<TapeNode*> seen;
  std::vector<TapeNode*> out;
  const auto reach = [&](TapeNode* node) {
    if (node && !ends.contains(node) && seen.insert(node).second) out.push_back(node);
  };
  for (const Tensor& output : outputs) reach(node_behind(output));
  for (size_t i = 0; i < out.size(); ++i)
    for (const Edge& edge : SmallVector<Edge, 3>(out[i]->edges)) reach(edge.node.get());
  std::ranges::sort(out, {}, &TapeNode::sequence);
  return out;
}

}  // namespace

Values TapeNode::forward(std::span<const Value> tangents) {
  SmallVector<char, 8> needs;
  bool integers = false;
  for (const Value& tangent : tangents) {
    needs.push_back(!tangent.is_none());
    integers |= needs.back() && is_integral(tangent.tensor_impl()->dtype);
  }
  const Device device = device_of(tangents);
  const DeviceScope on(device);
  Values cotangents, gradients, seeds;
  std::vector<Tensor> at, of;
  {
    const GradScope scope;
    for (const Type& type : out_types) {
      const bool moves = is_differentiable(type.dtype) || (integers && is_integral(type.dtype));
      if (moves) at.push_back(make_input(to_device(Tensor::full(type.shape, type.dtype, 0), device)));
      cotangents.push_back(moves ? Value(at.back()) : Value());
    }
    gradients = backward({cotangents.data(), cotangents.size()}, {needs.data(), needs.size()});
  }
  for (size_t i = 0; i < tangents.size() && i < gradients.size(); ++i) {
    if (!needs[i] || gradients[i].is_none()) continue;
    of.push_back(gradients[i].tensor());
    seeds.push_back(tangents[i]);
  }
  Values found = morel::backward(of, {seeds.data(), seeds.size()}, at, true), out;
  size_t next = 0;
  for (const Value& cotangent : cotangents) out.push_back(cotangent.is_none() ? Value() : std::move(found[next++]));
  return out;
}

Values push_forward(std::span<const Tensor> outputs, std::span<const Tensor> inputs, std::span<const Value> tangents) {
  std::unordered_map<TapeNode*, Values> moved;
  const auto tangents_of = [&](TapeNode* node) -> Values& {
    Values& all = moved[node];
    if (all.empty()) all.resize(static_cast<size_t>(node->num_outputs));
    return all;
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    if (TapeNode* node = node_behind(inputs[i]))
      tangents_of(node)[static_cast<size_t>(inputs[i]->grad.output)] = tangents[i];
  for (TapeNode* node : nodes_before(outputs, moved)) {
    Values edges;
    for (const Edge& edge : node->edges) {
      const auto found = edge.node ? moved.find(edge.node.get()) : moved.end();
      edges.push_back(found == moved.end() ? Value() : found->second[static_cast<size_t>(edge.output)]);
    }
    if (std::ranges::all_of(edges, &Value::is_none)) continue;
    Values found = node->forward({edges.data(), edges.size()});
    tangents_of(node) = std::move(found);
  }
  Values out;
  for (const Tensor& output : outputs) {
    TapeNode* node = node_behind(output);
    const auto found = node ? moved.find(node) : moved.end();
    out.push_back(found == moved.end() ? Value() : found->second[static_cast<size_t>(output->grad.output)]);
  }
  return out;
}

}  // namespace morel
