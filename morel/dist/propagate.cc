#include "morel/dist/propagate.h"

#include <limits>

#include "morel/base/error.h"
#include "morel/ops/registry.h"

namespace morel::dist {

using loops::ReduceOp;

namespace {

constexpr int nothing = -1, pass_parts = -2;  // what a mesh axis may do instead of cutting a factor

bool contains_axis(const Axes& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

// ---- linearity ----

// Degree of a scalar expression in its loads: 0 constant, 1 linear (without constant term), 2 anything else.
int degree(const loops::Expr& expr) {
  using loops::ScalarOp;
  const loops::ExprNode& node = *expr.get();
  const auto of = [&](size_t idx) { return degree(node.args[idx]); };
  switch (node.op) {
    case ScalarOp::Const: return node.value == std::complex<double>(0) ? 1 : 0;
    case ScalarOp::Param: return 0;
    case ScalarOp::Load: return node.dtype == DType::Bool ? 0 : 1;  // a condition
    case ScalarOp::Neg:
    case ScalarOp::Real:
    case ScalarOp::Imag:
    case ScalarOp::Conj: return of(0);
    case ScalarOp::Cast: return is_float(expr.dtype()) || is_complex(expr.dtype()) ? of(0) : 2;
    case ScalarOp::Add:
    case ScalarOp::Sub: return of(0) == 1 && of(1) == 1 ? 1 : of(0) + of(1) == 0 ? 0 : 2;
    case ScalarOp::Mul: return std::min(2, of(0) + of(1));
    case ScalarOp::Select: return of(0) == 0 && of(1) == 1 && of(2) == 1 ? 1 : 2;
    case ScalarOp::Div: return of(1) == 0 ? of(0) : 2;
    default: return 2;
  }
}

bool reads_only_integers(const OpDef& op, std::span<const Value> args) {
  if (op.saves.outs) return false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!(op.saves.args >> i & 1)) continue;
    if (args[i].is_list()) return false;
    if (args[i].is_tensor() && is_differentiable(args[i].tensor_impl()->dtype)) return false;
  }
  return true;
}

// Numbers among the operands are constants that parts must not add several times.
bool has_numbers(const OpDef& op, std::span<const Value> args) {
  for (size_t i = 0; i < args.size(); ++i)
    if ((op.schema.args[i].kinds & (kNumber | kFloat)) && args[i].is_number() && args[i].complex() != 0.0) return true;
  return false;
}

}  // namespace

Linear linearity(const OpDef& op, std::span<const Value> args) {
  if (op.saves.crosswise) return Linear::Each;
  if (op.view || op.views || op.reduce == ReduceOp::Sum) return Linear::All;
  if (op.has(kNoGrad) || op.reduce || op.rows || op.has(kRandom) || !op.grad || op.derivative) return Linear::No;
  if (has_numbers(op, args) || !reads_only_integers(op, args)) return Linear::No;
  if (!op.loop) return Linear::All;
  std::vector<loops::Expr> loads;
  for (int i = 0; i < op.loop.arity(); ++i)
    loads.push_back(loops::load(i, op.bool_args >> i & 1 ? DType::Bool : DType::Float64));
  return degree(op.loop(loads.data())) == 1 ? Linear::All : Linear::No;
}

namespace {

// One way to cut a call.
class Candidate {
 public:
  Candidate(const OpDef& op, std::span<const Value> args, const AxisMap& map, std::span<const Type> types,
            std::span<const Sharding* const> operands, Linear linear)
      : op_(op), map_(map), types_(types), operands_(operands), linear_(linear), mesh_(operands[0]->mesh()) {
    for (const Value& tensor : tensors_of(op, args)) shapes_.push_back(shape_of(tensor));
    for (const Value& tensor : tensors_of(op, args))
      differentiable_.push_back(is_differentiable(dtype_of_value(tensor)));
  }

  // choice[mesh axis]: a factor, `nothing` or `pass_parts`. False where that is not possible.
  bool make(const SmallVector<int, 4>& choice) {
    out_ = {};
    out_.cuts.resize(map_.factors.size());
    passing_.clear();
    for (int axis = 0; axis < mesh_.num_axes(); ++axis) {
      const int chosen = choice[static_cast<size_t>(axis)];
      if (chosen == pass_parts) passing_.push_back(axis);
      if (chosen >= 0) out_.cuts[static_cast<size_t>(chosen)].push_back(axis);
    }
    bool cuts = false, reduces = false;
    for (size_t factor = 0; factor < out_.cuts.size(); ++factor) {
      order(static_cast<int>(factor));
      cuts = cuts || !out_.cuts[factor].empty();
      reduces = reduces || map_.factors[factor].kind == FactorKind::Reduce;
    }
    out_.cuts_reduction = cuts && reduces;
    return place_operands() && place_results() && cost();
  }
  const CallSharding& result() const { return out_; }
  // Elements moved now and, for parts, later; and how many processes compute the same.
  double weight() const { return weight_; }

