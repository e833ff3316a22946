#include "morel/tensor/memory_plan.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "morel/tensor/allocator.h"

namespace morel {
namespace {

// Up to so many buffers the orders below are tried, each in quadratic time.
constexpr size_t max_tried = 2048;

struct Buffer {
  size_t bytes;
  int32_t first, last;
  uint64_t area() const { return bytes * static_cast<uint64_t>(last - first + 1); }
};

using Keyed = std::pair<int64_t, int64_t>;  // sorted by the first, then the second

struct Taken {
  size_t begin, end;
};

// The smallest gap between `taken` (sorted) that holds `bytes`; the end of the last one where there is none.
size_t best_gap(std::span<const Taken> taken, size_t bytes) {
  size_t end = 0, best = SIZE_MAX, best_size = SIZE_MAX;
  for (const Taken& piece : taken) {
    if (piece.begin > end && piece.begin - end >= bytes && piece.begin - end < best_size) {
      best = end;
      best_size = piece.begin - end;
    }
    end = std::max(end, piece.end);
  }
  return best == SIZE_MAX ? end : best;
}

void insert_by_offset(std::vector<uint32_t>& list, uint32_t idx, const std::vector<size_t>& offsets) {
  const auto at = std::upper_bound(list.begin(), list.end(), offsets[idx],
                                   [&](size_t offset, uint32_t other) { return offset < offsets[other]; });
  list.insert(at, idx);
}

// Places buffers one after the other in `order`, each into the best gap among those that live with it.
std::vector<size_t> place_in_order(std::span<const Buffer> buffers, std::span<const uint32_t> order) {
  std::vector<size_t> offsets(buffers.size());
  std::vector<uint32_t> placed;  // by offset
  std::vector<Taken> taken;
  for (const uint32_t idx : order) {
    const Buffer& buffer = buffers[idx];
    if (buffer.bytes == 0) continue;
    taken.clear();
    for (const uint32_t other : placed)
      if (buffers[other].first <= buffer.last && buffer.first <= buffers[other].last)
        taken.push_back({offsets[other], offsets[other] + buffers[other].bytes});
    offsets[idx] = best_gap(taken, buffer.bytes);
    insert_by_offset(placed, idx, offsets);
  }
  return offsets;
}

// Places buffers as a run takes them: only those that live at the time are looked at.
std::vector<size_t> place_in_time(std::span<const Buffer> buffers, std::span<const uint32_t> by_first) {
  std::vector<size_t> offsets(buffers.size());
  std::vector<uint32_t> live;  // by offset
  std::vector<Taken> taken;
  for (const uint32_t idx : by_first) {
    const Buffer& buffer = buffers[idx];
    if (buffer.bytes == 0) continue;
    std::erase_if(live, [&](uint32_t other) { return buffers[other].last < buffer.first; });
    taken.clear();
    for (const uint32_t other : live) taken.push_back({offsets[other], offsets[other] + buffers[other].bytes});
    offsets[idx] = best_gap(taken, buffer.bytes);
    insert_by_offset(live, idx, offsets);
  }
  return offsets;
}

size_t extent(std::span<const Buffer> buffers, std::span<const size_t> offsets) {
  size_t out = 0;
  for (size_t i = 0; i < buffers.size(); ++i) out = std::max(out, offsets[i] + buffers[i].bytes);
  return out;
}

size_t most_alive(std::span<const Buffer> buffers) {
  std::vector<Keyed> changes;
  for (const Buffer& buffer : buffers) {
    changes.emplace_back(buffer.first, static_cast<int64_t>(buffer.bytes));
    changes.emplace_back(buffer.last + 1, -static_cast<int64_t>(buffer.bytes));
  }
  std::sort(changes.begin(), changes.end());
  int64_t alive = 0, most = 0;
  for (const auto& [step, change] : changes) most = std::max(most, alive += change);
  return static_cast<size_t>(most);
}

}  // namespace

MemoryPlan plan_memory(std::span<const BufferLife> lives) {
  std::vector<Buffer> buffers;
  for (const BufferLife& life : lives)
    buffers.push_back({(life.bytes + tensor_alignment - 1) & ~(tensor_alignment - 1), life.first, life.last});
  MemoryPlan plan;
  plan.lower_bound = most_alive(buffers);
  std::vector<uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  // The least key first; equal ones stay in their order.
  using Key = int64_t (*)(const Buffer&);
  const auto sort_by = [&](Key key) {
    std::vector<Keyed> keyed;
    for (size_t i = 0; i < order.size(); ++i) keyed.emplace_back(key(buffers[order[i]]), i);
    std::sort(keyed.begin(), keyed.end());
    const std::vector<uint32_t> before = order;
    for (size_t i = 0; i < order.size(); ++i) order[i] = before[static_cast<size_t>(keyed[i].second)];
  };
  const auto keep = [&](std::vector<size_t> offsets) {
    const size_t bytes = extent(buffers, offsets);
    if (!plan.offsets.empty() && bytes >= plan.arena_bytes) return;
    plan.offsets = std::move(offsets);
    plan.arena_bytes = bytes;
  };
  sort_by([](const Buffer& buffer) -> int64_t { return buffer.first; });
  keep(place_in_time(buffers, order));
  if (buffers.size() > max_tried) return plan;
  // The largest first, or those that block most of time and space, or the longest-lived.
  constexpr std::array<Key, 3> orders = {
      [](const Buffer& buffer) { return -static_cast<int64_t>(buffer.bytes); },
      [](const Buffer& buffer) { return -static_cast<int64_t>(buffer.area()); },
      [](const Buffer& buffer) -> int64_t { return buffer.first - buffer.last; },
  };
  for (const Key key : orders) {
    if (plan.arena_bytes == plan.lower_bound) break;
    sort_by(key);
    keep(place_in_order(buffers, order));
  }
  return plan;
}

}  // namespace morel
