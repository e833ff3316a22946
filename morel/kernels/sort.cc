#include "morel/kernels/sort.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/selection.h"

namespace morel::kernels {
namespace {

constexpr int64_t task_elements = 16384;
// Lines longer than this are sorted by radix.
constexpr int64_t radix_length = 512;
// A long line is cut in chunks that are sorted alone and merged; also the length of a merge task.
constexpr int64_t chunk_length = int64_t{1} << 16;

// ---- keys ---------------------------------------------------------------------------------------
template <size_t Size>
using UnsignedOf =
    std::conditional_t<Size == 1, uint8_t,
                       std::conditional_t<Size == 2, uint16_t, std::conditional_t<Size == 4, uint32_t, uint64_t>>>;

// Mantissa bits that are all zero in an infinity.
template <class T>
constexpr int mantissa_bits() {
  if constexpr (std::is_same_v<T, Float16>) return 10;
  if constexpr (std::is_same_v<T, BFloat16>) return 7;
  return std::is_same_v<T, float> ? 23 : 52;
}

template <class T>
UnsignedOf<sizeof(T)> key_of(const T& value) {
  using U = UnsignedOf<sizeof(T)>;
  constexpr U sign = static_cast<U>(U{1} << (8 * sizeof(T) - 1));
  U bits;
  std::memcpy(&bits, &value, sizeof(T));
  if constexpr (is_float(dtype_of<T>)) {
    constexpr U infinity =
        static_cast<U>(((U{1} << (8 * sizeof(T) - 1 - mantissa_bits<T>())) - 1) << mantissa_bits<T>());
    const U magnitude = static_cast<U>(bits & ~sign);
    if (magnitude > infinity) return static_cast<U>(~U{0});
    if (magnitude == 0) return sign;
    return bits & sign ? static_cast<U>(~bits) : static_cast<U>(bits | sign);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<U>(bits ^ sign);
  } else {
    return bits;
  }
}

template <uint32_t dtypes = ~0u, class F>
void visit_sortable(DType dtype, F&& fn) {
  MOREL_CHECK(!is_complex(dtype), NotImplemented,
              "complex numbers have no order; sorting supports all real dtypes, but got ", info(dtype).name, ".");
  visit_selected<dtypes>(dtype, [&](auto tag) {
    if constexpr (!is_complex(dtype_of<typename decltype(tag)::type>)) fn(tag);
  });
}

// ---- sorting of (key, index) entries ------------------------------------------------------------
// Entries differ, since indices do, so any correct sort is a stable one. Keys of up to 32 bits share a word with the
// index.
using Narrow = uint64_t;
struct Wide {
  uint64_t key;
  uint64_t index;
  bool operator<(const Wide& other) const { return key != other.key ? key < other.key : index < other.index; }
};
Narrow make_entry(uint32_t key, int64_t index, Narrow*) { return uint64_t{key} << 32 | static_cast<uint64_t>(index); }
Wide make_entry(uint64_t key, int64_t index, Wide*) { return {key, static_cast<uint64_t>(index)}; }
int64_t index_of(Narrow entry) { return static_cast<int64_t>(entry & 0xffffffffu); }
int64_t index_of(const Wide& entry) { return static_cast<int64_t>(entry.index); }
uint64_t sort_bits(Narrow entry) { return entry >> 32; }
uint64_t sort_bits(const Wide& entry) { return entry.key; }

// Least significant byte first; bytes that are equal in all entries are skipped. `buffer` has room for n entries.
template <class Entry>
void radix_sort(Entry* entries, Entry* buffer, int64_t n, int key_bytes) {
  std::vector<uint32_t> histograms(key_bytes * 256, 0);
  for (int64_t idx = 0; idx < n; ++idx) {
    const uint64_t bits = sort_bits(entries[idx]);
    for (int byte = 0; byte < key_bytes; ++byte) ++histograms[byte * 256 + (bits >> (8 * byte) & 255)];
  }
  Entry *from = entries, *to = buffer;
  for (int byte = 0; byte < key_bytes; ++byte) {
    const uint32_t* counts = &histograms[byte * 256];
    if (counts[sort_bits(from[0]) >> (8 * byte) & 255] == n) continue;
    uint32_t next[256], total = 0;
    for (int digit = 0; digit < 256; ++digit) {
      next[digit] = total;
      total += counts[digit];
    }
    for (int64_t idx = 0; idx < n; ++idx) to[next[sort_bits(from[idx]) >> (8 * byte) & 255]++] = from[idx];
    std::swap(from, to);
  }
  if (from != entries) std::memcpy(static_cast<void*>(entries), from, n * sizeof(Entry));
}

// Indices of entries arrive ascending, so a stable sort by key alone is enough for radix.
template <class Entry>
void sort_run(Entry* entries, Entry* buffer, int64_t n, int key_bytes) {
  if (n > radix_length) {
    radix_sort(entries, buffer, n, key_bytes);
  } else {
    std::sort(entries, entries + n);
  }
}

// How many of the first `count` entries of the merge of a and b come from a (binary search along the diagonal: S. Odeh
// et al., "Merge path", 2012).
template <class Entry>
int64_t merge_split(const Entry* a, int64_t a_count, const Entry* b, int64_t b_count, int64_t count) {
  int64_t low = std::max<int64_t>(0, count - b_count), high = std::min(count, a_count);
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (a[middle] < b[count - middle - 1]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Sorts a long line with all threads; the chunks depend on n alone.
template <class Entry>
void sort_long(std::vector<Entry>& entries, int key_bytes) {
  const int64_t n = static_cast<int64_t>(entries.size());
  std::vector<Entry> buffer(n);
  parallel_for(n, chunk_length,
               [&](int64_t begin, int64_t end) { sort_run(&entries[begin], &buffer[begin], end - begin, key_bytes); });
  for (int64_t width = chunk_length; width < n; width *= 2) {
    parallel_for(n, chunk_length, [&](int64_t begin, int64_t end) {
      // width is a multiple of the task's length: a task lies within one pair of runs.
      const int64_t first = begin / (2 * width) * (2 * width);
      const Entry *a = &entries[first], *b = a + std::min(width, n - first);
      const int64_t a_count = b - a, b_count = std::clamp<int64_t>(n - first - width, 0, width);
      const int64_t a_begin = merge_split(a, a_count, b, b_count, begin - first),
                    a_end = merge_split(a, a_count, b, b_count, end - first);
      std::merge(a + a_begin, a + a_end, b + (begin - first - a_begin), b + (end - first - a_end), &buffer[begin]);
    });
    entries.swap(buffer);
  }
}

// ---- lines --------------------------------------------------------------------------------------
int64_t line_offset(const SortShape& shape, int64_t line) {
  return line / shape.inner * shape.n * shape.inner + line % shape.inner;
}

// Type-erased work on one line: T gives the keys, Entry their container.
template <class T, class Entry>
class Line {
 public:
  using Key = UnsignedOf<sizeof(T)>;
  Line(const void* input, const SortShape& shape, bool descending)
      : input_(static_cast<const T*>(input)), shape_(shape), flip_(descending ? static_cast<Key>(~Key{0}) : Key{0}) {}

  void load(int64_t line, Entry* entries) const {
    const T* from = input_ + line_offset(shape_, line);
    for (int64_t idx = 0; idx < shape_.n; ++idx) entries[idx] = entry(from, idx);
  }
  Entry entry(const T* from, int64_t idx) const {
    return make_entry(static_cast<Key>(key_of(from[idx * shape_.inner]) ^ flip_), idx, static_cast<Entry*>(nullptr));
  }
  // The first `count` entries to the line's place in [outer, count, inner] arrays.
  void store(int64_t line, const Entry* entries, int64_t count, void* values, int64_t* indices) const {
    const T* from = input_ + line_offset(shape_, line);
    const int64_t place = line / shape_.inner * count * shape_.inner + line % shape_.inner;
    for (int64_t idx = 0; idx < count; ++idx) {
      const int64_t source = index_of(entries[idx]), target = place + idx * shape_.inner;
      if (values) static_cast<T*>(values)[target] = from[source * shape_.inner];
      if (indices) indices[target] = source;
    }
  }
  const T* begin(int64_t line) const { return input_ + line_offset(shape_, line); }

 private:
  const T* input_;
  SortShape shape_;
  Key flip_;
};

// fn(TypeTag<T>, TypeTag<Entry>) for a dtype and length.
template <uint32_t dtypes, class F>
void visit_entries(DType dtype, int64_t n, F&& fn) {
  visit_sortable<dtypes>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) <= 4) {
      MOREL_CHECK(n < (int64_t{1} << 32), NotImplemented, "sorting supports axes of less than 2^32 elements, but got ",
                  n, ".");
      fn(tag, TypeTag<Narrow>{});
    } else {
      fn(tag, TypeTag<Wide>{});
    }
  });
}

}  // namespace

