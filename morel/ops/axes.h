// The index structure of calls: which axes of operands and results run together. From it follow result shapes,
// vectorisation (transform/vmap), sharding (dist/), and what a call costs.
//
// An entry states it as `axes`, a term for each tensor argument and each result:
//   "... m k, ... k n -> ... m n"
//   name          an index. One of operands alone is summed over. Results without an index of their operands hold
//                 the sum over it.
//   [name]        an index that cannot be cut: every element of the result needs all of it (the axis of a sort)
//   (a b)         one axis of two indices, major first. An index with the name of an int argument has that size.
//   ...           any number of axes, which broadcast as in NumPy
//   ...[axis]     the same, those that argument `axis` (or several: [before after]) names cannot be cut
//   [...]         any number of axes that cannot be cut
// An argument that is None has a term as well; the tensors of a list share one. Elementwise operators, rows,
// reductions and views need no `axes`; what a string cannot say is an `axis_rule`.
#pragma once

#include <string>

#include "morel/ops/opdef.h"

namespace morel {

enum class FactorKind : uint8_t {
  Map,     // in results: a slice of a result needs only the same slice of the operands that have the factor
  Reduce,  // in no result: results over parts of it are combined
  Whole,   // must not be cut
};
// An index that runs along axes of operands and results.
struct Factor {
  FactorKind kind = FactorKind::Whole;
  loops::ReduceOp combine = loops::ReduceOp::Sum;  // of results over parts of it, for results that do not have it
  Dim size = 1;
  int argument = -1;  // the int argument that holds the size (groups)
};
using AxisFactors = SmallVector<int, 2>;         // of one axis, major first; none: one element
using TensorFactors = std::vector<AxisFactors>;  // one for each axis
struct AxisMap {
  std::vector<Factor> factors;
  std::vector<TensorFactors> inputs;  // one for each tensor of the arguments, lists flattened
  std::vector<TensorFactors> outputs;

  int add(FactorKind kind, Dim size);
  // Every axis of these tensors a factor of its own that cannot be cut.
  void add_whole(std::vector<TensorFactors>& tensors, const Shape& shape);
};

// As an `axes` text with the factors a, b, c ...; 1: an axis of one element.
std::string to_string(const AxisMap& map);

// A tensor, now or as a value of a graph.
inline bool is_tensor_value(const Value& value) { return value.is_tensor() || value.tag() == Value::Tag::Node; }
// The tensors among the arguments, those of lists included, in order; numbers are none.
Values tensors_of(const OpDef& op, std::span<const Value> args);

AxisMap axis_map(const OpDef& op, std::span<const Value> args, std::span<const Type> outs);
// For an entry without rule: nothing can be cut.
AxisMap whole_axes(const OpDef& op, std::span<const Value> args, std::span<const Type> outs);

// Whether the entry says anything about its axes: false where axis_map falls back to whole_axes.
bool has_axes(const OpDef& op);
// Whether argument `idx` may be a tensor with more axes in front, where all results get them as well.
bool takes_leading_axes(const OpDef& op, size_t idx);

// How many axes of a tensor of argument `idx` the entry names one by one, behind those that broadcast.
int64_t named_axes(const OpDef& op, size_t idx);

// Reads the `axes` of an entry whose schema is known; null where there are none.
const AxesPattern* parse_axes(const OpDef& op);
// Types of the results by `axes`: binds indices, broadcasts the leading "...", names the axis that differs.
Types infer_from_axes(const ArgView& call);

// For `vmap` rules: sizes with that of the batch in front; an operand as a batch, repeated where it is none.
Ints with_batch(const VmapCall& call, const Ints& sizes);
Sym in_batch(const VmapCall& call, size_t idx);

}  // namespace morel
