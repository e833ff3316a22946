// A plan as C99 for microcontrollers: a folder of sources that need nothing but the C library's string.h and math.h.
// All values lie in one static array, all weights are constants, one function runs the steps in a straight line.
#pragma once

#include <map>
#include <string>

#include "morel/base/file.h"
#include "morel/lite/plan.h"

namespace morel::lite {

struct CModel {
  std::map<std::string, std::string> files;  // text by name
  int64_t arena_bytes = 0;                   // RAM: inputs, results and all between
  int64_t variable_bytes = 0;                // RAM: what steps change and the next run sees
  int64_t weight_bytes = 0;                  // flash
};

// `name` is the prefix of files and names. NotImplementedError with all steps that have no C.
CModel generate_c(const Plan& plan, Bytes weights, const std::string& name);

// Texts of mcu/kernels/, by file name; the build embeds them.
std::string_view kernel_source(std::string_view file);  // empty where there is none

}  // namespace morel::lite
