// Activation functions. Each has its gradient as one fused loop, `<name>_grad`, which can be differentiated again.
#include <cmath>

#include "morel/loops/math.h"
#include "morel/ops/registry.h"

namespace morel {
namespace {

using namespace loops;  // NOLINT: the rules are formulas over loops::Expr

constexpr Saves input_only{bits({0}), 0};
constexpr Saves output_only{0, bits({0})};
constexpr Saves both{bits({0, 1}), 0};
constexpr double inv_sqrt_2 = 0.7071067811865476, inv_sqrt_2pi = 0.3989422804014327;

// op(dout, x, parameters...), where x is argument `from` of the call and what follows it are the parameters.
Sym backward(const GradCall& g, OpName op, const Sym& cotangent, size_t from = 0) {
  Args args{cotangent.value()};
  for (size_t i = from; i < g.args().size(); ++i) args.push_back(g.value(i));
  return Sym(g.builder(), g.builder().emit(find_op(op), {args.data(), args.size()})[0]);
}

// f''(x), from the input of op(dout, x, parameters...).
using Curvature = Sym (*)(Builder& b, const Sym& x, const GradCall& g);
// Gradient of op(dout, x, parameters...) = dout * f'(x): that of dout is the same loop.
Syms second(const GradCall& g, OpName op, Curvature curvature) {
  return {g.needs(0) ? backward(g, op, g.dout(), 1) : Sym(),
          g.needs(1) ? g.dout() * g[0] * curvature(g.builder(), g[1], g) : Sym()};
}

Expr sigmoid(const Expr& x) { return 1.0 / (1.0 + exp(-x)); }
Sym zeros_like(Builder& b, const Sym& x) { return b("zeros_like", x); }

void register_piecewise(Family& add) {
  add({.name = "relu",
       .args = "input: Tensor",
       .doc = "max(input, 0).",
       .loop = [](const Expr& x) { return x.dtype() == DType::Bool ? x || x : max(x, constant_like(0, x)); },
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("relu_grad", g.dout(), g.out())}; },
       .saves = output_only,
       .dtypes = reals | bools,
       .onnx = {{"Relu", 6}}});
  add({.name = "relu_grad",
       .args = "dout: Tensor, out: Tensor",
       .doc = "dout where out > 0, else 0.",
       .loop = [](const Expr& d, const Expr& y) { return where(y > 0.0, d, constant_like(0, d)); },
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("relu_grad", g.dout(), g[1])}; },
       .saves = {bits({1}), 0},
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "hardtanh",
       .args = "input: Tensor, min_val: float = -1.0, max_val: float = 1.0",
       .doc = "input limited to [min_val, max_val].",
       .loop = [](const Expr& x, const Expr& low, const Expr& high) { return min(max(x, low), high); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "hardtanh_grad", g.dout())}; },
       .saves = input_only,
       .dtypes = floats,
       .onnx = {{"Clip", 6, "input, min_val! <- min@11, max_val! <- max@11"}}});
  add({.name = "hardtanh_grad",
       .args = "dout: Tensor, input: Tensor, min_val: float, max_val: float",
       .doc = "dout where min_val < input < max_val, else 0.",
       .loop = [](const Expr& d, const Expr& x, const Expr& low,
                  const Expr& high) { return where(x > low && x < high, d, constant_like(0, d)); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "hardtanh_grad", g.dout(), 1)}; },
       .saves = {bits({1}), 0},
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "relu6", .args = "x: Tensor", .doc = "min(max(x, 0), 6).", .compose = [](const Call& c) -> Syms {
         return {c.builder()("hardtanh", c[0], 0.0, 6.0)};
       }});
  add({.name = "leaky_relu",
       .args = "input: Tensor, alpha: float = 0.2",
       .doc = "input where input > 0, else alpha * input.",
       .loop = [](const Expr& x, const Expr& alpha) { return where(x > 0.0, x, alpha * x); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "leaky_relu_grad", g.dout())}; },
       .saves = input_only,
       .dtypes = floats,
       .onnx = {{"LeakyRelu", 6, "input; alpha <- alpha = 0.01"}}});
  add({.name = "leaky_relu_grad",
       .args = "dout: Tensor, input: Tensor, alpha: float",
       .doc = "dout where input > 0, else alpha * dout.",
       .loop = [](const Expr& d, const Expr& x, const Expr& alpha) { return where(x > 0.0, d, alpha * d); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "leaky_relu_grad", g.dout(), 1)}; },
       .saves = {bits({1}), 0},
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "hardsigmoid",
       .args = "input: Tensor",
       .doc = "min(max(input / 6 + 1/2, 0), 1).",
       .loop = [](const Expr& x) { return min(max(x + 3.0, constant_like(0, x)), constant_like(6, x)) * (1.0 / 6.0); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "hardsigmoid_grad", g.dout())}; },
       .saves = input_only,
       .dtypes = floats,
       .onnx = {{"HardSigmoid", 6, "input; 0.16666666666666666 <- alpha = 0.2, 0.5 <- beta = 0.5"}}});
  add({.name = "hardsigmoid_grad",
       .args = "dout: Tensor, input: Tensor",
       .doc = "dout / 6 where -3 < input < 3, else 0.",
       .loop = [](const Expr& d,
                  const Expr& x) { return where(x > -3.0 && x < 3.0, d * (1.0 / 6.0), constant_like(0, d)); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "hardsigmoid_grad", g.dout(), 1)}; },
       .saves = {bits({1}), 0},
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "hardswish",
       .args = "input: Tensor",
       .doc = "input * min(max(input + 3, 0), 6) / 6.",
       .loop =
           [](const Expr& x) { return x * min(max(x + 3.0, constant_like(0, x)), constant_like(6, x)) * (1.0 / 6.0); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "hardswish_grad", g.dout())}; },
       .saves = input_only,
       .dtypes = floats,
       .onnx = {{"HardSwish", 14}}});
  add({.name = "hardswish_grad",
       .args = "dout: Tensor, input: Tensor",
       .doc = "dout * (input / 3 + 1/2) where -3 < input < 3, dout above, 0 below.",
       .loop =
           [](const Expr& d, const Expr& x) {
             return where(x < 3.0, where(x > -3.0, d * (x * (1.0 / 3.0) + 0.5), constant_like(0, d)), d);
           },
       .grad =
           [](const GradCall& g) {
             return second(g, "hardswish_grad", [](Builder& b, const Sym& x, const GradCall&) {
               return b("where", b("less", b("abs", x), 3.0), 1.0 / 3.0, zeros_like(b, x));
             });
           },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "threshold",
       .args = "input: Tensor, thr: float, value: float",
       .doc = "input where input > thr, else value.",
       .loop = [](const Expr& x, const Expr& thr, const Expr& value) { return where(x > thr, x, value); },
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("threshold_grad", g.dout(), g[0], g[1])}; },
       .saves = input_only,
       .dtypes = floats});
  add({.name = "threshold_grad",
       .args = "dout: Tensor, input: Tensor, thr: float",
       .doc = "dout where input > thr, else 0.",
       .loop = [](const Expr& d, const Expr& x, const Expr& thr) { return where(x > thr, d, constant_like(0, d)); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "threshold_grad", g.dout(), 1)}; },
       .saves = {bits({1}), 0},
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "hardshrink",
       .args = "input: Tensor, lambd: float = 0.5",
       .doc = "input where |input| > lambd, else 0.",
       .loop = [](const Expr& x, const Expr& lambd) { return where(abs(x) <= lambd, constant_like(0, x), x); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "shrink_grad", g.dout())}; },
       .saves = input_only,
       .dtypes = floats,
       .onnx = {{"Shrink", 9, "input; lambd <- lambd = 0.5, 0.0 <- bias = 0.0"}}});
  add({.name = "softshrink",
       .args = "input: Tensor, lambd: float = 0.5",
       .doc = "input moved towards 0 by lambd, and 0 where |input| <= lambd.",
       .loop =
           [](const Expr& x, const Expr& lambd) {
             return where(x > lambd, x - lambd, where(x < -lambd, x + lambd, where(isnan(x), x, constant_like(0, x))));
           },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "shrink_grad", g.dout())}; },
       .saves = input_only,
       .dtypes = floats,
       .onnx = {{"Shrink", 9, "input; lambd <- lambd = 0.5, lambd <- bias = 0.0"}}});
  add({.name = "shrink_grad",
       .args = "dout: Tensor, input: Tensor, lambd: float",
       .doc = "dout where |input| > lambd, else 0.",
       .loop = [](const Expr& d, const Expr& x,
                  const Expr& lambd) { return where(abs(x) <= lambd, constant_like(0, d), d); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "shrink_grad", g.dout(), 1)}; },
       .saves = {bits({1}), 0},
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "prelu_loop",
       .args = "input: Tensor, weight: Tensor",
       .doc = "input where input > 0, else weight * input, with broadcasting.",
       .loop = [](const Expr& x, const Expr& w) { return where(x > 0.0, x, w * x); },
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         const Sym positive = b("greater", g[0], 0.0);
         return {g.needs(0) ? b("where", positive, g.dout(), g.dout() * g[1]) : Sym(),
                 g.needs(1) ? b("where", positive, 0.0, g.dout() * g[0]) : Sym()};
       },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats,
       .onnx = {{"PRelu", 7}}});
  add({.name = "prelu",
       .args = "input: Tensor, weight: Tensor",
       .doc = "input where input > 0, else weight * input; weight has one element or one for each channel (axis 1).",
       .compose = [](const Call& c) -> Syms {
         const Shape& shape = c.shape(0);
         const Dim count = num_elements(c.shape(1)), channels = shape.size() > 1 ? shape[1] : Dim(1);
         MOREL_CHECK(count == 1 || count == channels, Value,
                     "For 'Prelu', 'weight' must have 1 element or one for each of the ", channels,
                     " channels, but got ", to_string(c.value(1)));
         Ints wide(shape.size(), 1);
         if (shape.size() > 1) wide[1] = count;
         return {c.builder()("prelu_loop", c[0], c.builder()("reshape", c[1], wide))};
       }});
}

