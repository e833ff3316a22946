// Normalisations.
#include <cmath>

#include "morel/ops/axes.h"
#include "morel/ops/registry.h"

namespace morel {
namespace {

using loops::Expr;
using loops::ProgramBuilder;

// ---- second gradients, shared by all normalisations ----

// The gradient of a normalisation, dx = rstd * (gw - mean(gw) - xh * mean(gw * xh)) with xh = (x - mean) * rstd and
// gw = dout * weight, dweight = sum(dout * xh), dbias = sum(dout), where means run over `axes` and all operands
// broadcast.
struct NormGrad {
  Sym dout, x, mean, rstd, weight;  // weight may be absent
  Sym v, v_weight, v_bias;          // cotangents of dx, dweight, dbias; any may be absent
  Ints axes;
};
struct NormSecond {
  Sym dout, x, mean, rstd, weight;
};

NormSecond differentiate(Builder& b, const NormGrad& in) {
  Dim count = 1;
  for (const int64_t axis : in.axes) count *= in.x.dim(axis);
  const Value over(in.axes);
  const auto total = [&](const Sym& value) { return b("sum", value, over, true); };
  const auto average = [&](const Sym& value) { return total(value) / count; };
  const Sym v = in.v ? in.v : b("zeros_like", in.x);
  const Sym centred = in.x - in.mean, xh = centred * in.rstd;
  const Sym gw = in.weight ? in.dout * in.weight : in.dout;
  const Sym a = average(gw), c = average(gw * xh), s = average(v * xh);
  const Sym t = in.rstd * (v - average(v) - xh * s);
  NormSecond out;
  out.dout = in.weight ? t * in.weight : t;
  if (in.v_weight) out.dout = out.dout + in.v_weight * xh;
  if (in.v_bias) out.dout = out.dout + in.v_bias;
  if (in.weight) out.weight = b("sum_to", t * in.dout, Ints(in.weight.shape()));
  Sym e = -(in.rstd * (c * v + s * gw));
  if (in.v_weight) e = e + in.v_weight * in.dout;
  out.x = e * in.rstd;
  out.mean = -total(out.x);
  out.rstd = total(e * centred + v * (gw - a - xh * c));
  return out;
}

// What the cotangents of the outputs mean and rstd add to that of the input.
Sym add_moments(const GradCall& g, Sym dx, const Sym& mean, const Sym& rstd, const Sym& dmean, const Sym& drstd,
                double count) {
  if (dmean) dx = dx + dmean / count;
  if (drstd) dx = dx - drstd * rstd * rstd * rstd * (g[0] - mean) / count;
  return dx;
}

Sym dout_or_none(const GradCall& g, size_t idx) { return g.has_dout(idx) ? g.dout(idx) : Sym(); }

// ---- layer_norm ----

Expr length_of(ProgramBuilder& rows, DType dtype) { return loops::cast(rows.row_length(), dtype); }

void layer_norm_forward(ProgramBuilder& rows, DType dtype) {
  const DType wide = compute_dtype(dtype);
  const Expr x = rows.input(dtype), weight = rows.input(wide), bias = rows.input(wide), eps = rows.param(wide);
  const int64_t out = rows.output(dtype), mean_out = rows.output(wide), rstd_out = rows.output(wide);
  const Expr n = length_of(rows, wide);
  const Expr mean = rows.sum(x) / n, centred = x - mean;
  const Expr rstd = 1.0 / loops::sqrt(rows.sum(centred * centred) / n + eps);
  rows.store(out, centred * rstd * weight + bias);
  rows.store_row(mean_out, mean);
  rows.store_row(rstd_out, rstd);
}

struct NormOperands {
  Expr dout, x, mean, rstd, weight;
};
NormOperands layer_norm_operands(ProgramBuilder& rows, DType dtype) {
  const DType wide = compute_dtype(dtype);
  NormOperands in;
  in.dout = rows.input(dtype);
  in.x = rows.input(dtype);
  in.mean = rows.row_input(wide);
  in.rstd = rows.row_input(wide);
  in.weight = rows.input(wide);
  return in;
}

void layer_norm_backward(ProgramBuilder& rows, DType dtype) {
  const NormOperands in = layer_norm_operands(rows, dtype);
  const int64_t out = rows.output(dtype);
  const Expr n = length_of(rows, compute_dtype(dtype));
  const Expr xh = (in.x - in.mean) * in.rstd, gw = in.dout * in.weight;
  const Expr a = rows.sum(gw) / n, c = rows.sum(gw * xh) / n;
  rows.store(out, in.rstd * (gw - a - xh * c));
}

void layer_norm_parameters(ProgramBuilder& rows, DType dtype) {
  const NormOperands in = layer_norm_operands(rows, dtype);
  const int64_t dweight = rows.output(compute_dtype(dtype)), dbias = rows.output(compute_dtype(dtype));
  rows.store_row(dweight, rows.sum(in.dout * ((in.x - in.mean) * in.rstd)));
  rows.store_row(dbias, rows.sum(in.dout));
}

Syms layer_norm_rows_grad(const GradCall& g) {
  Builder& b = g.builder();
  const Sym mean = g.out(1), rstd = g.out(2);
  const Dim n = g.rank(0) ? g.shape(0)[g.shape(0).size() - 1] : Dim(1);
  Syms out(3);
  if (g.needs(1) || g.needs(2)) {
    const Sym all = b("layer_norm_grad", g.dout(), g[0], mean, rstd, g[1]);
    out[0] = all.item(0);
    if (g.needs(1)) out[1] = all.item(1);
    if (g.needs(2)) out[2] = all.item(2);
  } else {
    out[0] = b("layer_norm_input_grad", g.dout(), g[0], mean, rstd, g[1]);
  }
  out[0] = add_moments(g, out[0], mean, rstd, dout_or_none(g, 1), dout_or_none(g, 2), n);
  return out;
}

// Arguments (dout, x, mean, rstd, weight) of the two gradient primitives.
Syms layer_norm_second(const GradCall& g, bool has_parameters) {
  NormGrad in{g[0], g[1], g[2], g[3], g[4], dout_or_none(g, 0), {}, {}, {g.rank(1) - 1}};
  if (has_parameters) in.v_weight = dout_or_none(g, 1), in.v_bias = dout_or_none(g, 2);
  if (g.value(4).is_number()) {
    in.dout = g[0] * g[4];
    in.weight = Sym();
    const NormSecond d = differentiate(g.builder(), in);
    return {d.dout * g[4], d.x, d.mean, d.rstd};
  }
  const NormSecond d = differentiate(g.builder(), in);
  return {d.dout, d.x, d.mean, d.rstd, d.weight};
}

// The trailing axes of `shape` that are normalised together, checked against normalized_shape and the parameters.
size_t normalized_axes(const Call& c, const Ints& normalized, std::initializer_list<std::string_view> parameters) {
  const Shape& shape = c.shape(0);
  const size_t count = normalized.size();
  bool fits = count > 0 && count <= shape.size();
  for (size_t i = 0; i < count && fits; ++i) fits = shape[shape.size() - count + i] == normalized[i];
  MOREL_CHECK(fits, Value, "For '", display_name(c.op()), "', 'normalized_shape' ",
              to_string(Shape(normalized.begin(), normalized.end())), " must be the last axes of the input ",
              to_string(c.value(0)));
  for (const std::string_view name : parameters)
    MOREL_CHECK(!c.has(name) || shape_of(c.value(name)) == normalized, Value, "For '", display_name(c.op()), "', '",
                name, "' must have the shape ", to_string(Shape(normalized.begin(), normalized.end())), ", but got ",
                to_string(c.value(name)));
  return count;
}

// x with its last `count` axes merged into one.
Sym merge_last(Builder& b, const Sym& x, size_t count) {
  if (count == 1) return x;
  Ints shape(x.shape().begin(), x.shape().end() - count);
  Dim n = 1;
  for (auto at = x.shape().end() - count; at != x.shape().end(); ++at) n *= *at;
  shape.push_back(n);
  return b("reshape", x, shape);
}

Sym flat_parameter(const Call& c, std::string_view name, double absent) {
  if (!c.has(name)) return Sym(c.builder(), absent);
  return c[name].rank() == 1 ? c[name] : c.builder()("reshape", c[name], Ints{-1});
}

Syms layer_norm(const Call& c) {
  Builder& b = c.builder();
  const Value& spec = c.value("normalized_shape");
  const Ints normalized = spec.is_integer() ? Ints{spec.dim()} : spec.ints();
  const size_t count = normalized_axes(c, normalized, {"weight", "bias"});
  const Sym out = b("layer_norm_rows", merge_last(b, c[0], count), flat_parameter(c, "weight", 1.0),
                    flat_parameter(c, "bias", 0.0), c["eps"])
                      .item(0);
  return {count == 1 ? out : b("reshape", out, Ints(c.shape(0)))};
}

// ---- rms_norm ----

void rms_norm_forward(ProgramBuilder& rows, DType dtype) {
  const DType wide = compute_dtype(dtype);
  const Expr x = rows.input(dtype), weight = rows.input(wide), eps = rows.param(wide);
  const int64_t out = rows.output(dtype), rstd_out = rows.output(wide);
  const Expr rstd = 1.0 / loops::sqrt(rows.sum(x * x) / length_of(rows, wide) + eps);
  rows.store(out, x * rstd * weight);
  rows.store_row(rstd_out, rstd);
}

NormOperands rms_norm_operands(ProgramBuilder& rows, DType dtype) {
  const DType wide = compute_dtype(dtype);
  NormOperands in;
  in.dout = rows.input(dtype);
  in.x = rows.input(dtype);
  in.rstd = rows.row_input(wide);
  in.weight = rows.input(wide);
  return in;
}

Syms rms_norm_rows_grad(const GradCall& g) {
  Builder& b = g.builder();
  const Sym all = b("rms_norm_grad", g.dout(), g[0], g.out(1), g[1]);
  const Dim n = g.rank(0) ? g.shape(0)[g.shape(0).size() - 1] : Dim(1);
  Sym dx = all.item(0);
  if (g.has_dout(1)) dx = dx - g.dout(1) * g.out(1) * g.out(1) * g.out(1) * g[0] / n;
  return {dx, all.item(1)};
}

// dx = rstd * (gw - xh * mean(gw * xh)), dweight = sum(dout * xh) with xh = x * rstd.
Syms rms_norm_second(const GradCall& g) {
  Builder& b = g.builder();
  const Sym dout = g[0], x = g[1], rstd = g[2], weight = g[3];
  const int64_t axis = g.rank(1) - 1;
  const auto total = [&](const Sym& value) { return b("sum", value, axis, true); };
  const Dim n = x.dim(axis);
  const Sym v = g.dout(0), v_weight = dout_or_none(g, 1);
  const Sym xh = x * rstd, gw = dout * weight, c = total(gw * xh) / n, s = total(v * xh) / n;
  const Sym t = rstd * (v - xh * s);
  Sym ddout = t * weight, e = -(rstd * (c * v + s * gw));
  if (v_weight) ddout = ddout + v_weight * xh, e = e + v_weight * dout;
  return {ddout, e * rstd, total(e * x + v * (gw - xh * c)), b("sum_to", t * dout, Ints(weight.shape()))};
}

Syms rms_norm(const Call& c) {
  Builder& b = c.builder();
  const size_t count = normalized_axes(c, Ints(c.shape(1)), {});
  const Sym both = b("rms_norm_rows", merge_last(b, c[0], count), flat_parameter(c, "gamma", 1.0), c["epsilon"]);
  if (count == 1) return {both.item(0), both.item(1)};
  Ints stats(c.shape(0));
  for (size_t i = stats.size() - count; i < stats.size(); ++i) stats[i] = 1;
  return {b("reshape", both.item(0), Ints(c.shape(0))), b("reshape", both.item(1), stats)};
}

// ---- batches: a weight of each example is no row that all rows share, so it is multiplied outside of the rows ----

// A parameter of the last axis, of each example where it is a batch, to multiply a batch of `rank` axes and the
// batch's.
Sym row_parameter(const VmapCall& c, size_t idx, size_t rank) {
  if (!c.batched(idx)) return c[idx];
  Ints size(rank + 1, 1);
  size[0] = c.batch();
  size.back() = c.shape(idx)[1];
  return c.builder()("reshape", c[idx], size);
}
// Sums over the rows of each example.
Sym row_sums(const VmapCall& c, const Sym& x) {
  Ints rows;
  for (int64_t axis = 1; axis + 1 < x.rank(); ++axis) rows.push_back(axis);
  const Sym wide = c.builder()("cast", x, compute_dtype(x.dtype()));
  return rows.empty() ? wide : c.builder()("sum", wide, rows);
}

Syms layer_norm_rows_vmap(const VmapCall& c) {
  if (!c.batched(1) && !c.batched(2)) return {};
  Builder& b = c.builder();
  const size_t rank = c.example_shape(0).size();
  const Sym plain = b("layer_norm_rows", in_batch(c, 0), 1.0, 0.0, c[3]);
  const Sym out = plain.item(0) * row_parameter(c, 1, rank) + row_parameter(c, 2, rank);
  return {b("cast", out, c.tensor_dtype(0)), plain.item(1), plain.item(2)};
}
// Arguments dout, input, mean, rstd, weight.
Sym layer_norm_input_vmap(const VmapCall& c) {
  const Sym weighted = in_batch(c, 0) * row_parameter(c, 4, c.example_shape(1).size());
  return c.builder()("layer_norm_input_grad", c.builder()("cast", weighted, c.tensor_dtype(0)), in_batch(c, 1),
                     in_batch(c, 2), in_batch(c, 3), 1.0);
}
Syms layer_norm_grad_vmap(const VmapCall& c) {
  const Sym dout = in_batch(c, 0), normalised = (in_batch(c, 1) - in_batch(c, 2)) * in_batch(c, 3);
  return {layer_norm_input_vmap(c), row_sums(c, dout * normalised), row_sums(c, dout)};
}
Syms layer_norm_input_grad_vmap(const VmapCall& c) { return c.batched(4) ? Syms{layer_norm_input_vmap(c)} : Syms{}; }
Syms rms_norm_rows_vmap(const VmapCall& c) {
  if (!c.batched(1)) return {};
  const Sym plain = c.builder()("rms_norm_rows", in_batch(c, 0), 1.0, c[2]);
  const Sym out = plain.item(0) * row_parameter(c, 1, c.example_shape(0).size());
  return {c.builder()("cast", out, c.tensor_dtype(0)), plain.item(1)};
}
// Arguments dout, input, rstd, weight.
Syms rms_norm_grad_vmap(const VmapCall& c) {
  Builder& b = c.builder();
  const Sym dout = in_batch(c, 0), input = in_batch(c, 1), rstd = in_batch(c, 2);
  const Sym weighted = b("cast", dout * row_parameter(c, 3, c.example_shape(1).size()), c.tensor_dtype(0));
  return {b("rms_norm_grad", weighted, input, rstd, 1.0).item(0), row_sums(c, dout * input * rstd)};
}

// (x - mean) / sqrt(variance + eps) * weight + bias over axes, mean and 1 / sqrt(variance + eps), in operators of ONNX.
Syms normalised_rows(const Call& c, const Sym& x, const Ints& axes, const Sym& weight, const Sym& bias) {
  Builder& b = c.builder();
  const Sym mean = b("mean", x, axes, true), centred = x - mean;
  const Sym rstd = b("rsqrt", b("mean", centred * centred, axes, true) + c.number("eps"));
  Sym out = centred * rstd;
  if (weight) out = out * weight;
  if (bias) out = out + bias;
  return {b("cast", out, c.tensor_dtype(0)), mean, rstd};
}

void register_layer_norm(Family& add) {
  add({.name = "layer_norm_rows",
       .args = "input: Tensor, weight: Tensor|number, bias: Tensor|number, eps: float",
       .doc =
           "(input - mean) * rstd * weight + bias along the last axis, with mean and rstd = 1 / sqrt(variance + eps).",
       .rows = layer_norm_forward,
       .grad = layer_norm_rows_grad,
       .saves = {bits({0, 1}), bits({1, 2})},
       .vmap = layer_norm_rows_vmap,
       .flags = kHidden,
       .dtypes = floats,
       .onnx_compose = [](const Call& c) -> Syms {
         const Sym x = c.builder()("cast", c[0], compute_dtype(c.tensor_dtype(0)));
         return normalised_rows(c, x, Ints{-1}, c[1], c[2]);
       }});
  add({.name = "layer_norm_grad",
       .args = "dout: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor|number",
       .doc = "Gradients of layer_norm_rows: of input, weight and bias.",
       .rows = layer_norm_backward,
       .columns = layer_norm_parameters,
       .grad = [](const GradCall& g) { return layer_norm_second(g, true); },
       .saves = {bits({0, 1, 2, 3, 4}), 0},
       .vmap = layer_norm_grad_vmap,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "layer_norm_input_grad",
       .args = "dout: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor|number",
       .doc = "Gradient of layer_norm_rows with respect to input.",
       .rows = layer_norm_backward,
       .grad = [](const GradCall& g) { return layer_norm_second(g, false); },
       .saves = {bits({0, 1, 2, 3, 4}), 0},
       .vmap = layer_norm_input_grad_vmap,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "layer_norm",
       .args = "input: Tensor, normalized_shape: int|int[], weight: Tensor? = None, bias: Tensor? = None, eps: float = "
               "1e-05",
       .doc = "(input - mean) / sqrt(variance + eps) * weight + bias over the last axes, which have normalized_shape.",
       .compose = layer_norm,
       .onnx = {
           {"LayerNormalization", 17,
            "input, weight!, bias; normalized_shape:trailing <- axis = -1, eps <- epsilon = 1e-05, 1 <- stash_type "
            "= 1"}}});
  add({.name = "rms_norm_rows",
       .args = "input: Tensor, weight: Tensor|number, eps: float",
       .doc = "input * rstd * weight along the last axis, with rstd = 1 / sqrt(mean(input^2) + eps).",
       .rows = rms_norm_forward,
       .grad = rms_norm_rows_grad,
       .saves = {bits({0, 1}), bits({1})},
       .vmap = rms_norm_rows_vmap,
       .flags = kHidden,
       .dtypes = floats,
       .onnx_compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const Sym x = b("cast", c[0], compute_dtype(c.tensor_dtype(0)));
         const Sym rstd = b("rsqrt", b("mean", x * x, -1, true) + c.number("eps"));
         return {b("cast", x * rstd * c[1], c.tensor_dtype(0)), rstd};
       }});
  add({.name = "rms_norm_grad",
       .args = "dout: Tensor, input: Tensor, rstd: Tensor, weight: Tensor|number",
       .doc = "Gradients of rms_norm_rows: of input and weight.",
       .rows =
           [](ProgramBuilder& rows, DType dtype) {
             const NormOperands in = rms_norm_operands(rows, dtype);
             const int64_t out = rows.output(dtype);
             const Expr xh = in.x * in.rstd, gw = in.dout * in.weight;
             rows.store(out, in.rstd * (gw - xh * (rows.sum(gw * xh) / length_of(rows, compute_dtype(dtype)))));
           },
       .columns =
           [](ProgramBuilder& rows, DType dtype) {
             const NormOperands in = rms_norm_operands(rows, dtype);
             const int64_t dweight = rows.output(compute_dtype(dtype));
             rows.store_row(dweight, rows.sum(in.dout * (in.x * in.rstd)));
           },
       .grad = rms_norm_second,
       .saves = {bits({0, 1, 2, 3}), 0},
       .vmap = rms_norm_grad_vmap,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "rms_norm",
       .args = "x: Tensor, gamma: Tensor, epsilon: float = 1e-06",
       .doc = "x / sqrt(mean(x^2) + epsilon) * gamma over the last axes, which have the shape of gamma; and 1 / "
              "sqrt(mean(x^2) + epsilon).",
       .compose = rms_norm});
}

// ---- batch_norm ----

constexpr DTypeSet norm_dtypes = floats;

Types infer_batch_norm(const ArgView& call) {
  const OpDef& op = call.op();
  const Shape& shape = call.shape(0);
  check_dtype(op, call.tensor_dtype(0));
  MOREL_CHECK(shape.size() >= 2, Value, "For 'BatchNorm', the input must have at least 2 dimensions, but got ",
              to_string(call.value(0)));
  for (const char* name : {"weight", "bias"})
    MOREL_CHECK(!call.has(name) || shape_of(call.value(name)) == Shape{shape[1]}, Value, "For 'BatchNorm', '", name,
                "' must have the shape [", shape[1], "], but got ", to_string(call.value(name)));
  const DType wide = compute_dtype(call.tensor_dtype(0));
  const Type statistic{wide, Shape{shape[1]}};
  return {Type{call.tensor_dtype(0), shape}, statistic, statistic, statistic};
}

// [1, C, 1, ...]: per-channel values against an input of `rank` axes.
Sym along_channels(const Sym& value, int64_t rank) {
  if (!value) return value;
  Ints shape(static_cast<size_t>(rank), 1);
  shape[1] = num_elements(value.shape());
  return value.builder()("reshape", value, shape);
}

Ints all_but_channels(int64_t rank) {
  Ints axes{0};
  for (int64_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

Syms batch_norm_training_grad(const GradCall& g) {
  Builder& b = g.builder();
  const int64_t rank = g.rank(0);
  const Dim count = num_elements(g.shape(0)) / g.shape(0)[1];
  const Sym all = b("batch_norm_grad", g.dout(), g[0], g[1], g.out(1), g.out(3));
  Sym dx = all.item(0);
  if (g.has_dout(1) || g.has_dout(2) || g.has_dout(3)) {
    const Sym mean = along_channels(g.out(1), rank), rstd = along_channels(g.out(3), rank);
    dx = add_moments(g, dx, mean, rstd, along_channels(dout_or_none(g, 1), rank),
                     along_channels(dout_or_none(g, 3), rank), count);
    if (g.has_dout(2)) dx = dx + along_channels(g.dout(2), rank) * (g[0] - mean) * (2.0 / count);
  }
  return {dx, all.item(1), all.item(2)};
}

// The same bits as its kernel's.
Syms batch_norm_in_parts(const Call& c) {
  Builder& b = c.builder();
  const int64_t rank = c.rank(0);
  const DType dtype = c.tensor_dtype(0);
  const Sym all = b("batch_norm_statistics", c[0], c["weight"], c["eps"]), scale = all.item(3);
  const Sym shift = c.has("bias") ? b("cast", c["bias"], compute_dtype(dtype)) : b("zeros_like", scale);
  const Sym y = b("centre_scale_shift", b("cast", c[0], compute_dtype(dtype)), along_channels(all.item(0), rank),
                  along_channels(scale, rank), along_channels(shift, rank));
  return {b("cast", y, dtype), all.item(0), all.item(1), all.item(2)};
}

// Of the cotangents of mean, variance and inverse_std; scale is weight * inverse_std.
Syms batch_norm_statistics_grad(const GradCall& g) {
  const int64_t rank = g.rank(0);
  const Dim count = num_elements(g.shape(0)) / g.shape(0)[1];
  const Sym rstd = g.out(2);
  Sym drstd = dout_or_none(g, 2), dweight;
  if (g.has_dout(3)) {
    const Sym part = g.has("weight") ? g.dout(3) * g[1] : g.dout(3);
    drstd = drstd ? drstd + part : part;
    dweight = g.dout(3) * rstd;
  }
  const Sym mean = along_channels(g.out(0), rank);
  Sym dx = add_moments(g, g.builder()("zeros_like", g[0]), mean, along_channels(rstd, rank),
                       along_channels(dout_or_none(g, 0), rank), along_channels(drstd, rank), count);
  if (g.has_dout(1)) dx = dx + along_channels(g.dout(1), rank) * (g[0] - mean) * (2.0 / count);
  return {dx, dweight};
}

Syms batch_norm_second(const GradCall& g) {
  Builder& b = g.builder();
  const int64_t rank = g.rank(1);
  const bool weighted = g.has("weight");
  const NormGrad in{g[0],
                    g[1],
                    along_channels(g[3], rank),
                    along_channels(g[4], rank),
                    weighted ? along_channels(g[2], rank) : Sym(),
                    dout_or_none(g, 0),
                    along_channels(dout_or_none(g, 1), rank),
                    along_channels(dout_or_none(g, 2), rank),
                    all_but_channels(rank)};
  const NormSecond d = differentiate(b, in);
  const auto flat = [&](const Sym& value) { return b("reshape", value, Ints{-1}); };
  return {d.dout, d.x, weighted ? flat(d.weight) : Sym(), flat(d.mean), flat(d.rstd)};
}

Syms batch_norm(const Call& c) {
  Builder& b = c.builder();
  const int64_t rank = c.rank(0);
  MOREL_CHECK(rank >= 2, Value, "For 'BatchNorm', the input must have at least 2 dimensions, but got ",
              to_string(c.value(0)));
  const Dim channels = c.shape(0)[1];
  const bool tracked = c.has("running_mean") && c.has("running_var");
  for (const char* name : {"running_mean", "running_var"})
    MOREL_CHECK(!c.has(name) || shape_of(c.value(name)) == Shape{channels}, Value, "For 'BatchNorm', '", name,
                "' must have the shape [", channels, "], but got ", to_string(c.value(name)));
  if (c.flag("training")) {
    const Sym all = b("batch_norm_training", c[0], c["weight"], c["bias"], c["eps"]);
    if (tracked) {
      // running = (1 - momentum) * running + momentum * batch; the variance of the batch without bias.
      const Dim count = num_elements(c.shape(0)) / std::max<Dim>(channels, 1);
      const double momentum = c.number("momentum");
      b("running_update_", c["running_mean"], all.item(1), momentum, 0);
      b("running_update_", c["running_var"], all.item(2), momentum, count);
    }
    return {all.item(0)};
  }
  MOREL_CHECK(tracked, Value, "For 'BatchNorm', 'running_mean' and 'running_var' must be given outside of training");
  Sym scale = b("rsqrt", c["running_var"] + c.number("eps"));
  if (c.has("weight")) scale = scale * c["weight"];
  Sym shift = -(c["running_mean"] * scale);
  if (c.has("bias")) shift = shift + c["bias"];
  return {
      b("cast", b("scale_shift", c[0], along_channels(scale, rank), along_channels(shift, rank)), c.tensor_dtype(0))};
}

void register_batch_norm(Family& add) {
  add({.name = "batch_norm_training",
       .args = "input: Tensor, weight: Tensor?, bias: Tensor?, eps: float",
       .doc = "input normalised per channel (axis 1) by the statistics of the batch; mean, variance and 1 / "
              "sqrt(variance + eps).",
       .axes = "[n] c [...], c, c -> [n] c [...], c, c, c",
       .infer = infer_batch_norm,
       .compose = batch_norm_in_parts,
       .kernel = true,
       .strides = strides_like<0>,
       .grad = batch_norm_training_grad,
       .saves = {bits({0, 1}), bits({1, 3})},
       .flags = kHidden | kCheap,
       .dtypes = norm_dtypes});
  add({.name = "batch_norm_statistics",
       .args = "input: Tensor, weight: Tensor?, eps: float",
       .doc =
           "Mean, variance, inverse_std = 1 / sqrt(variance + eps) and weight * inverse_std of the batch, per channel.",
       .axes = "[n] c [...], c -> c, c, c, c",
       .infer = [](const ArgView& call) -> Types {
         const Type statistic{compute_dtype(call.tensor_dtype(0)), Shape{call.shape(0)[1]}};
         return {statistic, statistic, statistic, statistic};
       },
       .kernel = true,
       .grad = batch_norm_statistics_grad,
       .saves = {bits({0, 1}), bits({0, 2})},
       .flags = kHidden,
       .dtypes = norm_dtypes});
  add({.name = "centre_scale_shift",
       .args = "input: Tensor, mean: Tensor, scale: Tensor, shift: Tensor",
       .doc = "(input - mean) * scale + shift, rounded twice, with broadcasting.",
       .loop = [](const Expr& x, const Expr& mean, const Expr& scale,
                  const Expr& shift) { return loops::fma(x - mean, scale, shift); },
       .grad = [](const GradCall& g) -> Syms {
         const Sym dx = g.dout() * g[2];
         return {dx, g.needs(1) ? -dx : Sym(), g.needs(2) ? g.dout() * (g[0] - g[1]) : Sym(), g.dout()};
       },
       .saves = {bits({0, 1, 2}), 0},
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "batch_norm_grad",
       .args = "dout: Tensor, input: Tensor, weight: Tensor?, mean: Tensor, inverse_std: Tensor",
       .doc = "Gradients of batch_norm_training: of input, weight and bias.",
       .axes = "[n] c [...], [n] c [...], c, c, c -> [n] c [...], c, c",
       .infer = [](const ArgView& call) -> Types {
         const Type parameter{compute_dtype(call.tensor_dtype(1)), Shape{call.shape(1)[1]}};
         return {Type{call.tensor_dtype(1), call.shape(1)}, parameter, parameter};
       },
       .kernel = true,
       .strides = strides_like<1>,
       .grad = batch_norm_second,
       .saves = {bits({0, 1, 2, 3, 4}), 0},
       .flags = kHidden,
       .dtypes = norm_dtypes});
  add({.name = "running_update_",
       .args = "input: Tensor, batch: Tensor, momentum: float, unbiased_count: int",
       .doc = "input = (1 - momentum) * input + momentum * scale * batch, in place, where scale is n / (n - 1) for an "
              "unbiased_count n of more than 1, and 1 otherwise.",
       .axes = "..., ... -> ...",
       .kernel = true,
       .flags = kInPlace | kEffect | kNoGrad | kHidden,
       .dtypes = floats});
  add({.name = "scale_shift",
       .args = "input: Tensor, scale: Tensor, shift: Tensor",
       .doc = "input * scale + shift, with broadcasting.",
       .loop = [](const Expr& x, const Expr& scale, const Expr& shift) { return x * scale + shift; },
       .grad = [](const GradCall& g) -> Syms {
         return {g.needs(0) ? g.dout() * g[1] : Sym(), g.needs(1) ? g.dout() * g[0] : Sym(), g.dout()};
       },
       .saves = {bits({0, 1}), 0},
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "batch_norm",
       .args = "input_x: Tensor, running_mean: Tensor?, running_var: Tensor?, weight: Tensor? = None, bias: Tensor? = "
               "None, "
               "training: bool = False, momentum: float = 0.1, eps: float = 1e-05",
       .doc = "input_x normalised per channel (axis 1): in training by the batch, whose statistics move the running "
              "ones by momentum, "
              "running = (1 - momentum) * running + momentum * batch; else by the running ones.",
       .compose = batch_norm,
       .onnx = {
           {"BatchNormalization", 9,
            "input_x, weight!, bias!, running_mean!, running_var!; eps <- epsilon = 1e-05, training == False, _ <- "
            "momentum = 0.9, 0 <- training_mode = 0, 1 <- spatial = 1"}}});
}

// ---- group_norm ----

Types infer_group_norm(const ArgView& call) {
  const Shape& shape = call.shape(0);
  check_dtype(call.op(), call.tensor_dtype(0));
  const Type statistic{compute_dtype(call.tensor_dtype(0)), Shape{shape[0], call.dim("groups")}};
  return {Type{call.tensor_dtype(0), shape}, statistic, statistic};
}

// [N, C, ...] as [N, G, C / G, rest], statistics [N, G] as [N, G, 1, 1], parameters [C] as [1, G, C / G, 1].
struct GroupView {
  Builder& b;
  Dim batch, groups, per_group, rest;
  GroupView(Builder& builder, const Shape& shape, Dim count)
      : b(builder),
        batch(shape[0]),
        groups(count),
        per_group(shape[1] / count),
        rest(num_elements(shape) / std::max<Dim>(1, shape[0] * shape[1])) {}
  Sym full(const Sym& x) const { return x ? b("reshape", x, Ints{batch, groups, per_group, rest}) : x; }
  Sym statistic(const Sym& x) const { return x ? b("reshape", x, Ints{batch, groups, 1, 1}) : x; }
  Sym parameter(const Sym& x) const { return x ? b("reshape", x, Ints{1, groups, per_group, 1}) : x; }
  Dim count() const { return per_group * rest; }
};

Syms group_norm_forward_grad(const GradCall& g) {
  Builder& b = g.builder();
  const Sym all = b("group_norm_grad", g.dout(), g[0], g[1], g.out(1), g.out(2), g["groups"]);
  Sym dx = all.item(0);
  if (g.has_dout(1) || g.has_dout(2)) {
    const GroupView view(b, g.shape(0), g.dim("groups"));
    const Sym mean = view.statistic(g.out(1)), rstd = view.statistic(g.out(2));
    Sym extra = b("zeros_like", view.full(g[0]));
    if (g.has_dout(1)) extra = extra + view.statistic(g.dout(1)) / view.count();
    if (g.has_dout(2))
      extra = extra - view.statistic(g.dout(2)) * rstd * rstd * rstd * (view.full(g[0]) - mean) / view.count();
    dx = dx + b("reshape", extra, Ints(g.shape(0)));
  }
  return {dx, all.item(1), all.item(2)};
}

Syms group_norm_second(const GradCall& g) {
  Builder& b = g.builder();
  const GroupView view(b, g.shape(1), g.dim("groups"));
  const bool weighted = g.has("weight");
  const NormGrad in{view.full(g[0]),
                    view.full(g[1]),
                    view.statistic(g[3]),
                    view.statistic(g[4]),
                    weighted ? view.parameter(g[2]) : Sym(),
                    view.full(dout_or_none(g, 0)),
                    view.parameter(dout_or_none(g, 1)),
                    view.parameter(dout_or_none(g, 2)),
                    Ints{2, 3}};
  const NormSecond d = differentiate(b, in);
  const auto back = [&](const Sym& value, size_t idx) { return b("reshape", value, Ints(g.shape(idx))); };
  return {back(d.dout, 1), back(d.x, 1), weighted ? back(d.weight, 2) : Sym(), back(d.mean, 3), back(d.rstd, 4)};
}

Syms group_norm(const Call& c) {
  const Shape& shape = c.shape(0);
  MOREL_CHECK(shape.size() >= 2, Value, "For 'GroupNorm', the input must have at least 2 dimensions, but got ",
              to_string(c.value(0)));
  const Dim groups = c.op().name == "instance_norm" ? shape[1] : c.dim("num_groups");
  MOREL_CHECK(groups > 0 && shape[1] % groups == 0, Value, "For 'GroupNorm', 'num_groups' must divide the ", shape[1],
              " channels, but got ", groups);
  for (const char* name : {"weight", "bias"})
    MOREL_CHECK(!c.has(name) || shape_of(c.value(name)) == Shape{shape[1]}, Value, "For 'GroupNorm', '", name,
                "' must have the shape [", shape[1], "], but got ", to_string(c.value(name)));
  return {c.builder()("group_norm_forward", c[0], c["weight"], c["bias"], groups, c["eps"]).item(0)};
}

void register_group_norm(Family& add) {
  add({.name = "group_norm_forward",
       .args = "input: Tensor, weight: Tensor?, bias: Tensor?, groups: int, eps: float",
       .doc = "input normalised per sample and group of channels; mean and 1 / sqrt(variance + eps) of each.",
       .axes = "n (groups [c]) [...], (groups [c]), (groups [c]) -> n (groups [c]) [...], n groups, n groups",
       .infer = infer_group_norm,
       .kernel = true,
       .grad = group_norm_forward_grad,
       .saves = {bits({0, 1}), bits({1, 2})},
       .flags = kHidden,
       .dtypes = norm_dtypes,
       .onnx_compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const GroupView view(b, c.shape(0), c.dim("groups"));
         const Sym x = b("cast", view.full(c[0]), compute_dtype(c.tensor_dtype(0)));
         Syms out = normalised_rows(c, x, Ints{2, 3}, view.parameter(c["weight"]), view.parameter(c["bias"]));
         out[0] = b("reshape", out[0], Ints(c.shape(0)));
         for (const size_t i : {1, 2}) out[i] = b("reshape", out[i], Ints{view.batch, view.groups});
         return out;
       }});
  add({.name = "group_norm_grad",
       .args = "dout: Tensor, input: Tensor, weight: Tensor?, mean: Tensor, inverse_std: Tensor, groups: int",
       .doc = "Gradients of group_norm_forward: of input, weight and bias.",
       .axes = "n (groups [c]) [...], n (groups [c]) [...], (groups [c]), n groups, n groups -> n (groups [c]) [...], "
               "(groups [c]), (groups [c])",
       .infer = [](const ArgView& call) -> Types {
         const Type parameter{compute_dtype(call.tensor_dtype(1)), Shape{call.shape(1)[1]}};
         return {Type{call.tensor_dtype(1), call.shape(1)}, parameter, parameter};
       },
       .kernel = true,
       .grad = group_norm_second,
       .saves = {bits({0, 1, 2, 3, 4}), 0},
       .flags = kHidden,
       .dtypes = norm_dtypes});
  add({.name = "group_norm",
       .args = "input: Tensor, num_groups: int, weight: Tensor? = None, bias: Tensor? = None, eps: float = 1e-05",
       .doc = "input normalised per sample and group of channels (axis 1), times weight plus bias per channel.",
       .compose = group_norm,
       .onnx = {{"GroupNormalization", 21,
                 "input, weight!, bias!; num_groups <- num_groups, eps <- epsilon = 1e-05, 1 <- stash_type = 1"}}});
  add({.name = "instance_norm",
       .args = "input: Tensor, weight: Tensor? = None, bias: Tensor? = None, eps: float = 1e-05",
       .doc = "input normalised per sample and channel (axis 1), times weight plus bias per channel.",
       .compose = group_norm,
       .onnx = {{"InstanceNormalization", 6, "input, weight!, bias!; eps <- epsilon = 1e-05"}}});
}

void register_scaling(Family& add) {
  add({.name = "normalize",
       .args = "input: Tensor, p: float = 2.0, dim: axis|axes = 1, eps: float = 1e-12",
       .doc = "input / max(p-norm along dim, eps).",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const Sym norm = b("vector_norm", c[0], c["p"], c["dim"], true);
         return {c[0] / b("maximum", norm, c.number("eps"))};
       }});
  add({.name = "l2_normalize",
       .args = "input: Tensor, axis: axis|axes = 0, epsilon: float = 0.0001",
       .doc = "input / sqrt(max(sum(input^2) along axis, epsilon)).",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const Sym squares = b("sum", b("square", c[0]), c["axis"], true);
         return {c[0] * b("rsqrt", b("maximum", squares, c.number("epsilon")))};
       }});
}

}  // namespace

void register_norm(Registry& registry) {
  Family add(registry, "norm");
  register_layer_norm(add);
  register_batch_norm(add);
  register_group_norm(add);
  register_scaling(add);
}

}  // namespace morel
