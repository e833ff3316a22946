// The fields of a plan in the order in which a file has them: the one definition for reader and writer.
#pragma once

#include "morel/lite/plan.h"

namespace morel::lite {

// Raised with every change of what follows; a reader knows one version.
inline constexpr uint32_t plan_version = 1;

// How many values an enumeration has, so that a reader can refuse others.
template <class E>
inline constexpr int enum_count = 0;
template <>
inline constexpr int enum_count<DType> = num_dtypes;
template <>
inline constexpr int enum_count<Guard::Kind> = 3;
template <>
inline constexpr int enum_count<Home> = 4;
template <>
inline constexpr int enum_count<Arg::Tag> = 12;
template <>
inline constexpr int enum_count<StepKind> = 7;
template <>
inline constexpr int enum_count<loops::ReduceOp> = 8;

template <class A>
void fields(A& a, Size& x) {
  a(x.number, x.expr);
}
template <class A>
void fields(A& a, SizeAtom& x) {
  a(x.symbol, x.a, x.b);
}
template <class A>
void fields(A& a, SizeTerm& x) {
  a(x.factor, x.atoms);
}
template <class A>
void fields(A& a, SizeExpr& x) {
  a(x.terms);
}
template <class A>
void fields(A& a, Symbol& x) {
  a(x.input, x.axis, x.value);
}
template <class A>
void fields(A& a, Guard& x) {
  a(x.kind, x.size);
}
template <class A>
void fields(A& a, Buffer& x) {
  a(x.home, x.index, x.bytes, x.offset, x.first, x.last);
}
template <class A>
void fields(A& a, Quantisation& x) {
  a(x.scales, x.zero_points, x.axis);
}
template <class A>
void fields(A& a, Value& x) {
  a(x.name, x.dtype, x.shape, x.strides, x.offset, x.buffer, x.quantisation);
}
template <class A>
void fields(A& a, Arg& x) {
  a(x.tag, x.size, x.value, x.floats, x.text, x.sizes, x.items);
}
template <class A>
void fields(A& a, loops::LoopSignature::Output& x) {
  a(x.dtype, x.per_row);
}
template <class A>
void fields(A& a, loops::LoopSignature& x) {
  a(x.inputs, x.outputs, x.scratch);
}
template <class A>
void fields(A& a, Step& x) {
  a(x.kind, x.name, x.args, x.outs, x.bodies, x.workspace, x.signature, x.has_across, x.has_columns, x.axis, x.axes,
    x.reduce, x.place);
}
template <class A>
void fields(A& a, Function& x) {
  a(x.name, x.buffers, x.values, x.inputs, x.outputs, x.steps, x.arena_bytes);
}
template <class A>
void fields(A& a, Plan& x) {
  a(x.symbols, x.exprs, x.guards, x.functions);
}

}  // namespace morel::lite