void sort(const void* input, const SortShape& shape, bool descending, void* values, int64_t* indices) {
  const int64_t lines = shape.outer * shape.inner;
  if (lines * shape.n == 0) return;
  visit_entries<~0u>(shape.dtype, shape.n, [&](auto tag, auto entry_tag) {
    using T = typename decltype(tag)::type;
    using Entry = typename decltype(entry_tag)::type;
    const Line<T, Entry> line(input, shape, descending);
    if (shape.n >= 2 * chunk_length) {
      for (int64_t idx = 0; idx < lines; ++idx) {
        std::vector<Entry> entries(shape.n);
        line.load(idx, entries.data());
        sort_long(entries, sizeof(T));
        line.store(idx, entries.data(), shape.n, values, indices);
      }
      return;
    }
    parallel_for(lines, std::max<int64_t>(1, task_elements / 4 / shape.n), [&](int64_t begin, int64_t end) {
      std::vector<Entry> entries(shape.n), buffer(shape.n > radix_length ? shape.n : 0);
      for (int64_t idx = begin; idx < end; ++idx) {
        line.load(idx, entries.data());
        sort_run(entries.data(), buffer.data(), shape.n, sizeof(T));
        line.store(idx, entries.data(), shape.n, values, indices);
      }
    });
  });
}

