// IDX files, the format of MNIST and its relatives: bytes 0, 0, type, number of dimensions; each dimension as a
// big-endian 32-bit number; then the elements, row-major and big-endian. Plain or compressed with gzip.
#pragma once

#include <string>

#include "morel/tensor/tensor.h"

namespace morel {

// The whole array: uint8, int8, int16, int32, float32 or float64 as the file says. Files that are truncated, damaged,
// too long or of another kind raise Value with the byte (of the uncompressed content) where it shows.
Tensor read_idx(const std::string& path);

}  // namespace morel
