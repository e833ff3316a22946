// Losses.
#include <cmath>

#include "morel/loops/math.h"
#include "morel/ops/registry.h"

namespace morel {
namespace {

using loops::Expr;
using loops::ProgramBuilder;

constexpr Saves both{bits({0, 1}), 0};

void check_reduction(const Call& c, bool batchmean = false) {
  const std::string& how = c.str("reduction");
  MOREL_CHECK(how == "none" || how == "mean" || how == "sum" || (batchmean && how == "batchmean"), Value, "For '",
              display_name(c.op()), "', 'reduction' must be 'none', 'mean'", batchmean ? ", 'batchmean'" : "",
              " or 'sum', but got '", how, "'");
}

Sym reduced(const Call& c, const Sym& loss) {
  check_reduction(c);
  const std::string& how = c.str("reduction");
  if (how == "mean") return c.builder()("mean", loss);
  if (how == "sum") return c.builder()("sum", loss);
  return loss;
}

// ---- cross entropy ----

// Positions along the class axis, shaped to meet tensors of `rank` axes.
Sym class_positions(Builder& b, Dim classes, int64_t axis, int64_t rank, DType dtype) {
  Ints shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = classes;
  return b("reshape", b("arange", 0, classes, 1, dtype), shape);
}

struct ClassRow {
  Expr x, target, weight, position;
  Expr hit(const Expr& yes, const Expr& no) const { return where(position == target, yes, no); }
};
ClassRow class_row(ProgramBuilder& rows, DType dtype) {
  ClassRow row;
  row.x = rows.input(dtype);
  row.target = rows.row_input(DType::Int32);
  row.weight = rows.row_input(compute_dtype(dtype));
  row.position = loops::cast(rows.position(), DType::Int32);
  return row;
}

void cross_entropy_forward(ProgramBuilder& rows, DType dtype) {
  const ClassRow row = class_row(rows, dtype);
  const int64_t loss = rows.output(compute_dtype(dtype)), lse_out = rows.output(compute_dtype(dtype));
  const Expr zero = constant_like(0, row.x), largest = rows.max(row.x);
  const Expr chosen = rows.sum(row.hit(row.x, zero));
  const Expr lse = largest + log(rows.sum(loops::exp_nonpositive(row.x - largest)));
  // A class without weight counts nothing, whatever its logits are.
  rows.store_row(loss, where(row.weight == 0.0, constant_like(0, row.weight), row.weight * (lse - chosen)));
  rows.store_row(lse_out, lse);
}

void cross_entropy_backward(ProgramBuilder& rows, DType dtype) {
  const ClassRow row = class_row(rows, dtype);
  const Expr lse = rows.row_input(compute_dtype(dtype)), dloss = rows.row_input(compute_dtype(dtype));
  const int64_t out = rows.output(dtype);
  const Expr scale = dloss * row.weight, p = loops::exp_nonpositive(row.x - lse);
  rows.store(out, where(row.weight == 0.0, constant_like(0, p), scale * row.hit(p - 1.0, p)));
}

Syms cross_entropy_rows_grad(const GradCall& g) {
  Builder& b = g.builder();
  const Sym lse = g.out(1);
  Sym dx = b("cross_entropy_rows_grad", g[0], g[1], g[2], lse, g.dout(0), g["axis"]);
  if (g.has_dout(1)) dx = dx + g.dout(1) * b("exp", g[0] - lse);
  return {dx};
}

// dx = dloss * weight * (exp(x - lse) - onehot): arguments (x, target, weight, lse, dloss, axis).
Syms cross_entropy_second(const GradCall& g) {
  Builder& b = g.builder();
  const Sym x = g[0], weight = g[2], dloss = g[4], v = g.dout();
  const int64_t axis = g.axis("axis", g.rank(0));
  const Sym p = b("exp", x - g[3]);
  const Sym hit =
      b("equal", class_positions(b, g.shape(0)[static_cast<size_t>(axis)], axis, g.rank(0), DType::Int64), g[1]);
  const Sym spread = v * weight * p, dx = spread * dloss;
  Syms out(5);
  out[0] = dx;
  if (g.needs(3)) out[3] = -b("sum", dx, axis, true);
  if (g.needs(4)) out[4] = b("sum", v * weight * (p - b("cast", hit, p.dtype())), axis, true);
  return out;
}

// Loss of -weight * x[target] along the class axis.
Syms nll_rows_grad(const GradCall& g) {
  Builder& b = g.builder();
  const int64_t axis = g.axis("axis", g.rank(0));
  const Sym positions = class_positions(b, g.shape(0)[static_cast<size_t>(axis)], axis, g.rank(0), DType::Int64);
  return {b("where", b("equal", positions, g[1]), -(g[2] * g.dout()), 0.0)};
}

// What cross_entropy and nll_loss have in common when targets are class indices.
struct Classes {
  int64_t axis;
  Sym target, weight;  // the class axis has one element
  Shape shape;         // of the target
};

Classes classes_of(const Call& c) {
  Builder& b = c.builder();
  const Shape &x = c.shape(0), &target = c.shape(1);
  const int64_t axis = x.size() == 1 ? 0 : 1;
  MOREL_CHECK(!x.empty(), Value, "For '", display_name(c.op()), "', the input must have an axis of classes");
  Shape expected = x;
  expected.erase(expected.begin() + axis);
  MOREL_CHECK(target == expected, Value, "For '", display_name(c.op()), "', 'target' must have the shape ",
              to_string(expected), " for an input ", to_string(x), ", but got ", to_string(target));
  MOREL_CHECK(is_integral(c.tensor_dtype(1)), Type, "For '", display_name(c.op()),
              "', 'target' must be class indices (integers), but got ", info(c.tensor_dtype(1)).name);
  const Dim classes = x[static_cast<size_t>(axis)];
  MOREL_CHECK(!c.has("weight") || shape_of(c.value("weight")) == Shape{classes}, Value, "For '", display_name(c.op()),
              "', 'weight' must have one element for each of the ", classes, " classes, but got ",
              to_string(c.value("weight")));
  const Sym weight =
      b("class_weights", c[1], c["weight"], classes, c["ignore_index"], compute_dtype(c.tensor_dtype(0)));
  return {axis, b("expand_dims", c[1], axis), b("expand_dims", weight, axis), target};
}

// The losses of all targets (class axis of one element) by c's reduction; the mean is weighted.
Sym reduced_classes(const Call& c, const Classes& classes, const Sym& loss) {
  Builder& b = c.builder();
  check_reduction(c);
  const std::string& how = c.str("reduction");
  Sym out;
  if (how == "none") {
    out = b("reshape", loss, Ints(classes.shape));
  } else {
    out = b("sum", loss);
    if (how == "mean") out = out / b("sum", classes.weight);
  }
  return b("cast", out, c.tensor_dtype(0));
}

// Part (1 - smoothing) of the loss of the target, smoothing / C of those of all classes. `log_p`: logarithms of
// probabilities.
Sym smoothed(const Call& c, const Classes& classes, const Sym& log_p, const Sym& loss) {
  Builder& b = c.builder();
  const double smoothing = c.number("label_smoothing");
  if (smoothing == 0.0) return loss;
  Sym all = log_p;
  if (c.has("weight")) {
    Ints shape(static_cast<size_t>(c.rank(0)), 1);
    shape[static_cast<size_t>(classes.axis)] = c.shape(0)[static_cast<size_t>(classes.axis)];
    all = all * b("reshape", c["weight"], shape);
  }
  const Sym kept = b("not_equal", classes.target, c["ignore_index"]);
  const Sym rest = b("where", kept, b("sum", all, classes.axis, true), 0.0);
  return loss * (1.0 - smoothing) -
         rest * (smoothing / static_cast<double>(c.shape(0)[static_cast<size_t>(classes.axis)]));
}

void check_smoothing(const Call& c) {
  const double smoothing = c.number("label_smoothing");
  MOREL_CHECK(smoothing >= 0 && smoothing <= 1, Value, "For '", display_name(c.op()),
              "', 'label_smoothing' must be in [0, 1], but got ", smoothing);
}

// Targets are probabilities of the shape of input.
Sym cross_entropy_of_probabilities(const Call& c) {
  Builder& b = c.builder();
  const int64_t axis = c.rank(0) == 1 ? 0 : 1;
  const double classes = static_cast<double>(c.shape(0)[static_cast<size_t>(axis)]),
               smoothing = c.number("label_smoothing");
  Sym target = c[1];
  if (smoothing > 0) target = target * (1.0 - smoothing) + smoothing / classes;
  Sym terms = b("log_softmax", c[0], axis) * target;
  if (c.has("weight")) {
    Ints shape(static_cast<size_t>(c.rank(0)), 1);
    shape[static_cast<size_t>(axis)] = static_cast<int64_t>(classes);
    terms = terms * b("reshape", c["weight"], shape);
  }
  return reduced(c, -b("sum", terms, axis));
}

Syms cross_entropy(const Call& c) {
  Builder& b = c.builder();
  check_smoothing(c);
  if (c.shape(0) == c.shape(1) && is_float(c.tensor_dtype(1))) return {cross_entropy_of_probabilities(c)};
  const Classes classes = classes_of(c);
  if (c.number("label_smoothing") == 0.0) {
    const Sym loss = b("cross_entropy_rows", c[0], classes.target, classes.weight, classes.axis).item(0);
    return {reduced_classes(c, classes, loss)};
  }
  const Sym log_p = b("log_softmax", c[0], classes.axis);
  const Sym loss = b("nll_rows", log_p, classes.target, classes.weight, classes.axis);
  return {reduced_classes(c, classes, smoothed(c, classes, log_p, loss))};
}

void register_classification(Family& add) {
  constexpr std::string_view tail =
      "weight: Tensor? = None, ignore_index: int = -100, reduction: str = 'mean', label_smoothing: float = 0.0";
  static const std::string cross_entropy_args = cat("input: Tensor, target: Tensor, ", tail),
                           nll_args = cat("inputs: Tensor, target: Tensor, ", tail);
  add({.name = "class_weights",
       .args = "target: Tensor, weight: Tensor?, classes: int, ignore_index: int, dtype: dtype",
       .doc = "The weight of each target's class (1 without weight), 0 for ignore_index; ValueError for other classes "
              "out of range.",
       .axes = "..., [c] -> ...",
       .infer = [](const ArgView& call) -> Types {
         return {Type{call.dtype("dtype"), call.shape(0)}};
       },
       .kernel = true,
       .flags = kNoGrad | kHidden});
  add({.name = "cross_entropy_rows",
       .args = "input: Tensor, target: Tensor, weight: Tensor, axis: axis",
       .doc = "weight * (log(sum(exp(input))) - input[target]) along axis, and log(sum(exp(input))). target and weight "
              "have one element there.",
       .rows = cross_entropy_forward,
       .grad = cross_entropy_rows_grad,
       .saves = {bits({0, 1, 2}), bits({1})},
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "cross_entropy_rows_grad",
       .args = "input: Tensor, target: Tensor, weight: Tensor, lse: Tensor, dloss: Tensor, axis: axis",
       .doc = "Gradient of cross_entropy_rows with respect to input.",
       .rows = cross_entropy_backward,
       .grad = cross_entropy_second,
       .saves = {bits({0, 1, 2, 3, 4}), 0},
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "nll_rows",
       .args = "input: Tensor, target: Tensor, weight: Tensor, axis: axis",
       .doc = "-weight * input[target] along axis. target and weight have one element there.",
       .rows =
           [](ProgramBuilder& rows, DType dtype) {
             const ClassRow row = class_row(rows, dtype);
             const int64_t loss = rows.output(compute_dtype(dtype));
             const Expr chosen = rows.sum(row.hit(row.x, constant_like(0, row.x)));
             rows.store_row(loss, where(row.weight == 0.0, constant_like(0, row.weight), -(row.weight * chosen)));
           },
       .grad = nll_rows_grad,
       .saves = {bits({1, 2}), 0},
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "cross_entropy",
       .args = cross_entropy_args,
       .doc = "-weight * log(softmax(input)[target]) over the classes along axis 1; target may also be probabilities. "
              "The mean is weighted.",
       .compose = cross_entropy,
       .onnx = {
           {"SoftmaxCrossEntropyLoss", 13,
            "input, target, weight; ignore_index <- ignore_index, reduction <- reduction = 'mean', label_smoothing "
            "== 0.0, target is integer"}}});
  add({.name = "nll_loss",
       .args = nll_args,
       .doc = "-weight * inputs[target] over the classes along axis 1, where inputs are logarithms of probabilities. "
              "The mean is weighted.",
       .compose = [](const Call& c) -> Syms {
         check_smoothing(c);
         const Classes classes = classes_of(c);
         const Sym loss = c.builder()("nll_rows", c[0], classes.target, classes.weight, classes.axis);
         return {reduced_classes(c, classes, smoothed(c, classes, c[0], loss))};
       },
       .onnx = {{"NegativeLogLikelihoodLoss", 13,
                 "inputs, target, weight; ignore_index <- ignore_index, reduction <- reduction = 'mean', "
                 "label_smoothing == 0.0"}}});
}

// ---- regression ----

constexpr std::string_view pair_args = "input: Tensor, target: Tensor, reduction: str = 'mean'";

void register_regression(Family& add) {
  add({.name = "squared_difference",
       .args = "input: Tensor|number, other: Tensor|number",
       .doc = "(input - other)^2, element by element, with broadcasting.",
       .loop =
           [](const Expr& x, const Expr& y) {
             const Expr d = x - y;
             return d * d;
           },
       .grad = [](const GradCall& g) -> Syms {
         const Sym d = g.dout() * ((g[0] - g[1]) * 2.0);
         return {d, g.needs(1) ? -d : Sym()};
       },
       .saves = both,
       .dtypes = reals});
  add({.name = "smooth_l1",
       .args = "input: Tensor, target: Tensor, beta: float",
       .doc = "d^2 / (2 beta) where d = |input - target| < beta, else d - beta / 2.",
       .loop =
           [](const Expr& x, const Expr& y, const Expr& beta) {
             const Expr d = abs(x - y);
             return where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta);
           },
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         const double beta = g.number("beta");
         const Sym d = g[0] - g[1], slope = beta > 0 ? b("hardtanh", d * (1.0 / beta), -1.0, 1.0) : b("sign", d);
         const Sym dx = g.dout() * slope;
         return {dx, g.needs(1) ? -dx : Sym()};
       },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "mse_loss", .args = pair_args, .doc = "(input - target)^2.", .compose = [](const Call& c) -> Syms {
         return {reduced(c, c.builder()("squared_difference", c[0], c[1]))};
       }});
  add({.name = "l1_loss", .args = pair_args, .doc = "|input - target|.", .compose = [](const Call& c) -> Syms {
         return {reduced(c, c.builder()("abs", c[0] - c[1]))};
       }});
  add({.name = "smooth_l1_loss",
       .args = "input: Tensor, target: Tensor, beta: float = 1.0, reduction: str = 'none'",
       .doc = "d^2 / (2 beta) where d = |input - target| < beta, else d - beta / 2.",
       .compose = [](const Call& c) -> Syms {
         MOREL_CHECK(c.number("beta") >= 0, Value, "For 'SmoothL1Loss', 'beta' must not be negative, but got ",
                     c.number("beta"));
         return {reduced(c, c.builder()("smooth_l1", c[0], c[1], c["beta"]))};
       }});
  add({.name = "huber_loss",
       .args = "input: Tensor, target: Tensor, reduction: str = 'mean', delta: float = 1.0",
       .doc = "d^2 / 2 where d = |input - target| < delta, else delta * (d - delta / 2).",
       .compose = [](const Call& c) -> Syms {
         const double delta = c.number("delta");
         MOREL_CHECK(delta > 0, Value, "For 'HuberLoss', 'delta' must be positive, but got ", delta);
         return {reduced(c, c.builder()("smooth_l1", c[0], c[1], delta) * delta)};
       }});
  add({.name = "gaussian_nll_loss",
       .args =
           "x: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-06, reduction: str = 'mean'",
       .doc = "(log(v) + (x - target)^2 / v) / 2 with v = max(var, eps); full adds log(2 pi) / 2.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         MOREL_CHECK(c.number("eps") > 0, Value, "For 'GaussianNllLoss', 'eps' must be positive, but got ",
                     c.number("eps"));
         const Shape& shape = c.shape(0);
         Sym var = c[2];
         if (var.shape() != shape && static_cast<size_t>(var.rank()) + 1 == shape.size())
           var = b("expand_dims", var, -1);
         const Sym v = b("clamp", var, c.number("eps"));
         Sym loss = 0.5 * (b("log", v) + b("squared_difference", c[0], c[1]) / v);
         if (c.flag("full")) loss = loss + 0.9189385332046727;
         return {reduced(c, loss)};
       }});
}