namespace {

// Leaves the k least entries of the line at the front of `best`, sorted. Candidates are collected as long as they beat
// the worst of the best k so far; a full buffer is cut back to k.
template <class T, class Entry>
void select_line(const Line<T, Entry>& line, int64_t idx, int64_t n, int64_t k, std::vector<Entry>& best) {
  const T* from = line.begin(idx);
  const int64_t room = std::min(n, std::max<int64_t>(2 * k, 256));
  best.clear();
  int64_t next = 0;
  for (; next < room; ++next) best.push_back(line.entry(from, next));
  const auto cut = [&] {
    std::nth_element(best.begin(), best.begin() + (k - 1), best.end());
    best.resize(k);
    return best[k - 1];
  };
  if (next < n) {
    Entry worst = cut();
    for (; next < n; ++next) {
      const Entry entry = line.entry(from, next);
      if (!(entry < worst)) continue;
      best.push_back(entry);
      if (static_cast<int64_t>(best.size()) == room) worst = cut();
    }
  }
  if (static_cast<int64_t>(best.size()) > k) cut();
  std::sort(best.begin(), best.end());
}

}  // namespace

void topk(const void* input, const SortShape& shape, int64_t k, bool largest, void* values, int64_t* indices) {
  MOREL_CHECK(k >= 0 && k <= shape.n, Value, "For 'topk', k must be in [0, ", shape.n,
              "], the size of the axis, but got ", k, ".");
  const int64_t lines = shape.outer * shape.inner;
  if (lines * k == 0) return;
  visit_entries<selected_dtypes("topk")>(shape.dtype, shape.n, [&](auto tag, auto entry_tag) {
    using T = typename decltype(tag)::type;
    using Entry = typename decltype(entry_tag)::type;
    const Line<T, Entry> line(input, shape, largest);
    parallel_for(lines, std::max<int64_t>(1, task_elements / shape.n), [&](int64_t begin, int64_t end) {
      std::vector<Entry> best;
      for (int64_t idx = begin; idx < end; ++idx) {
        select_line(line, idx, shape.n, k, best);
        line.store(idx, best.data(), k, values, indices);
      }
    });
  });
}