 private:
  // The order that an operand has already.
  void order(int factor) {
    Axes& cuts = out_.cuts[static_cast<size_t>(factor)];
    if (cuts.size() < 2) return;
    Axes sorted;
    for (size_t i = 0; i < operands_.size(); ++i)
      for (size_t axis = 0; axis < map_.inputs[i].size(); ++axis)
        if (std::find(map_.inputs[i][axis].begin(), map_.inputs[i][axis].end(), factor) != map_.inputs[i][axis].end())
          for (const int mesh_axis : operands_[i]->axes(axis))
            if (contains_axis(cuts, mesh_axis) && !contains_axis(sorted, mesh_axis)) sorted.push_back(mesh_axis);
    for (const int axis : cuts)
      if (!contains_axis(sorted, axis)) sorted.push_back(axis);
    cuts = sorted;
  }

  // The mesh axes that cut one tensor axis; false where its pieces would not be in one place.
  bool cut_axis(const AxisFactors& factors, Axes& list) const {
    bool closed = false;  // an index before this one has several values in a piece
    for (size_t i = 0; i < factors.size(); ++i) {
      const size_t idx = static_cast<size_t>(factors[i]);
      const int64_t size = map_.factors[idx].size, pieces = mesh_.size_along(out_.cuts[idx]);
      if (!out_.cuts[idx].empty()) {
        if (closed) return false;
        bool last = map_.factors[idx].argument < 0;
        for (size_t later = i + 1; later < factors.size(); ++later)
          last = last && map_.factors[static_cast<size_t>(factors[later])].size == 1;
        if (!last && size % pieces != 0) return false;
        list.append(out_.cuts[idx].begin(), out_.cuts[idx].end());
      }
      closed = closed || size > pieces;
    }
    return true;
  }
  bool cut_tensor(const TensorFactors& factors, AxisLists& lists) const {
    lists.resize(factors.size());
    for (size_t axis = 0; axis < factors.size(); ++axis)
      if (!cut_axis(factors[axis], lists[axis])) return false;
    return true;
  }
  static bool has_factor(const TensorFactors& factors, size_t idx) {
    return std::any_of(factors.begin(), factors.end(), [&](const AxisFactors& axis) {
      return std::find(axis.begin(), axis.end(), static_cast<int>(idx)) != axis.end();
    });
  }

  bool place_operands() {
    for (size_t i = 0; i < operands_.size(); ++i) {
      AxisLists lists;
      if (!cut_tensor(map_.inputs[i], lists)) return false;
      Axes partial;
      if (!parts_of(i, partial)) return false;
      out_.operands.push_back(Sharding::get(&mesh_, lists, partial));
    }
    return true;
  }
  // Mesh axes along which operand `i` must be parts of a sum.
  bool parts_of(size_t i, Axes& partial) const {
    for (const int axis : passing_) {
      if (linear_ == Linear::All ? differentiable_[i] : i >= 2 || i == passing_operand(axis)) partial.push_back(axis);
    }
    // What is added to a sum over an index that is cut must be added once.
    for (size_t idx = 0; idx < out_.cuts.size(); ++idx) {
      if (out_.cuts[idx].empty() || map_.factors[idx].kind != FactorKind::Reduce || has_factor(map_.inputs[i], idx))
        continue;
      if (linear_ != Linear::Each || i < 2) return false;
      for (const int axis : out_.cuts[idx])
        if (!contains_axis(partial, axis)) partial.push_back(axis);
    }
    std::sort(partial.begin(), partial.end());
    return true;
  }
  // Of a product, the operand whose parts pass: the one that is in parts.
  size_t passing_operand(int mesh_axis) const { return operands_[0]->is_partial(mesh_axis) ? 0 : 1; }

  bool place_results() {
    for (size_t i = 0; i < map_.outputs.size(); ++i) {
      AxisLists lists;
      if (!cut_tensor(map_.outputs[i], lists)) return false;
      Axes partial = passing_;
      std::optional<ReduceOp> combine;
      if (!passing_.empty()) combine = ReduceOp::Sum;
      if (!passing_.empty() && !is_differentiable(types_[i].dtype)) return false;
      for (size_t idx = 0; idx < out_.cuts.size(); ++idx) {
        if (out_.cuts[idx].empty() || has_factor(map_.outputs[i], idx)) continue;
        if (combine && *combine != map_.factors[idx].combine) return false;
        combine = map_.factors[idx].combine;
        partial.append(out_.cuts[idx].begin(), out_.cuts[idx].end());
        out_.cuts_reduction = true;
      }
      std::sort(partial.begin(), partial.end());
      out_.results.push_back(Sharding::get(&mesh_, lists, partial, combine.value_or(ReduceOp::Sum)));
    }
    return true;
  }

