#include "morel/loops/evaluate.h"

#include "morel/base/error.h"
#include "morel/loops/scalar.h"

namespace morel::loops {
namespace {

using scalar::is_complex_v;
using scalar::is_float_v;
using scalar::is_integer_v;

[[noreturn]] void no_rule(ScalarOp op) {
  raise(ErrorKind::Internal, "internal error: the interpreter has no rule for loop operator '", op_name(op), "'");
}

template <class Out, class In, class F>
void map(const void* x, void* out, int64_t m, F fn) {
  const In* source = static_cast<const In*>(x);
  Out* target = static_cast<Out*>(out);
  for (int64_t i = 0; i < m; ++i) target[i] = fn(source[i]);
}
template <class Out, class In, class F>
void map(const void* x, const void* y, void* out, int64_t m, F fn) {
  const In *left = static_cast<const In*>(x), *right = static_cast<const In*>(y);
  Out* target = static_cast<Out*>(out);
  for (int64_t i = 0; i < m; ++i) target[i] = fn(left[i], right[i]);
}

template <class T>
void unary_float(const ExprNode& node, const void* x, void* out, int64_t m) {
  switch (node.op) {
    case ScalarOp::Floor: return map<T, T>(x, out, m, [](T v) { return std::floor(v); });
    case ScalarOp::Ceil: return map<T, T>(x, out, m, [](T v) { return std::ceil(v); });
    case ScalarOp::Trunc: return map<T, T>(x, out, m, [](T v) { return std::trunc(v); });
    case ScalarOp::Round: return map<T, T>(x, out, m, [](T v) { return std::nearbyint(v); });
    case ScalarOp::IsNan: return map<bool, T>(x, out, m, [](T v) { return v != v; });
    case ScalarOp::IsInf: return map<bool, T>(x, out, m, [](T v) { return std::isinf(v); });
    case ScalarOp::IsFinite: return map<bool, T>(x, out, m, [](T v) { return std::isfinite(v); });
    case ScalarOp::RoundTo:
      if constexpr (std::is_same_v<T, float>) {
        if (static_cast<DType>(node.index) == DType::Float16) {
          return map<T, T>(x, out, m, [](T v) { return to_float(to_float16(v)); });
        }
        return map<T, T>(x, out, m, [](T v) { return to_float(to_bfloat16(v)); });
      }
      [[fallthrough]];
    default: no_rule(node.op);
  }
}

template <class T>
void unary_complex(const ExprNode& node, const void* x, void* out, int64_t m) {
  using R = typename T::value_type;
  switch (node.op) {
    case ScalarOp::IsNan: return map<bool, T>(x, out, m, [](T v) { return v != v; });
    case ScalarOp::IsInf:
      return map<bool, T>(x, out, m, [](T v) { return std::isinf(v.real()) || std::isinf(v.imag()); });
    case ScalarOp::IsFinite:
      return map<bool, T>(x, out, m, [](T v) { return std::isfinite(v.real()) && std::isfinite(v.imag()); });
    case ScalarOp::Real: return map<R, T>(x, out, m, [](T v) { return v.real(); });
    case ScalarOp::Imag: return map<R, T>(x, out, m, [](T v) { return v.imag(); });
    case ScalarOp::Conj: return map<T, T>(x, out, m, [](T v) { return std::conj(v); });
    default: no_rule(node.op);
  }
}

template <class T>
void unary(const ExprNode& node, const void* x, void* out, int64_t m) {
  const ScalarOp op = node.op;
  if constexpr (std::is_same_v<T, bool>) {
    if (op == ScalarOp::Not) return map<bool, bool>(x, out, m, [](bool v) { return !v; });
    no_rule(op);
  } else {
    if (op == ScalarOp::Neg) return map<T, T>(x, out, m, scalar::neg<T>);
    if constexpr (is_integer_v<T>) {
      if (op == ScalarOp::Abs) return map<T, T>(x, out, m, [](T v) { return v < 0 ? scalar::neg(v) : v; });
      if (op == ScalarOp::BitNot) return map<T, T>(x, out, m, [](T v) { return static_cast<T>(~v); });
      no_rule(op);
    } else {
      if (op == ScalarOp::Abs) return map<decltype(std::abs(T())), T>(x, out, m, [](T v) { return std::abs(v); });
      if (op == ScalarOp::Sqrt) return map<T, T>(x, out, m, [](T v) { return std::sqrt(v); });
      if (is_math_function(op)) return map<T, T>(x, out, m, [op](T v) { return scalar::math(op, v); });
      if constexpr (is_complex_v<T>) unary_complex<T>(node, x, out, m);
      else unary_float<T>(node, x, out, m);
    }
  }
}

template <class T>
void compare(ScalarOp op, const void* x, const void* y, void* out, int64_t m) {
  if (op == ScalarOp::Eq) return map<bool, T>(x, y, out, m, [](T a, T b) { return a == b; });
  if (op == ScalarOp::Ne) return map<bool, T>(x, y, out, m, [](T a, T b) { return a != b; });
  if constexpr (!is_complex_v<T>) {
    switch (op) {
      case ScalarOp::Lt: return map<bool, T>(x, y, out, m, [](T a, T b) { return a < b; });
      case ScalarOp::Le: return map<bool, T>(x, y, out, m, [](T a, T b) { return a <= b; });
      case ScalarOp::Gt: return map<bool, T>(x, y, out, m, [](T a, T b) { return a > b; });
      case ScalarOp::Ge: return map<bool, T>(x, y, out, m, [](T a, T b) { return a >= b; });
      default: break;
    }
  }
  no_rule(op);
}

template <class T>
void binary_real(ScalarOp op, const void* x, const void* y, void* out, int64_t m) {
  switch (op) {
    case ScalarOp::FloorDiv: return map<T, T>(x, y, out, m, scalar::floor_div<T>);
    case ScalarOp::Mod: return map<T, T>(x, y, out, m, scalar::mod<T>);
    case ScalarOp::TruncDiv: return map<T, T>(x, y, out, m, scalar::trunc_div<T>);
    case ScalarOp::Rem: return map<T, T>(x, y, out, m, scalar::rem<T>);
    case ScalarOp::Min: return map<T, T>(x, y, out, m, scalar::min<T>);
    case ScalarOp::Max: return map<T, T>(x, y, out, m, scalar::max<T>);
    default: break;
  }
  if constexpr (is_integer_v<T>) {
    switch (op) {
      case ScalarOp::BitAnd: return map<T, T>(x, y, out, m, [](T a, T b) { return static_cast<T>(a & b); });
      case ScalarOp::BitOr: return map<T, T>(x, y, out, m, [](T a, T b) { return static_cast<T>(a | b); });
      case ScalarOp::BitXor: return map<T, T>(x, y, out, m, [](T a, T b) { return static_cast<T>(a ^ b); });
      case ScalarOp::Shl: return map<T, T>(x, y, out, m, scalar::shl<T>);
      case ScalarOp::Shr: return map<T, T>(x, y, out, m, scalar::shr<T>);
      default: break;
    }
  } else {
    if (op == ScalarOp::Atan2) return map<T, T>(x, y, out, m, [](T a, T b) { return std::atan2(a, b); });
    if (op == ScalarOp::MakeComplex)
      return map<std::complex<T>, T>(x, y, out, m, [](T a, T b) { return std::complex<T>(a, b); });
  }
  no_rule(op);
}

template <class T>
void binary(ScalarOp op, const void* x, const void* y, void* out, int64_t m) {
  if (op >= ScalarOp::Eq && op <= ScalarOp::Ge) return compare<T>(op, x, y, out, m);
  if constexpr (std::is_same_v<T, bool>) {
    switch (op) {
      case ScalarOp::And: return map<bool, bool>(x, y, out, m, [](bool a, bool b) { return a && b; });
      case ScalarOp::Or: return map<bool, bool>(x, y, out, m, [](bool a, bool b) { return a || b; });
      case ScalarOp::Xor: return map<bool, bool>(x, y, out, m, [](bool a, bool b) { return a != b; });
      default: no_rule(op);
    }
  } else {
    switch (op) {
      case ScalarOp::Add: return map<T, T>(x, y, out, m, scalar::add<T>);
      case ScalarOp::Sub: return map<T, T>(x, y, out, m, scalar::sub<T>);
      case ScalarOp::Mul: return map<T, T>(x, y, out, m, scalar::mul<T>);
      case ScalarOp::Pow: return map<T, T>(x, y, out, m, scalar::pow<T>);
      default: break;
    }
    if constexpr (!is_integer_v<T>) {
      if (op == ScalarOp::Div) return map<T, T>(x, y, out, m, [](T a, T b) { return a / b; });
    }
    if constexpr (!is_complex_v<T>) binary_real<T>(op, x, y, out, m);
    else no_rule(op);
  }
}

// Calls fn with the C++ type of a value (never a half).
template <class F>
void visit_value(DType dtype, F&& fn) {
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
      raise(ErrorKind::Internal, "internal error: a loop value of a half type");
    } else {
      fn(tag);
    }
  });
}

