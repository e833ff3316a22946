#include "morel/io/onnx/scalar_ops.h"

#include <numbers>
#include <unordered_map>

namespace morel::onnx {
namespace {

using loops::Expr;
using loops::ExprNode;
using loops::ScalarOp;

// What is an operator of the registry with a name in ONNX.
struct Named {
  ScalarOp op;
  OpName name;
};
const Named named[] = {{ScalarOp::Neg, "neg"},
                       {ScalarOp::Abs, "abs"},
                       {ScalarOp::Not, "logical_not"},
                       {ScalarOp::BitNot, "bitwise_not"},
                       {ScalarOp::Sqrt, "sqrt"},
                       {ScalarOp::Floor, "floor"},
                       {ScalarOp::Ceil, "ceil"},
                       {ScalarOp::Round, "round_even"},
                       {ScalarOp::IsNan, "isnan"},
                       {ScalarOp::IsInf, "isinf"},
                       {ScalarOp::Exp, "exp"},
                       {ScalarOp::Log, "log"},
                       {ScalarOp::Sin, "sin"},
                       {ScalarOp::Cos, "cos"},
                       {ScalarOp::Tan, "tan"},
                       {ScalarOp::Asin, "asin"},
                       {ScalarOp::Acos, "acos"},
                       {ScalarOp::Atan, "atan"},
                       {ScalarOp::Sinh, "sinh"},
                       {ScalarOp::Cosh, "cosh"},
                       {ScalarOp::Tanh, "tanh"},
                       {ScalarOp::Asinh, "asinh"},
                       {ScalarOp::Acosh, "acosh"},
                       {ScalarOp::Atanh, "atanh"},
                       {ScalarOp::Erf, "erf"},
                       {ScalarOp::Add, "add"},
                       {ScalarOp::Sub, "sub"},
                       {ScalarOp::Mul, "mul"},
                       {ScalarOp::TruncDiv, "trunc_divide"},
                       {ScalarOp::Rem, "fmod"},
                       {ScalarOp::Min, "minimum"},
                       {ScalarOp::Max, "maximum"},
                       {ScalarOp::Pow, "pow"},
                       {ScalarOp::And, "logical_and"},
                       {ScalarOp::Or, "logical_or"},
                       {ScalarOp::Xor, "logical_xor"},
                       {ScalarOp::BitAnd, "bitwise_and"},
                       {ScalarOp::BitOr, "bitwise_or"},
                       {ScalarOp::BitXor, "bitwise_xor"},
                       {ScalarOp::Shl, "bitwise_left_shift"},
                       {ScalarOp::Shr, "bitwise_right_shift"},
                       {ScalarOp::Eq, "equal"},
                       {ScalarOp::Lt, "less"},
                       {ScalarOp::Le, "less_equal"},
                       {ScalarOp::Gt, "greater"},
                       {ScalarOp::Ge, "greater_equal"},
                       {ScalarOp::Select, "where"},
                       {ScalarOp::SelectRare, "where"}};

// What has no such operator, in others.
struct Formula {
  ScalarOp op;
  Expr (*write)(const std::vector<Expr>& x);
};
Expr like(double value, const Expr& x) { return loops::constant_like(value, x); }
const Formula formulas[] = {
    {ScalarOp::Exp2, [](const std::vector<Expr>& x) { return exp(x[0] * like(std::numbers::ln2, x[0])); }},
    {ScalarOp::Expm1, [](const std::vector<Expr>& x) { return exp(x[0]) - like(1, x[0]); }},
    {ScalarOp::Log2, [](const std::vector<Expr>& x) { return log(x[0]) * like(std::numbers::log2e, x[0]); }},
    {ScalarOp::Log10, [](const std::vector<Expr>& x) { return log(x[0]) * like(std::numbers::log10e, x[0]); }},
    {ScalarOp::Log1p, [](const std::vector<Expr>& x) { return log(x[0] + like(1, x[0])); }},
    {ScalarOp::Erfc, [](const std::vector<Expr>& x) { return like(1, x[0]) - erf(x[0]); }},
    {ScalarOp::Trunc, [](const std::vector<Expr>& x) { return where(x[0] < like(0, x[0]), ceil(x[0]), floor(x[0])); }},
    {ScalarOp::IsFinite, [](const std::vector<Expr>& x) { return x[0] - x[0] == like(0, x[0]); }},
    {ScalarOp::FloorDiv,
     [](const std::vector<Expr>& x) {
       return is_float(x[0].dtype()) ? floor(x[0] / x[1]) : trunc_div(x[0] - mod(x[0], x[1]), x[1]);
     }},
    {ScalarOp::TruncDiv,
     [](const std::vector<Expr>& x) {
       const Expr quotient = x[0] / x[1];
       return where(quotient < like(0, quotient), ceil(quotient), floor(quotient));
     }},
    {ScalarOp::Mod, [](const std::vector<Expr>& x) { return x[0] - floor(x[0] / x[1]) * x[1]; }},
    {ScalarOp::Atan2,
     [](const std::vector<Expr>& x) {
       const Expr zero = like(0, x[0]), turn = like(std::numbers::pi, x[0]), half = like(std::numbers::pi / 2, x[0]);
       const Expr left = where(x[0] < zero, zero - turn, turn);
       const Expr upright = where(x[0] < zero, zero - half, where(x[0] > zero, half, zero));
       return where(x[1] == zero, upright, atan(x[0] / x[1]) + where(x[1] < zero, left, zero));
     }},
    {ScalarOp::Ne, [](const std::vector<Expr>& x) { return !(x[0] == x[1]); }},
    {ScalarOp::Fma, [](const std::vector<Expr>& x) { return x[0] * x[1] + x[2]; }}};

class Writer {
 public:
  Writer(Builder& builder, const OpDef& op, std::vector<Sym> operands)
      : b_(builder), op_(op), operands_(std::move(operands)) {}

