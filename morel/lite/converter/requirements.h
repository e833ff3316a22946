// What a library must have to run a plan: the selection of a library for one device.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "morel/lite/plan.h"

namespace morel::lite {

struct Requirements {
  using DTypes = uint32_t;  // a bit each
  // Of the kernel table and their parts, with the dtypes of operands and first results.
  std::map<std::string, DTypes> kernels;
  std::set<std::string> loops;  // programs of the ahead-of-time library
  DTypes dtypes = 0;            // of all tensors
};
Requirements requirements(const Plan& plan);

}  // namespace morel::lite
