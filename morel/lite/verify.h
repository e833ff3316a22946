// What must hold of a plan that comes from a file.
#pragma once

#include "morel/lite/plan.h"

namespace morel::lite {

// ValueError with the file's name and where the plan lies in it, unless everything that the plan refers to is there,
// every buffer and value lies where it may, and bodies do not go round in a circle.
void verify(const Plan& plan, size_t weight_bytes, const std::string& name, uint64_t offset);

}  // namespace morel::lite