  bool cost() {
    double weight = 0;
    for (size_t i = 0; i < operands_.size(); ++i)
      out_.moved += plan(operands_[i], out_.operands[i], shapes_[i]).moved();
    weight += static_cast<double>(out_.moved);
    for (size_t i = 0; i < out_.results.size(); ++i) {
      const Sharding* result = out_.results[i];
      if (op_.has(kInPlace)) {
        weight += static_cast<double>(plan(result, operands_[i], types_[i].shape).moved());
      } else {
        for (const int axis : result->partial())
          if (!contains_axis(passing_, axis))
            weight += 2.0 * static_cast<double>(mesh_.size()) / static_cast<double>(mesh_.axis_size(axis)) *
                      static_cast<double>(mesh_.axis_size(axis) - 1) *
                      static_cast<double>(int64_t{num_elements(result->local_shape(0, types_[i].shape))});
      }
    }
    int idle = 0;
    for (int axis = 0; axis < mesh_.num_axes(); ++axis) {
      bool used = contains_axis(passing_, axis);
      for (const Axes& cuts : out_.cuts) used = used || contains_axis(cuts, axis);
      idle += used ? 0 : 1;
    }
    weight_ = weight + 0.25 * idle;
    return true;
  }

  const OpDef& op_;
  const AxisMap& map_;
  std::span<const Type> types_;
  std::span<const Sharding* const> operands_;
  const Linear linear_;
  const Mesh& mesh_;
  std::vector<Shape> shapes_;
  std::vector<char> differentiable_;
  Axes passing_;
  CallSharding out_;
  double weight_ = 0;
};

// What each mesh axis may do, the better ones first.
std::vector<SmallVector<int, 4>> choices(const AxisMap& map, std::span<const Sharding* const> operands, Linear linear) {
  const Mesh& mesh = operands[0]->mesh();
  std::vector<SmallVector<int, 4>> out(static_cast<size_t>(mesh.num_axes()));
  for (int mesh_axis = 0; mesh_axis < mesh.num_axes(); ++mesh_axis) {
    SmallVector<int, 4>& options = out[static_cast<size_t>(mesh_axis)];
    bool parts = false;
    for (size_t i = 0; i < operands.size(); ++i) {
      parts = parts || (operands[i]->is_partial(mesh_axis) && operands[i]->combine() == ReduceOp::Sum &&
                        (linear != Linear::Each || i < 2));
      const int axis = operands[i]->tensor_axis_of(mesh_axis);
      if (axis < 0) continue;
      for (const int factor : map.inputs[i][static_cast<size_t>(axis)])
        if (map.factors[static_cast<size_t>(factor)].kind != FactorKind::Whole &&
            map.factors[static_cast<size_t>(factor)].size > 1 &&
            std::find(options.begin(), options.end(), factor) == options.end())
          options.push_back(factor);
    }
    if (parts && linear != Linear::No) options.push_back(pass_parts);
    options.push_back(nothing);
  }
  return out;
}

}  // namespace

CallSharding propagate(const OpDef& op, std::span<const Value> args, const AxisMap& map, std::span<const Type> types,
                       std::span<const Sharding* const> operands) {
  const Linear linear = linearity(op, args);
  const auto options = choices(map, operands, linear);
  Candidate candidate(op, args, map, types, operands, linear);
  CallSharding best;
  double weight = std::numeric_limits<double>::infinity();
  SmallVector<size_t, 4> at(options.size(), 0);
  while (true) {
    SmallVector<int, 4> choice;
    for (size_t i = 0; i < options.size(); ++i) choice.push_back(options[i][at[i]]);
    if (candidate.make(choice) && candidate.weight() < weight) {
      best = candidate.result();
      weight = candidate.weight();
    }
    size_t axis = options.size();
    while (axis > 0 && ++at[axis - 1] == options[axis - 1].size()) at[--axis] = 0;
    if (axis == 0) break;
  }
  MOREL_ASSERT(!best.operands.empty());
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t axis = 0; axis < operands[i]->rank(); ++axis)
      for (const int mesh_axis : operands[i]->axes(axis))
        best.gathers = best.gathers || best.operands[i]->tensor_axis_of(mesh_axis) < 0;
  return best;
}

}  // namespace morel::dist
