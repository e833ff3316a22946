// What every mode of execution needs of one call: complete arguments, the types of its results, the gradients of its
// arguments.
#pragma once

#include "morel/ops/registry.h"

namespace morel {

// Fills in defaults and checks the kind of every argument. Random numbers (rng) are left None.
Args complete_args(const OpDef& op, std::span<const Value> given);

// Whether a call does more than give results: it is kept, and so is its order.
inline bool has_effect(const OpDef& op) { return op.has(kInPlace) || op.has(kEffect); }

// Whether the operator is run as it is; others are what they are composed of.
bool is_primitive(const OpDef& op);

// Types of the results of a primitive; arguments complete.
Types infer_types(const OpDef& op, std::span<const Value> args);

// The same for a node of a graph: an in-place operator gives argument 0, a composite what it is composed of.
Types result_types(const OpDef& op, std::span<const Value> args);

// Runs the gradient rule of a call and fits what it gives to the arguments: sums over broadcast axes, casts. `args`
// hold tensors or typed nodes; each of these, also within lists, is an edge, in order. needs[edge]: whether its
// gradient is wanted. Returns one value for each edge, None where nothing flows.
Values argument_gradients(Builder& builder, const OpDef& op, std::span<const Value> args, std::span<const Value> outs,
                          std::span<const Type> out_types, std::span<const Value> cotangents,
                          std::span<const char> needs);

}  // namespace morel
