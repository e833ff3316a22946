// Where `print_` prints: to standard output, unless somebody else takes it.
#pragma once

#include <span>
#include <string>

#include "morel/tensor/value.h"

namespace morel {

// Called with a format that has a "{}" or "{!r}" for each tensor; "{{" and "}}" in it are braces. The tensors hold
// their values only during the call.
using Printer = void (*)(const std::string& format, std::span<const Value> tensors);
// Returns the one before.
Printer set_printer(Printer printer);

}  // namespace morel
