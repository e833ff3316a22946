// The part of the shape family that copies elements.
#pragma once

#include "morel/ops/registry.h"

namespace morel {

void register_array(Family& add);

}  // namespace morel
