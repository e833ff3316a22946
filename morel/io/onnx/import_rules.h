// What an import rule sees of a node, and the table of rules: nodes of ONNX without one operator of ours.
#pragma once

#include "morel/io/onnx/import.h"
#include "morel/io/onnx/mapping.h"

namespace morel::onnx {

inline constexpr int64_t most_turns = 256;  // of a loop that is written out

// The integers of a tensor that exists; nothing where it does not, is large, or holds others.
std::optional<Ints> integers_of(const Value& value);
Item item_of(Value value);
Item item_of(Ints list);
Item item_of(Dim scalar);
// The number in a tensor of one element that exists.
std::optional<double> number_of(const Value& value);
Tensor tensor_of(const TensorData& data);
// One result, or several.
template <class... More>
std::optional<Items> results_of(const Sym& first, const More&... more) {
  return Items{item_of(first.value()), item_of(more.value())...};
}
// 0, 1, 2 ... as a tensor of this shape.
Sym places(Builder& b, Dim count, const Ints& shape);
// From 0 on; ValueError where a tensor of `rank` has no such axis.
int64_t axis_of(int64_t axis, int64_t rank);

// ValueError where an input is missing.
void require(const Items& inputs, size_t idx);

class NodeCall {
 public:
  NodeCall(const Target& target, Builder& builder, const NodeData& node, int64_t opset, Items inputs)
      : b(builder), target_(target), node_(node), opset_(opset), inputs_(std::move(inputs)) {}

  Builder& b;
  const NodeData& node() const { return node_; }
  int64_t opset() const { return opset_; }
  const Target& target() const { return target_; }
  size_t size() const { return inputs_.size(); }
  size_t num_outputs() const { return node_.outputs.size(); }
  bool has_output(size_t idx) const { return idx < node_.outputs.size() && !node_.outputs[idx].empty(); }
  bool has(size_t idx) const { return idx < inputs_.size() && !inputs_[idx].is_none(); }
  const Item& item(size_t idx) const {
    MOREL_CHECK(idx < inputs_.size(), Value, "its input ", idx, " is missing");
    return inputs_[idx];
  }
  // As a tensor; null where it is missing.
  Sym operator[](size_t idx) const;
  // ValueError where it is missing.
  Sym given(size_t idx) const {
    require(inputs_, idx);
    return (*this)[idx];
  }
  // As numbers that are known; NotImplemented otherwise.
  Ints ints(size_t idx) const;
  // The one integer that it is known to be.
  Dim integer(size_t idx) const;
  Ints ints_or(size_t idx, Ints fallback) const { return has(idx) ? ints(idx) : fallback; }
  double number(size_t idx) const;

  int64_t attribute(std::string_view name, int64_t fallback) const;
  double real(std::string_view name, double fallback) const;
  std::string text(std::string_view name, std::string fallback) const;
  Ints list(std::string_view name, Ints fallback) const;
  // An input since an opset, an attribute before; nothing where it is missing.
  std::optional<Ints> list_or_input(std::string_view name, size_t idx, int64_t since) const;
  ReadNode read() const;

 private:
  const Target& target_;
  const NodeData& node_;
  int64_t opset_;
  Items inputs_;
};

// Nothing: the mappings of entries are asked.
using Result = std::optional<Items>;
using ImportRule = Result (*)(const NodeCall& call);
inline constexpr size_t every_input = 1000;
struct ImportEntry {
  std::string_view name;
  ImportRule rule;
  size_t inputs = 1;      // how many it cannot do without
  int64_t before = 1000;  // the first opset for which it is wrong
};
std::span<const ImportEntry> shape_rules();
std::span<const ImportEntry> math_rules();
std::span<const ImportEntry> window_rules();
std::span<const ImportEntry> resize_rules();
std::span<const ImportEntry> recurrent_rules();
std::span<const ImportEntry> attention_rules();
std::span<const ImportEntry> quant_rules();
std::span<const ImportEntry> signal_rules();
std::span<const ImportEntry> einsum_rules();

// A node over integers that are known but for sizes: nothing where it is none.
std::optional<Item> compute_sizes(const NodeCall& call);

}  // namespace morel::onnx
