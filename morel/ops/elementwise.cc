// Arithmetic and mathematical functions, element by element.
#include "morel/ops/registry.h"

namespace morel {
namespace {

using namespace loops;  // NOLINT: the rules are formulas over loops::Expr

// The conjugate where numbers are complex: gradients of holomorphic functions multiply with it.
Sym conj_of(const Sym& x) { return is_complex(x.dtype()) ? x.builder()("conj", x) : x; }

constexpr DTypeSet float_like = floats | complexes;
constexpr Saves input_only{bits({0}), 0};
constexpr Saves output_only{0, bits({0})};
constexpr Saves both{bits({0, 1}), 0};
constexpr Saves crosswise{bits({0, 1}), 0, true};

void register_arithmetic(Family& add) {
  add({.name = "add",
       .args = "input: Tensor|number, other: Tensor|number",
       .doc = "input + other, element by element, with broadcasting.",
       .loop = [](const Expr& x, const Expr& y) { return x.dtype() == DType::Bool ? (x || y) : x + y; },
       .grad = [](const GradCall& g) -> Syms {
         return {g.dout(), g.dout()};
       },
       .int8 = "int8_add",
       .onnx = {{"Add", 7, "input, other; input is no bool"}}});
  add({.name = "sub",
       .args = "input: Tensor|number, other: Tensor|number",
       .doc = "input - other, element by element, with broadcasting.",
       .loop = [](const Expr& x, const Expr& y) { return x - y; },
       .grad = [](const GradCall& g) -> Syms {
         return {g.dout(), g.needs(1) ? -g.dout() : Sym()};
       },
       .dtypes = numbers,
       .onnx = {{"Sub", 7}}});
  add({.name = "mul",
       .args = "input: Tensor|number, other: Tensor|number",
       .doc = "input * other, element by element, with broadcasting.",
       .loop = [](const Expr& x, const Expr& y) { return x.dtype() == DType::Bool ? (x && y) : x * y; },
       .grad = [](const GradCall& g) -> Syms {
         return {g.needs(0) ? g.dout() * conj_of(g[1]) : Sym(), g.needs(1) ? g.dout() * conj_of(g[0]) : Sym()};
       },
       .saves = crosswise,
       .onnx = {{"Mul", 7, "input, other; input is no bool"}}});
  add({.name = "true_divide",
       .args = "input: Tensor|number, other: Tensor|number",
       .doc = "input / other, element by element, with broadcasting; integers divide as float32.",
       .loop = [](const Expr& x, const Expr& y) { return x / y; },
       .grad = [](const GradCall& g) -> Syms {
         const Sym scaled = g.dout() / conj_of(g[1]);
         return {scaled, g.needs(1) ? -(scaled * conj_of(g[0] / g[1])) : Sym()};
       },
       .saves = both,
       .promotion = Promotion::Float,
       .dtypes = float_like,
       .onnx = {{"Div", 7, "input, other; input is no integer"}}});
  add({.name = "floor_divide",
       .args = "input: Tensor|number, other: Tensor|number",
       .doc = "floor(input / other), element by element; the quotient rounds towards negative infinity.",
       .loop = [](const Expr& x, const Expr& y) { return floor_div(x, y); },
       .flags = kNoGrad,
       .dtypes = reals});
  add({.name = "trunc_divide",
       .args = "input: Tensor|number, other: Tensor|number",
       .doc = "trunc(input / other), element by element; the quotient rounds towards zero.",
       .loop = [](const Expr& x, const Expr& y) { return trunc_div(x, y); },
       .flags = kNoGrad | kHidden,
       .dtypes = reals,
       .onnx = {{"Div", 7, "input, other; input is integer"}}});
  add({.name = "div",
       .args = "input: Tensor|number, other: Tensor|number, *, rounding_mode: str? = None",
       .doc = "input / other; rounding_mode 'floor' or 'trunc' rounds the quotient, None divides exactly.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         if (!c.has("rounding_mode")) return {b("true_divide", c[0], c[1])};
         const std::string& mode = c.str("rounding_mode");
         MOREL_CHECK(mode == "floor" || mode == "trunc", Value,
                     "For 'Div', 'rounding_mode' must be None, 'floor' or 'trunc', but got '", mode, "'");
         return {mode == "floor" ? b("floor_divide", c[0], c[1]) : b("trunc_divide", c[0], c[1])};
       }});
  add({.name = "floor_mod",
       .args = "input: Tensor|number, other: Tensor|number",
       .doc = "input - floor(input / other) * other: the remainder has the sign of other.",
       .loop = [](const Expr& x, const Expr& y) { return mod(x, y); },
       .grad = [](const GradCall& g) -> Syms {
         return {g.dout(), g.needs(1) ? -(g.dout() * g.builder()("floor_divide", g[0], g[1])) : Sym()};
       },
       .saves = both,
       .dtypes = reals,
       .onnx = {{"Mod", 10, "input, other; 0 <- fmod = 0, input is integer"},
                {"Mod", 26, "input, other; 0 <- fmod = 0"}}});
  add({.name = "fmod",
       .args = "input: Tensor|number, other: Tensor|number",
       .doc = "input - trunc(input / other) * other: the remainder has the sign of input.",
       .loop = [](const Expr& x, const Expr& y) { return rem(x, y); },
       .grad = [](const GradCall& g) -> Syms {
         return {g.dout(), g.needs(1) ? -(g.dout() * g.builder()("trunc_divide", g[0], g[1])) : Sym()};
       },
       .saves = both,
       .dtypes = reals,
       .onnx = {{"Mod", 10, "input, other; 1 <- fmod = 0"}}});
  add({.name = "pow",
       .args = "input: Tensor|number, exponent: Tensor|number",
       .doc = "input to the power of exponent, element by element, with broadcasting.",
       .loop = [](const Expr& x, const Expr& y) { return pow(x, y); },
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         const Sym x = g[0], y = g[1];
         Sym dx, dy;
         if (g.needs(0)) dx = g.dout() * conj_of(y * b("pow", x, y - 1.0));
         if (g.needs(1)) {  // x^y log x, and 0 where x is 0
           const Sym base = is_complex(x.dtype()) ? x : b("where", b("equal", x, 0.0), 1.0, x);
           dy = g.dout() * conj_of(g.out() * b("log", base));
         }
         return {dx, dy};
       },
       .saves = {bits({0, 1}), bits({0})},
       .dtypes = numbers,
       .onnx = {{"Pow", 7, "input, exponent -> input"}}});
  const auto extremum_grad = [](const GradCall& g) -> Syms {
    // Where both are equal, each gets half.
    Builder& b = g.builder();
    const Sym first = b("equal", g[0], g.out()), second = b("equal", g[1], g.out());
    const Sym shared = b("where", b("logical_and", first, second), g.dout() * 0.5, g.dout());
    return {b("where", first, shared, 0.0), b("where", second, shared, 0.0)};
  };
  add({.name = "maximum",
       .args = "input: Tensor|number, other: Tensor|number",
       .doc = "The larger of input and other, element by element; NaN wins.",
       .loop = [](const Expr& x, const Expr& y) { return max(x, y); },
       .grad = extremum_grad,
       .saves = {bits({0, 1}), bits({0})},
       .dtypes = reals | bools,
       .onnx = {{"Max", 8, "input, other...; input is no bool"}}});
  add({.name = "minimum",
       .args = "input: Tensor|number, other: Tensor|number",
       .doc = "The smaller of input and other, element by element; NaN wins.",
       .loop = [](const Expr& x, const Expr& y) { return min(x, y); },
       .grad = extremum_grad,
       .saves = {bits({0, 1}), bits({0})},
       .dtypes = reals | bools,
       .onnx = {{"Min", 8, "input, other...; input is no bool"}}});
  add({.name = "atan2",
       .args = "input: Tensor|number, other: Tensor|number",
       .doc = "Angle of the point (other, input) in radians, in (-pi, pi].",
       .loop = [](const Expr& y, const Expr& x) { return atan2(y, x); },
       .grad = [](const GradCall& g) -> Syms {
         const Sym scaled = g.dout() / (g[0] * g[0] + g[1] * g[1]);
         return {scaled * g[1], g.needs(1) ? -(scaled * g[0]) : Sym()};
       },
       .saves = both,
       .promotion = Promotion::Float,
       .dtypes = floats});
}

