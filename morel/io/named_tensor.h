// What the checkpoint formats hold: named tensors, in the order of the file.
#pragma once

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "morel/base/file.h"
#include "morel/tensor/dim.h"
#include "morel/tensor/dtype.h"

namespace morel {

struct NamedTensor {
  std::string name;
  DType dtype = DType::Float32;
  Shape shape;
  // The elements, row-major and little-endian, in one or (in .ckpt files with very large tensors) several pieces. Views
  // of a mapped file when read, of the caller's memory when written; not aligned.
  SmallVector<Bytes, 1> pieces;
  // Set for a string that was saved among the tensors; then only this and the name count.
  std::optional<std::string> text;

  size_t bytes() const {
    size_t sum = 0;
    for (const Bytes piece : pieces) sum += piece.size();
    return sum;
  }
  void copy_to(void* target) const {
    for (const Bytes piece : pieces)
      if (!piece.empty())
        target = static_cast<std::byte*>(std::memcpy(target, piece.data(), piece.size())) + piece.size();
  }
};

// A file that was read: the entries view into `file`.
struct TensorFile {
  MappedFile file;
  std::vector<NamedTensor> entries;
  std::map<std::string, std::string> metadata;  // safetensors only
};

// Bytes of a tensor, or nothing when a dimension is negative or the product does not fit in 63 bits.
std::optional<uint64_t> tensor_bytes(DType dtype, const Shape& shape);

}  // namespace morel
