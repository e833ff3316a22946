// Reductions over axes.
#include <cmath>
#include <limits>

#include "morel/ops/registry.h"

namespace morel {
namespace {

using loops::ReduceOp;

constexpr std::string_view axes_args = "input: Tensor, axis: axis|axes? = None, keep_dims: bool = False";
constexpr std::string_view sum_args =
    "input: Tensor, axis: axis|axes? = None, keep_dims: bool = False, *, dtype: dtype? = None";

Ints axes_of(const ArgView& call, std::string_view name = "axis") {
  return normalize_axes(call.op(), name, call.value(name), call.rank(0));
}

Dim reduced_count(const Shape& shape, const Ints& axes) {
  Dim count = 1;
  for (const int64_t axis : axes) count *= shape[static_cast<size_t>(axis)];
  return count;
}

// A reduced value (argument shape `shape`) with its reduced axes back as axes of size 1.
Sym with_axes(const Sym& value, const Shape& shape, const Ints& axes) {
  const Shape kept = reduced_shape(shape, axes, true);
  return value.shape() == kept ? value : value.builder()("reshape", value, Ints(kept));
}

// The cotangent of a reduction, given to every element that it came from.
Sym spread(const GradCall& g, const Sym& value) {
  return g.builder()("broadcast_to", with_axes(value, g.shape(0), axes_of(g)), Ints(g.shape(0)));
}

Syms prod_grad(const GradCall& g) {
  // The product of the other elements: out / x, and where exactly one x is 0, the product of the rest at that place.
  Builder& b = g.builder();
  const Ints axes = axes_of(g);
  const Sym x = g[0], zero = b("equal", x, 0.0), safe = b("where", zero, 1.0, x);
  const Sym count = b("sum", zero, Value(axes), true);
  const Sym rest = b("prod", safe, Value(axes), true);
  const Sym others =
      b("where", zero, b("where", b("equal", count, 1), rest, 0.0), b("where", b("equal", count, 0), rest / safe, 0.0));
  return {with_axes(g.dout(), g.shape(0), axes) * (is_complex(x.dtype()) ? b("conj", others) : others)};
}

// Equal extremes share the cotangent.
Syms extremum_grad(const GradCall& g) {
  Builder& b = g.builder();
  const Ints axes = axes_of(g);
  const Sym hit = b("cast", b("equal", g[0], with_axes(g.out(), g.shape(0), axes)), g.tensor_dtype(0));
  return {with_axes(g.dout(), g.shape(0), axes) * (hit / b("sum", hit, Value(axes), true))};
}

void register_primitives(Family& add) {
  add({.name = "sum",
       .args = sum_args,
       .doc = "Sum over axes. Sums of bool and integers are int64; halves are added in float32.",
       .reduce = ReduceOp::Sum,
       .grad = [](const GradCall& g) -> Syms { return {spread(g, g.dout())}; },
       .onnx = {{"ReduceSum", 1,
                 "input, axis <- axes@13; keep_dims <- keepdims = 1, _ <- noop_with_empty_axes = 0 -> input"}}});
  add({.name = "prod",
       .args = sum_args,
       .doc = "Product over axes. Products of bool and integers are int64; halves are multiplied in float32.",
       .reduce = ReduceOp::Prod,
       .grad = prod_grad,
       .saves = {bits({0}), 0},
       .onnx = {{"ReduceProd", 1,
                 "input, axis <- axes@18; keep_dims <- keepdims = 1, _ <- noop_with_empty_axes = 0 -> input"}}});
  add({.name = "reduce_max",
       .args = axes_args,
       .doc = "Largest element over axes; NaN wins.",
       .reduce = ReduceOp::Max,
       .grad = extremum_grad,
       .saves = {bits({0}), bits({0})},
       .flags = kHidden,
       .dtypes = reals,
       .onnx = {{"ReduceMax", 1,
                 "input, axis <- axes@18; keep_dims <- keepdims = 1, _ <- noop_with_empty_axes = 0 -> input"}}});
  add({.name = "reduce_min",
       .args = axes_args,
       .doc = "Smallest element over axes; NaN wins.",
       .reduce = ReduceOp::Min,
       .grad = extremum_grad,
       .saves = {bits({0}), bits({0})},
       .flags = kHidden,
       .dtypes = reals,
       .onnx = {{"ReduceMin", 1,
                 "input, axis <- axes@18; keep_dims <- keepdims = 1, _ <- noop_with_empty_axes = 0 -> input"}}});
  add({.name = "argmax",
       .args = "input: Tensor, axis: axis? = None, keep_dims: bool = False, *, dtype: dtype = Int64",
       .doc = "Position of the first largest element along axis; of the flattened input without axis. NaN wins.",
       .reduce = ReduceOp::ArgMax,
       .flags = kNoGrad,
       .dtypes = reals,
       .onnx = {{"ArgMax", 1,
                 "input; axis <- axis = 0, keep_dims <- keepdims = 1, 0 <- select_last_index = 0 -> Int64"}},
       .onnx_compose = [](const Call& c) -> Syms {
         const Sym at = c.builder()("argmax", c.builder()("reshape", c[0], Ints{-1}), 0, false, c["dtype"]);
         return {c.flag("keep_dims") ? c.builder()("reshape", at, Ints(c.shape(0).size(), 1)) : at};
       }});
  add({.name = "argmin",
       .args = "input: Tensor, axis: axis? = None, keep_dims: bool = False, *, dtype: dtype = Int64",
       .doc = "Position of the first smallest element along axis; of the flattened input without axis. NaN wins.",
       .reduce = ReduceOp::ArgMin,
       .flags = kNoGrad,
       .dtypes = reals,
       .onnx = {{"ArgMin", 1,
                 "input; axis <- axis = 0, keep_dims <- keepdims = 1, 0 <- select_last_index = 0 -> Int64"}},
       .onnx_compose = [](const Call& c) -> Syms {
         const Sym at = c.builder()("argmin", c.builder()("reshape", c[0], Ints{-1}), 0, false, c["dtype"]);
         return {c.flag("keep_dims") ? c.builder()("reshape", at, Ints(c.shape(0).size(), 1)) : at};
       }});
  add({.name = "any",
       .args = axes_args,
       .doc = "Whether any element over axes is true (not zero).",
       .reduce = ReduceOp::Any,
       .flags = kNoGrad,
       .onnx_compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const Sym truth = b("cast", b("cast", c[0], DType::Bool), DType::Int32);
         return {b("cast", b("reduce_max", truth, c[1], c[2]), DType::Bool)};
       }});
  add({.name = "all",
       .args = axes_args,
       .doc = "Whether all elements over axes are true (not zero).",
       .reduce = ReduceOp::All,
       .flags = kNoGrad,
       .onnx_compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const Sym truth = b("cast", b("cast", c[0], DType::Bool), DType::Int32);
         return {b("cast", b("reduce_min", truth, c[1], c[2]), DType::Bool)};
       }});
}

