// OpDef: the one entry of an operator, with every rule that any consumer needs. See ops/README.md for how to add one.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "morel/ir/builder.h"
#include "morel/loops/program.h"
#include "morel/ops/schema.h"

namespace morel {

struct OpDef;
struct AxisMap;
struct AxesPattern;

// Read access to the arguments of one call by their schema names. All arguments are present (defaults filled in).
class ArgView {
 public:
  ArgView(const OpDef& op, std::span<const Value> args) : op_(op), args_(args) {}
  const OpDef& op() const { return op_; }
  std::span<const Value> args() const { return args_; }
  const Value& value(size_t idx) const { return args_[idx]; }
  const Value& value(std::string_view name) const { return args_[index(name)]; }
  bool has(std::string_view name) const { return !value(name).is_none(); }
  bool flag(std::string_view name) const { return value(name).boolean(); }
  int64_t integer(std::string_view name) const { return value(name).integer(); }
  Dim dim(std::string_view name) const { return value(name).dim(); }
  int64_t integer_or(std::string_view name, int64_t fallback) const { return has(name) ? integer(name) : fallback; }
  double number(std::string_view name) const { return value(name).number(); }
  const std::string& str(std::string_view name) const { return value(name).str(); }
  const Ints& ints(std::string_view name) const { return value(name).ints(); }
  DType dtype(std::string_view name) const { return value(name).dtype(); }
  DType dtype_or(std::string_view name, DType fallback) const { return has(name) ? dtype(name) : fallback; }
  // Shape and dtype of tensor argument `idx`.
  const Shape& shape(size_t idx) const { return shape_of(args_[idx]); }
  DType tensor_dtype(size_t idx) const { return dtype_of_value(args_[idx]); }
  int64_t rank(size_t idx) const { return static_cast<int64_t>(shape(idx).size()); }
  size_t index(std::string_view name) const;
  // Argument `name` made non-negative for a tensor of `rank` dimensions; ValueError when out of range.
  int64_t axis(std::string_view name, int64_t rank) const;

 private:
  const OpDef& op_;
  std::span<const Value> args_;
};

// A call seen by a composite: arguments as Syms.
class Call : public ArgView {
 public:
  Call(Builder& builder, const OpDef& op, std::span<const Value> args) : ArgView(op, args), builder_(builder) {}
  Builder& builder() const { return builder_; }
  Sym operator[](size_t idx) const { return Sym(builder_, value(idx)); }
  Sym operator[](std::string_view name) const { return Sym(builder_, value(name)); }

 private:
  Builder& builder_;
};

// A call seen by a gradient rule. It reads only arguments and outputs which the entry lists in `saves` (others give
// their type alone: shape(idx), tensor_dtype(idx)).
class GradCall : public Call {
 public:
  GradCall(Builder& builder, const OpDef& op, std::span<const Value> args, std::span<const Value> outs,
           std::span<const Type> out_types, std::span<const Value> cotangents, uint32_t needs)
      : Call(builder, op, args), outs_(outs), out_types_(out_types), cotangents_(cotangents), needs_(needs) {}
  Sym out(size_t idx = 0) const { return Sym(builder(), outs_[idx]); }
  const Type& out_type(size_t idx = 0) const { return out_types_[idx]; }
  size_t num_outs() const { return out_types_.size(); }
  // Cotangent of output idx; zeros where nothing flowed back.
  Sym dout(size_t idx = 0) const;
  bool has_dout(size_t idx) const { return !cotangents_[idx].is_none(); }
  // Whether the gradient of argument idx is wanted.
  bool needs(size_t idx) const { return needs_ >> idx & 1; }

 private:
  std::span<const Value> outs_;
  std::span<const Type> out_types_;
  std::span<const Value> cotangents_;
  uint32_t needs_;
};

// A call of which some operands are batches, with the axis of the batch in front.
class VmapCall : public Call {
 public:
  VmapCall(Builder& builder, const OpDef& op, std::span<const Value> args, std::span<const char> batched, Dim batch)
      : Call(builder, op, args), batched_(batched), batch_(batch) {}
  Dim batch() const { return batch_; }
  // Of a list: all of its tensors are batches, or none.
  bool batched(size_t idx) const { return batched_[idx] != 0; }
  // Shape of one example of argument `idx`.
  Shape example_shape(size_t idx) const {
    const Shape& all = shape(idx);
    return Shape(all.begin() + (batched(idx) ? 1 : 0), all.end());
  }

