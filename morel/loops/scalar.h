// The meaning of every scalar operator on one C++ type: what interpreter and compiled code must agree on.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "morel/loops/expr.h"

namespace morel::loops::scalar {

template <class T>
inline constexpr bool is_complex_v = false;
template <class T>
inline constexpr bool is_complex_v<std::complex<T>> = true;
template <class T>
inline constexpr bool is_integer_v = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T>
inline constexpr bool is_float_v = std::is_floating_point_v<T>;

// Unsigned type in which integer arithmetic wraps around without overflow of a promoted int.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
T add(T x, T y) {
  if constexpr (is_integer_v<T>) return static_cast<T>(static_cast<Wide<T>>(x) + static_cast<Wide<T>>(y));
  else return x + y;
}
template <class T>
T sub(T x, T y) {
  if constexpr (is_integer_v<T>) return static_cast<T>(static_cast<Wide<T>>(x) - static_cast<Wide<T>>(y));
  else return x - y;
}
template <class T>
T mul(T x, T y) {
  if constexpr (is_integer_v<T>) return static_cast<T>(static_cast<Wide<T>>(x) * static_cast<Wide<T>>(y));
  else return x * y;
}
template <class T>
T neg(T x) {
  if constexpr (is_integer_v<T>) return sub<T>(0, x);
  else return -x;
}
template <class T>
bool is_nan(T x) {
  return x != x;
}
template <class T>
T min(T x, T y) {
  return y < x || is_nan(y) ? y : x;
}
template <class T>
T max(T x, T y) {
  return y > x || is_nan(y) ? y : x;
}

template <class T>
T rem(T x, T y) {
  if constexpr (is_float_v<T>) return std::fmod(x, y);
  else return y == 0 || (std::is_signed_v<T> && y == static_cast<T>(-1)) ? T(0) : static_cast<T>(x % y);
}
template <class T>
T trunc_div(T x, T y) {
  if constexpr (is_float_v<T>) return std::trunc(x / y);
  else return y == 0 ? T(0) : std::is_signed_v<T> && y == static_cast<T>(-1) ? neg(x) : static_cast<T>(x / y);
}
template <class T>
T mod(T x, T y) {
  const T rest = rem(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? static_cast<T>(rest + y) : rest;
}
template <class T>
T floor_div(T x, T y) {
  if constexpr (is_float_v<T>) {
    return std::floor(x / y);
  } else {
    const T rest = rem(x, y), quotient = trunc_div(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? static_cast<T>(quotient - 1) : quotient;
  }
}
template <class T>
T pow(T x, T y) {
  if constexpr (is_integer_v<T>) {
    if (y < 0) return x == 1 ? T(1) : x == static_cast<T>(-1) ? ((y & 1) ? static_cast<T>(-1) : T(1)) : T(0);
    T out = 1;
    for (; y > 0; y = static_cast<T>(y >> 1), x = mul(x, x)) {
      if (y & 1) out = mul(out, x);
    }
    return out;
  } else {
    return std::pow(x, y);
  }
}
// A count outside of [0, bits) shifts everything out.
template <class T>
T shl(T x, T y) {
  using U = std::make_unsigned_t<T>;
  constexpr unsigned bits = 8 * sizeof(T);
  return static_cast<U>(y) < bits ? static_cast<T>(static_cast<Wide<T>>(x) << static_cast<U>(y)) : T(0);
}
template <class T>
T shr(T x, T y) {
  using U = std::make_unsigned_t<T>;
  constexpr unsigned bits = 8 * sizeof(T);
  if (static_cast<U>(y) < bits) return static_cast<T>(x >> static_cast<int>(y));
  return x < 0 ? static_cast<T>(-1) : T(0);
}

template <class To, class From>
To cast(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (is_complex_v<From>) {
    if constexpr (is_complex_v<To>)
      return To(static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag()));
    else return cast<To>(x.real());
  } else if constexpr (is_complex_v<To>) {
    return To(static_cast<typename To::value_type>(x));
  } else if constexpr (is_float_v<From> && std::is_same_v<To, uint64_t>) {
    return x >= From(0x1p63) ? static_cast<uint64_t>(static_cast<int64_t>(x - From(0x1p63))) ^ (1ull << 63)
                             : static_cast<uint64_t>(static_cast<int64_t>(x));
  } else if constexpr (is_float_v<From> && std::is_same_v<To, uint32_t>) {
    return static_cast<uint32_t>(static_cast<int64_t>(x));
  } else if constexpr (is_float_v<From> && is_integer_v<To> && sizeof(To) < 4) {
    return static_cast<To>(static_cast<int32_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

// Value of a Const node; integers saturate.
template <class T>
T constant(std::complex<double> value) {
  if constexpr (is_complex_v<T>) {
    return cast<T>(value);
  } else if constexpr (is_integer_v<T>) {
    if (value.real() >= std::ldexp(1.0, 8 * sizeof(T) - std::is_signed_v<T>)) return std::numeric_limits<T>::max();
    return static_cast<T>(value.real());
  } else {
    return static_cast<T>(value.real());
  }
}

// Functions of libm, for float, double and (where C99 has them) complex.
template <class T>
T math(ScalarOp op, T x) {
  switch (op) {
    case ScalarOp::Exp: return std::exp(x);
    case ScalarOp::Log: return std::log(x);
    case ScalarOp::Sin: return std::sin(x);
    case ScalarOp::Cos: return std::cos(x);
    case ScalarOp::Tan: return std::tan(x);
    case ScalarOp::Asin: return std::asin(x);
    case ScalarOp::Acos: return std::acos(x);
    case ScalarOp::Atan: return std::atan(x);
    case ScalarOp::Sinh: return std::sinh(x);
    case ScalarOp::Cosh: return std::cosh(x);
    case ScalarOp::Tanh: return std::tanh(x);
    case ScalarOp::Asinh: return std::asinh(x);
    case ScalarOp::Acosh: return std::acosh(x);
    case ScalarOp::Atanh: return std::atanh(x);
    default: break;
  }
  if constexpr (is_float_v<T>) {
    switch (op) {
      case ScalarOp::Exp2: return std::exp2(x);
      case ScalarOp::Expm1: return std::expm1(x);
      case ScalarOp::Log2: return std::log2(x);
      case ScalarOp::Log10: return std::log10(x);
      case ScalarOp::Log1p: return std::log1p(x);
      case ScalarOp::Erf: return std::erf(x);
      case ScalarOp::Erfc: return std::erfc(x);
      case ScalarOp::Lgamma: return std::lgamma(x);
      default: break;
    }
  }
  return x;
}

}  // namespace morel::loops::scalar
