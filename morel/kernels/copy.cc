#include "morel/kernels/copy.h"

#include <algorithm>
#include <array>
#include <complex>

#include "morel/base/error.h"
#include "morel/base/short_sort.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/item_size.h"

namespace morel {
using ConvertFn = void (*)(void* target, const void* source, int64_t n);
using TransposeFn = void (*)(void* target, int64_t target_stride, const void* source, int64_t source_stride,
                             int64_t rows, int64_t columns, bool is_large);
namespace kernels {
// Rows of the target that one call transposes.
constexpr int64_t transpose_panel = 64;
}  // namespace kernels
}  // namespace morel

#define MOREL_SIMD_FILE "morel/kernels/copy_simd.inc"
#include "morel/kernels/simd.h"

namespace morel::kernels {

int64_t count_elements(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

Numbers dense_strides(std::span<const int64_t> shape) {
  Numbers strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

namespace {

// Elements that a task moves at least.
constexpr int64_t task_elements = 16384;
// Transpositions of more bytes than this write past the caches.
constexpr int64_t streaming_bytes = int64_t{8} << 20;
// Elements that are converted at once between buffers in the first-level cache.
constexpr int64_t chunk_elements = 512;

struct Axis {
  int64_t size;
  int64_t target_stride;
  int64_t source_stride;
};

// The same set of element pairs with as few axes as possible, targets in order of memory.
struct Plan {
  SmallVector<Axis, 6> axes;
  char* target;
  const char* source;
  DType target_dtype;
  DType source_dtype;

  int64_t target_size() const { return size_of(target_dtype); }
  int64_t source_size() const { return size_of(source_dtype); }
};

Plan make_plan(const View& target, const ConstView& source) {
  Plan plan{{}, static_cast<char*>(target.data), static_cast<const char*>(source.data), target.dtype, source.dtype};
  for (size_t axis = 0; axis < target.shape.size(); ++axis) {
    Axis entry{target.shape[axis], target.strides[axis], source.strides[axis]};
    if (entry.size == 1) continue;
    if (entry.target_stride < 0) {
      plan.target += (entry.size - 1) * entry.target_stride * plan.target_size();
      plan.source += (entry.size - 1) * entry.source_stride * plan.source_size();
      entry.target_stride = -entry.target_stride;
      entry.source_stride = -entry.source_stride;
    }
    plan.axes.push_back(entry);
  }
  short_sort(plan.axes.begin(), plan.axes.end(),
             [](const Axis& x, const Axis& y) { return x.target_stride > y.target_stride; });
  size_t kept = 0;
  for (size_t axis = 1; axis < plan.axes.size(); ++axis) {
    Axis& outer = plan.axes[kept];
    const Axis inner = plan.axes[axis];
    if (outer.target_stride == inner.target_stride * inner.size &&
        outer.source_stride == inner.source_stride * inner.size) {
      outer = {outer.size * inner.size, inner.target_stride, inner.source_stride};
    } else {
      plan.axes[++kept] = inner;
    }
  }
  if (plan.axes.empty()) {
    plan.axes.push_back({1, 1, 1});
  } else {
    plan.axes.resize(kept + 1, Axis{});
  }
  return plan;
}

template <class T>
void move_row(char* target_bytes, int64_t target_stride, const char* source_bytes, int64_t source_stride, int64_t n) {
  T* target = reinterpret_cast<T*>(target_bytes);
  const T* source = reinterpret_cast<const T*>(source_bytes);
  if (target_stride == 1 && source_stride == 1) {
    std::memcpy(static_cast<void*>(target), source, n * sizeof(T));
  } else if (target_stride == 1 && source_stride == 0) {
    std::fill_n(target, n, *source);
  } else if (target_stride == 1) {
    for (int64_t idx = 0; idx < n; ++idx) target[idx] = source[idx * source_stride];
  } else {
    for (int64_t idx = 0; idx < n; ++idx) target[idx * target_stride] = source[idx * source_stride];
  }
}
using MoveRowFn = void (*)(char*, int64_t, const char*, int64_t, int64_t);
MoveRowFn find_move_row(int64_t item_size) {
  return visit_item_size(item_size, [](auto tag) -> MoveRowFn { return &move_row<typename decltype(tag)::type>; });
}

// A row of conversions. Complex numbers are pairs of reals: real parts are picked out before, zeros put between after.
class RowConverter {
 public:
  RowConverter(DType target, DType source) : target_(target), source_(source) {
    complex_to_bool_ = is_complex(source) && target == DType::Bool;
    both_complex_ = is_complex(source) && is_complex(target);
    convert_ = MOREL_SIMD_CALL(find_convert)(real_dtype(target), real_dtype(source));
    gather_ = find_move_row(size_of(both_complex_ ? source : real_dtype(source)));
    scatter_ = find_move_row(size_of(target));
  }

  void operator()(char* target, int64_t target_stride, const char* source, int64_t source_stride, int64_t n) const {
    const bool is_simple = !is_complex(source_) && !is_complex(target_);
    if (is_simple && target_stride == 1 && source_stride == 1) return convert_(target, source, n);
    alignas(64) char source_buffer[chunk_elements * 16], target_buffer[chunk_elements * 16];
    const int64_t source_size = size_of(source_), target_size = size_of(target_);
    for (int64_t begin = 0; begin < n; begin += chunk_elements) {
      const int64_t count = std::min(chunk_elements, n - begin);
      const char* from = source + begin * source_stride * source_size;
      char* to = target + begin * target_stride * target_size;
      if (complex_to_bool_) {
        complex_to_bool(target_buffer, from, source_stride, count);
      } else {
        convert_chunk(target_buffer, source_buffer, from, source_stride, count);
      }
      scatter_(to, target_stride, target_buffer, 1, count);
    }
  }

 private:
  void convert_chunk(char* target, char* buffer, const char* source, int64_t source_stride, int64_t count) const {
    const char* dense = source;
    if (both_complex_) {
      if (source_stride != 1) gather_(buffer, 1, source, source_stride, count), dense = buffer;
      return convert_(target, dense, 2 * count);
    }
    const int64_t real_stride = is_complex(source_) ? 2 * source_stride : source_stride;
    if (real_stride != 1) gather_(buffer, 1, source, real_stride, count), dense = buffer;
    convert_(target, dense, count);
    if (is_complex(target_)) spread_reals(target, count);
  }
  // From the back, so that it can happen in place.
  void spread_reals(char* values, int64_t count) const {
    const int64_t size = size_of(target_) / 2;
    for (int64_t idx = count; idx-- > 0;) {
      std::memmove(values + 2 * idx * size, values + idx * size, size);
      std::memset(values + (2 * idx + 1) * size, 0, size);
    }
  }
  void complex_to_bool(char* target, const char* source, int64_t source_stride, int64_t count) const {
    if (source_ == DType::Complex64) {
      const auto* values = reinterpret_cast<const std::complex<float>*>(source);
      for (int64_t idx = 0; idx < count; ++idx) target[idx] = values[idx * source_stride] != 0.0f;
    } else {
      const auto* values = reinterpret_cast<const std::complex<double>*>(source);
      for (int64_t idx = 0; idx < count; ++idx) target[idx] = values[idx * source_stride] != 0.0;
    }
  }

  DType target_;
  DType source_;
  bool complex_to_bool_ = false;
  bool both_complex_ = false;
  ConvertFn convert_;
  MoveRowFn gather_;
  MoveRowFn scatter_;
};

// Calls row(target, source, count) for pieces of the innermost axis, over all outer positions, in tasks of fixed size.
template <class Row>
void for_each_row(const Plan& plan, int64_t row_axes, int64_t grain_rows, Row&& row) {
  int64_t rows = 1;
  for (int64_t axis = 0; axis < row_axes; ++axis) rows *= plan.axes[axis].size;
  parallel_for(rows, grain_rows, [&](int64_t begin, int64_t end) {
    Numbers position(row_axes, 0);
    int64_t rest = begin, target_offset = 0, source_offset = 0;
    for (int64_t axis = row_axes; axis-- > 0;) {
      position[axis] = rest % plan.axes[axis].size;
      rest /= plan.axes[axis].size;
      target_offset += position[axis] * plan.axes[axis].target_stride;
      source_offset += position[axis] * plan.axes[axis].source_stride;
    }
    for (int64_t idx = begin; idx < end; ++idx) {
      row(plan.target + target_offset * plan.target_size(), plan.source + source_offset * plan.source_size());
      for (int64_t axis = row_axes; axis-- > 0;) {
        const Axis& entry = plan.axes[axis];
        target_offset += entry.target_stride;
        source_offset += entry.source_stride;
        if (++position[axis] < entry.size) break;
        position[axis] = 0;
        target_offset -= entry.size * entry.target_stride;
        source_offset -= entry.size * entry.source_stride;
      }
    }
  });
}

// Splits a long inner axis in two, so that the rows are short enough to be shared among tasks.
void split_long_rows(Plan& plan) {
  const Axis inner = plan.axes.back();
  if (inner.size < 2 * task_elements) return;
  // An exact divisor keeps the plan a box; without a good one the row is cut by the caller.
  for (int64_t pieces = (inner.size + task_elements - 1) / task_elements; pieces <= inner.size / 1024; ++pieces) {
    if (inner.size % pieces != 0) continue;
    plan.axes.back() = {pieces, inner.target_stride * (inner.size / pieces),
                        inner.source_stride * (inner.size / pieces)};
    plan.axes.push_back({inner.size / pieces, inner.target_stride, inner.source_stride});
    return;
  }
}

template <class RowFn>
void run_rows(Plan plan, const RowFn& row_fn) {
  split_long_rows(plan);
  const Axis inner = plan.axes.back();
  const int64_t target_step = inner.target_stride * plan.target_size(),
                source_step = inner.source_stride * plan.source_size();
  const int64_t row_axes = static_cast<int64_t>(plan.axes.size()) - 1;
  if (inner.size >= 2 * task_elements) {  // a long row of awkward length
    return for_each_row(plan, row_axes, int64_t{1} << 62, [&](char* target, const char* source) {
      parallel_for(inner.size, task_elements, [&](int64_t begin, int64_t end) {
        row_fn(target + begin * target_step, inner.target_stride, source + begin * source_step, inner.source_stride,
               end - begin);
      });
    });
  }
  for_each_row(plan, row_axes, std::max<int64_t>(1, task_elements / inner.size), [&](char* target, const char* source) {
    row_fn(target, inner.target_stride, source, inner.source_stride, inner.size);
  });
}

// The innermost axis is dense in the target and another one is dense in the source. True when it has been done.
bool run_transpose(Plan plan) {
  const int64_t rank = static_cast<int64_t>(plan.axes.size());
  const Axis inner = plan.axes.back();
  if (rank < 2 || plan.target_size() > 8 || inner.target_stride != 1 || inner.size < 4) return false;
  int64_t dense = -1;
  for (int64_t axis = 0; axis < rank - 1; ++axis) {
    if (plan.axes[axis].source_stride == 1 && plan.axes[axis].size >= 4) dense = axis;
  }
  if (dense < 0) return false;
  // Rows of the target along the dense axis are cut into panels; axes: outer..., panels | dense, inner.
  const Axis rows = plan.axes[dense];
  plan.axes.erase(plan.axes.begin() + dense);
  plan.axes.pop_back();
  constexpr int64_t panel = transpose_panel;
  const int64_t panels = (rows.size + panel - 1) / panel, item = plan.target_size();
  plan.axes.push_back({panels, 0, 0});
  Plan outer = plan;
  const TransposeFn transpose = MOREL_SIMD_CALL(find_transpose)(item);
  int64_t outer_count = 1;
  for (const Axis& axis : outer.axes) outer_count *= axis.size;
  const bool is_large = outer_count * std::min(panel, rows.size) * inner.size * item >= streaming_bytes;
  outer.axes.pop_back();
  const int64_t panel_elements = std::min(panel, rows.size) * inner.size;
  const int64_t grain = std::max<int64_t>(1, task_elements / panel_elements);
  parallel_for(outer_count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t idx = begin; idx < end; ++idx) {
      int64_t rest = idx / panels;
      const int64_t row = idx % panels * panel;
      int64_t target_offset = row * rows.target_stride, source_offset = row;
      for (size_t axis = outer.axes.size(); axis-- > 0;) {
        const int64_t position = rest % outer.axes[axis].size;
        rest /= outer.axes[axis].size;
        target_offset += position * outer.axes[axis].target_stride;
        source_offset += position * outer.axes[axis].source_stride;
      }
      transpose(plan.target + target_offset * item, rows.target_stride, plan.source + source_offset * item,
                inner.source_stride, std::min(panel, rows.size - row), inner.size, is_large);
    }
  });
  return true;
}

}  // namespace

void convert(void* target, DType target_dtype, const void* source, DType source_dtype, int64_t n) {
  const int64_t stride = 1;
  copy({target, target_dtype, {&n, 1}, {&stride, 1}}, {source, source_dtype, {&n, 1}, {&stride, 1}});
}

void copy(const View& target, const ConstView& source) {
  MOREL_ASSERT(std::ranges::equal(target.shape, source.shape));
  if (count_elements(target.shape) == 0) return;
  const Plan plan = make_plan(target, source);
  if (target.dtype != source.dtype) return run_rows(plan, RowConverter(target.dtype, source.dtype));
  if (plan.axes.back().source_stride != 1 && run_transpose(plan)) return;
  run_rows(plan, find_move_row(plan.target_size()));
}

void fill(const View& target, const void* value) {
  const Numbers zeros(target.shape.size(), 0);
  copy(target, {value, target.dtype, target.shape, {zeros.data(), zeros.size()}});
}

void fill_zero(const View& target) {
  alignas(16) const char zero[16] = {};
  fill(target, zero);
}

void flip(const View& target, const ConstView& source, std::span<const int64_t> axes) {
  if (count_elements(target.shape) == 0) return;
  Numbers strides(source.strides);
  const char* data = static_cast<const char*>(source.data);
  for (const int64_t axis : axes) {
    data += (source.shape[axis] - 1) * strides[axis] * size_of(source.dtype);
    strides[axis] = -strides[axis];
  }
  copy(target, {data, source.dtype, source.shape, {strides.data(), strides.size()}});
}

void roll(const View& target, const ConstView& source, std::span<const int64_t> shifts, std::span<const int64_t> axes) {
  if (count_elements(target.shape) == 0) return;
  const size_t rank = target.shape.size();
  Numbers shift(rank, 0);
  for (size_t idx = 0; idx < axes.size(); ++idx) {
    const int64_t size = target.shape[axes[idx]];
    shift[axes[idx]] = ((shift[axes[idx]] + shifts[idx]) % size + size) % size;
  }
  // Every rolled axis cuts the array in two boxes.
  Numbers rolled;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (shift[axis] != 0) rolled.push_back(static_cast<int64_t>(axis));
  }
  for (uint64_t box = 0; box < uint64_t{1} << rolled.size(); ++box) {
    Numbers shape(target.shape);
    int64_t target_offset = 0, source_offset = 0;
    for (size_t bit = 0; bit < rolled.size(); ++bit) {
      const int64_t axis = rolled[bit], size = target.shape[axis];
      if (box >> bit & 1) {  // source [size - shift, size) comes first
        shape[axis] = shift[axis];
        source_offset += (size - shift[axis]) * source.strides[axis];
      } else {
        shape[axis] = size - shift[axis];
        target_offset += shift[axis] * target.strides[axis];
      }
    }
    const std::span<const int64_t> box_shape{shape.data(), shape.size()};
    copy({static_cast<char*>(target.data) + target_offset * size_of(target.dtype), target.dtype, box_shape,
          target.strides},
         {static_cast<const char*>(source.data) + source_offset * size_of(source.dtype), source.dtype, box_shape,
          source.strides});
  }
}