// ---- mean, variance ----

Syms mean(const Call& c) {
  Builder& b = c.builder();
  Sym x = c[0];
  if (c.has("dtype")) x = b("cast", x, c.dtype("dtype"));
  const DType dtype = x.dtype();
  MOREL_CHECK(dtype != DType::Bool, Type,
              "For 'Mean', the dtype Bool is not supported; cast the input to a float type first");
  const Dim count = reduced_count(c.shape(0), axes_of(c));
  const Sym total = b("sum", x, c.value("axis"), c.value("keep_dims"),
                      is_differentiable(dtype) ? compute_dtype(dtype) : DType::Int64);
  if (!is_differentiable(dtype)) return {b("cast", b("trunc_divide", total, count), dtype)};
  return {b("cast", total / count, dtype)};
}

Syms mean_grad(const GradCall& g) {
  const Dim count = reduced_count(g.shape(0), axes_of(g));
  return {spread(g, g.builder()("cast", g.dout() / count, g.tensor_dtype(0)))};
}

struct Moments {
  Sym mean, variance;  // axes kept, in the compute dtype
};

Moments moments_of(const Call& c) {
  Builder& b = c.builder();
  const DType dtype = c.tensor_dtype(0);
  MOREL_CHECK(is_differentiable(dtype), Type, "For '", display_name(c.op()),
              "', the input must have a float dtype, but got ", info(dtype).name);
  const Sym x = b("cast", c[0], compute_dtype(dtype));
  const Ints axes = axes_of(c);
  const Dim count = reduced_count(c.shape(0), axes);
  const Dim freedom = std::max<Dim>(0, count - c.dim("ddof"));
  const Sym mean = b("sum", x, Value(axes), true) / count;
  const Sym deviation = x - mean;
  const Sym squares = is_complex(dtype) ? b("square", b("abs", deviation)) : b("square", deviation);
  return {mean, b("sum", squares, Value(axes), true) / freedom};
}

