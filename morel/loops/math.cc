// Coefficients are minimax polynomials with float32 (for pow: float64) coefficients, computed with Sollya's fpminimax
// (N. Brisebarre, S. Chevillard, "Efficient polynomial L-infinity approximations", ARITH 2007). Where a product must be
// exact without fma, constants are split so that their upper part has few bits (Cody and Waite, "Software Manual for
// the Elementary Functions", 1980). Every function has one formula for machines with and without fma.
#include "morel/loops/math.h"

#include <initializer_list>
#include <limits>
#include <vector>

namespace morel::loops {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double smallest_normal = 0x1p-126;
constexpr double log2e = 0x1.715476p+0;

// ------------------------------------------------------------------------------------------------ building blocks

Expr i32(double value) { return constant(value, DType::Int32); }
Expr f32(double value) { return constant(value, DType::Float32); }
Expr bits_of(const Expr& x) { return bitcast(x, DType::Int32); }
Expr float_of(const Expr& bits) { return bitcast(bits, DType::Float32); }

// Coefficients from the lowest degree up (Horner's scheme).
Expr polynomial(const Expr& x, std::initializer_list<double> coefficients) {
  const std::vector<double> c(coefficients);
  Expr out = constant_like(c.back(), x);
  for (size_t i = c.size() - 1; i-- > 0;) out = fma(out, x, constant_like(c[i], x));
  return out;
}

// Limits of a range that let NaN pass; these forms are single instructions.
Expr at_most(const Expr& x, double limit) { return where(constant_like(limit, x) < x, constant_like(limit, x), x); }
Expr at_least(const Expr& x, double limit) { return where(constant_like(limit, x) > x, constant_like(limit, x), x); }

Expr copysign(const Expr& magnitude, const Expr& sign) {
  return float_of(bit_or(bits_of(magnitude), bit_and(bits_of(sign), i32(-0x1p31))));
}

// 2^n for n in [-126, 127].
Expr power_of_two(const Expr& n) { return float_of(shl(n + 127.0, i32(23))); }
// x 2^n for n in [-252, 254].
Expr scale(const Expr& x, const Expr& n) {
  const Expr half = shr(n, i32(1));
  return x * power_of_two(half) * power_of_two(n - half);
}
// x 2^(n-1) for |x| < 4 and n in [-150, 128]; k is n as int32, of any value where n is NaN. Results of the denormal
// range are rounded as integers, which are their bits: floating-point units take about 150 cycles for a denormal
// result, or for an underflow to 0.
Expr scale_half(const Expr& x, const Expr& n, const Expr& k) {
  const Expr small = n < -125.0;
  const Expr value = x * power_of_two(where(small, k + 148.0, k - 1.0));
  return where(small, float_of(cast(round(value), DType::Int32)), value);
}

// ------------------------------------------------------------------------------------------------ exponentials

struct Reduced {
  Expr n;  // float32
  Expr k;  // the same as int32
  Expr r;
};

// x = n ln2 + r with |r| <= ln2 / 2 (a bit more); n comes out of the low bits of a sum with 1.5 2^23.
Reduced reduce_exp(const Expr& x) {
  const Expr shifted = fma(x, log2e, 0x1.8p23);
  const Expr n = shifted - 0x1.8p23;
  const Expr r = fma(n, -0x1.63p-1, x);  // 9 bits: the product is exact
  return {n, bits_of(shifted) - 0x4b400000, fma(n, 0x1.bd0106p-13, r)};
}

// e^r - 1 for |r| <= ln2 / 2.
Expr expm1_polynomial(const Expr& r) {
  const Expr p = polynomial(r, {0x1.fffffap-2, 0x1.55548ap-3, 0x1.555a12p-5, 0x1.123f7cp-7, 0x1.696e4ep-10});
  return fma(p * r, r, r);
}
Expr exp_polynomial(const Expr& r) { return expm1_polynomial(r) + 1.0; }

// e^x / 2 for x in [-80, 90].
Expr exp_half(const Expr& x) {
  const auto [n, k, r] = reduce_exp(x);
  return scale(exp_polynomial(r), k - 1.0);
}
// e^x for |x| <= 80: no denormal results, one factor.
Expr exp_narrow(const Expr& x) {
  const auto [n, k, r] = reduce_exp(x);
  return exp_polynomial(r) * power_of_two(k);
}

Expr exp_f32(const Expr& x) {
  const auto [n, k, r] = reduce_exp(at_least(at_most(x, 89), -104));
  return scale_half(fma(expm1_polynomial(r), f32(2.0), f32(2.0)), n, k);
}

// One factor 2^n, whose biased exponent is the low byte of `shifted`; it is 0.0 from n = -127 on.
Expr exp_nonpositive_f32(const Expr& x) {
  const Expr limited = at_least(x, -0x1.601e68p6);  // -127 ln 2
  const Expr shifted = fma(limited, log2e, 0x1.8000fep23);
  const Expr n = shifted - 0x1.8000fep23;
  const Expr r = fma(n, 0x1.bd0106p-13, fma(n, -0x1.63p-1, limited));
  const Expr p = polynomial(r, {1, 0x1.fffff6p-1, 0x1.fffdc2p-2, 0x1.555a7ap-3, 0x1.573ba8p-5, 0x1.0fa46cp-7});
  return p * float_of(shl(bits_of(shifted), i32(23)));
}

// 2^(r+1).
Expr exp2_polynomial(const Expr& r) {
  return polynomial(r, {2, 0x1.62e43p0, 0x1.ebfbd8p-2, 0x1.c6af76p-4, 0x1.3b30ap-6, 0x1.5f0b82p-9, 0x1.3fa206p-12});
}

Expr exp2_f32(const Expr& x) {
  const Expr limited = at_least(at_most(x, 128), -150);
  const Expr shifted = limited + 0x1.8p23;
  const Expr n = shifted - 0x1.8p23;
  return scale_half(exp2_polynomial(limited - n), n, bits_of(shifted) - 0x4b400000);
}

// With t = 2^(n-1): e^x - 1 = 2 (t (e^r - 1) + (t - 1/2)).
Expr expm1_f32(const Expr& x) {
  const auto [n, k, r] = reduce_exp(at_least(at_most(x, 89), -18));
  const Expr p = polynomial(r, {0.5, 0x1.555554p-3, 0x1.5554ecp-5, 0x1.1112fcp-7, 0x1.6d495p-10, 0x1.9e2a52p-13});
  const Expr t = power_of_two(k - 1.0);
  const Expr value = fma(fma(p * r, r, r), t, t - 0.5) * 2.0;
  return where(abs(x) < 0x1p-25, x, value);  // keeps -0 and denormals
}

Expr sinh_f32(const Expr& x) {
  const Expr a = abs(x), z = x * x;
  const Expr small = fma(polynomial(z, {0x1.555556p-3, 0x1.1110eap-7, 0x1.a01c22p-13, 0x1.76771ep-19}) * z, x, x);
  const Expr half = exp_half(at_most(a, 90));
  return where(a < 1.0, small, copysign(half - 0.25 / half, x));
}

Expr cosh_f32(const Expr& x) {
  const Expr half = exp_half(at_most(abs(x), 90));
  return half + 0.25 / half;
}

Expr tanh_f32(const Expr& x) {
  const Expr a = abs(x), z = x * x;
  const Expr small =
      fma(polynomial(z, {-0x1.555524p-2, 0x1.1103fp-3, -0x1.b7cfbap-5, 0x1.4f5dap-6, -0x1.696b9cp-8}) * z, a, a);
  const Expr e = exp_narrow(at_most(a, 10) * 2.0);  // tanh is 1 to float32 from 9.02 on
  return copysign(where(a < 0.65, small, 1.0 - 2.0 / (e + 1.0)), x);
}

// ------------------------------------------------------------------------------------------------ logarithms

// log(1 + f) - f for f in [sqrt(1/2) - 1, sqrt(2) - 1], less -f^2 / 2: the cubic rest.
Expr log_cubic(const Expr& f) {
  const Expr p = polynomial(f, {0x1.55557p-2, -0x1.000234p-2, 0x1.99944ep-3, -0x1.5466fep-3, 0x1.239ce2p-3,
                                -0x1.0e96ccp-3, 0x1.015974p-3, -0x1.2a6f78p-4});
  return p * f * (f * f);
}

struct Split {
  Expr e;  // float32
  Expr m;
};

constexpr double sqrt_half_bits = 0x3f3504f3;

// x = m 2^e with m in [sqrt(1/2), sqrt(2)), for finite x > 0.
Split split(const Expr& x) {
  const Expr small = x < smallest_normal;
  const Expr bits = bits_of(where(small, x * 0x1p23, x));
  const Expr k = shr(bits - sqrt_half_bits, i32(23));
  const Expr e = cast(k, DType::Float32);
  return {where(small, e - 23.0, e), float_of(bits - shl(k, i32(23)))};
}

// `value` where 0 < x < inf, and the limits elsewhere.
Expr finish_log(const Expr& x, const Expr& value) {
  const Expr out = where(x < infinity, value, x);
  return where(x == 0.0, f32(-infinity), where(x < 0.0, f32(not_a_number), out));
}

// e ln2 + log(1 + f); the upper part of ln2 has 9 bits, so its product with e is exact.
Expr log_sum(const Expr& e, const Expr& f) {
  const Expr rest = fma(f * f, -0.5, fma(e, -0x1.bd0106p-13, log_cubic(f)));
  return fma(e, 0x1.63p-1, f + rest);
}

Expr log_f32(const Expr& x) {
  const auto [e, m] = split(x);
  return finish_log(x, log_sum(e, m - 1.0));
}

// log(1 + f) times log2(e) = 1 + 0.4427: the products are small against the sum.
Expr log2_f32(const Expr& x) {
  const auto [e, m] = split(x);
  const Expr f = m - 1.0;
  const Expr rest = fma(f * f, -0.5, log_cubic(f));
  const Expr product = fma(f, 0x1.c551d94p-2, rest * 0x1.c551d94p-2);
  return finish_log(x, product + rest + f + e);
}

// log10(2) and log10(e) in two parts, the upper ones of 9 and 8 bits.
Expr log10_f32(const Expr& x) {
  const auto [e, m] = split(x);
  const Expr f = m - 1.0;
  const Expr rest = fma(f * f, -0.5, log_cubic(f));
  Expr sum = (f + rest) * 0x1.6f62a4p-11;
  sum = fma(rest, 0x1.bcp-2, fma(e, 0x1.04d428p-12, sum));
  sum = fma(f, 0x1.bcp-2, sum);
  return finish_log(x, fma(e, 0x1.34p-2, sum));
}

// e and m belong to 1 + x; f = m - 1 is computed from x itself: x 2^-e + (2^-e - 1).
Expr log1p_f32(const Expr& x) {
  const Expr k = shr(bits_of(x + 1.0) - sqrt_half_bits, i32(23));
  const Expr half = shr(k, i32(1));
  const Expr first = power_of_two(-half), second = power_of_two(half - k);
  const Expr f = fma(x * first, second, fma(first, second, f32(-1.0)));
  const Expr value = log_sum(cast(k, DType::Float32), f);
  const Expr out = where(x < infinity, where(x == 0.0, x, value), x);
  return where(x == -1.0, f32(-infinity), where(x < -1.0, f32(not_a_number), out));
}

// From 2^30 on the argument of log1p is |x| and ln2 is added.
Expr asinh_f32(const Expr& x) {
  const Expr a = abs(x);
  const Expr big = a > 0x1p30;
  const Expr square = a * a;
  const Expr argument = where(big, a, a + square / (1.0 + sqrt(square + 1.0)));
  return copysign(log1p_f32(argument) + where(big, f32(0x1.62e43p-1), f32(0.0)), x);
}

Expr acosh_f32(const Expr& x) {
  const Expr big = x > 0x1p30;
  const Expr t = x - 1.0;
  const Expr argument = where(x < 1.0, f32(not_a_number), where(big, x, t + sqrt(fma(t, t, t * 2.0))));
  return log1p_f32(argument) + where(big, f32(0x1.62e43p-1), f32(0.0));
}

Expr atanh_f32(const Expr& x) {
  const Expr a = abs(x);
  return copysign(log1p_f32(a * 2.0 / (1.0 - a)) * 0.5, x);
}

// ------------------------------------------------------------------------------------------------ circular functions

// Arguments up to this bound are reduced in float64; beyond it libm computes the function.
constexpr double trigonometric_bound = 1e6;

struct Quadrant {
  Expr k;  // int32
  Expr r;
};

// x = k pi/2 + r, |r| <= pi/4. The upper part of pi/2 has 33 bits, so k times it is exact.
Quadrant reduce_quadrant(const Expr& x) {
  const Expr wide = cast(x, DType::Float64);
  const Expr n = round(wide * 0x1.45f306dc9c883p-1);
  const Expr r = (wide - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34;
  return {cast(n, DType::Int32), cast(r, DType::Float32)};
}

// sin(r + k pi/2).
Expr sin_quadrant(const Expr& k, const Expr& r) {
  const Expr z = r * r;
  const Expr sine = fma(polynomial(z, {-0x1.555546p-3, 0x1.110776p-7, -0x1.9952dap-13}) * z, r, r);
  const Expr cosine =
      fma(polynomial(z, {0x1.55554ap-5, -0x1.6c0c28p-10, 0x1.99e818p-16}) * z, z, fma(z, -0.5, f32(1.0)));
  const Expr value = where(bit_and(k, i32(1)) == 0.0, sine, cosine);
  return float_of(bit_xor(bits_of(value), shl(bit_and(k, i32(2)), i32(30))));
}

Expr rare_trigonometric(ScalarOp op, const Expr& x, const Expr& value) {
  return where_rare(abs(x) > trigonometric_bound, unary(op, x), value);
}

Expr sin_f32(const Expr& x) {
  const auto [k, r] = reduce_quadrant(x);
  return rare_trigonometric(ScalarOp::Sin, x, where(x == 0.0, x, sin_quadrant(k, r)));
}

Expr cos_f32(const Expr& x) {
  const auto [k, r] = reduce_quadrant(x);
  return rare_trigonometric(ScalarOp::Cos, x, sin_quadrant(k + 1.0, r));
}

Expr tan_f32(const Expr& x) {
  const auto [k, r] = reduce_quadrant(x);
  const Expr z = r * r;
  const Expr p = polynomial(
      z, {0x1.55556p-2, 0x1.110d9cp-3, 0x1.bada6p-5, 0x1.5cb85p-6, 0x1.63007ep-7, 0x1.7551d4p-14, 0x1.1ee6bap-8});
  const Expr tangent = fma(p * z, r, r);
  const Expr value = where(bit_and(k, i32(1)) == 0.0, tangent, -1.0 / tangent);
  return rare_trigonometric(ScalarOp::Tan, x, where(x == 0.0, x, value));
}

constexpr double half_pi_high = 0x1.921fb6p+0, half_pi_low = -0x1.777a5cp-25;

// For a = |x|: asin(a) up to 1/2, else asin(sqrt((1 - a) / 2)), from which pi/2 - 2 (...) is made.
struct HalfAsin {
  Expr large;
  Expr value;
};
HalfAsin half_asin(const Expr& a) {
  const Expr large = a > 0.5;
  const Expr z = where(large, fma(a, -0.5, f32(0.5)), a * a);
  const Expr s = where(large, sqrt(z), a);
  const Expr p = polynomial(z, {0x1.5555c8p-3, 0x1.3301fep-4, 0x1.747cbep-5, 0x1.8c30b6p-6, 0x1.596a7ap-5});
  return {large, fma(p * z, s, s)};
}

Expr asin_f32(const Expr& x) {
  const auto [large, value] = half_asin(abs(x));
  return copysign(where(large, half_pi_high - (value * 2.0 - half_pi_low), value), x);
}

Expr acos_f32(const Expr& x) {
  const auto [large, value] = half_asin(abs(x));
  const Expr twice = value * 2.0;
  const Expr outer = where(x < 0.0, 2 * half_pi_high - (twice - 2 * half_pi_low), twice);
  return where(large, outer, half_pi_high - (copysign(value, x) - half_pi_low));
}

// atan(t) for t in [0, 1].
Expr atan_polynomial(const Expr& t) {
  const Expr z = t * t;
  const Expr p = polynomial(z, {-0x1.55553ep-2, 0x1.9991ecp-3, -0x1.24211ap-3, 0x1.c0946cp-4, -0x1.5825f2p-4,
                                0x1.da9c2ep-5, -0x1.fe7d24p-6, 0x1.6551e2p-7, -0x1.d5a1aap-10});
  return fma(p * z, t, t);
}

Expr atan_f32(const Expr& x) {
  const Expr a = abs(x);
  const Expr large = a > 1.0;
  const Expr value = atan_polynomial(where(large, 1.0 / a, a));
  return copysign(where(large, half_pi_high - (value - half_pi_low), value), x);
}

Expr atan2_f32(const Expr& y, const Expr& x) {
  const Expr ax = abs(x), ay = abs(y);
  const Expr ratio = where(ax == ay, where(ax == 0.0, f32(0.0), f32(1.0)), min(ax, ay) / max(ax, ay));
  Expr value = atan_polynomial(ratio);
  value = where(ay > ax, half_pi_high - (value - half_pi_low), value);
  value = where(bits_of(x) < 0.0, 2 * half_pi_high - (value - 2 * half_pi_low), value);
  return copysign(value, y);
}

// ------------------------------------------------------------------------------------------------ error function

// erf(x) for |x| <= 0.93.
Expr erf_polynomial(const Expr& x) {
  const Expr p = polynomial(x * x, {0x1.06eba8p-3, -0x1.812742p-2, 0x1.ce2decp-4, -0x1.b80cdap-6, 0x1.54bb3ap-8,
                                    -0x1.a9e392p-11, 0x1.5bd58cp-14});
  return fma(p, x, x);
}

// From 0.92 on 1 - e^-q(|x|), where q approximates -log(erfc).
Expr erf_f32(const Expr& x) {
  const Expr a = abs(x);
  const Expr q = polynomial(at_most(a, 4), {0x1.9a5ca2p-13, 0x1.20af5ap0, 0x1.463ccp-1, 0x1.a9b42ep-4, -0x1.6c2a76p-6,
                                            0x1.8ee16cp-9, -0x1.9ae8fep-13});
  return where(a < 0.92, erf_polynomial(x), copysign(1.0 - exp_narrow(-q), x));
}

// From 1/2 on e^(-a^2) F(t) / (1 + 2a) with t = (a - 2) / (a + 2) (M. M. Shepherd, J. G. Laframboise, "Chebyshev
// approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < infinity", Math. Comp. 36, 1981). a^2 is split so that its
// upper part is exact.
Expr erfc_f32(const Expr& x) {
  const Expr a = at_most(abs(x), 10.2);
  const Expr t = (a - 2.0) / (a + 2.0);
  const Expr f = polynomial(t, {0x1.46e80ep0, -0x1.7bf5dap-4, -0x1.5407d6p-3, 0x1.4ff8c8p-3, -0x1.bc1b86p-5,
                                -0x1.065f7p-7, 0x1.1bb90ep-7, 0x1.2f05ep-10, -0x1.4a4178p-10, -0x1.fc33bap-13});
  const Expr upper = float_of(bit_and(bits_of(a), i32(-4096)));
  const auto [n, k, r] = reduce_exp(-(upper * upper));
  const Expr rest = (a - upper) * (a + upper);
  const Expr doubled = fma(expm1_polynomial(r - rest), f32(2.0), f32(2.0));
  const Expr value = scale_half(f / fma(a, f32(2.0), f32(1.0)) * doubled, n, k);
  const Expr outer = where(x < 0.0, 2.0 - value, value);
  return where(a < 0.5, 1.0 - erf_polynomial(x), where(isnan(x), x, outer));
}

// ------------------------------------------------------------------------------------------------ power

// log2 of x > 0 in float64, relative error below 2^-44: log(m) = 2 atanh(s), s = (m - 1) / (m + 1).
Expr log2_wide(const Expr& x) {
  const auto [e, m] = split(x);
  const Expr wide = cast(m, DType::Float64);
  const Expr s = (wide - 1.0) / (wide + 1.0);
  const Expr z = s * s;
  const Expr p = polynomial(z, {0x1.555555561d92fp-1, 0x1.999996ab11dbdp-2, 0x1.249411370bcb7p-2, 0x1.c62b4eb49b47ep-3,
                                0x1.9112628cae93dp-3});
  const Expr logarithm = fma(p * z, s, s * 2.0);
  return fma(logarithm, 0x1.71547652b82fep+0, cast(e, DType::Float64));
}

// 2^(y log2|x|) with the exponent in float64; special cases as in C99, F.9.4.4.
Expr pow_f32(const Expr& x, const Expr& y) {
  const Expr a = abs(x), wide_a = cast(a, DType::Float64);
  Expr logarithm = where(a < infinity, log2_wide(a), wide_a);
  logarithm = where(a == 0.0, constant(-infinity, DType::Float64), logarithm);
  Expr t = cast(y, DType::Float64) * logarithm;
  t = where(a == 1.0, constant(0.0, DType::Float64), t);
  t = at_least(at_most(t, 128), -150);
  const Expr n = round(t);
  const Expr narrow = cast(n, DType::Float32);
  const Expr value = scale_half(exp2_polynomial(cast(t - n, DType::Float32)), narrow, cast(narrow, DType::Int32));
  const Expr whole = floor(y) == y;
  const Expr half = y * 0.5;
  const Expr odd = whole && floor(half) != half;
  const Expr sign = where(odd, bit_and(bits_of(x), i32(-0x1p31)), i32(0));
  const Expr signed_value = float_of(bit_or(bits_of(value), sign));
  const Expr out = where(x < 0.0 && a < infinity && !whole, f32(not_a_number), signed_value);
  return where(y == 0.0, f32(1.0), out);
}

}  // namespace

Expr exp_nonpositive(const Expr& x) { return x.dtype() == DType::Float32 ? exp_nonpositive_f32(x) : exp(x); }

Expr expand_math(const Expr& x) {
  if (!is_math_function(x->op) || x.dtype() != DType::Float32) return x;
  const Expr& a = x->args[0];
  switch (x->op) {
    case ScalarOp::Exp: return exp_f32(a);
    case ScalarOp::Exp2: return exp2_f32(a);
    case ScalarOp::Expm1: return expm1_f32(a);
    case ScalarOp::Log: return log_f32(a);
    case ScalarOp::Log2: return log2_f32(a);
    case ScalarOp::Log10: return log10_f32(a);
    case ScalarOp::Log1p: return log1p_f32(a);
    case ScalarOp::Sin: return sin_f32(a);
    case ScalarOp::Cos: return cos_f32(a);
    case ScalarOp::Tan: return tan_f32(a);
    case ScalarOp::Asin: return asin_f32(a);
    case ScalarOp::Acos: return acos_f32(a);
    case ScalarOp::Atan: return atan_f32(a);
    case ScalarOp::Sinh: return sinh_f32(a);
    case ScalarOp::Cosh: return cosh_f32(a);
    case ScalarOp::Tanh: return tanh_f32(a);
    case ScalarOp::Asinh: return asinh_f32(a);
    case ScalarOp::Acosh: return acosh_f32(a);
    case ScalarOp::Atanh: return atanh_f32(a);
    case ScalarOp::Erf: return erf_f32(a);
    case ScalarOp::Erfc: return erfc_f32(a);
    case ScalarOp::Pow: return pow_f32(a, x->args[1]);
    case ScalarOp::Atan2: return atan2_f32(a, x->args[1]);
    default: return x;  // lgamma calls libm
  }
}

}  // namespace morel::loops
