// Control flow of graphs: operators whose arguments are graphs.
#pragma once

#include "morel/runtime/step.h"

namespace morel {

// Results of an `if`, `while` or `while_grad`; `args` as in its schema, `types` those of the results.
Values run_control(const Step& step, std::span<const Value> args, std::span<const Type> types);

}  // namespace morel