// ---- probabilities ----

constexpr double least_log = -27.631021115928547;  // log(1e-12)

Syms binary_cross_entropy_grad(const GradCall& g) {
  // Logarithms are limited to log(1e-12), slopes to 1e12.
  Builder& b = g.builder();
  const Sym x = g[0], t = g[1];
  const Sym dx = g.dout() * (x - t) / b("maximum", x * (1.0 - x), 1e-12);
  Sym dt;
  if (g.needs(1)) dt = g.dout() * (b("maximum", b("log1p", -x), least_log) - b("maximum", b("log", x), least_log));
  return {dx, dt};
}

Syms kl_div(const Call& c) {
  Builder& b = c.builder();
  check_reduction(c, true);
  const Sym x = c[0], t = c[1];
  Sym loss;
  if (c.flag("log_target")) {
    loss = b("exp", t) * (t - x);
  } else {
    const Sym positive = b("greater", t, 0.0);
    loss = b("where", positive, t * (b("log", b("where", positive, t, 1.0)) - x), 0.0);
  }
  if (c.str("reduction") != "batchmean") return {reduced(c, loss)};
  return {b("sum", loss) / (c.rank(0) ? c.shape(0)[0] : Dim(1))};
}

Sym weighted(const Call& c, const Sym& loss) { return c.has("weight") ? loss * c["weight"] : loss; }

