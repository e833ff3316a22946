#include "morel/transform/freeze.h"

#include <algorithm>
#include <optional>

#include "morel/ops/axes.h"
#include "morel/ops/call.h"
#include "morel/transform/fold.h"
#include "morel/transform/simplify.h"

namespace morel {
namespace {

// A linear operator with weight and bias, as `int8` of an entry says, whose result alone a scale and shift reads.
class Absorber {
 public:
  explicit Absorber(Graph& graph) : builder_(Ref<Graph>(&graph)), sharing_(graph) {
    const auto use = [&](const Value& value) { ++uses_[node_of(value)]; };
    for (const Ref<Node>& node : graph.nodes) for_each_input(*node, use);
    for (const Value& result : graph.results) use(result);
  }

  Values decide(Node& node) {
    if (node.name != "scale_shift") return {};
    Node* linear = node_of(node.args[0]);
    const auto uses = uses_.find(linear);
    if (!linear || !linear->op || linear->op->int8.empty() || linear->op->is_elementwise() || uses == uses_.end() ||
        uses->second != 1)
      return {};
    const Tensor weight = constant(linear->args[1]), bias = constant(linear->args[2]);
    const int axis = channel_axis(*linear);
    if (!weight || (!bias && !linear->args[2].is_none()) || axis < 0 || linear->types[0] != node.types[0]) return {};
    const auto scale = along(node, 1, axis), shift = along(node, 2, axis);
    if (!scale || !shift) return {};
    const std::vector<float> old_weight = elements_of(weight),
                             old_bias = bias ? elements_of(bias) : std::vector<float>();
    const Tensor new_weight = Tensor::empty(weight.shape(), DType::Float32);
    const Tensor new_bias = Tensor::empty({weight.dim(0)}, DType::Float32);
    const size_t channels = scale->size(), each = channels ? old_weight.size() / channels : 0;
    for (size_t i = 0; i < old_weight.size(); ++i) new_weight.as<float>()[i] = old_weight[i] * (*scale)[i / each];
    for (size_t c = 0; c < channels; ++c)
      new_bias.as<float>()[c] = (bias ? old_bias[c] : 0.0F) * (*scale)[c] + (*shift)[c];
    Args args = linear->args;
    args[1] = builder_.capture(new_weight);
    args[2] = builder_.capture(new_bias);
    builder_.set_place(linear->place);
    return builder_.emit(*linear->op, {args.data(), args.size()});
  }

 private:
  Tensor constant(const Value& value) const {
    const Node* node = node_of(value);
    const bool known = node && node->captured && dtype_of_value(value) == DType::Float32 && !sharing_.is_written(node);
    return known ? node->captured : Tensor();
  }

  // The axis of the result that runs with the first one of the weight.
  static int channel_axis(const Node& linear) {
    const AxisMap map =
        axis_map(*linear.op, {linear.args.data(), linear.args.size()}, {linear.types.data(), linear.types.size()});
    for (size_t axis = 0; axis < map.outputs[0].size(); ++axis)
      if (map.outputs[0][axis] == map.inputs[1][0]) return static_cast<int>(axis);
    return -1;
  }

  // The elements of a constant that broadcasts from axis `axis` alone, one for each of its positions.
  std::optional<std::vector<float>> along(const Node& node, size_t arg, int axis) const {
    const Tensor tensor = constant(node.args[arg]);
    if (!tensor) return {};
    const Shape &shape = tensor.shape(), &whole = node.types[0].shape;
    const size_t missing = whole.size() - shape.size();
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] != 1 && i + missing != static_cast<size_t>(axis)) return {};
    std::vector<float> out = elements_of(tensor);
    if (out.size() == 1) out.resize(static_cast<size_t>(int64_t{whole[static_cast<size_t>(axis)]}), out[0]);
    return out;
  }

  GraphBuilder builder_;
  const Sharing sharing_;
  std::unordered_map<const Node*, int64_t> uses_;
};

}  // namespace

std::vector<float> elements_of(const Tensor& tensor) {
  std::vector<float> out(static_cast<size_t>(tensor.size()));
  const Shape& shape = tensor.shape();
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), place = 0;
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      place += rest % shape[axis] * tensor.strides()[axis];
    out[i] = tensor.as<float>()[place];
  }
  return out;
}

void freeze(Graph& graph, Evaluator evaluate) {
  simplify(graph, evaluate);
  fold_constants(graph, evaluate, true);
  simplify(graph, evaluate);
  Absorber absorber(graph);
  if (rewrite(graph, [&](Node& node) { return absorber.decide(node); })) simplify(graph, evaluate);
  verify(graph);
}

}  // namespace morel
