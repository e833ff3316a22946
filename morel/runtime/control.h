// Control flow of graphs: operators whose arguments are graphs.
#pragma once

#include "morel/runtime/step.h"

namespace morel {

// Results of an `if`, `call`, `while` or `scan`; `args` as in its schema, `symbols` the values of the graph's sizes.
Values run_control(const Step& step, std::span<const Value> args, SymbolValues symbols);

}  // namespace morel
