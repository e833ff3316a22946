// The safetensors format: https://huggingface.co/docs/safetensors. 8 bytes: length N of the header, little-endian; N
// bytes of JSON {"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [begin, end]}, ..., "__metadata__": {"key":
// "text"}}; then the elements of all tensors, without gaps.
#pragma once

#include <map>
#include <span>
#include <string>

#include "morel/io/named_tensor.h"

namespace morel {

// Entries come in the order of the header. Malformed files raise Value with the byte where it shows.
TensorFile read_safetensors(const std::string& path);

// The header keeps the order of `entries`; the data is laid out by falling element size, so that every tensor is
// aligned. Text entries and complex128 do not exist in this format and raise NotImplemented.
void write_safetensors(const std::string& path, std::span<const NamedTensor> entries,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace morel