Sym finish(const Call& c, const Sym& kept) {
  Builder& b = c.builder();
  const Sym out = c.flag("keepdims") ? kept : b("reshape", kept, Ints(reduced_shape(c.shape(0), axes_of(c), false)));
  const DType dtype = c.tensor_dtype(0);
  return is_complex(dtype) ? out : b("cast", out, dtype);
}

constexpr std::string_view moment_args =
    "input: Tensor, axis: axis|axes? = None, ddof: int|bool = 0, keepdims: bool = False";

void register_moments(Family& add) {
  add({.name = "mean",
       .args = sum_args,
       .doc = "Mean over axes. Halves are added in float32; means of integers are rounded towards zero.",
       .compose = mean,
       .grad = mean_grad,
       .onnx = {{"ReduceMean", 1,
                 "input, axis <- axes@18; keep_dims <- keepdims = 1, _ <- noop_with_empty_axes = 0 -> input"}}});
  add({.name = "var",
       .args = moment_args,
       .doc = "Variance over axes: sum((input - mean)^2) / (n - ddof).",
       .compose = [](const Call& c) -> Syms { return {finish(c, moments_of(c).variance)}; }});
  add({.name = "std",
       .args = moment_args,
       .doc = "Standard deviation over axes: sqrt(sum((input - mean)^2) / (n - ddof)).",
       .compose = [](const Call& c) -> Syms { return {finish(c, c.builder()("sqrt", moments_of(c).variance))}; }});
  add({.name = "var_mean",
       .args = moment_args,
       .doc = "Variance, sum((input - mean)^2) / (n - ddof), and mean over axes.",
       .compose = [](const Call& c) -> Syms {
         const Moments moments = moments_of(c);
         return {finish(c, moments.variance), finish(c, moments.mean)};
       }});
  add({.name = "std_mean",
       .args = moment_args,
       .doc = "Standard deviation, sqrt(sum((input - mean)^2) / (n - ddof)), and mean over axes.",
       .compose = [](const Call& c) -> Syms {
         const Moments moments = moments_of(c);
         return {finish(c, c.builder()("sqrt", moments.variance)), finish(c, moments.mean)};
       }});
}

// ---- extremes ----

// input with `initial` where `where` does not hold.
Sym masked(const Call& c) {
  if (!c.has("where")) return c[0];
  MOREL_CHECK(c.has("initial"), Value, "For '", display_name(c.op()), "', 'initial' must be given where 'where' is");
  return c.builder()("where", c["where"], c[0], c["initial"]);
}

Syms extremum(const Call& c, bool largest) {
  Builder& b = c.builder();
  const Sym x = masked(c);
  MOREL_CHECK(x.dtype() != DType::Bool || !c.has("initial"), Type, "For '", display_name(c.op()),
              "', 'initial' does not go with Bool");
  if (x.dtype() == DType::Bool)
    return {largest ? b("any", x, c["axis"], c["keepdims"]) : b("all", x, c["axis"], c["keepdims"])};
  Sym out = largest ? b("reduce_max", x, c["axis"], c["keepdims"]) : b("reduce_min", x, c["axis"], c["keepdims"]);
  if (c.has("initial")) out = largest ? b("maximum", out, c["initial"]) : b("minimum", out, c["initial"]);
  return {out};
}

