// A call on distributed operands, decided once for each signature (operator, types, shardings, other arguments).
#pragma once

#include <memory>
#include <vector>

#include "morel/dist/propagate.h"

namespace morel::dist {

struct CallPlan {
  CallSharding sharding;
  Types types;                    // of the results
  std::vector<Args> arguments;    // for each position of the mesh: arguments with local sizes; empty: as they are
  std::vector<char> has_nothing;  // for each position: it has no element of an operand that is cut, so nothing runs
  bool derived = false;           // the entry says how its axes go
};

// `operands`: the tensors among the arguments, all distributed.
std::shared_ptr<const CallPlan> plan_call(const OpDef& op, std::span<const Value> args,
                                          std::span<const Tensor> operands);

}  // namespace morel::dist
