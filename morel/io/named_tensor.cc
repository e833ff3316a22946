#include "morel/io/named_tensor.h"

namespace morel {

std::optional<uint64_t> tensor_bytes(DType dtype, const Shape& shape) {
  // Dimensions are multiplied even behind a 0, so that [0, 2^62, 2^62] is refused as every later use of it would be.
  int64_t count = 1;
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, dim, &count)) {
      return std::nullopt;
    }
  }
  if (__builtin_mul_overflow(count, size_of(dtype), &count)) return std::nullopt;
  return empty ? 0 : static_cast<uint64_t>(count);
}

}  // namespace morel