void register_probabilities(Family& add) {
  add({.name = "binary_cross_entropy_loop",
       .args = "input: Tensor, target: Tensor",
       .doc = "-(target * log(input) + (1 - target) * log(1 - input)), logarithms not below log(1e-12).",
       .loop =
           [](const Expr& x, const Expr& t) {
             const Expr floor = constant_like(least_log, x);
             return -(t * max(log(x), floor) + (1.0 - t) * max(log1p(-x), floor));
           },
       .grad = binary_cross_entropy_grad,
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "binary_cross_entropy",
       .args = "logits: Tensor, labels: Tensor, weight: Tensor? = None, reduction: str = 'mean'",
       .doc = "-weight * (labels * log(logits) + (1 - labels) * log(1 - logits)) of probabilities `logits`.",
       .compose = [](const Call& c) -> Syms {
         MOREL_CHECK(c.shape(0) == c.shape(1), Value, "For 'BinaryCrossEntropy', 'logits' ", to_string(c.value(0)),
                     " and 'labels' ", to_string(c.value(1)), " must have one shape");
         return {reduced(c, weighted(c, c.builder()("binary_cross_entropy_loop", c[0], c[1])))};
       }});
  add({.name = "logits_cross_entropy_loop",
       .args = "input: Tensor, target: Tensor",
       .doc = "max(input, 0) - input * target + log(1 + exp(-|input|)).",
       .loop = [](const Expr& x, const Expr& t) { return max(x, constant_like(0, x)) - x * t + log1p(exp(-abs(x))); },
       .grad = [](const GradCall& g) -> Syms {
         return {g.dout() * (g.builder()("sigmoid", g[0]) - g[1]), g.needs(1) ? -(g.dout() * g[0]) : Sym()};
       },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "binary_cross_entropy_with_logits",
       .args =
           "input: Tensor, target: Tensor, weight: Tensor? = None, pos_weight: Tensor? = None, reduction: str = 'mean'",
       .doc = "-weight * (pos_weight * target * log(p) + (1 - target) * log(1 - p)) with p = sigmoid(input).",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const Sym x = c[0], t = c[1];
         if (!c.has("pos_weight")) return {reduced(c, weighted(c, b("logits_cross_entropy_loop", x, t)))};
         const Sym positive = t * (c["pos_weight"] - 1.0) + 1.0;
         return {reduced(c, weighted(c, (1.0 - t) * x - positive * b("logsigmoid", x)))};
       }});
  add({.name = "kl_div",
       .args = "logits: Tensor, labels: Tensor, reduction: str = 'mean', log_target: bool = False",
       .doc = "labels * (log(labels) - logits), where logits are logarithms; with log_target labels are, too. "
              "'batchmean' divides the sum by "
              "the size of axis 0.",
       .compose = kl_div});
  add({.name = "multilabel_soft_margin_loss",
       .args = "input: Tensor, target: Tensor, weight: Tensor? = None, reduction: str = 'mean'",
       .doc = "Mean over the last axis of -weight * (target * log(p) + (1 - target) * log(1 - p)) with p = "
              "sigmoid(input).",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         return {reduced(c, b("mean", weighted(c, b("logits_cross_entropy_loop", c[0], c[1])), -1))};
       }});
}

