// Memory plan: where in one arena buffers lie whose sizes and lifetimes are known, so that no two of them that live at
// the same time overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace morel {

// Bytes that are needed from step `first` to step `last`, both included.
struct BufferLife {
  size_t bytes;
  int32_t first, last;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // of the buffers, multiples of the alignment of tensors
  size_t arena_bytes = 0;
  size_t lower_bound = 0;  // most bytes alive at a time: no plan needs less
};

MemoryPlan plan_memory(std::span<const BufferLife> buffers);

}  // namespace morel