// where(x > 0, scale * x, outer * expm1(inner * x)): elu, selu and celu.
void register_exponential(Family& add) {
  add({.name = "exponential_unit",
       .args = "input: Tensor, scale: float, outer: float, inner: float",
       .doc = "scale * input where input > 0, else outer * (exp(inner * input) - 1).",
       .loop =
           [](const Expr& x, const Expr& scale, const Expr& outer, const Expr& inner) {
             return where(x > 0.0, scale * x, outer * expm1(inner * min(x, constant_like(0, x))));
           },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "exponential_unit_grad", g.dout())}; },
       .saves = input_only,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "exponential_unit_grad",
       .args = "dout: Tensor, input: Tensor, scale: float, outer: float, inner: float",
       .doc = "dout * scale where input > 0, else dout * outer * inner * exp(inner * input).",
       .loop =
           [](const Expr& d, const Expr& x, const Expr& scale, const Expr& outer, const Expr& inner) {
             return d * where(x > 0.0, scale, outer * inner * exp(inner * min(x, constant_like(0, x))));
           },
       .grad =
           [](const GradCall& g) {
             return second(g, "exponential_unit_grad", [](Builder& b, const Sym& x, const GradCall& g) {
               const double outer = g.number("outer"), inner = g.number("inner");
               const Sym slope = b("exp", b("minimum", x, 0.0) * inner) * (outer * inner * inner);
               return b("where", b("greater", x, 0.0), 0.0, slope);
             });
           },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "elu",
       .args = "input_x: Tensor, alpha: float = 1.0",
       .doc = "input_x where input_x > 0, else alpha * (exp(input_x) - 1).",
       .compose = [](const Call& c) -> Syms { return {c.builder()("exponential_unit", c[0], 1.0, c["alpha"], 1.0)}; },
       .onnx = {{"Elu", 6, "input_x; alpha <- alpha = 1.0"}}});
  add({.name = "selu",
       .args = "input_x: Tensor",
       .doc = "scale * elu(input_x) with the constants that keep mean 0 and variance 1 (Klambauer et al. 2017, "
              "equation 2).",
       .compose = [](const Call& c) -> Syms {
         constexpr double alpha = 1.6732632423543772, scale = 1.0507009873554805;
         return {c.builder()("exponential_unit", c[0], scale, scale * alpha, 1.0)};
       },
       .onnx = {{"Selu", 6,
                 "input_x; 1.67326319217681884765625 <- alpha = 1.67326319217681884765625, 1.05070102214813232421875 "
                 "<- gamma = 1.05070102214813232421875"}}});
  add({.name = "celu",
       .args = "x: Tensor, alpha: float = 1.0",
       .doc = "max(x, 0) + min(0, alpha * (exp(x / alpha) - 1)).",
       .compose = [](const Call& c) -> Syms {
         const double alpha = c.number("alpha");
         MOREL_CHECK(alpha != 0.0, Value, "For 'CeLU', 'alpha' must not be 0");
         return {c.builder()("exponential_unit", c[0], 1.0, alpha, 1.0 / alpha)};
       },
       .onnx = {{"Celu", 12, "x; alpha <- alpha = 1.0"}}});
}