// ---- distances and margins ----

Sym cosine(Builder& b, const Sym& x, const Sym& y, int64_t axis, double eps) {
  const Sym norms = b("vector_norm", x, 2.0, axis) * b("vector_norm", y, 2.0, axis);
  return b("sum", x * y, axis) / b("maximum", norms, eps);
}

Syms triplet_margin_loss(const Call& c) {
  Builder& b = c.builder();
  const double p = c.number("p"), eps = c.number("eps");
  const auto distance = [&](const Sym& x, const Sym& y) { return b("vector_norm", x - y + eps, p, -1); };
  const Sym near = distance(c[0], c[1]);
  Sym far = distance(c[0], c[2]);
  if (c.flag("swap")) far = b("minimum", far, distance(c[1], c[2]));
  return {reduced(c, b("relu", near - far + c[3]))};
}

Syms multi_margin_loss(const Call& c) {
  Builder& b = c.builder();
  const int64_t p = c.integer("p");
  MOREL_CHECK(p == 1 || p == 2, Value, "For 'MultiMarginLoss', 'p' must be 1 or 2, but got ", p);
  MOREL_CHECK(c.rank(0) == 2 && c.rank(1) == 1, Value,
              "For 'MultiMarginLoss', 'input' must have 2 dimensions and 'target' 1, but got ", to_string(c.value(0)),
              " and ", to_string(c.value(1)));
  const Dim classes = c.shape(0)[1];
  const Sym target = b("expand_dims", c[1], 1);
  const Sym hit = b("equal", class_positions(b, classes, 1, 2, DType::Int64), target);
  const Sym chosen = b("sum", b("where", hit, c[0], 0.0), 1, true);
  Sym terms = b("relu", c[0] - chosen + c["margin"]);
  if (p == 2) terms = terms * terms;
  terms = b("where", hit, 0.0, terms);
  if (c.has("weight"))
    terms = terms * b("expand_dims", b("class_weights", c[1], c["weight"], classes, -1, c.tensor_dtype(0)), 1);
  return {reduced(c, b("sum", terms, 1) / classes)};
}