void register_ternary(Family& add) {
  add({.name = "where",
       .args = "condition: Tensor|number, input: Tensor|number, other: Tensor|number",
       .doc = "Elements of input where condition holds, of other elsewhere, with broadcasting.",
       .loop = [](const Expr& c, const Expr& x, const Expr& y) { return where(c, x, y); },
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         return {Sym(), g.needs(1) ? b("where", g[0], g.dout(), 0.0) : Sym(),
                 g.needs(2) ? b("where", g[0], 0.0, g.dout()) : Sym()};
       },
       .saves = {bits({0}), 0},
       .bool_args = bits({0}),
       .onnx = {{"Where", 9}}});
  add({.name = "lerp",
       .args = "input: Tensor, end: Tensor, weight: Tensor|number",
       .doc = "input + weight * (end - input), element by element.",
       .loop = [](const Expr& x, const Expr& end, const Expr& w) { return x + w * (end - x); },
       .grad = [](const GradCall& g) -> Syms {
         return {g.dout() * (1.0 - g[2]), g.dout() * g[2], g.needs(2) ? g.dout() * (g[1] - g[0]) : Sym()};
       },
       .saves = {bits({0, 1, 2}), 0},
       .dtypes = floats});
  add({.name = "addcmul",
       .args = "input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Tensor|number = 1",
       .doc = "input + value * tensor1 * tensor2, element by element.",
       .loop = [](const Expr& x, const Expr& a, const Expr& b, const Expr& value) { return x + value * a * b; },
       .grad = [](const GradCall& g) -> Syms {
         const Sym scaled = g.dout() * g[3];
         return {g.dout(), scaled * g[2], scaled * g[1], g.needs(3) ? g.dout() * g[1] * g[2] : Sym()};
       },
       .saves = {bits({1, 2, 3}), 0},
       .dtypes = reals});
  add({.name = "addcdiv",
       .args = "input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Tensor|number = 1",
       .doc = "input + value * tensor1 / tensor2, element by element.",
       .loop = [](const Expr& x, const Expr& a, const Expr& b, const Expr& value) { return x + value * a / b; },
       .grad = [](const GradCall& g) -> Syms {
         const Sym scaled = g.dout() * g[3] / g[2];
         return {g.dout(), scaled, -(scaled * (g[1] / g[2])), g.needs(3) ? g.dout() * g[1] / g[2] : Sym()};
       },
       .saves = {bits({1, 2, 3}), 0},
       .promotion = Promotion::Float,
       .dtypes = floats});
  add({.name = "clamp",
       .args = "input: Tensor, min: Tensor|number? = None, max: Tensor|number? = None",
       .doc = "input limited to [min, max]; one of the two may be None.",
       .compose = [](const Call& c) -> Syms {
         MOREL_CHECK(c.has("min") || c.has("max"), Value, "For 'Clamp', one of 'min' and 'max' must not be None");
         Builder& b = c.builder();
         Sym x = c[0];
         // At the bounds themselves the gradient is that of input: select, instead of maximum's halving.
         if (c.has("min")) x = b("where", b("less", x, c[1]), c[1], x);
         if (c.has("max")) x = b("where", b("greater", x, c[2]), c[2], x);
         return {x};
       },
       .onnx = {{"Clip", 6, "input, min <- min@11, max <- max@11; rank(min) == 0, rank(max) == 0"}}});
}