  Sym write(const Expr& expr) {
    if (const auto found = done_.find(expr.get()); found != done_.end()) return found->second;
    keep_.push_back(expr);
    return done_[expr.get()] = make(expr);
  }

 private:
  Sym make(const Expr& expr) {
    const ExprNode& node = *expr.get();
    switch (node.op) {
      case ScalarOp::Load: return operands_[static_cast<size_t>(node.index)];
      case ScalarOp::Const: return constant(node);
      case ScalarOp::Cast: {
        const Sym x = write(node.args[0]);
        return x ? b_("cast", x, node.dtype) : x;
      }
      default: break;
    }
    const bool is_int = is_integral(node.dtype) || (!node.args.empty() && is_integral(node.args[0].dtype()));
    if (node.op == ScalarOp::Div) return call("true_divide", node);
    if (node.op == ScalarOp::Mod && is_int) return call("floor_mod", node);
    const bool by_formula = node.op == ScalarOp::TruncDiv && !is_int;
    for (const Named& entry : named)
      // An operator that is this expression and nothing else has been tried already.
      if (entry.op == node.op && !by_formula && entry.name.text != op_.name) return call(entry.name, node);
    for (const Formula& entry : formulas)
      if (entry.op == node.op) return write(entry.write(node.args));
    return {};
  }
  Sym constant(const ExprNode& node) {
    const Value number =
        is_float(node.dtype) ? Value(node.value.real()) : Value(static_cast<int64_t>(node.value.real()));
    if (is_complex(node.dtype)) return {};
    return b_("full", Ints{}, number, node.dtype);
  }
  Sym call(OpName name, const ExprNode& node) {
    SmallVector<Value, 3> args;
    for (const Expr& arg : node.args) {
      const Sym value = write(arg);
      if (!value) return {};
      args.push_back(value.value());
    }
    return Sym(b_, b_.emit(find_op(name), {args.data(), args.size()})[0]);
  }

  Builder& b_;
  const OpDef& op_;
  std::vector<Sym> operands_;
  std::unordered_map<const ExprNode*, Sym> done_;
  std::vector<Expr> keep_;  // so that addresses stay those of one expression
};

}  // namespace

Sym compose_loop(const Call& call, DType result) {
  Builder& b = call.builder();
  const OpDef& op = call.op();
  const DType dtype = elementwise_compute_dtype(op, call.args()), compute = compute_dtype(dtype);
  std::vector<Sym> operands;
  Expr args[8];
  for (size_t i = 0; i < call.args().size(); ++i) {
    const ArgSpec& spec = op.schema.args[i];
    const DType to = op.bool_args >> i & 1 ? DType::Bool : compute;
    const Value& value = call.value(i);
    if (value.is_number() && value.tag() != Value::Tag::Size) {
      const bool is_operand = spec.is_tensor_like() || spec.kinds & kNumber;
      args[i] = is_operand || is_float(to) ? loops::constant(value.complex(), to) : loops::constant(value.number(), to);
      operands.emplace_back();
    } else {
      operands.push_back(b("cast", value.is_number() ? b("full", Ints{}, value, to) : call[i], to));
      args[i] = loops::load(static_cast<int64_t>(i), to);
    }
  }
  const Sym out = Writer(b, op, std::move(operands)).write(op.loop(args));
  return out ? b("cast", out, result) : out;
}

}  // namespace morel::onnx