 private:
  std::span<const char> batched_;
  Dim batch_;
};

// ---- rules ----
using AxisRule = AxisMap (*)(const ArgView& call, std::span<const Type> outs);
// Results for the whole batch, with its axis in front; none: this call is left to the general ways (transform/vmap.h).
using VmapRule = Syms (*)(const VmapCall& call);
using InferRule = Types (*)(const ArgView& call);
using ComposeRule = Syms (*)(const Call& call);
// One Sym for each argument (missing ones at the end and null ones: no gradient). Sums over broadcast axes and casts to
// the argument's dtype are added by the caller of the rule.
using GradRule = Syms (*)(const GradCall& call);
// dy/dx of y = f(x), element by element; the gradient is dout * conj(dy/dx). Reads x or y as `saves` says.
using DerivativeRule = Sym (*)(Builder& builder, const Sym& x, const Sym& y);
// Layout of the result as a view of argument 0; nothing where only a contiguous input can be viewed so (reshape).
using ViewRule = std::optional<Layout> (*)(const ArgView& call, const Layout& input);
// Layouts of several views of argument 0 (split, unbind).
using ViewsRule = std::vector<Layout> (*)(const ArgView& call, const Layout& input);
// Strides that a kernel prefers for result `idx` of this shape (channels-last images); none: contiguous.
using StridesRule = std::optional<Strides> (*)(const ArgView& call, size_t idx, const Shape& shape);
// Row program of a row-wise operator (softmax, layer_norm) for tensors of `dtype`: declares one input per tensor
// argument and one output per result, in order. Rows run along the last axis, or along argument `axis` where there is
// one.
using RowsRule = void (*)(loops::ProgramBuilder& rows, DType dtype);

// An elementwise expression of one to five operands: lambda over loops::Expr.
class LoopRule {
 public:
  LoopRule() = default;
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, LoopRule>) LoopRule(F fn) {  // NOLINT
    using E = const loops::Expr&;
    if constexpr (std::is_invocable_v<F, E>) {
      set<1>([fn](const loops::Expr* x) { return fn(x[0]); });
    } else if constexpr (std::is_invocable_v<F, E, E>) {
      set<2>([fn](const loops::Expr* x) { return fn(x[0], x[1]); });
    } else if constexpr (std::is_invocable_v<F, E, E, E>) {
      set<3>([fn](const loops::Expr* x) { return fn(x[0], x[1], x[2]); });
    } else if constexpr (std::is_invocable_v<F, E, E, E, E>) {
      set<4>([fn](const loops::Expr* x) { return fn(x[0], x[1], x[2], x[3]); });
    } else {
      set<5>([fn](const loops::Expr* x) { return fn(x[0], x[1], x[2], x[3], x[4]); });
    }
  }
  explicit operator bool() const { return arity_ != 0; }
  int arity() const { return arity_; }
  loops::Expr operator()(const loops::Expr* args) const { return fn_(args); }

 private:
  template <int N, class F>
  void set(F fn) {
    arity_ = N;
    fn_ = fn;
  }
  int arity_ = 0;
  std::function<loops::Expr(const loops::Expr*)> fn_;
};

// How the dtype in which an elementwise operator computes, and that of its result, follow from its operands.
enum class Promotion : uint8_t {
  Same,     // common type -> itself
  Float,    // integers and bool compute in float32 -> float
  Compare,  // common type -> bool
  Logic,    // everything computes in bool -> bool
  Real,     // complex -> its real type (abs, real, imag, angle)
  Complex,  // real -> complex of that type
  Int8,     // -> int8
};

// Sets of dtypes as bit masks over DType.
using DTypeSet = uint32_t;
constexpr DTypeSet set_of(std::initializer_list<DType> dtypes) {
  DTypeSet set = 0;
  for (const DType dtype : dtypes) set |= 1u << static_cast<int>(dtype);
  return set;
}
constexpr bool contains(DTypeSet set, DType dtype) { return set >> static_cast<int>(dtype) & 1; }
inline constexpr DTypeSet bools = set_of({DType::Bool});
inline constexpr DTypeSet signed_ints = set_of({DType::Int8, DType::Int16, DType::Int32, DType::Int64});
inline constexpr DTypeSet unsigned_ints = set_of({DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64});
inline constexpr DTypeSet integers = signed_ints | unsigned_ints;
inline constexpr DTypeSet floats = set_of({DType::Float16, DType::BFloat16, DType::Float32, DType::Float64});
inline constexpr DTypeSet complexes = set_of({DType::Complex64, DType::Complex128});
inline constexpr DTypeSet reals = integers | floats;
inline constexpr DTypeSet numbers = reals | complexes;
inline constexpr DTypeSet any_dtype = numbers | bools;

