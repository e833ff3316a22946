#include "morel/transform/quantise.h"

#include <algorithm>
#include <cmath>

#include "morel/ops/call.h"
#include "morel/transform/freeze.h"

namespace morel {
namespace {

using Key = std::pair<const Node*, uint32_t>;
Key key_of(const Value& value) { return {node_of(value), value.output()}; }

// An elementwise operator that `int8` has, beside those with a weight.
bool is_sum(const Node& node) { return node.op->is_elementwise(); }

bool is_float32(const Value& value) { return dtype_of_value(value) == DType::Float32; }

// What may become int8, and which values must then have one type. Indices are places in values().
class Candidates {
 public:
  Candidates(Graph& graph, const QuantiseOptions& options) : options_(options), sharing_(graph) {
    for (const Ref<Node>& node : graph.nodes)
      for_each_input(*node, [&](const Value& input) { ++uses_[key_of(input)]; });
    for (const Value& result : graph.results) ++uses_[key_of(result)];
    for (const Ref<Node>& node : graph.nodes) visit(*node);
  }

  const Values& values() const { return values_; }
  bool computes(const Node& node) const { return computing_.contains(&node); }
  bool selects(const Node& node) const { return selecting_.contains(&node); }
  // Limiters: elementwise nodes that alone read what a computing node makes.
  const std::vector<const Node*>& limiters() const { return limiters_; }
  int64_t find(const Value& value) const {  // negative: stays float32
    const auto found = places_.find(key_of(value));
    return found == places_.end() ? -1 : found->second;
  }
  // The place that stands for all that have the type of place `idx`.
  size_t root(size_t idx) const {
    while (parents_[idx] != idx) idx = parents_[idx];
    return idx;
  }
  void join(size_t a, size_t b) { parents_[root(a)] = root(b); }

 private:
  void visit(const Node& node) {
    if (can_compute(node)) {
      computing_.insert(&node);
      note(node.args[0]);
      if (is_sum(node)) note(node.args[1]);
      makes_int8_.insert(key_of(const_cast<Node&>(node).output()));
      note(const_cast<Node&>(node).output());
    } else if (can_select(node)) {
      selecting_.insert(&node);
      visit_selecting(const_cast<Node&>(node));
    } else if (can_limit(node)) {
      limiters_.push_back(&node);
      note(const_cast<Node&>(node).output());
      makes_int8_.insert(key_of(const_cast<Node&>(node).output()));
    }
  }

  void visit_selecting(Node& node) {
    const uint32_t count = node.op->views ? static_cast<uint32_t>(node.types.size()) : 1;
    for (uint32_t i = 0; i < count; ++i) {
      const size_t place = note(node.output(i));
      makes_int8_.insert(key_of(node.output(i)));
      for_each_input(node.args[0], [&](const Value& input) { join(note(input), place); });
    }
  }

  size_t note(const Value& value) {
    const auto [found, fresh] = places_.emplace(key_of(value), static_cast<int64_t>(values_.size()));
    if (fresh) {
      parents_.push_back(values_.size());
      values_.push_back(value);
    }
    return static_cast<size_t>(found->second);
  }

  bool skips(const Node& node) const { return options_.skip.contains(node.name) || options_.skip.contains(node.place); }

  // A weight or a bias: a float32 tensor that stays what it is.
  bool is_constant(const Value& value) const {
    const Node* node = node_of(value);
    return node && node->captured && is_float32(value) && !sharing_.is_written(node);
  }
  bool can_compute(const Node& node) const {
    if (node.op->int8.empty() || skips(node) || !is_float32(node.args[0])) return false;
    if (is_sum(node)) return can_add(node);
    if (!is_constant(node.args[1])) return false;
    return node.args[2].is_none() || is_constant(node.args[2]);
  }
  // Of activations of one shape. Where neither is int8, that would only lose digits.
  bool can_add(const Node& node) const {
    bool any = false;
    for (const Value& value : node.args) {
      if (!node_of(value) || type_of(value) != node.types[0] || is_constant(value)) return false;
      if (sharing_.is_written(node_of(value))) return false;
      any |= makes_int8_.contains(key_of(value));
    }
    return any;
  }
  // One whose results have elements of tensors that are int8 all.
  bool can_select(const Node& node) const {
    const OpDef& op = *node.op;
    const bool extreme = op.reduce && (*op.reduce == loops::ReduceOp::Max || *op.reduce == loops::ReduceOp::Min);
    if (!(op.has(kSelects) || op.view || op.views || extreme) || skips(node) || has_effect(op)) return false;
    if (node.types.empty() || node.types[0].dtype != DType::Float32) return false;
    bool all = true, any = false;
    for_each_input(node.args[0], [&](const Value& input) {
      any = true;
      all = all && is_float32(input) && makes_int8_.contains(key_of(input)) && !sharing_.is_written(node_of(input));
    });
    return all && any;
  }
  bool can_limit(const Node& node) const {
    if (!node.op->is_elementwise() || node.types[0].dtype != DType::Float32 || skips(node)) return false;
    const Node* input = node_of(node.args[0]);
    if (!input || !computing_.contains(input) || uses_.at(key_of(node.args[0])) != 1) return false;
    for (size_t i = 1; i < node.args.size(); ++i)
      if (!node.args[i].is_number()) return false;
    return node.types[0].shape == shape_of(node.args[0]);
  }

