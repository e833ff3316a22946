// The passes that a finished graph goes through before it runs, in order.
#pragma once

#include "morel/transform/rewrite.h"

namespace morel {

// How long one took.
struct PassTime {
  std::string_view name;
  double seconds;
};

// Runs all passes; no gradient can be taken afterwards. Without an evaluator nothing is computed at compile time. With
// MOREL_DUMP=passes in the environment each stage is written as text to the folder $MOREL_DUMP_DIR (default:
// morel_dump), <graph>.<number>.<stage>.txt, and how often each rule was applied below it.
// fuses = false: operators stay what they are, for those who have their own use of them (files for devices).
std::vector<PassTime> optimise(Graph& graph, Evaluator evaluate = nullptr, bool fuses = true);

}  // namespace morel
