// What a library must have to run a plan: the selection of a library for one device.
#pragma once

#include <set>
#include <string>

#include "morel/lite/plan.h"

namespace morel::lite {

struct Requirements {
  std::set<std::string> kernels;  // of the kernel table
  std::set<std::string> loops;    // programs of the ahead-of-time library
};
Requirements requirements(const Plan& plan);

}  // namespace morel::lite
