#include "morel/loops/expr.h"

#include <array>
#include <cmath>

#include "morel/base/error.h"

namespace morel::loops {
namespace {

struct OpFacts {
  std::string_view name;
  int arity;
};

constexpr std::array<OpFacts, num_scalar_ops> op_facts = {{
    {"const", 0},        {"load", 0},    {"reg", 0},         {"param", 0},   {"index", 0},     {"row_index", 0},
    {"neg", 1},          {"abs", 1},     {"not", 1},         {"bit_not", 1}, {"sqrt", 1},      {"floor", 1},
    {"ceil", 1},         {"trunc", 1},   {"round", 1},       {"isnan", 1},   {"isinf", 1},     {"isfinite", 1},
    {"real", 1},         {"imag", 1},    {"conj", 1},        {"cast", 1},    {"bitcast", 1},   {"round_to", 1},
    {"exp", 1},          {"exp2", 1},    {"expm1", 1},       {"log", 1},     {"log2", 1},      {"log10", 1},
    {"log1p", 1},        {"sin", 1},     {"cos", 1},         {"tan", 1},     {"asin", 1},      {"acos", 1},
    {"atan", 1},         {"sinh", 1},    {"cosh", 1},        {"tanh", 1},    {"asinh", 1},     {"acosh", 1},
    {"atanh", 1},        {"erf", 1},     {"erfc", 1},        {"lgamma", 1},  {"add", 2},       {"sub", 2},
    {"mul", 2},          {"div", 2},     {"floor_div", 2},   {"mod", 2},     {"trunc_div", 2}, {"rem", 2},
    {"min", 2},          {"max", 2},     {"pow", 2},         {"atan2", 2},   {"and", 2},       {"or", 2},
    {"xor", 2},          {"bit_and", 2}, {"bit_or", 2},      {"bit_xor", 2}, {"shl", 2},       {"shr", 2},
    {"eq", 2},           {"ne", 2},      {"lt", 2},          {"le", 2},      {"gt", 2},        {"ge", 2},
    {"make_complex", 2}, {"select", 3},  {"select_rare", 3}, {"fma", 3},
}};

Expr make(ScalarOp op, DType dtype, std::vector<Expr> args, int64_t index = 0, std::complex<double> value = {}) {
  auto node = std::make_shared<ExprNode>();
  node->op = op;
  node->dtype = dtype;
  node->args = std::move(args);
  node->index = index;
  node->value = value;
  return Expr(std::move(node));
}

[[noreturn]] void bad_type(ScalarOp op, DType dtype) {
  raise(ErrorKind::Internal, "internal error: loop operator '", op_name(op), "' has no meaning for ", info(dtype).name);
}
void need(bool condition, ScalarOp op, DType dtype) {
  if (!condition) bad_type(op, dtype);
}

bool is_number(DType dtype) { return dtype != DType::Bool; }
bool is_real(DType dtype) { return is_integral(dtype) || is_float(dtype); }

double saturate(double value, DType dtype) {
  if (value != value) return 0;
  const int bits = static_cast<int>(8 * size_of(dtype));
  const double low = is_signed_int(dtype) ? -std::ldexp(1.0, bits - 1) : 0.0;
  const double high = std::ldexp(1.0, is_signed_int(dtype) ? bits - 1 : bits);  // readers clamp this one to high - 1
  value = std::trunc(value);
  return value < low ? low : value >= high ? (bits < 64 ? high - 1 : high) : value;
}

bool both_weak(const Expr& x, const Expr& y) { return x->weak && y->weak; }

Expr fold_weak(ScalarOp op, double x, double y) {
  switch (op) {
    case ScalarOp::Add: return x + y;
    case ScalarOp::Sub: return x - y;
    case ScalarOp::Mul: return x * y;
    case ScalarOp::Div: return x / y;
    case ScalarOp::Min: return std::fmin(x, y);
    case ScalarOp::Max: return std::fmax(x, y);
    case ScalarOp::Pow: return std::pow(x, y);
    default: raise(ErrorKind::Internal, "internal error: loop operator '", op_name(op), "' on two untyped constants");
  }
}

// What an operator becomes on booleans: the logical one.
ScalarOp logical_form(ScalarOp op) {
  switch (op) {
    case ScalarOp::Min:
    case ScalarOp::BitAnd: return ScalarOp::And;
    case ScalarOp::Max:
    case ScalarOp::BitOr: return ScalarOp::Or;
    case ScalarOp::BitXor: return ScalarOp::Xor;
    case ScalarOp::BitNot: return ScalarOp::Not;
    default: return op;
  }
}

// Result type of a binary operator on two operands of type `t`; raises where it has no meaning.
DType binary_dtype(ScalarOp op, DType t) {
  switch (op) {
    case ScalarOp::Add:
    case ScalarOp::Sub:
    case ScalarOp::Mul:
    case ScalarOp::Pow: need(is_number(t), op, t); return t;
    case ScalarOp::Div: need(is_float(t) || is_complex(t), op, t); return t;
    case ScalarOp::FloorDiv:
    case ScalarOp::Mod:
    case ScalarOp::TruncDiv:
    case ScalarOp::Rem:
    case ScalarOp::Min:
    case ScalarOp::Max: need(is_real(t), op, t); return t;
    case ScalarOp::Atan2: need(is_float(t), op, t); return t;
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor: need(t == DType::Bool, op, t); return t;
    case ScalarOp::BitAnd:
    case ScalarOp::BitOr:
    case ScalarOp::BitXor:
    case ScalarOp::Shl:
    case ScalarOp::Shr: need(is_integral(t), op, t); return t;
    case ScalarOp::Eq:
    case ScalarOp::Ne: return DType::Bool;
    case ScalarOp::Lt:
    case ScalarOp::Le:
    case ScalarOp::Gt:
    case ScalarOp::Ge: need(!is_complex(t), op, t); return DType::Bool;
    case ScalarOp::MakeComplex:
      need(is_float(t), op, t);
      return t == DType::Float32 ? DType::Complex64 : DType::Complex128;
    default: bad_type(op, t);
  }
}

// Functions that C99 does not have for complex numbers, by their definitions.
Expr complex_math(ScalarOp op, const Expr& x) {
  constexpr double ln2 = 0.693147180559945309417, ln10 = 2.302585092994045684018;
  switch (op) {
    case ScalarOp::Exp2: return exp(x * ln2);
    case ScalarOp::Expm1: return exp(x) - 1.0;
    case ScalarOp::Log2: return log(x) * (1 / ln2);
    case ScalarOp::Log10: return log(x) * (1 / ln10);
    case ScalarOp::Log1p: return log(x + 1.0);
    case ScalarOp::Erf:
    case ScalarOp::Erfc:
    case ScalarOp::Lgamma: bad_type(op, x.dtype());
    default: return make(op, x.dtype(), {x});
  }
}

Expr unary_math(ScalarOp op, const Expr& x) {
  MOREL_ASSERT(!x->weak);
  const DType t = x.dtype();
  need(is_float(t) || is_complex(t), op, t);
  return is_complex(t) ? complex_math(op, x) : make(op, t, {x});
}

}  // namespace

std::string_view op_name(ScalarOp op) { return op_facts[static_cast<int>(op)].name; }
int arity(ScalarOp op) { return op_facts[static_cast<int>(op)].arity; }
bool is_math_function(ScalarOp op) {
  return (op >= ScalarOp::Exp && op <= ScalarOp::Lgamma) || op == ScalarOp::Pow || op == ScalarOp::Atan2;
}

Expr::Expr(double value) {
  auto node = std::make_shared<ExprNode>();
  node->op = ScalarOp::Const;
  node->dtype = DType::Float64;
  node->weak = true;
  node->value = value;
  node_ = std::move(node);
}

DType Expr::dtype() const {
  MOREL_ASSERT(node_ != nullptr);
  return node_->dtype;
}

Expr constant(std::complex<double> value, DType dtype) {
  dtype = compute_dtype(dtype);
  if (dtype == DType::Bool) value = value != 0.0;
  if (is_integral(dtype)) value = saturate(value.real(), dtype);
  if (!is_complex(dtype)) value = value.real();
  if (real_dtype(dtype) == DType::Float32) {
    value = {static_cast<float>(value.real()), static_cast<float>(value.imag())};
  }
  return make(ScalarOp::Const, dtype, {}, 0, value);
}
Expr constant_like(double value, const Expr& like) { return constant(value, like.dtype()); }
Expr load(int64_t buffer, DType storage_dtype) {
  return make(ScalarOp::Load, compute_dtype(storage_dtype), {}, buffer);
}
Expr param(int64_t index, DType dtype) { return make(ScalarOp::Param, compute_dtype(dtype), {}, index); }
Expr inner_index() { return make(ScalarOp::Index, DType::Int64, {}); }
Expr row_index() { return make(ScalarOp::RowIndex, DType::Int64, {}); }

Expr cast(const Expr& x, DType dtype) {
  if (x->op == ScalarOp::Const) {
    const float value = static_cast<float>(x->value.real());
    if (dtype == DType::Float16) return constant(to_float(to_float16(value)), dtype);
    if (dtype == DType::BFloat16) return constant(to_float(to_bfloat16(value)), dtype);
    return constant(x->value, dtype);
  }
  if (is_half(dtype)) {
    const Expr wide = cast(x, DType::Float32);
    if (wide->op == ScalarOp::RoundTo && wide->index == static_cast<int64_t>(dtype)) return wide;
    return make(ScalarOp::RoundTo, DType::Float32, {wide}, static_cast<int64_t>(dtype));
  }
  if (x.dtype() == dtype) return x;
  return make(ScalarOp::Cast, dtype, {x});
}

Expr bitcast(const Expr& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const auto plain = [](DType t) { return t == DType::Float32 || t == DType::Float64 || is_integral(t); };
  MOREL_ASSERT(plain(x.dtype()) && plain(dtype) && size_of(x.dtype()) == size_of(dtype) && size_of(dtype) >= 4);
  return make(ScalarOp::Bitcast, dtype, {x});
}

Expr where(const Expr& condition, const Expr& x, const Expr& y) {
  need(condition.dtype() == DType::Bool, ScalarOp::Select, condition.dtype());
  MOREL_ASSERT(!both_weak(x, y));
  const Expr a = x->weak ? constant(x->value, y.dtype()) : x;
  const Expr b = y->weak ? constant(y->value, x.dtype()) : y;
  MOREL_CHECK(a.dtype() == b.dtype(), Internal, "internal error: operands of 'select' differ: ", info(a.dtype()).name,
              " and ", info(b.dtype()).name);
  if (condition->op == ScalarOp::Const) return condition->value != 0.0 ? a : b;
  return make(ScalarOp::Select, a.dtype(), {condition, a, b});
}

Expr where_rare(const Expr& condition, const Expr& rare, const Expr& usual) {
  const Expr select = where(condition, rare, usual);
  return select->op == ScalarOp::Select ? make(ScalarOp::SelectRare, select.dtype(), select->args) : select;
}

Expr fma(const Expr& x, const Expr& y, const Expr& z) {
  DType t = DType::Float64;
  for (const Expr* operand : {&x, &y, &z}) {
    if (!(*operand)->weak) t = operand->dtype();
  }
  const auto typed = [t](const Expr& operand) { return operand->weak ? constant(operand->value, t) : operand; };
  const Expr a = typed(x), b = typed(y), c = typed(z);
  MOREL_ASSERT(a.dtype() == t && b.dtype() == t && c.dtype() == t);
  if (!is_float(t)) return a * b + c;
  return make(ScalarOp::Fma, t, {a, b, c});
}

Expr unary(ScalarOp op, const Expr& x) {
  const DType t = x.dtype();
  if (t == DType::Bool) op = logical_form(op);
  switch (op) {
    case ScalarOp::Neg:
      need(is_number(t), op, t);
      return x->op == ScalarOp::Const ? (x->weak ? Expr(-x->value.real()) : constant(-x->value, t)) : make(op, t, {x});
    case ScalarOp::Abs:
      need(is_number(t), op, t);
      if (info(t).kind == DTypeKind::UInt) return x;
      return make(op, real_dtype(t), {x});
    case ScalarOp::Not: need(t == DType::Bool, op, t); return make(op, t, {x});
    case ScalarOp::BitNot: need(is_integral(t), op, t); return make(op, t, {x});
    case ScalarOp::Sqrt: need(is_float(t) || is_complex(t), op, t); return make(op, t, {x});
    case ScalarOp::Floor:
    case ScalarOp::Ceil:
    case ScalarOp::Trunc:
    case ScalarOp::Round: need(is_real(t), op, t); return is_integral(t) ? x : make(op, t, {x});
    case ScalarOp::IsNan:
    case ScalarOp::IsInf: return is_differentiable(t) ? make(op, DType::Bool, {x}) : constant(0.0, DType::Bool);
    case ScalarOp::IsFinite: return is_differentiable(t) ? make(op, DType::Bool, {x}) : constant(1.0, DType::Bool);
    case ScalarOp::Real: return is_complex(t) ? make(op, real_dtype(t), {x}) : x;
    case ScalarOp::Imag: return is_complex(t) ? make(op, real_dtype(t), {x}) : constant(0.0, t);
    case ScalarOp::Conj: return is_complex(t) ? make(op, t, {x}) : x;
    default: return unary_math(op, x);
  }
}

Expr binary(ScalarOp op, const Expr& x, const Expr& y) {
  if (both_weak(x, y)) return fold_weak(op, x->value.real(), y->value.real());
  const Expr a = x->weak ? constant(x->value, y.dtype()) : x;
  const Expr b = y->weak ? constant(y->value, x.dtype()) : y;
  MOREL_CHECK(a.dtype() == b.dtype(), Internal, "internal error: operands of '", op_name(op),
              "' differ: ", info(a.dtype()).name, " and ", info(b.dtype()).name);
  if (a.dtype() == DType::Bool) op = logical_form(op);
  // A constant comes second in min and max, where it is cheaper.
  const bool swap =
      (op == ScalarOp::Min || op == ScalarOp::Max) && a->op == ScalarOp::Const && b->op != ScalarOp::Const;
  return make(op, binary_dtype(op, a.dtype()), swap ? std::vector<Expr>{b, a} : std::vector<Expr>{a, b});
}

Expr with_args(const Expr& node, std::vector<Expr> args) {
  bool same = args.size() == node->args.size();
  for (size_t i = 0; same && i < args.size(); ++i) same = args[i].get() == node->args[i].get();
  if (same) return node;
  auto copy = std::make_shared<ExprNode>(*node.get());
  copy->args = std::move(args);
  return Expr(std::move(copy));
}

Expr operator+(const Expr& x, const Expr& y) { return binary(ScalarOp::Add, x, y); }
Expr operator-(const Expr& x, const Expr& y) { return binary(ScalarOp::Sub, x, y); }
Expr operator*(const Expr& x, const Expr& y) { return binary(ScalarOp::Mul, x, y); }
Expr operator/(const Expr& x, const Expr& y) { return binary(ScalarOp::Div, x, y); }
Expr operator-(const Expr& x) { return unary(ScalarOp::Neg, x); }
Expr operator<(const Expr& x, const Expr& y) { return binary(ScalarOp::Lt, x, y); }
Expr operator<=(const Expr& x, const Expr& y) { return binary(ScalarOp::Le, x, y); }
Expr operator>(const Expr& x, const Expr& y) { return binary(ScalarOp::Gt, x, y); }
Expr operator>=(const Expr& x, const Expr& y) { return binary(ScalarOp::Ge, x, y); }
Expr operator==(const Expr& x, const Expr& y) { return binary(ScalarOp::Eq, x, y); }
Expr operator!=(const Expr& x, const Expr& y) { return binary(ScalarOp::Ne, x, y); }
Expr operator&&(const Expr& x, const Expr& y) { return binary(ScalarOp::And, x, y); }
Expr operator||(const Expr& x, const Expr& y) { return binary(ScalarOp::Or, x, y); }
Expr operator!(const Expr& x) { return unary(ScalarOp::Not, x); }
Expr min(const Expr& x, const Expr& y) { return binary(ScalarOp::Min, x, y); }
Expr max(const Expr& x, const Expr& y) { return binary(ScalarOp::Max, x, y); }

}  // namespace morel::loops
