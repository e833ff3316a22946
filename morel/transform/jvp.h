// Forward-mode differentiation of a graph: how values move when inputs do. An operator needs no rule for it: its
// gradient rule is linear in the cotangents, and the transpose of that is the product of its Jacobian with tangents.
#pragma once

#include "morel/transform/graph_builder.h"

namespace morel {

// The tangents of `outputs` where `inputs` move by `tangents`; None where an output does not move. All are values of
// the builder's graph; the order of its nodes may change where that keeps fewer values alive.
Values graph_tangents(GraphBuilder& builder, std::span<const Value> outputs, std::span<const Value> inputs,
                      std::span<const Value> tangents);

}  // namespace morel