// Values and positions along one axis; the value of the flattened input and position 0 without axis.
Syms extremum_with_index(const Call& c, bool largest) {
  Builder& b = c.builder();
  if (!c.has("axis")) return {extremum(c, largest)[0], b("zeros", Ints{}, DType::Int64)};
  const Sym x = masked(c);
  const Sym idx = largest ? b("argmax", x, c["axis"], c["keepdims"]) : b("argmin", x, c["axis"], c["keepdims"]);
  return {extremum(c, largest)[0], idx};
}

// The cotangent goes to the chosen position alone; without axis equal extremes share it.
Syms extremum_with_index_grad(const GradCall& g) {
  Builder& b = g.builder();
  const Shape& shape = g.shape(0);
  if (!g.has("axis")) {
    const Sym hit = b("cast", b("equal", g[0], g.out()), g.tensor_dtype(0));
    return {g.dout() * (hit / b("sum", hit))};
  }
  const int64_t axis = g.axis("axis", g.rank(0));
  const Ints axes = g.rank(0) > 0 ? Ints{axis} : Ints{};
  Ints positions_shape(shape.size(), 1);
  if (!positions_shape.empty()) positions_shape[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)];
  const Dim n = shape.empty() ? Dim(1) : shape[static_cast<size_t>(axis)];
  const Sym positions = b("reshape", b("arange", 0, n, 1, DType::Int64), positions_shape);
  Sym mask = b("equal", positions, with_axes(g.out(1), shape, axes));
  if (g.has("where")) mask = b("logical_and", mask, g["where"]);
  if (g.has("initial")) mask = b("logical_and", mask, b("equal", g[0], with_axes(g.out(), shape, axes)));
  return {b("where", mask, with_axes(g.dout(), shape, axes), 0.0)};
}

void register_extremes(Family& add) {
  constexpr std::string_view args =
      "input: Tensor, axis: axis|axes? = None, keepdims: bool = False, *, initial: number? = None, where: Tensor? = "
      "None";
  constexpr std::string_view index_args =
      "input: Tensor, axis: axis? = None, keepdims: bool = False, *, initial: number? = None, where: Tensor? = None";
  add({.name = "amax",
       .args = args,
       .doc = "Largest element over axes; NaN wins. Elements where `where` does not hold count as `initial`, the least "
              "possible result.",
       .compose = [](const Call& c) { return extremum(c, true); }});
  add({.name = "amin",
       .args = args,
       .doc = "Smallest element over axes; NaN wins. Elements where `where` does not hold count as `initial`, the "
              "largest possible result.",
       .compose = [](const Call& c) { return extremum(c, false); }});
  add({.name = "max",
       .args = index_args,
       .doc = "Largest element along axis and its first position; without axis that of the whole input, and 0.",
       .compose = [](const Call& c) { return extremum_with_index(c, true); },
       .grad = extremum_with_index_grad,
       .saves = {bits({0, 4}), bits({0, 1})}});
  add({.name = "min",
       .args = index_args,
       .doc = "Smallest element along axis and its first position; without axis that of the whole input, and 0.",
       .compose = [](const Call& c) { return extremum_with_index(c, false); },
       .grad = extremum_with_index_grad,
       .saves = {bits({0, 4}), bits({0, 1})}});
}

// ---- sums of functions ----

Syms logsumexp(const Call& c) {
  Builder& b = c.builder();
  const Ints axes = axes_of(c);
  const DType given = c.tensor_dtype(0), dtype = is_differentiable(given) ? given : DType::Float32;
  const Sym x = b("cast", c[0], compute_dtype(dtype));
  if (c.rank(0) == 0) return {b("cast", x, dtype)};
  // The largest element is taken out; not where it is infinite, since inf - inf has no value.
  const Sym largest = b("reduce_max", x, Value(axes), true);
  const Sym shift = b("where", b("isfinite", largest), largest, 0.0);
  const Sym out = b("log", b("sum", b("exp", x - shift), Value(axes), true)) + shift;
  const Sym shaped = c.flag("keep_dims") ? out : b("reshape", out, Ints(reduced_shape(c.shape(0), axes, false)));
  return {b("cast", shaped, dtype)};
}

