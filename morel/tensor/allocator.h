// Memory of tensors on the host. Freed blocks are kept by size class and handed out again: returning 64 MiB blocks to
// the kernel and faulting them in again costs more than most kernels (measured: 4x on large elementwise operators).
#pragma once

#include <cstddef>
#include <cstdint>

namespace morel {

inline constexpr size_t tensor_alignment = 64;

// 64-byte aligned, uninitialised; bytes may be 0. Raises Memory when the system has none left.
void* allocate(size_t bytes);
void deallocate(void* data, size_t bytes) noexcept;

struct AllocatorStats {
  int64_t in_use = 0;       // bytes handed out
  int64_t peak_in_use = 0;  // largest in_use since the start or the last reset
  int64_t reserved = 0;     // bytes held, in use or kept
  int64_t peak_reserved = 0;
};
AllocatorStats allocator_stats();
void reset_peak_stats();
// Returns all kept blocks to the system.
void empty_cache();

}  // namespace morel
