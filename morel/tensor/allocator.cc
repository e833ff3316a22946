#include "morel/tensor/allocator.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "morel/base/error.h"
#include "morel/base/poison.h"

namespace morel {
namespace {

// Size classes: four steps per power of two, from 64 bytes; so at most a fifth of a block is never touched.
constexpr int num_classes = 4 * 40;
constexpr size_t small_limit = 64 << 10;  // blocks up to this go through the cache of the thread
constexpr size_t huge_limit =
    4ull << 20;  // blocks from this on are mapped on 2 MiB boundaries for transparent huge pages
constexpr size_t huge_page = 2ull << 20;
// A block may serve as an arena of a size that is this many classes smaller, a quarter of it.
constexpr int arena_classes = 8;

int class_of(size_t bytes) {
  if (bytes <= 64) return 0;
  const int log = std::bit_width(bytes - 1) - 1;  // 2^log < bytes <= 2^(log+1)
  const int step = static_cast<int>((bytes - 1) >> (log - 2)) & 3;
  return 4 * (log - 6) + step + 1;
}

size_t class_bytes(int cls) {
  if (cls == 0) return 64;
  const int log = (cls - 1) / 4 + 6, step = (cls - 1) % 4;
  const size_t bytes = (size_t{1} << log) + (static_cast<size_t>(step) + 1) * (size_t{1} << (log - 2));
  return (bytes + 63) & ~size_t{63};
}

struct Counters {
  std::atomic<int64_t> in_use{0}, peak_in_use{0}, reserved{0}, peak_reserved{0};
};
Counters counters;

void raise_peak(std::atomic<int64_t>& peak, int64_t value) {
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (value > seen && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

void* system_allocate(size_t bytes) {
  void* data = nullptr;
  if (bytes >= huge_limit) {
    // Untouched pages cost nothing, so the size is rounded up to whole huge pages.
    data = std::aligned_alloc(huge_page, (bytes + huge_page - 1) & ~(huge_page - 1));
    if (data) madvise(data, bytes, MADV_HUGEPAGE);
  } else {
    data = std::aligned_alloc(tensor_alignment, bytes);
  }
  if (data) {
    const int64_t now = counters.reserved.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes);
    raise_peak(counters.peak_reserved, now);
  }
  return data;
}

void system_free(void* data, size_t bytes) {
  unpoison(data, bytes);
  counters.reserved.fetch_sub(static_cast<int64_t>(bytes));
  std::free(data);
}

struct Shared {
  std::mutex mutex;
  std::array<std::vector<void*>, num_classes> free;
};
// Never destroyed: tensors may outlive static objects.
Shared& shared() {
  static Shared* pool = new Shared;
  return *pool;
}

struct ThreadCache {
  static constexpr int depth = 32;
  struct Bin {
    int count = 0;
    void* blocks[depth];
  };
  static constexpr int bins = 4 * 10 + 1;  // classes up to small_limit
  std::array<Bin, bins> bin;
  ~ThreadCache();
};
thread_local ThreadCache* cache = nullptr;
thread_local bool cache_gone = false;

struct CacheOwner {
  ThreadCache value;
  CacheOwner() { cache = &value; }
  ~CacheOwner() {
    cache = nullptr;
    cache_gone = true;
  }
};

ThreadCache::~ThreadCache() {
  Shared& pool = shared();
  const std::lock_guard lock(pool.mutex);
  for (int cls = 0; cls < bins; ++cls)
    for (int i = 0; i < bin[cls].count; ++i) pool.free[cls].push_back(bin[cls].blocks[i]);
}

ThreadCache* thread_cache() {
  if (cache) [[likely]]
    return cache;
  if (cache_gone) return nullptr;
  static thread_local CacheOwner owner;
  return cache;
}

void* take_shared(int cls) {
  Shared& pool = shared();
  const std::lock_guard lock(pool.mutex);
  if (pool.free[cls].empty()) return nullptr;
  void* data = pool.free[cls].back();
  pool.free[cls].pop_back();
  return data;
}

void return_kept(Shared& pool, int cls) {
  for (void* data : pool.free[cls]) system_free(data, class_bytes(cls));
  pool.free[cls].clear();
  pool.free[cls].shrink_to_fit();
}

thread_local Workspace* workspace = nullptr;

// Counted are the bytes that were asked for: the rest of a block is never touched.
int64_t counted(size_t bytes) { return static_cast<int64_t>((bytes + tensor_alignment - 1) & ~(tensor_alignment - 1)); }

void* take_block(int cls, size_t bytes) {
  MOREL_CHECK(cls < num_classes, Memory, "cannot allocate ", bytes, " bytes");
  const size_t size = class_bytes(cls);
  const int64_t now = counters.in_use.fetch_add(counted(bytes), std::memory_order_relaxed) + counted(bytes);
  if (now > counters.peak_in_use.load(std::memory_order_relaxed)) raise_peak(counters.peak_in_use, now);
  if (size <= small_limit) {
    if (ThreadCache* own = thread_cache()) {
      ThreadCache::Bin& bin = own->bin[cls];
      if (bin.count) return bin.blocks[--bin.count];
    }
  }
  void* data = take_shared(cls);
  if (!data) data = system_allocate(size);
  if (!data) {
    empty_cache();
    data = system_allocate(size);
  }
  if (!data) {
    counters.in_use.fetch_sub(counted(bytes));
    raise(ErrorKind::Memory, "out of memory: cannot allocate ", bytes, " bytes (", counters.in_use.load(),
          " bytes in use)");
  }
  return data;
}

// A block of a class for so many bytes.
void* take(int cls, size_t bytes) {
  void* data = take_block(cls, bytes);
  unpoison(data, bytes);
  poison(static_cast<char*>(data) + bytes, class_bytes(cls) - bytes);
  return data;
}

void give_back(void* data, int cls, size_t bytes) {
  poison(data, class_bytes(cls));
  counters.in_use.fetch_sub(counted(bytes), std::memory_order_relaxed);
  if (class_bytes(cls) <= small_limit) {
    if (ThreadCache* own = thread_cache()) {
      ThreadCache::Bin& bin = own->bin[cls];
      if (bin.count < ThreadCache::depth) {
        bin.blocks[bin.count++] = data;
        return;
      }
    }
  }
  Shared& pool = shared();
  const std::lock_guard lock(pool.mutex);
  pool.free[cls].push_back(data);
}

}  // namespace

void* allocate(size_t bytes) {
  if (workspace) [[unlikely]]
    return workspace->allocate(bytes);
  return take(class_of(bytes), bytes);
}

void deallocate(void* data, size_t bytes) noexcept {
  if (workspace && workspace->take_back(data)) return;
  if (data) give_back(data, class_of(bytes), bytes);
}

Workspace::Workspace(void* memory, size_t bytes)
    : outer_(workspace), memory_(static_cast<char*>(memory)), bytes_(bytes) {
  workspace = this;
}
Workspace::~Workspace() {
  poison(memory_, bytes_);
  workspace = outer_;
}

void* Workspace::allocate(size_t bytes) {
  if (count_ == max_pieces) return take(class_of(bytes), bytes);
  const size_t begin = count_ ? pieces_[count_ - 1].end : 0, end = begin + static_cast<size_t>(counted(bytes));
  demand_ = std::max(demand_, end);
  void* data = end <= bytes_ ? memory_ + begin : take(class_of(bytes), bytes);
  if (end <= bytes_) unpoison(data, bytes);
  pieces_[count_++] = {data, begin, end};
  return data;
}

bool Workspace::take_back(const void* data) {
  size_t at = count_;
  while (at > 0 && pieces_[at - 1].data != data) --at;
  if (at == 0) return false;
  const Piece& piece = pieces_[at - 1];
  const bool is_inside = piece.end <= bytes_;
  if (is_inside) poison(data, piece.end - piece.begin);
  std::copy(pieces_ + at, pieces_ + count_, pieces_ + at - 1);
  --count_;
  return is_inside;
}

ArenaBlock allocate_arena(size_t bytes) {
  const int smallest = class_of(bytes), largest = std::min(smallest + arena_classes, num_classes - 1);
  int cls = smallest;
  if (class_bytes(smallest) > small_limit && smallest <= largest) {
    Shared& pool = shared();
    const std::lock_guard lock(pool.mutex);
    while (cls < largest && pool.free[cls].empty()) ++cls;
    if (pool.free[cls].empty())
      for (cls = std::max(smallest - arena_classes, 0); cls < smallest; ++cls) return_kept(pool, cls);
  }
  return {take(cls, bytes), bytes, cls};
}

void deallocate(const ArenaBlock& block) noexcept {
  if (block.data) give_back(block.data, block.size_class, block.bytes);
}

AllocatorStats allocator_stats() {
  return {counters.in_use.load(), counters.peak_in_use.load(), counters.reserved.load(), counters.peak_reserved.load()};
}

void reset_peak_stats() {
  counters.peak_in_use = counters.in_use.load();
  counters.peak_reserved = counters.reserved.load();
}

void empty_cache() {
  Shared& pool = shared();
  const std::lock_guard lock(pool.mutex);
  for (int cls = 0; cls < num_classes; ++cls) return_kept(pool, cls);
}

}  // namespace morel
