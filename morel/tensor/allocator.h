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

// Memory for an arena: a kept block that is somewhat larger serves as well, before the system is asked for a new one
// and gets smaller kept ones back. So arenas of changing sizes share memory.
struct ArenaBlock {
  void* data = nullptr;
  size_t bytes = 0;
  int size_class = 0;
};
ArenaBlock allocate_arena(size_t bytes);
void deallocate(const ArenaBlock& block) noexcept;

// For its lifetime what this thread allocates, and frees again, comes out of `memory` as far as that suffices:
// temporaries of a kernel whose need is known.
class Workspace {
 public:
  Workspace(void* memory, size_t bytes);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  // Bytes of memory with which nothing would have come from elsewhere.
  size_t demand() const { return demand_; }
  void* allocate(size_t bytes);
  bool take_back(const void* data);  // false for what lies elsewhere

 private:
  struct Piece {
    const void* data;  // where it really lies
    size_t begin, end;
  };
  static constexpr size_t max_pieces = 16;

  Workspace* outer_;
  char* memory_;
  size_t bytes_, demand_ = 0;
  Piece pieces_[max_pieces];  // in use, in order
  size_t count_ = 0;
};

struct AllocatorStats {
  int64_t in_use = 0;       // bytes handed out, as they were asked for
  int64_t peak_in_use = 0;  // largest in_use since the start or the last reset
  int64_t reserved = 0;     // bytes held, in use or kept
  int64_t peak_reserved = 0;
};
AllocatorStats allocator_stats();
void reset_peak_stats();
// Returns all kept blocks to the system.
void empty_cache();

}  // namespace morel
