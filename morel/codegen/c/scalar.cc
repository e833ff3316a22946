#include "morel/codegen/c/scalar.h"

#include <cmath>
#include <cstdio>

#include "morel/base/error.h"

namespace morel::codegen {
namespace {

using loops::ExprNode;
using loops::ReduceOp;
using loops::ScalarOp;

std::string float_literal(double value, bool single) {
  const std::string suffix = single ? "f" : "";
  if (value != value) return "__builtin_nan" + suffix + "(\"\")";
  if (std::isinf(value)) return (value < 0 ? "(-__builtin_inf" : "(__builtin_inf") + suffix + "())";
  char text[64];
  std::snprintf(text, sizeof text, value < 0 || std::signbit(value) ? "(%a%s)" : "%a%s", value, suffix.c_str());
  return text;
}

std::string integer_literal(double value, DType dtype) {
  if (dtype == DType::UInt64) {
    return value >= 18446744073709551616.0 ? "UINT64_MAX" : std::to_string(static_cast<uint64_t>(value)) + "ull";
  }
  if (dtype == DType::Int64 && value >= 9223372036854775808.0) return "INT64_MAX";
  if (dtype == DType::Int64 && value <= -9223372036854775808.0) return "INT64_MIN";
  const std::string digits = std::to_string(static_cast<int64_t>(value));
  return "((" + c_type(dtype) + ")" + digits + (size_of(dtype) >= 4 ? "ll" : "") + ")";
}

std::string infix(std::string_view sign, const std::string& x, const std::string& y) {
  return x + " " + std::string(sign) + " " + y;
}
std::string call(const std::string& function, std::span<const std::string> args) {
  std::string text = function + "(";
  for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + args[i];
  return text + ")";
}
std::string helper(ScalarOp op, DType dtype, std::span<const std::string> args) {
  return call("morel_" + std::string(loops::op_name(op)) + "_" + std::string(info(dtype).short_name), args);
}

// Suffix of the libm function for `dtype`, and the prefix that complex ones have.
std::string libm(const std::string& name, DType dtype, std::span<const std::string> args) {
  return call((is_complex(dtype) ? "c" : "") + name + (real_dtype(dtype) == DType::Float32 ? "f" : ""), args);
}

std::string cast_text(DType from, DType to, const std::string& x) {
  if (to == DType::Bool) return x + " != 0";
  if (is_complex(from) && !is_complex(to)) return cast_text(real_dtype(from), to, libm("real", from, {{x}}));
  if (is_float(from) && to == DType::UInt64) return "morel_to_u64(" + x + ")";
  // Small results of every target machine: through the wide signed integer, whose conversion all of them have.
  if (is_float(from) && to == DType::UInt32) return "(uint32_t)(int64_t)" + x;
  if (is_float(from) && is_integral(to) && size_of(to) < 4) return "(" + c_type(to) + ")(int32_t)" + x;
  return "(" + c_type(to) + ")" + x;
}

std::string bitcast_text(DType from, DType to, const std::string& x) {
  const std::string bits = size_of(to) == 4 ? "f32" : "f64";
  if (is_float(to)) return "morel_float_" + bits + "((uint" + (size_of(to) == 4 ? "32" : "64") + "_t)" + x + ")";
  if (is_float(from)) return "(" + c_type(to) + ")morel_bits_" + bits + "(" + x + ")";
  return "(" + c_type(to) + ")" + x;
}

std::string unary_text(const ExprNode& node, const std::string& x) {
  const DType from = node.args[0].dtype();
  const std::string one[] = {x};
  const std::string f = real_dtype(from) == DType::Float32 ? "f" : "";
  switch (node.op) {
    case ScalarOp::Neg: return is_integral(from) ? helper(node.op, from, one) : "-" + x;
    case ScalarOp::Abs:
      if (is_integral(from)) return helper(node.op, from, one);
      return is_complex(from) ? libm("abs", from, one) : "__builtin_fabs" + f + "(" + x + ")";
    case ScalarOp::Not: return "!" + x;
    case ScalarOp::BitNot: return "(" + c_type(from) + ")~" + x;
    case ScalarOp::Sqrt: return is_complex(from) ? libm("sqrt", from, one) : "__builtin_sqrt" + f + "(" + x + ")";
    case ScalarOp::Floor:
    case ScalarOp::Ceil:
    case ScalarOp::Trunc: return "__builtin_" + std::string(loops::op_name(node.op)) + f + "(" + x + ")";
    case ScalarOp::Round: return "__builtin_rint" + f + "(" + x + ")";
    case ScalarOp::IsNan: return x + " != " + x;
    case ScalarOp::IsInf:
      if (is_complex(from))
        return infix("||", "isinf(" + libm("real", from, one) + ")", "isinf(" + libm("imag", from, one) + ")");
      return "__builtin_fabs" + f + "(" + x + ") == __builtin_inf" + f + "()";
    case ScalarOp::IsFinite:
      if (is_complex(from)) {
        return infix("&&", "isfinite(" + libm("real", from, one) + ")", "isfinite(" + libm("imag", from, one) + ")");
      }
      return "__builtin_fabs" + f + "(" + x + ") < __builtin_inf" + f + "()";
    case ScalarOp::Real:
    case ScalarOp::Imag: return libm(std::string(loops::op_name(node.op)), from, one);
    case ScalarOp::Conj: return call("conj" + f, one);
    case ScalarOp::Cast: return cast_text(from, node.dtype, x);
    case ScalarOp::Bitcast: return bitcast_text(from, node.dtype, x);
    case ScalarOp::RoundTo:
      return "morel_round_" + std::string(info(static_cast<DType>(node.index)).short_name) + "(" + x + ")";
    default: return libm(std::string(loops::op_name(node.op)), from, one);
  }
}

std::string binary_text(const ExprNode& node, std::span<const std::string> args) {
  const DType from = node.args[0].dtype();
  const std::string &x = args[0], &y = args[1];
  const std::string f = from == DType::Float32 ? "f" : "";
  const bool whole = is_integral(from);
  switch (node.op) {
    case ScalarOp::Add: return whole ? helper(node.op, from, args) : infix("+", x, y);
    case ScalarOp::Sub: return whole ? helper(node.op, from, args) : infix("-", x, y);
    case ScalarOp::Mul: return whole ? helper(node.op, from, args) : infix("*", x, y);
    case ScalarOp::Div: return infix("/", x, y);
    case ScalarOp::FloorDiv:
      return whole ? helper(node.op, from, args) : "__builtin_floor" + f + "(" + infix("/", x, y) + ")";
    case ScalarOp::TruncDiv:
      return whole ? helper(node.op, from, args) : "__builtin_trunc" + f + "(" + infix("/", x, y) + ")";
    case ScalarOp::Rem: return whole ? helper(node.op, from, args) : libm("fmod", from, args);
    case ScalarOp::Mod:
    case ScalarOp::Min:
    case ScalarOp::Max:
    case ScalarOp::Shl:
    case ScalarOp::Shr: return helper(node.op, from, args);
    case ScalarOp::Pow: return whole ? helper(node.op, from, args) : libm("pow", from, args);
    case ScalarOp::Atan2: return libm("atan2", from, args);
    // Operands are evaluated already: the forms without branches vectorise.
    case ScalarOp::And:
    case ScalarOp::BitAnd: return infix("&", x, y);
    case ScalarOp::Or:
    case ScalarOp::BitOr: return infix("|", x, y);
    case ScalarOp::Xor:
    case ScalarOp::BitXor: return infix("^", x, y);
    case ScalarOp::Eq: return infix("==", x, y);
    case ScalarOp::Ne: return infix("!=", x, y);
    case ScalarOp::Lt: return infix("<", x, y);
    case ScalarOp::Le: return infix("<=", x, y);
    case ScalarOp::Gt: return infix(">", x, y);
    case ScalarOp::Ge: return infix(">=", x, y);
    case ScalarOp::MakeComplex: return call("__builtin_complex", args);
    default: raise(ErrorKind::Internal, "internal error: no C text for loop operator '", loops::op_name(node.op), "'");
  }
}

}  // namespace

std::string c_type(DType dtype) {
  switch (dtype) {
    case DType::Bool: return "_Bool";
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32: return "float";
    case DType::Float64: return "double";
    case DType::Complex64: return "float _Complex";
    case DType::Complex128: return "double _Complex";
    default: return (is_signed_int(dtype) ? "int" : "uint") + std::to_string(8 * size_of(dtype)) + "_t";
  }
}

std::string c_storage_type(DType dtype) {
  if (dtype == DType::Bool) return "uint8_t";
  if (dtype == DType::BFloat16) return "uint16_t";
  return c_type(dtype);  // float16 passes through a block of floats
}

std::string c_literal(std::complex<double> value, DType dtype) {
  switch (info(dtype).kind) {
    case DTypeKind::Bool: return value != 0.0 ? "1" : "0";
    case DTypeKind::Float: return float_literal(value.real(), dtype != DType::Float64);
    case DTypeKind::Complex: {
      const bool single = dtype == DType::Complex64;
      return "__builtin_complex(" + float_literal(value.real(), single) + ", " + float_literal(value.imag(), single) +
             ")";
    }
    default: return integer_literal(value.real(), dtype);
  }
}

std::string c_operation(const ExprNode& node, std::span<const std::string> args) {
  if (node.op == ScalarOp::Select && node.dtype == DType::Bool) {  // a selection of booleans does not vectorise
    return "(" + args[0] + " & " + args[1] + ") | (!" + args[0] + " & " + args[2] + ")";
  }
  if (node.op == ScalarOp::Select || node.op == ScalarOp::SelectRare)
    return args[0] + " ? " + args[1] + " : " + args[2];
  if (node.op == ScalarOp::Fma) return helper(node.op, node.dtype, args);
  return args.size() == 1 ? unary_text(node, args[0]) : binary_text(node, args);
}

std::string identity(ReduceOp op, DType dtype) {
  const double infinity = __builtin_inf();
  switch (op) {
    case ReduceOp::Sum: return c_literal(0.0, dtype);
    case ReduceOp::Prod: return c_literal(1.0, dtype);
    case ReduceOp::Any: return "0";
    case ReduceOp::All: return "1";
    case ReduceOp::Min:
    case ReduceOp::ArgMin: return c_literal(loops::constant(infinity, dtype)->value, dtype);
    default: return c_literal(loops::constant(-infinity, dtype)->value, dtype);
  }
}

std::string combiner(ReduceOp op, DType dtype) {
  const std::string type(info(dtype).short_name);
  switch (op) {
    case ReduceOp::Sum: return is_integral(dtype) ? "morel_add_" + type : "MOREL_PLUS";
    case ReduceOp::Prod: return is_integral(dtype) ? "morel_mul_" + type : "MOREL_TIMES";
    case ReduceOp::Min: return "morel_min_" + type;
    case ReduceOp::Max: return "morel_max_" + type;
    case ReduceOp::Any: return "MOREL_OR";
    case ReduceOp::All: return "MOREL_AND";
    case ReduceOp::ArgMin: return "MOREL_LESS";
    case ReduceOp::ArgMax: return "MOREL_GREATER";
  }
  return "";
}

}  // namespace morel::codegen
