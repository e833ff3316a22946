// Import rules: arithmetic, reductions, normalisation, losses.
#include "morel/io/onnx/import_rules.h"

namespace morel::onnx {
namespace {

Sym like(const NodeCall& c, const Sym& value, const Sym& x) { return c.b("cast", value, x.dtype()); }
Ints axes_from(int64_t first, int64_t rank) {
  Ints out;
  for (int64_t axis = first < 0 ? first + rank : first; axis < rank; ++axis) out.push_back(axis);
  return out;
}

// -- several operands --

Result sum(const NodeCall& c) {
  Sym out = c[0];
  for (size_t i = 1; i < c.size(); ++i) out = out + c[i];
  return results_of(out);
}
Result mean(const NodeCall& c) { return results_of(Sym(c.b, (*sum(c))[0].value) / static_cast<double>(c.size())); }

template <size_t count>
Result nothing_to_do(const NodeCall& c) {
  for (size_t i = count; i < c.size(); ++i)
    if (c.has(i)) return {};
  return Items{c.item(0)};
}

// -- functions with parameters that ours do not have --

// Without bounds.
Result clip(const NodeCall& c) {
  return c.node().find("min") || c.node().find("max") ? std::nullopt : nothing_to_do<1>(c);
}
Result hard_sigmoid(const NodeCall& c) {
  return results_of(c.b("hardtanh", c[0] * c.real("alpha", 0.2) + c.real("beta", 0.5), 0.0, 1.0));
}
Result selu(const NodeCall& c) {
  const double alpha = c.real("alpha", 1.67326319217681884765625), gamma = c.real("gamma", 1.05070102214813232421875);
  return results_of(c.b("exponential_unit", c[0], gamma, gamma * alpha, 1.0));
}
Result shrink(const NodeCall& c) {
  const double lambda = c.real("lambd", 0.5), bias = c.real("bias", 0.0);
  const Sym x = c[0], zero = c.b("zeros_like", x);
  const Sym low = c.b("where", c.b("less", x, -lambda), like(c, x + bias, x), zero);
  return results_of(c.b("where", c.b("greater", x, lambda), like(c, x - bias, x), low));
}
Result thresholded_relu(const NodeCall& c) {
  return results_of(c.b("where", c.b("greater", c[0], c.real("alpha", 1.0)), c[0], c.b("zeros_like", c[0])));
}
// 1 at the first of the largest elements.
Result hardmax(const NodeCall& c) {
  const Sym x = c[0];
  const int64_t axis = c.attribute("axis", -1);
  Ints line(static_cast<size_t>(x.rank()), 1);
  const size_t at = static_cast<size_t>(axis_of(axis, x.rank()));
  line[at] = x.shape()[at];
  return results_of(like(c, c.b("equal", places(c.b, line[at], line), c.b("argmax", x, axis, true)), x));
}
// Before opset 13: over all axes from `axis` on, as one.
template <bool is_log>
Result flat_softmax(const NodeCall& c) {
  const Sym x = c[0];
  const int64_t rank = x.rank(), given = c.attribute("axis", 1), axis = given < 0 ? given + rank : given;
  Dim rows = 1, columns = 1;
  for (int64_t i = 0; i < rank; ++i) (i < axis ? rows : columns) *= x.dim(i);
  const Sym flat = c.b("reshape", x, Ints{rows, columns});
  return results_of(c.b("reshape", is_log ? c.b("log_softmax", flat, -1) : c.b("softmax", flat, -1), Ints(x.shape())));
}

Sym swish_of(const NodeCall& c) {
  const double alpha = c.real("alpha", 1.0);
  return alpha == 1 ? c.b("silu", c[0]) : c[0] * c.b("sigmoid", c[0] * alpha);
}
Result swish(const NodeCall& c) { return results_of(swish_of(c)); }
Result swiglu(const NodeCall& c) { return results_of(swish_of(c) * c[1]); }

Result gemm(const NodeCall& c) {
  const auto operand = [&](size_t idx, const char* flag) {
    return c.attribute(flag, 0) ? c.b("transpose", c[idx], Ints{1, 0}) : c[idx];
  };
  const double alpha = c.real("alpha", 1.0), beta = c.real("beta", 1.0);
  if (alpha == 1 && beta == 1 && c.attribute("transB", 0) && !c.attribute("transA", 0) && c.has(2) && c[2].rank() == 1)
    return {};  // a dense layer
  Sym out = c.b("matmul", operand(0, "transA"), operand(1, "transB"));
  if (alpha != 1) out = like(c, out * alpha, c[0]);
  if (!c.has(2)) return results_of(out);
  return results_of(out + (beta == 1 ? c[2] : like(c, c[2] * beta, c[0])));
}

Result is_inf(const NodeCall& c) {
  const bool negative = c.attribute("detect_negative", 1), positive = c.attribute("detect_positive", 1);
  const Sym any = c.b("isinf", c[0]);
  if (negative && positive) return {};
  if (!negative && !positive) return results_of(c.b("logical_and", any, false));
  return results_of(c.b("logical_and", any, positive ? c.b("greater", c[0], 0.0) : c.b("less", c[0], 0.0)));
}

// From the end, or without the element itself.
template <bool is_product>
Result cumulative(const NodeCall& c) {
  const bool exclusive = c.attribute("exclusive", 0), reverse = c.attribute("reverse", 0);
  if (!is_product && !exclusive && !reverse) return {};
  Builder& b = c.b;
  Sym x = c[0];
  const int64_t axis = axis_of(c.integer(1), x.rank());
  if (reverse) x = b("flip", x, Ints{axis});
  if (exclusive) {
    Ints shape(x.shape());
    shape[static_cast<size_t>(axis)] = 1;
    const Sym first = b("full", shape, is_product ? 1 : 0, x.dtype());
    x = b("concat", Syms{first, b("narrow", x, axis, 0, x.dim(axis) - 1)}, axis);
  }
  const Sym out = like(c, is_product ? b("cumprod", x, axis) : b("cumsum", x, axis), x);
  return results_of(reverse ? b("flip", out, Ints{axis}) : out);
}

// -- reductions --

Sym whole(const NodeCall&, const Sym& x) { return x; }
struct Reduction {
  std::string_view name;
  int64_t since;  // axes are an input
  Sym (*before)(const NodeCall& c, const Sym& x);
  Sym (*after)(const NodeCall& c, const Sym& x);
};
const Reduction reductions[] = {
    {"ReduceL1", 18, [](const NodeCall& c, const Sym& x) { return c.b("abs", x); }, whole},
    {"ReduceL2", 18, [](const NodeCall&, const Sym& x) { return x * x; },
     [](const NodeCall& c, const Sym& x) { return like(c, c.b("sqrt", x), c[0]); }},
    {"ReduceSumSquare", 18, [](const NodeCall&, const Sym& x) { return x * x; }, whole},
    {"ReduceLogSum", 18, whole, [](const NodeCall& c, const Sym& x) { return like(c, c.b("log", x), c[0]); }}};

// Without elements the largest is the least number of the type, the smallest the greatest; NoResult for others.
Result extreme_of_nothing(const NodeCall& c, const Ints& axes, bool keep) {
  const std::string& type = c.node().type;
  const bool is_low = type == "ReduceMax" || type == "ReduceLogSumExp";
  if (!is_low && type != "ReduceMin") return {};
  const Sym x = c[0];
  Ints shape(x.shape());
  bool is_empty = false;
  for (const Dim axis : axes) {
    Dim& size = shape[static_cast<size_t>(axis_of(axis, x.rank()))];
    is_empty |= size.identical(0);
    size = 1;
  }
  if (!is_empty) return {};
  const auto limit = visit_dtype(x.dtype(), [&](auto tag) -> Value {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(is_low ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
    else return is_low ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  });
  const Sym out = c.b("full", shape, limit, x.dtype());
  return results_of(keep ? out : c.b("squeeze", out, axes));
}

// No axes: all, or none where the node says so.
Result reduce(const NodeCall& c) {
  const Reduction* found = nullptr;
  for (const Reduction& entry : reductions)
    if (entry.name == c.node().type) found = &entry;
  const std::optional<Ints> axes = c.list_or_input("axes", 1,
                                                   found                          ? found->since
                                                   : c.node().type == "ReduceSum" ? 13
                                                                                  : 18);
  const bool is_none = !axes || axes->empty(), keep = c.attribute("keepdims", 1);
  const bool is_noop = is_none && c.attribute("noop_with_empty_axes", 0);
  if (!found) {
    if (is_noop) return Items{c.item(0)};
    if (c[0].dtype() == DType::Bool) {
      const Value over = is_none ? Value() : Value(*axes);
      return results_of(c.node().type == "ReduceMax" ? c.b("any", c[0], over, keep) : c.b("all", c[0], over, keep));
    }
    if (const Result nothing = extreme_of_nothing(c, is_none ? axes_from(0, c[0].rank()) : *axes, keep)) return nothing;
    if (!is_none || c.node().type != "ReduceLogSumExp") return {};
    return results_of(like(c, c.b("logsumexp", c[0], axes_from(0, c[0].rank()), keep), c[0]));
  }
  const Sym x = found->before(c, c[0]);
  const Sym total = is_noop ? x : like(c, c.b("sum", x, is_none ? Value() : Value(*axes), keep), c[0]);
  return results_of(found->after(c, total));
}

template <bool largest>
Result arg_extremum(const NodeCall& c) {
  if (!c.attribute("select_last_index", 0)) return {};
  const Sym x = c[0];
  const int64_t axis = axis_of(c.attribute("axis", 0), x.rank());
  const bool keep = c.attribute("keepdims", 1);
  const Sym turned = c.b("flip", x, Ints{axis});
  return results_of((x.dim(axis) - 1) -
                    (largest ? c.b("argmax", turned, axis, keep) : c.b("argmin", turned, axis, keep)));
}

// -- normalisation --

struct Normal {
  Sym out, mean, rstd;
};
Normal normalised(const NodeCall& c, const Sym& x, const Ints& axes, double eps) {
  const Sym mean = c.b("mean", x, axes, true), centred = x - mean;
  const Sym rstd = c.b("rsqrt", c.b("mean", centred * centred, axes, true) + eps);
  return {centred * rstd, mean, rstd};
}
Sym along_channels(const NodeCall& c, const Sym& value, int64_t rank) {
  Ints shape(static_cast<size_t>(rank), 1);
  shape[1] = value.dim(0);
  return c.b("reshape", value, shape);
}

Result layer_norm(const NodeCall& c) {
  if (!c.has_output(1) && !c.has_output(2)) return {};
  const Sym x = c.b("cast", c[0], DType::Float32);
  const Normal n = normalised(c, x, axes_from(c.attribute("axis", -1), x.rank()), c.real("epsilon", 1e-5));
  Sym out = like(c, n.out, c[0]) * c[1];
  if (c.has(2)) out = out + c[2];
  return Items{item_of(out.value()), item_of(n.mean.value()), item_of(n.rstd.value())};
}

Result rms_norm(const NodeCall& c) {
  const Sym x = c.b("cast", c[0], DType::Float32);
  const Sym scale =
      c.b("rsqrt", c.b("mean", x * x, axes_from(c.attribute("axis", -1), x.rank()), true) + c.real("epsilon", 1e-5));
  return results_of(like(c, x * scale, c[0]) * c[1]);
}

Result batch_norm(const NodeCall& c) {
  if (!c.attribute("training_mode", 0)) return {};
  const Sym x = c[0];
  Ints axes{0};
  for (int64_t axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  const double momentum = c.real("momentum", 0.9);
  const Normal n = normalised(c, x, axes, c.real("epsilon", 1e-5));
  const Sym mean = c.b("mean", x, axes), centred = x - n.mean, variance = c.b("mean", centred * centred, axes);
  const Sym out = n.out * along_channels(c, c[1], x.rank()) + along_channels(c, c[2], x.rank());
  const auto moved = [&](size_t idx, const Sym& now) {
    return item_of((c[idx] * momentum + now * (1 - momentum)).value());
  };
  return Items{item_of(out.value()), moved(3, mean), moved(4, variance)};
}

// Before opset 21 scale and bias are those of groups.
Result group_norm(const NodeCall& c) {
  const int64_t groups = c.attribute("num_groups", 1);
  const Dim each = c[0].dim(1) / groups;
  const auto wide = [&](size_t idx) {
    return c.b("reshape", c.b("broadcast_to", c.b("reshape", c[idx], Ints{groups, 1}), Ints{groups, each}),
               Ints{groups * each});
  };
  return results_of(c.b("group_norm", c[0], groups, wide(1), wide(2), c.real("epsilon", 1e-5)));
}

Result lp_normalization(const NodeCall& c) {
  const Sym x = c[0];
  const int64_t axis = c.attribute("axis", -1);
  const Sym size =
      c.attribute("p", 2) == 1 ? c.b("sum", c.b("abs", x), axis, true) : c.b("sqrt", c.b("sum", x * x, axis, true));
  return results_of(c.b("where", c.b("equal", size, 0.0), c.b("zeros_like", x), x / size));
}

Result mean_variance(const NodeCall& c) {
  const Ints axes = c.list("axes", {0, 2, 3});
  const Sym x = c[0], mean = c.b("mean", x, axes, true), centred = x - mean;
  return results_of(centred / (c.b("sqrt", c.b("mean", centred * centred, axes, true)) + 1e-9));
}

// x / (bias + alpha / size * sum of squares of neighbouring channels)^beta
Result lrn(const NodeCall& c) {
  const Sym x = c[0];
  const int64_t size = c.attribute("size", 1), rank = x.rank();
  Ints before(static_cast<size_t>(rank), 0), after = before;
  before[1] = (size - 1) / 2;
  after[1] = size / 2;
  const Sym squares = c.b("pad_axes", x * x, before, after);
  Sym total;
  for (int64_t i = 0; i < size; ++i) {
    const Sym part = c.b("narrow", squares, 1, i, x.dim(1));
    total = total ? total + part : part;
  }
  return results_of(x / c.b("pow", total * (c.real("alpha", 1e-4) / static_cast<double>(size)) + c.real("bias", 1.0),
                            c.real("beta", 0.75)));
}

// -- losses --

// With the logarithms of the probabilities as a second result.
Result cross_entropy(const NodeCall& c) {
  if (!c.has_output(1)) return {};
  const Sym probabilities = c.b("log_softmax", c[0], 1), target = c.b("cast", c[1], DType::Int64);
  const Sym loss =
      c.b("nll_loss", probabilities, target, c[2], c.attribute("ignore_index", -100), c.text("reduction", "mean"));
  return Items{item_of(loss.value()), item_of(probabilities.value())};
}

const ImportEntry entries[] = {{"Sum", sum, every_input},
                               {"Mean", mean, every_input},
                               {"Max", nothing_to_do<1>, every_input},
                               {"Min", nothing_to_do<1>, every_input},
                               {"Clip", clip},
                               {"Selu", selu},
                               {"HardSigmoid", hard_sigmoid},
                               {"Shrink", shrink},
                               {"ThresholdedRelu", thresholded_relu},
                               {"Hardmax", hardmax},
                               {"Softmax", flat_softmax<false>, 1, 13},
                               {"LogSoftmax", flat_softmax<true>, 1, 13},
                               {"Swish", swish},
                               {"SwiGLU", swiglu, 2},
                               {"Gemm", gemm, 2},
                               {"IsInf", is_inf},
                               {"CumSum", cumulative<false>, 2},
                               {"CumProd", cumulative<true>, 2},
                               {"ReduceL1", reduce},
                               {"ReduceL2", reduce},
                               {"ReduceSumSquare", reduce},
                               {"ReduceLogSum", reduce},
                               {"ReduceLogSumExp", reduce},
                               {"ReduceSum", reduce},
                               {"ReduceMean", reduce},
                               {"ReduceMax", reduce},
                               {"ReduceMin", reduce},
                               {"ReduceProd", reduce},
                               {"ArgMax", arg_extremum<true>},
                               {"ArgMin", arg_extremum<false>},
                               {"LayerNormalization", layer_norm, 2},
                               {"RMSNormalization", rms_norm, 2},
                               {"BatchNormalization", batch_norm, 5},
                               {"GroupNormalization", group_norm, 3, 21},
                               {"LpNormalization", lp_normalization},
                               {"MeanVarianceNormalization", mean_variance},
                               {"LRN", lrn},
                               {"SoftmaxCrossEntropyLoss", cross_entropy, 2}};

}  // namespace

std::span<const ImportEntry> math_rules() { return entries; }

}  // namespace morel::onnx