void register_margins(Family& add) {
  add({.name = "cosine_similarity",
       .args = "x1: Tensor, x2: Tensor, dim: axis = 1, eps: float = 1e-08",
       .doc = "sum(x1 * x2) / max(|x1| |x2|, eps) along dim.",
       .compose = [](const Call& c) -> Syms {
         return {cosine(c.builder(), c[0], c[1], c.integer("dim"), c.number("eps"))};
       }});
  add({.name = "cosine_embedding_loss",
       .args = "input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = 'mean'",
       .doc = "1 - cos(input1, input2) where target is 1, max(0, cos(input1, input2) - margin) where it is -1.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const double margin = c.number("margin");
         MOREL_CHECK(margin >= -1 && margin <= 1, Value,
                     "For 'CosineEmbeddingLoss', 'margin' must be in [-1, 1], but got ", margin);
         const Sym cos = cosine(b, c[0], c[1], -1, 1e-12);
         const Sym apart = b("where", b("equal", c[2], -1), b("relu", cos - margin), 0.0);
         return {reduced(c, b("where", b("equal", c[2], 1), 1.0 - cos, apart))};
       }});
  add({.name = "margin_ranking_loss",
       .args = "input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = 'mean'",
       .doc = "max(0, -target * (input1 - input2) + margin).",
       .compose = [](const Call& c) -> Syms {
         return {reduced(c, c.builder()("relu", c[2] * (c[1] - c[0]) + c.number("margin")))};
       }});
  add({.name = "hinge_embedding_loss",
       .args = "inputs: Tensor, targets: Tensor, margin: float = 1.0, reduction: str = 'mean'",
       .doc = "inputs where targets is 1, max(0, margin - inputs) where it is -1.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const Sym apart = b("where", b("equal", c[1], -1), b("relu", c.number("margin") - c[0]), 0.0);
         return {reduced(c, b("where", b("equal", c[1], 1), c[0], apart))};
       }});
  add({.name = "soft_margin_loss",
       .args = pair_args,
       .doc = "log(1 + exp(-target * input)).",
       .compose = [](const Call& c) -> Syms { return {reduced(c, -c.builder()("logsigmoid", c[0] * c[1]))}; }});
  add({.name = "triplet_margin_loss",
       .args = "anchor: Tensor, positive: Tensor, negative: Tensor, margin: Tensor|number = 1.0, p: float = 2, eps: "
               "float = 1e-06, "
               "swap: bool = False, reduction: str = 'mean'",
       .doc = "max(0, |anchor - positive| - |anchor - negative| + margin) with p-norms along the last axis; swap takes "
              "the nearer negative.",
       .compose = triplet_margin_loss});
  add({.name = "multi_margin_loss",
       .args = "input: Tensor, target: Tensor, p: int = 1, margin: number = 1, weight: Tensor? = None, reduction: str "
               "= 'mean'",
       .doc = "Mean over the other classes j of weight[target] * max(0, margin - input[target] + input[j])^p.",
       .compose = multi_margin_loss});
}

}  // namespace

void register_loss(Registry& registry) {
  Family add(registry, "loss");
  register_classification(add);
  register_regression(add);
  register_probabilities(add);
  register_margins(add);
}

}  // namespace morel