struct UnaryEntry {
  std::string_view name, doc;
  Expr (*loop)(const Expr&);
  Sym (*derivative)(Builder& b, const Sym& x, const Sym& y);  // dy/dx from input x or output y
  Saves saves;
  std::string_view onnx;
  DTypeSet dtypes = float_like;
};

// Functions with float results: integers compute in float32.
const UnaryEntry float_functions[] = {
    {"exp", "e to the power of input.", exp, [](Builder&, const Sym&, const Sym& y) { return y; }, output_only, "Exp"},
    {"exp2", "2 to the power of input.", exp2,
     [](Builder&, const Sym&, const Sym& y) { return y * 0.6931471805599453; }, output_only, "", floats},
    {"expm1", "exp(input) - 1, exact for small input.", expm1,
     [](Builder&, const Sym&, const Sym& y) { return y + 1.0; }, output_only, "", floats},
    {"log", "Natural logarithm.", log, [](Builder&, const Sym& x, const Sym&) { return 1.0 / x; }, input_only, "Log"},
    {"log2", "Logarithm to base 2.", log2, [](Builder&, const Sym& x, const Sym&) { return 1.4426950408889634 / x; },
     input_only, "", floats},
    {"log10", "Logarithm to base 10.", log10, [](Builder&, const Sym& x, const Sym&) { return 0.4342944819032518 / x; },
     input_only, "", floats},
    {"log1p", "log(1 + input), exact for small input.", log1p,
     [](Builder&, const Sym& x, const Sym&) { return 1.0 / (x + 1.0); }, input_only, "", floats},
    {"sqrt", "Square root.", sqrt, [](Builder&, const Sym&, const Sym& y) { return 0.5 / y; }, output_only, "Sqrt"},
    {"rsqrt", "1 / sqrt(input).", [](const Expr& x) { return 1.0 / sqrt(x); },
     [](Builder&, const Sym&, const Sym& y) { return -0.5 * (y * y * y); }, output_only, ""},
    {"reciprocal", "1 / input.", [](const Expr& x) { return 1.0 / x; },
     [](Builder&, const Sym&, const Sym& y) { return -(y * y); }, output_only, "Reciprocal"},
    {"sin", "Sine of an angle in radians.", sin, [](Builder& b, const Sym& x, const Sym&) { return b("cos", x); },
     input_only, "Sin"},
    {"cos", "Cosine of an angle in radians.", cos, [](Builder& b, const Sym& x, const Sym&) { return -b("sin", x); },
     input_only, "Cos"},
    {"tan", "Tangent of an angle in radians.", tan, [](Builder&, const Sym&, const Sym& y) { return y * y + 1.0; },
     output_only, "Tan"},
    {"asin", "Inverse sine, in radians.", asin,
     [](Builder& b, const Sym& x, const Sym&) { return b("rsqrt", 1.0 - x * x); }, input_only, "Asin"},
    {"acos", "Inverse cosine, in radians.", acos,
     [](Builder& b, const Sym& x, const Sym&) { return -b("rsqrt", 1.0 - x * x); }, input_only, "Acos"},
    {"atan", "Inverse tangent, in radians.", atan,
     [](Builder&, const Sym& x, const Sym&) { return 1.0 / (x * x + 1.0); }, input_only, "Atan"},
    {"sinh", "Hyperbolic sine.", sinh, [](Builder& b, const Sym& x, const Sym&) { return b("cosh", x); }, input_only,
     "Sinh"},
    {"cosh", "Hyperbolic cosine.", cosh, [](Builder& b, const Sym& x, const Sym&) { return b("sinh", x); }, input_only,
     "Cosh"},
    {"tanh", "Hyperbolic tangent.", tanh, [](Builder&, const Sym&, const Sym& y) { return 1.0 - y * y; }, output_only,
     "Tanh"},
    {"asinh", "Inverse hyperbolic sine.", asinh,
     [](Builder& b, const Sym& x, const Sym&) { return b("rsqrt", x * x + 1.0); }, input_only, "Asinh"},
    {"acosh", "Inverse hyperbolic cosine.", acosh,
     [](Builder& b, const Sym& x, const Sym&) { return b("rsqrt", (x - 1.0) * (x + 1.0)); }, input_only, "Acosh",
     floats},
    {"atanh", "Inverse hyperbolic tangent.", atanh,
     [](Builder&, const Sym& x, const Sym&) { return 1.0 / (1.0 - x * x); }, input_only, "Atanh"},
    {"erf", "Error function 2/sqrt(pi) * integral of exp(-t^2) from 0 to input.", erf,
     [](Builder& b, const Sym& x, const Sym&) { return 1.1283791670955126 * b("exp", -(x * x)); }, input_only, "Erf",
     floats},
    {"erfc", "1 - erf(input), exact where erf is near 1.", erfc,
     [](Builder& b, const Sym& x, const Sym&) { return -1.1283791670955126 * b("exp", -(x * x)); }, input_only, "",
     floats},
    {"sigmoid", "1 / (1 + exp(-input)).", [](const Expr& x) { return 1.0 / (1.0 + exp(-x)); },
     [](Builder&, const Sym&, const Sym& y) { return y * (1.0 - y); }, output_only, "Sigmoid"},
};

