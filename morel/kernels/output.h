// Where `print_` prints and what `raise_` raises: standard output and Error, unless somebody else takes them.
#pragma once

#include <span>
#include <string>

#include "morel/tensor/value.h"

namespace morel {

// A format has a "{}" or "{!r}" for each tensor; "{{" and "}}" in it are braces. The tensors hold their values only
// during the call.
struct Output {
  void (*print)(const std::string& format, std::span<const Value> tensors);
  // Does not return. `kind`: the name of a built-in exception of Python.
  void (*raise)(const std::string& kind, const std::string& format, std::span<const Value> tensors);
};
Output set_output(Output output);  // returns the one before

}  // namespace morel