// ---- unique -------------------------------------------------------------------------------------
namespace {

// Renumbers by first occurrence.
void order_by_first(Distinct& distinct) {
  const int64_t count = static_cast<int64_t>(distinct.firsts.size());
  std::vector<int64_t> order(count), number(count);
  for (int64_t idx = 0; idx < count; ++idx) order[idx] = idx;
  std::sort(order.begin(), order.end(), [&](int64_t x, int64_t y) { return distinct.firsts[x] < distinct.firsts[y]; });
  Distinct sorted;
  for (int64_t idx = 0; idx < count; ++idx) {
    number[order[idx]] = idx;
    sorted.firsts.push_back(distinct.firsts[order[idx]]);
    sorted.counts.push_back(distinct.counts[order[idx]]);
  }
  for (int64_t& idx : distinct.inverse) idx = number[idx];
  distinct.firsts.swap(sorted.firsts);
  distinct.counts.swap(sorted.counts);
}

}  // namespace

Distinct unique(const void* input, DType dtype, int64_t n, DistinctOrder order) {
  Distinct distinct;
  if (n == 0) return distinct;
  distinct.inverse.resize(n);
  std::vector<int64_t> indices(n);
  sort(input, {dtype, 1, n, 1}, false, nullptr, indices.data());
  visit_sortable(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* values = static_cast<const T*>(input);
    for (int64_t idx = 0; idx < n; ++idx) {
      const int64_t place = indices[idx];
      if (idx == 0 || key_of(values[place]) != key_of(values[indices[idx - 1]])) {
        distinct.firsts.push_back(place);  // stable: the first of its equals
        distinct.counts.push_back(0);
      }
      ++distinct.counts.back();
      distinct.inverse[place] = static_cast<int64_t>(distinct.firsts.size()) - 1;
    }
  });
  if (order == DistinctOrder::FirstSeen) order_by_first(distinct);
  return distinct;
}

Distinct unique_consecutive(const void* input, DType dtype, int64_t n) {
  Distinct distinct;
  distinct.inverse.resize(n);
  visit_sortable(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* values = static_cast<const T*>(input);
    for (int64_t idx = 0; idx < n; ++idx) {
      if (idx == 0 || key_of(values[idx]) != key_of(values[idx - 1])) {
        distinct.firsts.push_back(idx);
        distinct.counts.push_back(0);
      }
      ++distinct.counts.back();
      distinct.inverse[idx] = static_cast<int64_t>(distinct.firsts.size()) - 1;
    }
  });
  return distinct;
}

// ---- searchsorted -------------------------------------------------------------------------------
void searchsorted(const void* sequences, const void* values, const SearchShape& shape, bool right,
                  const int64_t* sorter, int64_t* out) {
  if (sorter) {
    const int64_t count = (shape.is_shared ? 1 : shape.outer) * shape.n;
    for (int64_t idx = 0; idx < count; ++idx) {
      MOREL_CHECK(sorter[idx] >= 0 && sorter[idx] < shape.n, Index, "For 'searchsorted', index ", sorter[idx],
                  " at position ", idx, " of sorter is out of bounds for axis with size ", shape.n, ".");
    }
  }
  visit_sortable(shape.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(shape.outer * shape.m, task_elements / 16, [&](int64_t begin, int64_t end) {
      for (int64_t idx = begin; idx < end; ++idx) {
        const int64_t row = shape.is_shared ? 0 : idx / shape.m * shape.n;
        const T* sequence = static_cast<const T*>(sequences) + row;
        const auto key = key_of(static_cast<const T*>(values)[idx]);
        int64_t low = 0, count = shape.n;
        while (count > 0) {
          const int64_t half = count / 2;
          const auto middle = key_of(sequence[sorter ? sorter[row + low + half] : low + half]);
          const bool is_before = right ? middle <= key : middle < key;
          low = is_before ? low + half + 1 : low;
          count = is_before ? count - half - 1 : half;
        }
        out[idx] = low;
      }
    });
  });
}

}  // namespace morel::kernels
