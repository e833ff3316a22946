#include "morel/kernels/select.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/item_size.h"

namespace morel::kernels {
namespace {

constexpr int64_t task_elements = 16384;

template <class T>
bool is_nonzero(const T& value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return (value.bits & 0x7fffu) != 0;
  } else {
    return value != T{};
  }
}

// Rows of the last axis, cut into tasks of whole rows. Up to three arrays walk along.
struct Walk {
  explicit Walk(std::span<const int64_t> shape)
      : shape(shape.empty() ? std::span<const int64_t>(&one, 1) : shape),
        width(this->shape.back()),
        rows(count_elements(this->shape.first(this->shape.size() - 1))),
        rows_per_task(std::max<int64_t>(1, task_elements / std::max<int64_t>(1, width))),
        tasks(width == 0 ? 0 : (rows + rows_per_task - 1) / rows_per_task) {}

  int64_t offset(int64_t row, std::span<const int64_t> strides) const {
    int64_t offset = 0;
    for (size_t axis = shape.size() - 1; axis-- > 0;) {
      offset += row % shape[axis] * strides[axis];
      row /= shape[axis];
    }
    return offset;
  }
  int64_t step(std::span<const int64_t> strides) const { return strides.empty() ? 1 : strides.back(); }
  // fn(task, row) in order within a task
  template <class F>
  void run(F&& fn) const {
    parallel_tasks(tasks, [&](int64_t task) {
      for (int64_t row = task * rows_per_task; row < std::min(rows, (task + 1) * rows_per_task); ++row) fn(task, row);
    });
  }

  static constexpr int64_t one = 1;
  std::span<const int64_t> shape;
  int64_t width, rows, rows_per_task, tasks;
};

// Per task, how many of its elements are not zero.
std::vector<int64_t> task_counts(const Walk& walk, const ConstView& input) {
  std::vector<int64_t> counts(walk.tasks, 0);
  visit_dtype(input.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    walk.run([&](int64_t task, int64_t row) {
      const T* values = static_cast<const T*>(input.data) + walk.offset(row, input.strides);
      const int64_t step = walk.step(input.strides);
      int64_t count = 0;
      for (int64_t idx = 0; idx < walk.width; ++idx) count += is_nonzero(values[idx * step]);
      counts[task] += count;
    });
  });
  return counts;
}
// Where each task's results begin.
std::vector<int64_t> task_starts(const Walk& walk, const ConstView& input) {
  std::vector<int64_t> starts = task_counts(walk, input);
  int64_t total = 0;
  for (int64_t& start : starts) total += std::exchange(start, total);
  return starts;
}

}  // namespace

int64_t count_nonzero(const ConstView& input) {
  int64_t total = 0;
  for (const int64_t count : task_counts(Walk(input.shape), input)) total += count;
  return total;
}

void nonzero(int64_t* out, const ConstView& input) {
  const Walk walk(input.shape);
  std::vector<int64_t> next = task_starts(walk, input);
  const size_t rank = input.shape.size();
  visit_dtype(input.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    walk.run([&](int64_t task, int64_t row) {
      const T* values = static_cast<const T*>(input.data) + walk.offset(row, input.strides);
      const int64_t step = walk.step(input.strides);
      Numbers position(rank, 0);
      for (size_t axis = rank - (rank > 0); axis-- > 0;) {
        position[axis] = row % walk.shape[axis];
        row /= walk.shape[axis];
      }
      int64_t* to = out + next[task] * static_cast<int64_t>(rank);
      for (int64_t idx = 0; idx < walk.width; ++idx) {
        if (!is_nonzero(values[idx * step])) continue;
        ++next[task];
        if (rank == 0) continue;
        position[rank - 1] = idx;
        to = std::copy(position.begin(), position.end(), to);
      }
    });
  });
}

void masked_select(void* out, const ConstView& input, const ConstView& mask) {
  const Walk walk(input.shape);
  std::vector<int64_t> next = task_starts(walk, {mask.data, mask.dtype, input.shape, mask.strides});
  visit_item_size(size_of(input.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    walk.run([&](int64_t task, int64_t row) {
      const T* values = static_cast<const T*>(input.data) + walk.offset(row, input.strides);
      const bool* chosen = static_cast<const bool*>(mask.data) + walk.offset(row, mask.strides);
      const int64_t step = walk.step(input.strides), mask_step = walk.step(mask.strides);
      T* to = static_cast<T*>(out);
      int64_t place = next[task];
      for (int64_t idx = 0; idx < walk.width; ++idx) {
        if (chosen[idx * mask_step]) to[place++] = values[idx * step];
      }
      next[task] = place;
    });
  });
}

void masked_scatter(const View& target, const ConstView& mask, const void* source) {
  const Walk walk(target.shape);
  std::vector<int64_t> next = task_starts(walk, {mask.data, mask.dtype, target.shape, mask.strides});
  visit_item_size(size_of(target.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    walk.run([&](int64_t task, int64_t row) {
      T* values = static_cast<T*>(target.data) + walk.offset(row, target.strides);
      const bool* chosen = static_cast<const bool*>(mask.data) + walk.offset(row, mask.strides);
      const int64_t step = walk.step(target.strides), mask_step = walk.step(mask.strides);
      int64_t place = next[task];
      for (int64_t idx = 0; idx < walk.width; ++idx) {
        if (chosen[idx * mask_step]) values[idx * step] = static_cast<const T*>(source)[place++];
      }
      next[task] = place;
    });
  });
}

void masked_fill(const View& target, const ConstView& mask, const void* value) {
  const Walk walk(target.shape);
  visit_item_size(size_of(target.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T filler;
    std::memcpy(&filler, value, sizeof(T));
    walk.run([&](int64_t, int64_t row) {
      T* values = static_cast<T*>(target.data) + walk.offset(row, target.strides);
      const bool* chosen = static_cast<const bool*>(mask.data) + walk.offset(row, mask.strides);
      const int64_t step = walk.step(target.strides), mask_step = walk.step(mask.strides);
      for (int64_t idx = 0; idx < walk.width; ++idx) {
        if (chosen[idx * mask_step]) values[idx * step] = filler;
      }
    });
  });
}

void one_hot(void* out, DType dtype, const void* indices, DType index_dtype, int64_t outer, int64_t depth,
             int64_t inner, const void* on_value, const void* off_value) {
  MOREL_CHECK(index_dtype == DType::Int32 || index_dtype == DType::Int64, Type,
              "For 'one_hot', indices must be Int32 or Int64, but got ", info(index_dtype).name, ".");
  const int64_t total = outer * depth * inner, one = 1;
  if (total == 0) return;
  fill({out, dtype, {&total, 1}, {&one, 1}}, off_value);
  const auto index_at = [&](int64_t idx) {
    return index_dtype == DType::Int32 ? static_cast<const int32_t*>(indices)[idx]
                                       : static_cast<const int64_t*>(indices)[idx];
  };
  visit_item_size(size_of(dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T on;
    std::memcpy(&on, on_value, sizeof(T));
    parallel_for(outer * inner, task_elements, [&](int64_t begin, int64_t end) {
      for (int64_t idx = begin; idx < end; ++idx) {
        const int64_t index = index_at(idx);
        if (index < 0 || index >= depth) continue;
        static_cast<T*>(out)[(idx / inner * depth + index) * inner + idx % inner] = on;
      }
    });
  });
}

}  // namespace morel::kernels