void cast_block(DType from, DType to, const void* x, void* out, int64_t m) {
  visit_value(from, [&](auto source) {
    using From = typename decltype(source)::type;
    visit_value(to, [&](auto target) {
      using To = typename decltype(target)::type;
      map<To, From>(x, out, m, scalar::cast<To, From>);
    });
  });
}

void ternary(const ExprNode& node, const void* const* args, void* out, int64_t m) {
  visit_value(node.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *y = static_cast<const T*>(args[1]), *z = static_cast<const T*>(args[2]);
    T* target = static_cast<T*>(out);
    if (node.op != ScalarOp::Fma) {
      const bool* condition = static_cast<const bool*>(args[0]);
      for (int64_t i = 0; i < m; ++i) target[i] = condition[i] ? y[i] : z[i];
    } else if constexpr (is_float_v<T>) {
      const T* x = static_cast<const T*>(args[0]);
      for (int64_t i = 0; i < m; ++i) target[i] = std::fma(x[i], y[i], z[i]);
    }
  });
}

}  // namespace

void evaluate(const ExprNode& node, const void* const* args, void* out, int64_t m) {
  const DType from = node.args[0].dtype();
  if (node.op == ScalarOp::Cast) return cast_block(from, node.dtype, args[0], out, m);
  if (node.op == ScalarOp::Bitcast) {
    std::memcpy(out, args[0], m * size_of(from));
    return;
  }
  if (node.args.size() == 3) return ternary(node, args, out, m);
  visit_value(from, [&](auto tag) {
    using T = typename decltype(tag)::type;
    node.args.size() == 1 ? unary<T>(node, args[0], out, m) : binary<T>(node.op, args[0], args[1], out, m);
  });
}

void fill_constant(const ExprNode& node, void* out, int64_t m) {
  visit_value(node.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T value = scalar::constant<T>(node.value);
    for (int64_t i = 0; i < m; ++i) static_cast<T*>(out)[i] = value;
  });
}

void load_block(DType storage, const char* from, int64_t stride, void* out, int64_t m) {
  visit_dtype(storage, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < m; ++i) {
      const T& element = *reinterpret_cast<const T*>(from + i * stride);
      if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
        static_cast<float*>(out)[i] = to_float(element);
      else static_cast<T*>(out)[i] = element;
    }
  });
}

void store_block(DType storage, char* to, int64_t stride, const void* values, int64_t m) {
  visit_dtype(storage, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < m; ++i) {
      T& element = *reinterpret_cast<T*>(to + i * stride);
      if constexpr (std::is_same_v<T, Float16>) element = to_float16(static_cast<const float*>(values)[i]);
      else if constexpr (std::is_same_v<T, BFloat16>) element = to_bfloat16(static_cast<const float*>(values)[i]);
      else element = static_cast<const T*>(values)[i];
    }
  });
}

}  // namespace morel::loops