// tanh of the argument sqrt(2/pi) (x + 0.044715 x^3) of the approximate gelu (Hendrycks and Gimpel 2016).
constexpr double gelu_scale = 0.7978845608028654, gelu_cubic = 0.044715;
Expr gelu_tanh_of(const Expr& x) { return tanh(gelu_scale * (x + gelu_cubic * x * x * x)); }

void register_gelu(Family& add) {
  add({.name = "gelu_erf",
       .args = "input: Tensor",
       .doc = "input * P(X <= input) of a standard normal X.",
       .loop = [](const Expr& x) { return 0.5 * x * (1.0 + erf(x * inv_sqrt_2)); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "gelu_erf_grad", g.dout())}; },
       .saves = input_only,
       .flags = kHidden,
       .dtypes = floats,
       .onnx = {{"Gelu", 20, "input; 'none' <- approximate = 'none'"}}});
  add({.name = "gelu_erf_grad",
       .args = "dout: Tensor, input: Tensor",
       .doc = "dout * (Phi(input) + input * phi(input)).",
       .loop =
           [](const Expr& d, const Expr& x) {
             return d * (0.5 * (1.0 + erf(x * inv_sqrt_2)) + x * inv_sqrt_2pi * exp(-0.5 * x * x));
           },
       .grad =
           [](const GradCall& g) {
             return second(g, "gelu_erf_grad", [](Builder& b, const Sym& x, const GradCall&) {
               const Sym square = x * x;
               return inv_sqrt_2pi * b("exp", square * -0.5) * (2.0 - square);
             });
           },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "gelu_tanh",
       .args = "input: Tensor",
       .doc = "input * (1 + tanh(sqrt(2/pi) (input + 0.044715 input^3))) / 2.",
       .loop = [](const Expr& x) { return 0.5 * x * (1.0 + gelu_tanh_of(x)); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "gelu_tanh_grad", g.dout())}; },
       .saves = input_only,
       .flags = kHidden,
       .dtypes = floats,
       .onnx = {{"Gelu", 20, "input; 'tanh' <- approximate = 'none'"}}});
  add({.name = "gelu_tanh_grad",
       .args = "dout: Tensor, input: Tensor",
       .doc = "dout times the derivative of gelu_tanh.",
       .loop =
           [](const Expr& d, const Expr& x) {
             const Expr t = gelu_tanh_of(x);
             return d * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * gelu_scale * (1.0 + 3.0 * gelu_cubic * x * x));
           },
       .grad =
           [](const GradCall& g) {
             return second(g, "gelu_tanh_grad", [](Builder& b, const Sym& x, const GradCall&) {
               const Sym square = x * x;
               const Sym t = b("tanh", gelu_scale * x * (1.0 + gelu_cubic * square));
               const Sym u1 = gelu_scale * (1.0 + 3.0 * gelu_cubic * square);
               const Sym sech = 1.0 - t * t;
               return sech * (u1 + x * (3.0 * gelu_cubic * gelu_scale) * x - x * t * u1 * u1);
             });
           },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "gelu",
       .args = "input: Tensor, approximate: str = 'none'",
       .doc =
           "input * P(X <= input) of a standard normal X; approximate 'tanh' is cheaper and differs by less than 1e-3.",
       .compose = [](const Call& c) -> Syms {
         const std::string& how = c.str("approximate");
         MOREL_CHECK(how == "none" || how == "tanh", Value,
                     "For 'GeLU', 'approximate' must be 'none' or 'tanh', but got '", how, "'");
         return {how == "none" ? c.builder()("gelu_erf", c[0]) : c.builder()("gelu_tanh", c[0])};
       }});
  add({.name = "fast_gelu", .args = "x: Tensor", .doc = "x * sigmoid(1.702 x).", .compose = [](const Call& c) -> Syms {
         return {c[0] * c.builder()("sigmoid", c[0] * 1.702)};
       }});
}

