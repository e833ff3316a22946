// The passes that a finished graph goes through before it runs, in order.
#pragma once

#include <string>

#include "morel/transform/rewrite.h"

namespace morel {

// How long one took.
struct PassTime {
  std::string_view name;
  double seconds;
};

// Where each stage of every graph is written as text from now on, <graph>.<number>.<stage>.ir, with how often each rule
// was applied below it; empty: nowhere. Variables of the environment come first (docs/graph_mode.md).
void save_graphs(std::string folder);

// Runs all passes; no gradient can be taken afterwards. Without an evaluator nothing is computed at compile time.
// fuses = false: operators stay what they are, for those who have their own use of them (files for devices).
std::vector<PassTime> optimise(Graph& graph, Evaluator evaluate = nullptr, bool fuses = true);

}  // namespace morel
