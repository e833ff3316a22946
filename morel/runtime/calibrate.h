// Ranges of values of a graph, found by running it on examples: what transform/quantise.h wants to know.
#pragma once

#include <vector>

#include "morel/transform/quantise.h"

namespace morel {

enum class RangeMethod : uint8_t {
  MinMax,          // all that was seen
  RemoveOutliers,  // without the 0.01 % of elements farthest out on each side
  Kl,              // limits at which the int8 distribution says most about the one that was seen
};

// `batches`: the arguments of each run.
std::vector<Range> calibrate(const Ref<Graph>& graph, const Values& values, const std::vector<Values>& batches,
                             RangeMethod method);

}  // namespace morel
