// Kernels that only move elements are compiled per element size, not per dtype.
#pragma once

#include <cstdint>

#include "morel/tensor/dtype.h"

namespace morel::kernels {

struct Bytes16 {
  uint64_t parts[2];
};

// Calls fn(TypeTag<T>{}) with a trivial type of `size` bytes: 1, 2, 4, 8 or 16.
template <class F>
decltype(auto) visit_item_size(int64_t size, F&& fn) {
  switch (size) {
    case 1: return fn(TypeTag<uint8_t>{});
    case 2: return fn(TypeTag<uint16_t>{});
    case 4: return fn(TypeTag<uint32_t>{});
    case 8: return fn(TypeTag<uint64_t>{});
    default: return fn(TypeTag<Bytes16>{});
  }
}

}  // namespace morel::kernels