// exp(x) (exp(x) + 2) / (exp(x) (exp(x) + 2) + 2), which is tanh(log(1 + exp(x))).
Expr tanh_softplus(const Expr& x) {
  const Expr e = exp(min(x, constant_like(20, x)));
  const Expr n = e * (e + 2.0);
  return n / (n + 2.0);
}

void register_smooth(Family& add) {
  add({.name = "silu",
       .args = "input: Tensor",
       .doc = "input * sigmoid(input).",
       .loop = [](const Expr& x) { return x / (1.0 + exp(-x)); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "silu_grad", g.dout())}; },
       .saves = input_only,
       .dtypes = floats});
  add({.name = "silu_grad",
       .args = "dout: Tensor, input: Tensor",
       .doc = "dout * s * (1 + input * (1 - s)) with s = sigmoid(input).",
       .loop =
           [](const Expr& d, const Expr& x) {
             const Expr s = sigmoid(x);
             return d * (s * (1.0 + x * (1.0 - s)));
           },
       .grad =
           [](const GradCall& g) {
             return second(g, "silu_grad", [](Builder& b, const Sym& x, const GradCall&) {
               const Sym s = b("sigmoid", x);
               return s * (1.0 - s) * (2.0 + x * (1.0 - 2.0 * s));
             });
           },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "mish",
       .args = "x: Tensor",
       .doc = "x * tanh(log(1 + exp(x))).",
       .loop = [](const Expr& x) { return x * tanh_softplus(x); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "mish_grad", g.dout())}; },
       .saves = input_only,
       .dtypes = floats,
       .onnx = {{"Mish", 18}}});
  add({.name = "mish_grad",
       .args = "dout: Tensor, input: Tensor",
       .doc = "dout times the derivative of mish.",
       .loop =
           [](const Expr& d, const Expr& x) {
             const Expr t = tanh_softplus(x);
             return d * (t + x * (1.0 - t * t) * sigmoid(x));
           },
       .grad =
           [](const GradCall& g) {
             return second(g, "mish_grad", [](Builder& b, const Sym& x, const GradCall&) {
               const Sym s = b("sigmoid", x), t = b("tanh", b("softplus", x)), sech = 1.0 - t * t;
               return sech * s * (2.0 + x * (1.0 - s) - 2.0 * x * t * s);
             });
           },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "softplus",
       .args = "input: Tensor, beta: float = 1, threshold: float = 20",
       .doc = "log(1 + exp(beta * input)) / beta; input itself where beta * input > threshold.",
       .loop =
           [](const Expr& x, const Expr& beta, const Expr& threshold) {
             const Expr scaled = x * beta;
             return where(scaled > threshold, x, log1p(exp(min(scaled, threshold))) / beta);
           },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "softplus_grad", g.dout())}; },
       .saves = input_only,
       .dtypes = floats,
       .onnx = {{"Softplus", 1, "input; beta == 1, threshold == 20"}}});
  add({.name = "softplus_grad",
       .args = "dout: Tensor, input: Tensor, beta: float, threshold: float",
       .doc = "dout * sigmoid(beta * input); dout where beta * input > threshold.",
       .loop =
           [](const Expr& d, const Expr& x, const Expr& beta, const Expr& threshold) {
             const Expr scaled = x * beta;
             return where(scaled > threshold, d, d * sigmoid(scaled));
           },
       .grad =
           [](const GradCall& g) {
             return second(g, "softplus_grad", [](Builder& b, const Sym& x, const GradCall& g) {
               const Sym scaled = x * g.number("beta"), s = b("sigmoid", scaled);
               return b("where", b("greater", scaled, g.number("threshold")), 0.0, s * (1.0 - s) * g.number("beta"));
             });
           },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "softsign",
       .args = "x: Tensor",
       .doc = "x / (1 + |x|).",
       .loop = [](const Expr& x) { return x / (1.0 + abs(x)); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "softsign_grad", g.dout())}; },
       .saves = input_only,
       .dtypes = floats,
       .onnx = {{"Softsign", 1}}});
  add({.name = "softsign_grad",
       .args = "dout: Tensor, input: Tensor",
       .doc = "dout / (1 + |input|)^2.",
       .loop =
           [](const Expr& d, const Expr& x) {
             const Expr scale = 1.0 + abs(x);
             return d / (scale * scale);
           },
       .grad =
           [](const GradCall& g) {
             return second(g, "softsign_grad", [](Builder& b, const Sym& x, const GradCall&) {
               const Sym scale = b("abs", x) + 1.0;
               return b("sign", x) * -2.0 / (scale * scale * scale);
             });
           },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "logsigmoid",
       .args = "x: Tensor",
       .doc = "log(sigmoid(x)), exact for large negative x.",
       .loop = [](const Expr& x) { return min(x, constant_like(0, x)) - log1p(exp(-abs(x))); },
       .grad = [](const GradCall& g) -> Syms { return {backward(g, "logsigmoid_grad", g.dout())}; },
       .saves = input_only,
       .dtypes = floats});
  add({.name = "logsigmoid_grad",
       .args = "dout: Tensor, input: Tensor",
       .doc = "dout * sigmoid(-input).",
       .loop = [](const Expr& d, const Expr& x) { return d / (1.0 + exp(x)); },
       .grad =
           [](const GradCall& g) {
             return second(g, "logsigmoid_grad", [](Builder& b, const Sym& x, const GradCall&) {
               const Sym s = b("sigmoid", x);
               return s * (s - 1.0);
             });
           },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "tanhshrink",
       .args = "input: Tensor",
       .doc = "input - tanh(input).",
       .compose = [](const Call& c) -> Syms { return {c[0] - c.builder()("tanh", c[0])}; }});
  add({.name = "glu_loop",
       .args = "input: Tensor, gate: Tensor",
       .doc = "input * sigmoid(gate).",
       .loop = [](const Expr& x, const Expr& gate) { return x * sigmoid(gate); },
       .grad = [](const GradCall& g) -> Syms {
         const Sym s = g.builder()("sigmoid", g[1]), dx = g.dout() * s;
         return {dx, g.needs(1) ? dx * g[0] * (1.0 - s) : Sym()};
       },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "glu",
       .args = "x: Tensor, axis: axis = -1",
       .doc = "First half of x along axis times the sigmoid of the second half.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const int64_t axis = c.axis("axis", c.rank(0));
         const Dim n = c.rank(0) ? c.shape(0)[static_cast<size_t>(axis)] : Dim(1);
         MOREL_CHECK(n % 2 == 0, Value, "For 'Glu', axis ", axis, " of ", to_string(c.value(0)),
                     " must have an even length, but got ", n);
         const Sym halves = b("split", c[0], n / 2, axis);
         return {b("glu_loop", halves.item(0), halves.item(1))};
       }});
}