// Functions that keep the dtype of their input.
const UnaryEntry same_functions[] = {
    {"neg", "-input.", [](const Expr& x) { return -x; }, nullptr, {}, "Neg", numbers},
    {"square", "input * input.", [](const Expr& x) { return x * x; },
     [](Builder&, const Sym& x, const Sym&) { return x * 2.0; }, input_only, "", numbers},
    {"floor", "Largest integer not above input.", floor, nullptr, {}, "Floor", reals},
    {"ceil", "Smallest integer not below input.", ceil, nullptr, {}, "Ceil", reals},
    {"trunc", "Integer part of input.", trunc, nullptr, {}, "", reals},
    {"round_even", "Nearest integer; ties go to the even one.", round, nullptr, {}, "Round", reals},
};

Syms zero_grad(const GradCall& g) { return {g.builder()("zeros", Ints(g.shape(0)), g.tensor_dtype(0))}; }

void register_unary(Family& add) {
  for (const UnaryEntry& entry : float_functions) {
    OpDef op{.name = entry.name, .args = "input: Tensor|number", .doc = entry.doc, .loop = entry.loop};
    op.saves = entry.saves;
    op.promotion = Promotion::Float;
    op.dtypes = entry.dtypes;
    if (!entry.onnx.empty()) op.onnx = {{entry.onnx, 6}};
    op.derivative = entry.derivative;
    add(std::move(op));
  }
  for (const UnaryEntry& entry : same_functions) {
    OpDef op{.name = entry.name, .args = "input: Tensor|number", .doc = entry.doc, .loop = entry.loop};
    op.saves = entry.saves;
    op.dtypes = entry.dtypes;
    if (!entry.onnx.empty()) op.onnx = {{entry.onnx, 6}};
    if (entry.derivative) {
      op.derivative = entry.derivative;
    } else if (entry.name == "neg") {
      op.grad = [](const GradCall& g) -> Syms { return {-g.dout()}; };
    } else {  // piecewise constant
      op.grad = zero_grad;
    }
    add(std::move(op));
  }
  add({.name = "abs",
       .args = "input: Tensor|number",
       .doc = "Absolute value; of complex numbers the modulus.",
       .loop = [](const Expr& x) { return abs(x); },
       .grad = [](const GradCall& g) -> Syms { return {g.dout() * g.builder()("sign", g[0])}; },
       .saves = input_only,
       .promotion = Promotion::Real,
       .dtypes = numbers,
       .onnx = {{"Abs", 6}}});
  add({.name = "sign",
       .args = "input: Tensor|number",
       .doc = "-1, 0 or 1 by the sign of input; NaN stays. Of complex numbers input / |input|, and 0 at 0.",
       .loop =
           [](const Expr& x) {
             if (is_complex(x.dtype())) {
               const Expr modulus = cast(abs(x), x.dtype());
               return where(modulus == constant_like(0, modulus), modulus, x / modulus);
             }
             const Expr zero = constant_like(0, x), one = constant_like(1, x);
             const Expr positive = where(x > zero, one, zero);
             if (info(x.dtype()).kind == DTypeKind::UInt) return positive;
             const Expr out = where(x < zero, constant_like(-1, x), positive);
             return is_float(x.dtype()) ? where(isnan(x), x, out) : out;
           },
       .grad = zero_grad,
       .dtypes = numbers,
       .onnx = {{"Sign", 9}}});
  add({.name = "conj",
       .args = "input: Tensor|number",
       .doc = "Complex conjugate; real numbers stay.",
       .loop = [](const Expr& x) { return is_complex(x.dtype()) ? conj(x) : x + constant_like(0, x); },
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("conj", g.dout())}; },
       .dtypes = numbers});
  add({.name = "real",
       .args = "input: Tensor|number",
       .doc = "Real part.",
       .loop = [](const Expr& x) { return is_complex(x.dtype()) ? real(x) : x + constant_like(0, x); },
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("cast", g.dout(), g.tensor_dtype(0))}; },
       .promotion = Promotion::Real,
       .dtypes = numbers});
  add({.name = "imag",
       .args = "input: Tensor|number",
       .doc = "Imaginary part; 0 of real numbers.",
       .loop = [](const Expr& x) { return is_complex(x.dtype()) ? imag(x) : x - x; },
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         if (!is_complex(g.tensor_dtype(0))) return {b("zeros_like", g.dout())};
         return {b("complex", b("zeros_like", g.dout()), g.dout())};
       },
       .promotion = Promotion::Real,
       .dtypes = numbers});
}

}  // namespace

void register_elementwise(Registry& registry) {
  Family add(registry, "elementwise");
  register_arithmetic(add);
  register_ternary(add);
  register_unary(add);
}

}  // namespace morel