Syms logsumexp_grad(const GradCall& g) {
  Builder& b = g.builder();
  const Ints axes = axes_of(g);
  return {with_axes(g.dout(), g.shape(0), axes) * b("exp", g[0] - with_axes(g.out(), g.shape(0), axes))};
}

// The p-norm over `axes`.
Sym vector_norm(const Call& c, const Sym& x, double p, const Ints& axes, bool keep) {
  Builder& b = c.builder();
  const Value over(axes);
  if (p == 2.0) {
    const Sym squares = is_complex(x.dtype()) ? b("square", b("abs", x)) : b("square", x);
    return b("norm_root", b("sum", squares, over, keep));
  }
  const Sym magnitude = b("abs", x);
  if (std::isinf(p)) return p > 0 ? b("reduce_max", magnitude, over, keep) : b("reduce_min", magnitude, over, keep);
  if (p == 0.0) return b("sum", b("cast", b("not_equal", x, 0.0), magnitude.dtype()), over, keep);
  if (p == 1.0) return b("sum", magnitude, over, keep);
  return b("pow", b("sum", b("pow", magnitude, p), over, keep), 1.0 / p);
}

struct NormInput {
  Sym x;
  DType dtype;  // of the result
};

NormInput norm_input(const Call& c) {
  Builder& b = c.builder();
  DType dtype = c.dtype_or("dtype", c.tensor_dtype(0));
  if (!is_differentiable(dtype)) dtype = DType::Float32;
  return {b("cast", c[0], compute_dtype(dtype)), real_dtype(dtype)};
}

double norm_order(const Call& c, std::string_view name) {
  const Value& order = c.value(name);
  if (order.is_none()) return 2.0;
  if (order.tag() != Value::Tag::Str) return order.number();
  if (order.str() == "fro") return 2.0;
  if (order.str() == "inf") return std::numeric_limits<double>::infinity();
  if (order.str() == "-inf") return -std::numeric_limits<double>::infinity();
  raise(ErrorKind::NotImplemented, "For '", display_name(c.op()), "', '", name,
        "' must be None, 'fro', 'inf', '-inf' or a number, but got '", order.str(), "'");
}

Syms vector_norm_op(const Call& c) {
  const NormInput in = norm_input(c);
  return {
      c.builder()("cast", vector_norm(c, in.x, norm_order(c, "p"), axes_of(c, "dim"), c.flag("keepdim")), in.dtype)};
}

// Norms of vectors, and of matrices where two axes are named (or the input has two).
Syms norm_op(const Call& c) {
  Builder& b = c.builder();
  const NormInput in = norm_input(c);
  const Value& order = c.value("ord");
  const bool named = c.has("dim");
  const Ints axes = axes_of(c, "dim");
  const bool keep = c.flag("keepdim");
  MOREL_CHECK(named || order.is_none() || c.rank(0) <= 2, Value,
              "For 'Norm', 'dim' must be given for an input of more than 2 dimensions when 'ord' is");
  if (order.is_none() || axes.size() == 1 || (order.tag() == Value::Tag::Str && order.str() == "fro"))
    return {b("cast", vector_norm(c, in.x, norm_order(c, "ord"), axes, keep), in.dtype)};
  MOREL_CHECK(axes.size() == 2, Value, "For 'Norm', 'dim' must name one or two axes, but got ",
              to_string(c.value("dim")));
  const double p = norm_order(c, "ord");
  MOREL_CHECK(std::abs(p) == 1.0 || std::isinf(p), NotImplemented, "For 'Norm', the matrix norm of order ", p,
              " is not supported; supported are None, 'fro', 1, -1, inf and -inf");
  // Sums along one axis, then the extreme along the other. The order of the two named axes counts.
  int64_t row = axes[0], column = axes[1];
  if (c.value("dim").tag() == Value::Tag::Ints && normalize_axis(c.op(), "dim", c.ints("dim")[0], c.rank(0)) != row)
    std::swap(row, column);
  const int64_t first = std::isinf(p) ? column : row, second = std::isinf(p) ? row : column;
  const Sym sums = b("sum", b("abs", in.x), first, true);
  Sym out = p > 0 ? b("reduce_max", sums, second, true) : b("reduce_min", sums, second, true);
  if (!keep) out = b("reshape", out, Ints(reduced_shape(c.shape(0), axes, false)));
  return {b("cast", out, in.dtype)};
}

