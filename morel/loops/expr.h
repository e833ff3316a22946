// Scalar expressions of the loop IR: what one kernel computes for one element. Expressions are immutable, shared and
// typed; views, broadcasting and producers are inlined as loads, which is what fusion is. Built with the overloaded
// operators and functions below, in which every `loop` and `rows` rule of an operator is written.
//
// Semantics are those of C on the compute type of the operands (docs/design.md, section 5): integers wrap around,
// integer division rounds towards negative infinity (floor_div, mod) and by zero gives 0; float arithmetic is IEEE
// without contraction: a fused multiply-add happens only where fma() is written. min/max propagate NaN and give the
// first operand where both are equal. Half types are loaded as float32 and rounded to nearest-even on store.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "morel/tensor/dtype.h"

namespace morel::loops {

enum class ScalarOp : uint8_t {
  // leaves
  Const,     // value (complex)
  Load,      // element of buffer `index` at the current position
  Reg,       // result of reduction `index` of an earlier stage
  Param,     // run-time float64 parameter `index`, converted to dtype(); -1: number of reduced elements (n; rows for
             // Columns)
  Index,     // int64 position along the inner axis
  RowIndex,  // int64 row; in Columns programs, whose rows are what they reduce
  // one operand
  Neg,
  Abs,
  Not,
  BitNot,
  Sqrt,
  Floor,
  Ceil,
  Trunc,
  Round,  // Round: to nearest, ties to even
  IsNan,
  IsInf,
  IsFinite,
  Real,
  Imag,
  Conj,
  Cast,     // to dtype()
  Bitcast,  // float32 <-> int32, float64 <-> int64
  RoundTo,  // float32 rounded to the half type `index` (a DType) and back
  // one operand; float32 versions are expanded into polynomials before any output sees them (math.h), others call libm
  Exp,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Asinh,
  Acosh,
  Atanh,
  Erf,
  Erfc,
  Lgamma,
  // two operands
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  TruncDiv,
  Rem,
  Min,
  Max,
  Pow,
  Atan2,
  And,
  Or,
  Xor,
  BitAnd,
  BitOr,
  BitXor,
  Shl,
  Shr,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  MakeComplex,
  // three operands
  Select,
  SelectRare,  // Select whose condition seldom holds: compiled code tests whole blocks for it
  Fma,
};

inline constexpr int num_scalar_ops = static_cast<int>(ScalarOp::Fma) + 1;
std::string_view op_name(ScalarOp op);  // snake_case, as the functions below
int arity(ScalarOp op);
// Exp ... Lgamma, Pow and Atan2: what libm has a function for.
bool is_math_function(ScalarOp op);

struct ExprNode;

class Expr {
 public:
  Expr() = default;
  Expr(double value);  // NOLINT: an untyped constant; takes the dtype of the operand it meets
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  const ExprNode* get() const { return node_.get(); }
  const ExprNode* operator->() const { return node_.get(); }
  explicit operator bool() const { return node_ != nullptr; }
  DType dtype() const;

 private:
  std::shared_ptr<const ExprNode> node_;
};

struct ExprNode {
  ScalarOp op;
  DType dtype;        // type of the value (the compute type: never Float16/BFloat16)
  bool weak = false;  // an untyped constant
  std::vector<Expr> args;
  std::complex<double> value{};  // Const
  int64_t index = 0;             // Load, Reg, Param
};

// leaves; constants of an integer type saturate (so +inf is its largest value)
Expr constant(std::complex<double> value, DType dtype);
Expr constant_like(double value, const Expr& like);
Expr load(int64_t buffer, DType storage_dtype);  // value has compute_dtype(storage_dtype)
Expr param(int64_t index, DType dtype);
Expr inner_index();
Expr row_index();

// structure
Expr cast(const Expr& x, DType dtype);  // to a half type: rounds, the value stays float32
Expr bitcast(const Expr& x, DType dtype);
Expr where(const Expr& condition, const Expr& x, const Expr& y);
Expr where_rare(const Expr& condition, const Expr& rare, const Expr& usual);
Expr fma(const Expr& x, const Expr& y, const Expr& z);
Expr unary(ScalarOp op, const Expr& x);
Expr binary(ScalarOp op, const Expr& x, const Expr& y);
// The node with other arguments (of the same types); `node` itself when they are the same.
Expr with_args(const Expr& node, std::vector<Expr> args);

// arithmetic; operands of different dtype are an internal error unless one is a weak constant
Expr operator+(const Expr& x, const Expr& y);
Expr operator-(const Expr& x, const Expr& y);
Expr operator*(const Expr& x, const Expr& y);
Expr operator/(const Expr& x, const Expr& y);
Expr operator-(const Expr& x);
Expr operator<(const Expr& x, const Expr& y);
Expr operator<=(const Expr& x, const Expr& y);
Expr operator>(const Expr& x, const Expr& y);
Expr operator>=(const Expr& x, const Expr& y);
Expr operator==(const Expr& x, const Expr& y);
Expr operator!=(const Expr& x, const Expr& y);
Expr operator&&(const Expr& x, const Expr& y);
Expr operator||(const Expr& x, const Expr& y);
Expr operator!(const Expr& x);
Expr min(const Expr& x, const Expr& y);
Expr max(const Expr& x, const Expr& y);
// one function per remaining operator, named after it in snake_case
// clang-format off
#define MOREL_UNARY_FUNCTIONS(X)                                                                                       \
  X(abs, Abs) X(bit_not, BitNot) X(sqrt, Sqrt) X(floor, Floor) X(ceil, Ceil) X(trunc, Trunc) X(round, Round)           \
  X(isnan, IsNan) X(isinf, IsInf) X(isfinite, IsFinite) X(real, Real) X(imag, Imag) X(conj, Conj) X(exp, Exp)          \
  X(exp2, Exp2) X(expm1, Expm1) X(log, Log) X(log2, Log2) X(log10, Log10) X(log1p, Log1p) X(sin, Sin) X(cos, Cos)      \
  X(tan, Tan) X(asin, Asin) X(acos, Acos) X(atan, Atan) X(sinh, Sinh) X(cosh, Cosh) X(tanh, Tanh) X(asinh, Asinh)      \
  X(acosh, Acosh) X(atanh, Atanh) X(erf, Erf) X(erfc, Erfc) X(lgamma, Lgamma)
#define MOREL_BINARY_FUNCTIONS(X)                                                                                      \
  X(floor_div, FloorDiv) X(mod, Mod) X(trunc_div, TruncDiv) X(rem, Rem) X(pow, Pow) X(atan2, Atan2)                    \
  X(bit_and, BitAnd) X(bit_or, BitOr) X(bit_xor, BitXor) X(logical_xor, Xor) X(shl, Shl) X(shr, Shr)                   \
  X(make_complex, MakeComplex)
// clang-format on
#define X(name, op)                                                                                                    \
  inline Expr name(const Expr& x) { return unary(ScalarOp::op, x); }
MOREL_UNARY_FUNCTIONS(X)
#undef X
#define X(name, op)                                                                                                    \
  inline Expr name(const Expr& x, const Expr& y) { return binary(ScalarOp::op, x, y); }
MOREL_BINARY_FUNCTIONS(X)
#undef X

}  // namespace morel::loops