  const QuantiseOptions& options_;
  const Sharing sharing_;
  std::map<Key, int64_t> uses_;
  std::unordered_set<const Node*> computing_, selecting_;
  std::set<Key> makes_int8_;
  std::vector<const Node*> limiters_;
  Values values_;
  std::map<Key, int64_t> places_;
  std::vector<size_t> parents_;
};

class Quantiser {
 public:
  Quantiser(Graph& graph, std::span<const Range> ranges, const QuantiseOptions& options, Evaluator evaluate)
      : graph_(graph),
        options_(options),
        evaluate_(evaluate),
        candidates_(graph, options),
        builder_(Ref<Graph>(&graph)) {
    MOREL_ASSERT(ranges.size() == candidates_.values().size());
    ranges_.assign(ranges.begin(), ranges.end());
    drop_limiters();
    settle_types();
  }

  QuantiseReport run() {
    std::vector<Ref<Node>> nodes;
    nodes.swap(graph_.nodes);
    for (const Ref<Node>& parameter : graph_.parameters) report_.inputs.push_back(input_type(*parameter));
    for (const Ref<Node>& node : nodes) {
      builder_.set_place(node->place);
      rewrite_node(node);
    }
    for (Value& result : graph_.results) {
      const auto found = int8_.find(key_of(result));
      const bool is_int8 = options_.int8_outputs && found != int8_.end();
      report_.outputs.push_back(is_int8 ? std::optional(type_of_value(result)) : std::nullopt);
      result = is_int8 ? found->second : as_float(result);
    }
    return std::move(report_);
  }

 private:
  Range& range_of(const Value& value) { return ranges_[static_cast<size_t>(candidates_.find(value))]; }
  Int8Type type_of_value(const Value& value) const {
    return types_[candidates_.root(static_cast<size_t>(candidates_.find(value)))];
  }

  // The ranges of all values that have one type, joined.
  void settle_types() {
    std::vector<Range> joined(ranges_.size());
    for (size_t i = 0; i < ranges_.size(); ++i) {
      Range& all = joined[candidates_.root(i)];
      all = {std::min(all.low, ranges_[i].low), std::max(all.high, ranges_[i].high)};
    }
    types_.clear();
    for (const Range& range : joined) types_.push_back(int8_type_of(range));
  }

  // A limiter changes nothing where int8 numbers of its result's type saturate as it does.
  void drop_limiters() {
    settle_types();
    for (const Node* node : candidates_.limiters()) {
      const Value out = const_cast<Node*>(node)->output();
      if (!only_limits(*node, range_of(node->args[0]), type_of_value(out))) continue;
      limits_.insert(node);
      range_of(node->args[0]) = range_of(out);
      candidates_.join(static_cast<size_t>(candidates_.find(node->args[0])),
                       static_cast<size_t>(candidates_.find(out)));
    }
  }
  bool only_limits(const Node& node, Range range, Int8Type type) const {
    constexpr int64_t points = 2048;
    const Tensor x = Tensor::empty({points}, DType::Float32);
    for (int64_t i = 0; i < points; ++i)
      x.as<float>()[i] = static_cast<float>(range.low + (range.high - range.low) * i / (points - 1));
    Args args = node.args;
    args[0] = x;
    const Tensor y = evaluate_(*node.op, {args.data(), args.size()})[0].tensor();
    for (int64_t i = 0; i < points; ++i)
      if (quantised(x.as<float>()[i], type) != quantised(y.as<float>()[i], type)) return false;
    return true;
  }