void register_composites(Family& add) {
  add({.name = "logsumexp",
       .args = "input: Tensor, axis: axis|axes, keep_dims: bool = False",
       .doc = "log(sum(exp(input))) over axes, without overflow.",
       .compose = logsumexp,
       .grad = logsumexp_grad,
       .saves = {bits({0}), bits({0})},
       .onnx = {{"ReduceLogSumExp", 1,
                 "input, axis <- axes@18; keep_dims <- keepdims = 1, _ <- noop_with_empty_axes = 0 -> input"}}});
  add({.name = "norm_root",
       .args = "input: Tensor",
       .doc = "Square root whose derivative at 0 is 0, as norms have it.",
       .loop = [](const loops::Expr& x) { return loops::sqrt(x); },
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         const Sym zero = b("equal", g.out(), 0.0);
         return {b("where", zero, 0.0, g.dout() * 0.5 / b("where", zero, 1.0, g.out()))};
       },
       .saves = {0, bits({0})},
       .flags = kHidden,
       .promotion = Promotion::Float,
       .dtypes = floats});
  add({.name = "norm",
       .args = "input: Tensor, ord: number|str? = None, dim: axis|axes? = None, keepdim: bool = False, *, dtype: "
               "dtype? = None",
       .doc = "Norm of vectors along one axis or of matrices along two; without ord the root of the sum of squares.",
       .compose = norm_op});
  add({.name = "vector_norm",
       .args =
           "input: Tensor, p: number|str = 2.0, dim: axis|axes? = None, keepdim: bool = False, *, dtype: dtype? = None",
       .doc = "(sum |input|^p)^(1/p) over axes; p may be inf, -inf and 0 (the number of elements that are not zero).",
       .compose = vector_norm_op});
  add({.name = "count_nonzero",
       .args = "x: Tensor, axis: axis|axes = (), keep_dims: bool = False, dtype: dtype = Int32",
       .doc = "Number of elements over axes that are not zero.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         return {b("sum", b("not_equal", c[0], 0), c["axis"], c["keep_dims"], c["dtype"])};
       },
       .flags = kNoGrad});
  add({.name = "sum_to",
       .args = "input: Tensor, shape: shape",
       .doc = "Sums over the axes along which `shape` was broadcast to that of input.",
       .compose = [](const Call& c) -> Syms {
         const Ints& shape = c.ints("shape");
         const Shape& from = c.shape(0);
         if (from == shape) return {c[0]};
         const size_t shift = from.size() - shape.size();
         Ints axes;
         for (size_t i = 0; i < from.size(); ++i)
           if (i < shift || (shape[i - shift] == 1 && from[i] != 1)) axes.push_back(static_cast<int64_t>(i));
         Builder& b = c.builder();
         const bool keep = axes.size() != shift || shift == 0;
         const Sym out = axes.empty() ? c[0] : b("sum", c[0], Value(axes), keep, c.tensor_dtype(0));
         return {out.shape() == shape ? out : b("reshape", out, shape)};
       },
       .flags = kHidden});
}

}  // namespace

void register_reduce(Registry& registry) {
  Family add(registry, "reduce");
  register_primitives(add);
  register_moments(add);
  register_extremes(add);
  register_composites(add);
}

}  // namespace morel