enum OpFlag : uint32_t {
  kNoGrad = 1 << 0,      // not differentiable (comparisons, argmax, ...)
  kInPlace = 1 << 1,     // writes into argument 0 and returns it
  kRandom = 1 << 2,      // has an `rng` argument
  kBroadcast = 1 << 3,   // tensor arguments broadcast against each other
  kEffect = 1 << 4,      // must be kept and ordered though its result may be unused
  kHidden = 1 << 5,      // internal: no public name of its own
  kConversion = 1 << 6,  // gives argument 0 back where that has the result's type already (cast, reshape)
  kConverts = 1 << 7,    // each element of argument 0 converted to the type of the result
  kItemwise = 1 << 8,    // takes lists of equal length; a call is as good as several on parts of them
  kCheap = 1 << 9,       // a kernel that waits for memory: computing again costs little (elementwise and rows do too)
  kSelects = 1 << 10,    // result 0 has elements of argument 0, chosen by order or place, as views do by themselves
  kEpilogue = 1 << 11,   // its kernel lets elementwise work follow on every part of result 0 (kernels/epilogue.h)
};

// What `grad` reads: bits of arguments and outputs.
struct Saves {
  uint32_t args = 0;
  uint32_t outs = 0;
  // Arguments 0 and 1 are each read only for the gradient of the other one (products).
  bool crosswise = false;
};
constexpr uint32_t bits(std::initializer_list<int> indices) {
  uint32_t out = 0;
  for (const int i : indices) out |= 1u << i;
  return out;
}

// Control flow: operators that take graphs.
enum class Control : uint8_t { None, If, While, Scan, Call, Fused };

// The operator in the words of ONNX, read in both directions (io/onnx/mapping.h), for example
//   {"ReduceSum", 1, "input, axis <- axes@13; keep_dims <- keepdims = 1, 0 <- noop_with_empty_axes = 0 -> input"}
// Before the semicolon the inputs in order, each the argument that it is; "axis <- axes@13": an input since opset 13,
// an attribute of that name before. Without them: the tensors in the order of the schema. Then what the attributes are,
// with ONNX's default: an argument, or what the attribute has to be; and what must hold ("training == False"). After
// the arrow the type of each result that ONNX has, where it is not that of the operator.
struct OnnxMap {
  std::string_view name;
  int since = 1;  // the first opset that means this
  std::string_view map = {};
};

struct OpDef {
  // -- written by hand --
  std::string_view name = {};
  std::string_view args = {};
  std::string_view doc = {};
  std::string_view axes = {};    // "... m k, ... k n -> ... m n": see ops/axes.h
  AxisRule axis_rule = nullptr;  // where no `axes` can say it
  InferRule infer = nullptr;
  LoopRule loop = {};
  RowsRule rows = nullptr;
  // Companion of `rows` for a row along the last axis: a Columns program over the same arguments, whose outputs (one
  // sum over all rows for each position, stored as computed) follow those of `rows`. Both run block by block over the
  // rows.
  RowsRule columns = nullptr;
  std::optional<loops::ReduceOp> reduce = {};
  // As other operators. Beside a kernel: what it is equal to, used where the operator itself has no gradient rule.
  ComposeRule compose = nullptr;
  ViewRule view = nullptr;
  ViewsRule views = nullptr;
  Control control = Control::None;  // run by the executor of graphs
  bool kernel = false;              // implemented in the kernel table (kernels/table.h) under `name`
  StridesRule strides = nullptr;    // kernel only
  int data_dependent = 0;  // kernel only, instead of infer: number of results, whose shapes depend on values (nonzero)
  GradRule grad = nullptr;
  DerivativeRule derivative = nullptr;  // instead of grad, for functions of one variable
  Saves saves = {};
  VmapRule vmap = nullptr;  // only where it does not follow from `axes`
  uint32_t flags = 0;
  Promotion promotion = Promotion::Same;
  uint32_t bool_args = 0;       // elementwise: arguments that are conditions, converted to bool
  DTypeSet dtypes = any_dtype;  // in which it computes
  // The operator that does the same on int8 (transform/quantise.h). Its arguments are those of this one - input and
  // weight of int8, bias of int32 -, then multiplier, shift, input_zero and output_zero (ops/quant.cc).
  std::string_view int8 = {};
  std::vector<OnnxMap> onnx = {};
  // As operators that ONNX has, where neither a name of ONNX serves nor `compose` or `loop` leads to such.
  ComposeRule onnx_compose = nullptr;
  int version = 1;

  // -- derived at registration --
  Schema schema = {};
  const AxesPattern* axes_pattern = nullptr;  // of `axes`
  int id = -1;
  std::string_view family = {};
  std::string_view file = {};
  int line = 0;
  bool is_elementwise() const { return static_cast<bool>(loop); }
  bool has(OpFlag flag) const { return flags & flag; }
};

}  // namespace morel
