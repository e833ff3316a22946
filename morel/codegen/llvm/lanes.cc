#include "morel/codegen/llvm/lanes.h"

#include <llvm/IR/IRBuilder.h>

#include "morel/codegen/llvm/helpers.h"

namespace morel::codegen {

using llvm::Value;
using loops::num_lanes;
using loops::ReduceOp;

RowReduction::RowReduction(const ControlBuilder& control, VectorBuilder& ops, ReduceOp op, DType dtype)
    : ControlBuilder(control),
      ops_(ops),
      op_(op),
      dtype_(dtype),
      lanes_(ops.allocate(num_lanes * size_of(dtype), "lanes")) {
  if (is_arg(op)) index_ = ops.allocate(num_lanes * 8, "index");
}

Value* RowReduction::place(Value* base, size_t v, DType dtype) {
  return at(base, static_cast<int64_t>(v) * ops_.lanes() * size_of(dtype));
}

void RowReduction::start() {
  const Vector identity = ops_.identity(op_, dtype_);
  for (size_t v = 0; v < count(); ++v) {
    ops_.store(dtype_, place(lanes_, v, dtype_), identity);
    if (index_) ops_.store(DType::Int64, place(index_, v, DType::Int64), ops_.constant(-1.0, DType::Int64));
  }
}

Vector RowReduction::fold() {
  if (called() || index_) {
    Values args = {lanes_};
    if (index_) args.push_back(index_);
    ops_.call(fold_helper_name(op_, dtype_), args);
    return ops_.load_one(index_ ? DType::Int64 : dtype_, args.back());
  }
  std::vector<Vector> parts;
  for (size_t v = 0; v < count(); ++v) parts.push_back(load(lanes_, v));
  for (size_t half = parts.size() / 2; half; half /= 2) {
    for (size_t v = 0; v < half; ++v) parts[v] = ops_.combine(op_, dtype_, parts[v], parts[v + half]);
  }
  for (int width = ops_.lanes(); width > 1; width /= 2)
    parts[0] = ops_.combine(op_, dtype_, parts[0], ops_.upper_half(parts[0], width));
  return ops_.first_lane(parts[0]);
}

void RowReduction::add(Value* x, Value* m, Value* j) {
  if (called()) {
    ops_.call(reduce_helper_name(op_, dtype_), Values{lanes_, x, m});
    return;
  }
  Value* whole = b_.CreateAnd(m, i64(-num_lanes));
  if_then(b_.CreateICmpNE(whole, i64(0)), [&] { add_whole(x, whole, j); });
  if_then(b_.CreateICmpNE(whole, m), [&] {
    Value* rest = b_.CreateNSWSub(m, whole);
    Value* tail = at(x, whole, size_of(dtype_));
    for (size_t v = 0; v < count(); ++v) {
      Value* inside = ops_.below(static_cast<int64_t>(v) * ops_.lanes(), rest);
      const Vector next = load(tail, v);
      if (index_) {
        keep_better(v, next, ops_.positions(b_.CreateNSWAdd(j, whole)), inside);
        continue;
      }
      const Vector old = load(lanes_, v);
      const Vector sum = ops_.combine(op_, dtype_, old, next);
      ops_.store(dtype_, place(lanes_, v, dtype_), ops_.select(inside, sum, old));
    }
  });
}

void RowReduction::add_whole(Value* x, Value* whole, Value* j) {
  if (index_) return add_positions(x, whole, j);
  const bool extreme = op_ == ReduceOp::Min || op_ == ReduceOp::Max;
  const std::vector<Vector> block = extreme && is_float(dtype_) ? extremes(x, whole) : sums(x, whole);
  for (size_t v = 0; v < count(); ++v)
    ops_.store(dtype_, place(lanes_, v, dtype_), ops_.combine(op_, dtype_, load(lanes_, v), block[v]));
}

std::vector<Vector> RowReduction::sums(Value* x, Value* whole) {
  const size_t n = count();
  const Vector identity = ops_.identity(op_, dtype_);
  Values start(n, identity.re);
  if (identity.im) start.resize(2 * n, identity.im);
  const Values found = step_loop(whole, num_lanes, start, [&](Value* i, const Values& carried) {
    Values out = carried;
    for (size_t v = 0; v < n; ++v) {
      const Vector old{carried[v], identity.im ? carried[n + v] : nullptr};
      const Vector sum = ops_.combine(op_, dtype_, old, load(at(x, i, size_of(dtype_)), v));
      out[v] = sum.re;
      if (sum.im) out[n + v] = sum.im;
    }
    return out;
  });
  std::vector<Vector> out;
  for (size_t v = 0; v < n; ++v) out.push_back({found[v], identity.im ? found[n + v] : nullptr});
  return out;
}

// Largest (smallest) floats: NaN is looked for aside, which keeps the chain of dependent operations short.
std::vector<Vector> RowReduction::extremes(Value* x, Value* whole) {
  const size_t n = count();
  Values start(n, ops_.identity(op_, dtype_).re);
  start.resize(2 * n, ops_.constant(0.0, DType::Bool).re);
  const Values found = step_loop(whole, num_lanes, start, [&](Value* i, const Values& carried) {
    Values out = carried;
    for (size_t v = 0; v < n; ++v) {
      Value* next = load(at(x, i, size_of(dtype_)), v).re;
      out[v] = b_.CreateSelect(ops_.beyond(op_, dtype_, {next}, {carried[v]}), next, carried[v]);
      out[n + v] = b_.CreateOr(carried[n + v], b_.CreateFCmpUNO(next, next));
    }
    return out;
  });
  std::vector<Vector> out;
  for (size_t v = 0; v < n; ++v)
    out.push_back(ops_.select(found[n + v], ops_.constant(__builtin_nan(""), dtype_), {found[v]}));
  return out;
}

// The best of each lane, and where its group of num_lanes elements starts.
void RowReduction::add_positions(Value* x, Value* whole, Value* j) {
  const DType group_dtype = size_of(dtype_) == 8 ? DType::Int64 : DType::Int32;
  const size_t n = count();
  Values start;
  for (size_t v = 0; v < n; ++v) start.push_back(load(x, v).re);
  start.resize(2 * n, ops_.constant(0.0, group_dtype).re);
  const Values best = step_loop(whole, num_lanes, start, [&](Value* i, const Values& carried) {
    Values out = carried;
    Value* group = ops_.splat(b_.CreateTrunc(i, b_.getIntNTy(static_cast<unsigned>(8 * size_of(group_dtype))))).re;
    for (size_t v = 0; v < n; ++v) {
      const Vector next = load(at(x, i, size_of(dtype_)), v);
      Value* better = ops_.before(op_, dtype_, next, {carried[v]});
      out[v] = b_.CreateSelect(better, next.re, carried[v]);
      out[n + v] = b_.CreateSelect(better, group, carried[n + v]);
    }
    return out;
  });
  const Vector first = ops_.positions(j);
  for (size_t v = 0; v < n; ++v) {
    Value* group = b_.CreateSExt(best[n + v], first.re->getType());
    keep_better(v, {best[v]}, {b_.CreateAdd(first.re, group)}, nullptr);
  }
}

// Of lanes v and `next`, whose positions are `index` and the lanes in front of v; where `inside`, if given.
void RowReduction::keep_better(size_t v, const Vector& next, const Vector& index, Value* inside) {
  const Vector old = load(lanes_, v), old_index = ops_.load(DType::Int64, place(index_, v, DType::Int64));
  Value* better = b_.CreateOr(b_.CreateICmpSLT(old_index.re, ops_.constant(0.0, DType::Int64).re),
                              ops_.before(op_, dtype_, next, old));
  if (inside) better = b_.CreateAnd(better, inside);
  const double before = static_cast<double>(v) * ops_.lanes();
  const Vector moved{b_.CreateAdd(index.re, ops_.constant(before, DType::Int64).re)};
  ops_.store(dtype_, place(lanes_, v, dtype_), ops_.select(better, next, old));
  ops_.store(DType::Int64, place(index_, v, DType::Int64), ops_.select(better, moved, old_index));
}

}  // namespace morel::codegen