  // A parameter that only becomes int8 may come as such.
  std::optional<Int8Type> input_type(Node& parameter) {
    const Value value = parameter.output();
    if (!options_.int8_inputs || candidates_.find(value) < 0) return {};
    parameter.types[0].dtype = DType::Int8;
    int8_.emplace(key_of(value), value);
    return type_of_value(value);
  }

  void rewrite_node(const Ref<Node>& node) {
    if (candidates_.computes(*node)) {
      ++report_.num_int8;
      int8_.emplace(Key(node.get(), 0), is_sum(*node) ? sum(*node) : compute(*node));
    } else if (limits_.contains(node.get())) {
      int8_.emplace(Key(node.get(), 0), as_int8(node->args[0]));
    } else if (candidates_.selects(*node)) {
      Args args = node->args;
      args[0] = map_inputs(args[0], [&](const Value& value) { return as_int8(value); });
      const Values outs = builder_.emit(*node->op, {args.data(), args.size()});
      for (uint32_t i = 0; i < outs.size(); ++i)
        (dtype_of_value(outs[i]) == DType::Int8 ? int8_ : float_).emplace(Key(node.get(), i), outs[i]);
    } else {
      for (Value& arg : node->args) arg = map_inputs(arg, [&](const Value& value) { return as_float(value); });
      graph_.nodes.push_back(node);
      if (node->op->kernel || node->op->is_elementwise() || node->op->rows || node->op->reduce)
        ++report_.in_float[std::string(node->name)];
    }
  }

  Value as_int8(const Value& value) {
    const auto found = int8_.find(key_of(value));
    if (found != int8_.end()) return found->second;
    const Int8Type type = type_of_value(value);
    const Value args[] = {as_float(value), static_cast<double>(type.scale), int64_t{type.zero_point}};
    return int8_[key_of(value)] = builder_.emit(find_op("quantize_linear"), args)[0];
  }
  Value as_float(const Value& value) {
    if (const auto found = float_.find(key_of(value)); found != float_.end()) return found->second;
    const auto found = int8_.find(key_of(value));
    if (found == int8_.end() || is_made_float(value)) return value;
    const Int8Type type = type_of_value(value);
    const Value args[] = {found->second, static_cast<double>(type.scale), int64_t{type.zero_point}};
    return float_[key_of(value)] = builder_.emit(find_op("dequantize_linear"), args)[0];
  }
  // Whether a value is there as float32, besides being quantised for some readers.
  bool is_made_float(const Value& value) const {
    const Node& node = *node_of(value);
    if (!node.op) return node.types[0].dtype == DType::Float32;
    return !candidates_.computes(node) && !candidates_.selects(node) && !limits_.contains(&node);
  }

  const OpDef& int8_of(const Node& node) const {
    const OpDef* op = registry().find(node.op->int8);
    MOREL_CHECK(op, Internal, "operator ", node.op->name, " names ", node.op->int8, ", which does not exist");
    return *op;
  }

  Value sum(const Node& node) {
    const Int8Type x = type_of_value(node.args[0]), y = type_of_value(node.args[1]),
                   out = type_of_value(const_cast<Node&>(node).output());
    constexpr double unit = 1 << 20;
    const double larger = std::max(x.scale, y.scale);
    const FixedPoint fixed = fixed_point_of(larger / unit / out.scale);
    const auto factor = [&](Int8Type type) { return Value(int64_t{std::llround(type.scale / larger * unit)}); };
    const Value args[] = {as_int8(node.args[0]),
                          as_int8(node.args[1]),
                          factor(x),
                          factor(y),
                          int64_t{x.zero_point},
                          int64_t{y.zero_point},
                          int64_t{fixed.multiplier},
                          int64_t{fixed.shift},
                          int64_t{out.zero_point}};
    return builder_.emit(int8_of(node), args)[0];
  }