// ---- softmax ----

// exp(x - max) of a row and its sum. A row of -inf alone gives NaN, as 0 / 0.
void register_softmax(Family& add) {
  add({.name = "softmax_rows",
       .args = "input: Tensor, axis: axis",
       .doc = "exp(input) / sum(exp(input)) along axis.",
       .rows =
           [](ProgramBuilder& rows, DType dtype) {
             const Expr x = rows.input(dtype), e = exp_nonpositive(x - rows.max(x));
             const int64_t out = rows.output(dtype), kept = rows.scratch(compute_dtype(dtype));
             const Expr again = rows.store(kept, e);
             rows.store(out, again * (1.0 / rows.sum(again)));
           },
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("softmax_grad", g.dout(), g.out(), g["axis"])}; },
       .saves = output_only,
       .flags = kHidden,
       .dtypes = floats,
       .onnx = {{"Softmax", 13, "input; axis <- axis = -1"}}});
  add({.name = "softmax_grad",
       .args = "dout: Tensor, out: Tensor, axis: axis",
       .doc = "out * (dout - sum(dout * out)).",
       .rows =
           [](ProgramBuilder& rows, DType dtype) {
             const Expr d = rows.input(dtype), y = rows.input(dtype);
             const int64_t out = rows.output(dtype);
             rows.store(out, y * (d - rows.sum(d * y)));
           },
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         const Sym v = g.dout(), d = g[0], y = g[1];
         Sym dy;
         if (g.needs(1)) dy = v * (d - b("sum", d * y, g["axis"], true)) - d * b("sum", v * y, g["axis"], true);
         return {b("softmax_grad", v, y, g["axis"]), dy};
       },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "log_softmax",
       .args = "logits: Tensor, axis: axis = -1",
       .doc = "logits - log(sum(exp(logits))) along axis.",
       .rows =
           [](ProgramBuilder& rows, DType dtype) {
             const Expr x = rows.input(dtype), largest = rows.max(x);
             const int64_t out = rows.output(dtype);
             rows.store(out, x - largest - log(rows.sum(exp_nonpositive(x - largest))));
           },
       .grad = [](const GradCall& g) -> Syms {
         return {g.builder()("log_softmax_grad", g.dout(), g.out(), g["axis"])};
       },
       .saves = output_only,
       .dtypes = floats,
       .onnx = {{"LogSoftmax", 13, "logits; axis <- axis = -1"}}});
  add({.name = "log_softmax_grad",
       .args = "dout: Tensor, out: Tensor, axis: axis",
       .doc = "dout - exp(out) * sum(dout).",
       .rows =
           [](ProgramBuilder& rows, DType dtype) {
             const Expr d = rows.input(dtype), y = rows.input(dtype);
             const int64_t out = rows.output(dtype);
             rows.store(out, d - exp_nonpositive(y) * rows.sum(d));
           },
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         const Sym v = g.dout(), weighted = v * b("exp", g[1]);
         return {v - b("sum", weighted, g["axis"], true),
                 g.needs(1) ? -(weighted * b("sum", g[0], g["axis"], true)) : Sym()};
       },
       .saves = both,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "softmax",
       .args = "input: Tensor, axis: axis = -1, *, dtype: dtype? = None",
       .doc = "exp(input) / sum(exp(input)) along axis; input is converted to dtype first where that is given.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         return {b("softmax_rows", c.has("dtype") ? b("cast", c[0], c["dtype"]) : c[0], c["axis"])};
       }});
}

}  // namespace

void register_activation(Registry& registry) {
  Family add(registry, "activation");
  register_piecewise(add);
  register_exponential(add);
  register_gelu(add);
  register_smooth(add);
  register_softmax(add);
}

}  // namespace morel