void concat(const View& target, std::span<const ConstView> sources, int64_t axis) {
  char* data = static_cast<char*>(target.data);
  for (const ConstView& source : sources) {
    copy({data, target.dtype, source.shape, target.strides}, source);
    data += source.shape[axis] * target.strides[axis] * size_of(target.dtype);
  }
}

void triangle(const View& target, const ConstView& source, Triangle part, int64_t diagonal) {
  const size_t rank = target.shape.size();
  if (count_elements(target.shape) == 0) return;
  const int64_t rows = target.shape[rank - 2], columns = target.shape[rank - 1];
  MOREL_ASSERT(target.dtype == source.dtype);
  const auto outer = target.shape.first(rank - 2);
  const int64_t size = size_of(target.dtype), row_count = count_elements(outer) * rows;
  const int64_t target_column = target.strides[rank - 1], source_column = source.strides[rank - 1];
  const MoveRowFn move = find_move_row(size);
  alignas(16) static constexpr char zero[16] = {};
  parallel_for(row_count, std::max<int64_t>(1, task_elements / columns), [&](int64_t begin, int64_t end) {
    for (int64_t idx = begin; idx < end; ++idx) {
      const int64_t row = idx % rows;
      int64_t rest = idx, target_offset = 0, source_offset = 0;
      for (size_t axis = rank - 1; axis-- > 0;) {
        target_offset += rest % target.shape[axis] * target.strides[axis];
        source_offset += rest % target.shape[axis] * source.strides[axis];
        rest /= target.shape[axis];
      }
      // Lower keeps columns [0, row + diagonal], Upper keeps [row + diagonal, columns).
      const int64_t cut = std::clamp<int64_t>(row + diagonal + (part == Triangle::Lower ? 1 : 0), 0, columns);
      const int64_t kept_begin = part == Triangle::Lower ? 0 : cut, kept_end = part == Triangle::Lower ? cut : columns;
      char* to = static_cast<char*>(target.data) + target_offset * size;
      const char* from = static_cast<const char*>(source.data) + source_offset * size;
      move(to, target_column, zero, 0, kept_begin);
      move(to + kept_begin * target_column * size, target_column, from + kept_begin * source_column * size,
           source_column, kept_end - kept_begin);
      move(to + kept_end * target_column * size, target_column, zero, 0, columns - kept_end);
    }
  });
}

}  // namespace morel::kernels
