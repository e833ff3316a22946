// Parts of the generated text: numbers, arrays, names.
#pragma once

#include <string>

#include "morel/base/file.h"
#include "morel/tensor/dtype.h"

namespace morel::lite {

// An element as it lies in memory: int8_t, float, uint16_t for halves.
std::string memory_type(DType dtype);
// `const T name[] = {...};` of bytes that hold elements of a dtype.
std::string array_text(const std::string& qualifiers, const std::string& name, DType dtype, Bytes bytes);
// "{1, 2, 3}", padded with zeros to `count`.
std::string braces(const std::vector<int64_t>& numbers, size_t count);

}  // namespace morel::lite