  Value compute(const Node& node) {
    const Int8Type in = type_of_value(node.args[0]), out = type_of_value(const_cast<Node&>(node).output());
    const Tensor weight = node_of(node.args[1])->captured;
    const int64_t channels = weight.dim(0);
    const std::vector<float> w = elements_of(weight);
    const std::vector<double> scales = weight_scales(w, channels);
    const Tensor w8 = Tensor::empty(weight.shape(), DType::Int8), multiplier = Tensor::empty({channels}, DType::Int32),
                 shift = Tensor::empty({channels}, DType::Int32);
    const size_t each = channels ? w.size() / static_cast<size_t>(channels) : 0;
    for (size_t i = 0; i < w.size(); ++i)
      w8.as<int8_t>()[i] = static_cast<int8_t>(std::clamp(std::round(w[i] / scales[i / each]), -127.0, 127.0));
    for (int64_t c = 0; c < channels; ++c) {
      const FixedPoint fixed = fixed_point_of(static_cast<double>(in.scale) * scales[c] / out.scale);
      multiplier.as<int32_t>()[c] = fixed.multiplier;
      shift.as<int32_t>()[c] = fixed.shift;
    }
    Args args = node.args;
    args[0] = as_int8(node.args[0]);
    args[1] = w8;
    if (!args[2].is_none()) args[2] = quantised_bias(node_of(args[2])->captured, in, scales);
    for (const Value& value : {Value(multiplier), Value(shift), Value(in.zero_point), Value(out.zero_point)})
      args.push_back(value);
    return builder_.emit(int8_of(node), {args.data(), args.size()})[0];
  }

  // Symmetric: 127 stands for the largest magnitude of a channel, or of all.
  std::vector<double> weight_scales(const std::vector<float>& w, int64_t channels) const {
    std::vector<double> largest(static_cast<size_t>(channels));
    const size_t each = channels ? w.size() / static_cast<size_t>(channels) : 0;
    for (size_t i = 0; i < w.size(); ++i) largest[i / each] = std::max(largest[i / each], std::abs(double{w[i]}));
    if (!options_.per_channel && channels)
      largest.assign(largest.size(), *std::max_element(largest.begin(), largest.end()));
    for (double& scale : largest) scale = scale > 0 ? scale / 127 : 1.0 / 127;
    return largest;
  }
  static Tensor quantised_bias(const Tensor& bias, Int8Type in, const std::vector<double>& scales) {
    const Tensor out = Tensor::empty(bias.shape(), DType::Int32);
    const std::vector<float> values = elements_of(bias);
    constexpr double limit = 1 << 30;  // leaves room for the sum of products
    for (size_t i = 0; i < values.size(); ++i)
      out.as<int32_t>()[i] =
          static_cast<int32_t>(std::clamp(std::round(values[i] / (in.scale * scales[i])), -limit, limit));
    return out;
  }

  Graph& graph_;
  const QuantiseOptions& options_;
  const Evaluator evaluate_;
  Candidates candidates_;
  GraphBuilder builder_;
  std::vector<Range> ranges_;
  std::vector<Int8Type> types_;
  std::unordered_set<const Node*> limits_;
  std::map<Key, Value> int8_, float_;  // what stands for values of the graph as it was
  QuantiseReport report_;
};

}  // namespace

Int8Type int8_type_of(Range range) {
  const double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
  if (!(high - low > 0) || !std::isfinite(high - low)) return {};
  const float scale = std::max(static_cast<float>((high - low) / 255), 1e-30f);
  return {scale, static_cast<int32_t>(std::clamp(std::nearbyint(-128 - low / scale), -128.0, 127.0))};
}

int8_t quantised(double x, Int8Type type) {
  return static_cast<int8_t>(std::clamp(std::nearbyint(x / type.scale) + type.zero_point, -128.0, 127.0));
}

FixedPoint fixed_point_of(double number) {
  int exponent = 0;
  int64_t multiplier = std::llround(std::frexp(number, &exponent) * 0x1p31);
  if (multiplier == int64_t{1} << 31) {
    multiplier /= 2;
    ++exponent;
  }
  if (exponent < -31) return {0, 0};
  MOREL_CHECK(exponent <= 30, Value, "a result's scale is too small for its operands': they differ by a factor of ",
              number);
  return {static_cast<int32_t>(multiplier), exponent};
}

Values values_to_observe(Graph& graph, const QuantiseOptions& options) {
  std::set<std::string, std::less<>> names, unknown = options.skip;
  for (const Ref<Node>& node : graph.nodes) {
    names.emplace(node->name);
    unknown.erase(std::string(node->name));
    unknown.erase(node->place);
  }
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "'" : ", '") + name + "'";
  MOREL_CHECK(unknown.empty(), Value, "For 'quantise', 'skip_quant_node' names '", *unknown.begin(),
              "', but the network has no such operator, nor one of that line; it has ", known);
  return Candidates(graph, options).values();
}

QuantiseReport quantise(Graph& graph, std::span<const Range> ranges, const QuantiseOptions& options,
                        Evaluator evaluate) {
  QuantiseReport report = Quantiser(graph, ranges, options, evaluate).run();
  verify(graph);
  return report;
}

}  // namespace morel
