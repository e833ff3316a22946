// Propagation: how a call on distributed operands is cut. The call's index structure (ops/axes.h) says which axes run
// together; every mesh axis may cut one index, pass on parts that are still to be summed, or do nothing (all its
// processes compute the same). Of the ways that the operands' own shardings suggest, the one that moves the fewest
// elements is taken.
#pragma once

#include <vector>

#include "morel/dist/redistribute.h"
#include "morel/ops/axes.h"

namespace morel::dist {

struct CallSharding {
  std::vector<const Sharding*> operands;  // one for each tensor of the arguments, lists flattened
  std::vector<const Sharding*> results;
  std::vector<Axes> cuts;       // mesh axes that cut each factor
  bool cuts_reduction = false;  // a call that sums is cut: kernels may add in another order for other sizes
  bool gathers = false;         // an operand's pieces have to be put together although the call could not use them cut
  int64_t moved = 0;            // elements that operands move
};

// `types`: of the results. `operands`: how the tensors lie now, on one mesh.
CallSharding propagate(const OpDef& op, std::span<const Value> args, const AxisMap& map, std::span<const Type> types,
                       std::span<const Sharding* const> operands);

// In which operands a call is linear, so that parts of sums may pass through it. All: f(a + b, c + d) = f(a, c) + f(b,
// d). Each: in argument 0 and in argument 1 with the other one whole (products), and further ones are added. Follows
// from the entry: what is linear has a gradient that does not read the operand.
enum class Linear { No, All, Each };
Linear linearity(const OpDef& op, std::span<const Value> args);

}  // namespace morel::dist
