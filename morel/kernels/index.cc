#include "morel/kernels/index.h"

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/item_size.h"

namespace morel::kernels {
using CombineRunFn = void (*)(void* target, const void* source, int64_t n);
}  // namespace morel::kernels

#define MOREL_SIMD_FILE "morel/kernels/index_simd.inc"
#include "morel/kernels/simd.h"

namespace morel::kernels {
namespace {

constexpr int64_t task_elements = 16384;
// Scatters split their target in at most about this many parts that share no place.
constexpr int64_t scatter_parts = 16;

template <class F>
void visit_index_type(DType dtype, F&& fn) {
  MOREL_CHECK(is_integral(dtype) && dtype != DType::UInt64, Type, "indices must be integers, but got ",
              info(dtype).name, ".");
  visit_dtype(dtype, [&]<class I>(TypeTag<I> tag) {
    if constexpr (is_integral(dtype_of<I>) && !std::is_same_v<I, uint64_t>) fn(tag);
  });
}

// ---- index values -------------------------------------------------------------------------------
Numbers position_of(int64_t flat, std::span<const int64_t> shape) {
  Numbers position(shape.size(), 0);
  for (size_t axis = shape.size(); axis-- > 0;) {
    position[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return position;
}

[[noreturn]] void raise_bad_index(const IndexRule& rule, int64_t index, int64_t flat, std::span<const int64_t> shape,
                                  int64_t axis, int64_t size) {
  std::string place;
  for (const int64_t coordinate : position_of(flat, shape)) place += cat(place.empty() ? "" : ", ", coordinate);
  raise(ErrorKind::Index, "For '", rule.name, "', index ", index, " at position [", place,
        "] is out of bounds for axis ", axis, " with size ", size, ": it must be in [",
        rule.allows_negative ? -size : 0, ", ", size, ").");
}

// The index within [0, size), or -1.
int64_t normalise(int64_t index, int64_t size, bool allows_negative) {
  if (index < 0 && allows_negative) index += size;
  return index >= 0 && index < size ? index : -1;
}

int64_t strided_offset(int64_t flat, std::span<const int64_t> shape, std::span<const int64_t> strides) {
  int64_t offset = 0;
  for (size_t axis = shape.size(); axis-- > 0;) {
    offset += flat % shape[axis] * strides[axis];
    flat /= shape[axis];
  }
  return offset;
}

bool is_dense(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && strides[axis] != stride) return false;
    stride *= shape[axis];
  }
  return true;
}

// rows[i] = rows[i] * size + index i; a bad index is noted as the smallest flat position in `bad`.
template <class I>
void add_axis(std::span<int64_t> rows, std::span<const int64_t> shape, const IndexArray& array, int64_t size,
              bool allows_negative, std::atomic<int64_t>& bad) {
  const I* data = static_cast<const I*>(array.data);
  const bool dense = is_dense(shape, array.strides);
  parallel_for(static_cast<int64_t>(rows.size()), task_elements, [&](int64_t begin, int64_t end) {
    for (int64_t idx = begin; idx < end; ++idx) {
      const int64_t value = static_cast<int64_t>(data[dense ? idx : strided_offset(idx, shape, array.strides)]);
      const int64_t index = normalise(value, size, allows_negative);
      if (index < 0) {
        int64_t seen = bad.load();
        while (idx < seen && !bad.compare_exchange_weak(seen, idx)) {
        }
        return;
      }
      rows[idx] = rows[idx] * size + index;
    }
  });
}

}  // namespace

std::vector<int64_t> resolve_indices(const IndexRule& rule, std::span<const int64_t> shape,
                                     std::span<const IndexArray> arrays, std::span<const int64_t> axis_sizes) {
  MOREL_ASSERT(arrays.size() == axis_sizes.size());
  std::vector<int64_t> rows(count_elements(shape), 0);
  for (size_t axis = 0; axis < arrays.size(); ++axis) {
    visit_index_type(arrays[axis].dtype, [&](auto tag) {
      using I = typename decltype(tag)::type;
      std::atomic<int64_t> bad{INT64_MAX};
      add_axis<I>(rows, shape, arrays[axis], axis_sizes[axis], rule.allows_negative, bad);
      if (bad == INT64_MAX) return;
      const I value = static_cast<const I*>(arrays[axis].data)[strided_offset(bad, shape, arrays[axis].strides)];
      raise_bad_index(rule, static_cast<int64_t>(value), bad, shape, rule.first_axis + static_cast<int64_t>(axis),
                      axis_sizes[axis]);
    });
  }
  return rows;
}

std::vector<int64_t> resolve_tuples(const IndexRule& rule, const void* data, DType dtype, int64_t count,
                                    std::span<const int64_t> axis_sizes) {
  const int64_t width = static_cast<int64_t>(axis_sizes.size());
  std::vector<IndexArray> arrays;
  for (int64_t axis = 0; axis < width; ++axis) {
    arrays.push_back({static_cast<const char*>(data) + axis * size_of(dtype), dtype, {&width, 1}});
  }
  return resolve_indices(rule, {&count, 1}, arrays, axis_sizes);
}

// ---- rows ---------------------------------------------------------------------------------------
void gather_rows(void* out, const void* input, const RowsShape& shape, std::span<const int64_t> positions) {
  const int64_t count = static_cast<int64_t>(positions.size()), bytes = shape.inner * size_of(shape.dtype);
  if (count == 0 || bytes == 0) return;
  const auto run = [&](auto&& move) {
    parallel_for(shape.outer * count, std::max<int64_t>(1, task_elements / shape.inner),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t idx = begin; idx < end; ++idx) {
                     const int64_t row = idx / count * shape.rows + positions[idx % count];
                     move(static_cast<char*>(out) + idx * bytes, static_cast<const char*>(input) + row * bytes);
                   }
                 });
  };
  switch (bytes) {
    case 1: return run([](char* to, const char* from) { *to = *from; });
    case 2: return run([](char* to, const char* from) { std::memcpy(to, from, 2); });
    case 4: return run([](char* to, const char* from) { std::memcpy(to, from, 4); });
    case 8: return run([](char* to, const char* from) { std::memcpy(to, from, 8); });
    default: return run([bytes](char* to, const char* from) { std::memcpy(to, from, bytes); });
  }
}

namespace {

template <class T>
T combine_one(T x, T y, ScatterOp op) {
  constexpr bool complex = is_complex(dtype_of<T>);
  if constexpr (std::is_same_v<T, bool>) {
    switch (op) {
      case ScatterOp::Add:
      case ScatterOp::Max: return x || y;
      case ScatterOp::Mul:
      case ScatterOp::Min: return x && y;
      case ScatterOp::Sub: return x != y;
      default: return y;
    }
  } else {
    // Integers wrap around: in unsigned arithmetic.
    using U = typename std::conditional_t<std::is_integral_v<T>,
                                          std::make_unsigned<std::conditional_t<std::is_integral_v<T>, T, int>>,
                                          std::type_identity<T>>::type;
    switch (op) {
      case ScatterOp::Set: return y;
      case ScatterOp::Add: return static_cast<T>(static_cast<U>(x) + static_cast<U>(y));
      case ScatterOp::Sub: return static_cast<T>(static_cast<U>(x) - static_cast<U>(y));
      case ScatterOp::Mul:
        if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
        return x * y;
      case ScatterOp::Div:
        if constexpr (std::is_integral_v<T>) {
          if (y == 0) return 0;
          if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(0 - static_cast<U>(x));
        }
        return static_cast<T>(x / y);
      case ScatterOp::Max:
        if constexpr (!complex) return x != x ? x : y != y ? y : std::max(x, y);
        return x;
      case ScatterOp::Min:
        if constexpr (!complex) return x != x ? x : y != y ? y : std::min(x, y);
        return x;
    }
    __builtin_unreachable();
  }
}

template <class T>
void combine_element(T& target, const T& source, ScatterOp op) {
  if constexpr (std::is_same_v<T, Float16>) {
    target = op == ScatterOp::Set ? source : to_float16(combine_one(to_float(target), to_float(source), op));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    target = op == ScatterOp::Set ? source : to_bfloat16(combine_one(to_float(target), to_float(source), op));
  } else {
    target = combine_one(target, source, op);
  }
}

void check_op(DType dtype, ScatterOp op) {
  MOREL_CHECK(!is_complex(dtype) || (op != ScatterOp::Max && op != ScatterOp::Min), Type,
              "complex numbers have no maximum or minimum, but got ", info(dtype).name, ".");
}

// How a scatter's target is cut so that no place belongs to two tasks: by outer index, then by columns, then by row
// ranges (each task then skips the indices of others).
struct ScatterCut {
  ScatterCut(const RowsShape& shape, int64_t count) {
    const int64_t work = shape.outer * count * shape.inner;
    int64_t wanted = std::min(scatter_parts, work / task_elements + 1) / std::max<int64_t>(1, shape.outer);
    columns = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, shape.inner / 64));
    wanted /= columns;
    ranges = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, shape.rows));
    column_size = (shape.inner + columns - 1) / columns;
    range_size = (shape.rows + ranges - 1) / ranges;
  }
  int64_t columns, ranges, column_size, range_size;
};

// fn(target row, source row, first column, count) in the order of the indices for every place.
template <class F>
void for_each_scattered(const RowsShape& shape, std::span<const int64_t> positions, F&& fn) {
  const int64_t count = static_cast<int64_t>(positions.size());
  if (shape.outer * count * shape.inner == 0) return;
  const ScatterCut cut(shape, count);
  const int64_t per_outer = cut.columns * cut.ranges;
  const int64_t grain = std::max<int64_t>(1, task_elements / std::max<int64_t>(1, count * shape.inner / per_outer));
  parallel_for(shape.outer * per_outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t outer = task / per_outer, column = task % per_outer / cut.ranges * cut.column_size;
      const int64_t low = task % cut.ranges * cut.range_size, high = std::min(shape.rows, low + cut.range_size);
      const int64_t columns = std::min(cut.column_size, shape.inner - column);
      if (columns <= 0) continue;
      for (int64_t idx = 0; idx < count; ++idx) {
        const int64_t row = positions[idx];
        if (row >= low && row < high) fn(outer * shape.rows + row, outer * count + idx, column, columns);
      }
    }
  });
}

template <class T>
void scatter_typed(T* target, const RowsShape& shape, std::span<const int64_t> positions, const T* source, ScatterOp op,
                   bool is_scalar) {
  const CombineRunFn combine = MOREL_SIMD_CALL(find_combine_run)(shape.dtype, op);
  for_each_scattered(shape, positions, [&](int64_t row, int64_t source_row, int64_t column, int64_t count) {
    T* to = target + row * shape.inner + column;
    if (is_scalar) {
      for (int64_t idx = 0; idx < count; ++idx) combine_element(to[idx], *source, op);
      return;
    }
    const T* from = source + source_row * shape.inner + column;
    if (op == ScatterOp::Set) {
      std::memcpy(static_cast<void*>(to), from, count * sizeof(T));
    } else if (combine && count > 1) {
      combine(to, from, count);
    } else {
      for (int64_t idx = 0; idx < count; ++idx) combine_element(to[idx], from[idx], op);
    }
  });
}

// Sums of half numbers go through a float32 copy of the target.
void scatter_sum_of_halves(void* target, const RowsShape& shape, std::span<const int64_t> positions, const void* source,
                           ScatterOp op, bool is_scalar) {
  const int64_t elements = shape.outer * shape.rows * shape.inner;
  const int64_t source_elements = is_scalar ? 1 : shape.outer * static_cast<int64_t>(positions.size()) * shape.inner;
  std::vector<float> sums(elements), values(source_elements);
  convert(sums.data(), DType::Float32, target, shape.dtype, elements);
  convert(values.data(), DType::Float32, source, shape.dtype, source_elements);
  const RowsShape wide{DType::Float32, shape.outer, shape.rows, shape.inner};
  scatter_typed(sums.data(), wide, positions, values.data(), op, is_scalar);
  convert(target, shape.dtype, sums.data(), DType::Float32, elements);
}

}  // namespace

void scatter_rows(void* target, const RowsShape& shape, std::span<const int64_t> positions, const void* source,
                  ScatterOp op, bool is_scalar) {
  check_op(shape.dtype, op);
  if (positions.empty() || shape.outer * shape.inner == 0) return;
  if (is_half(shape.dtype) && (op == ScatterOp::Add || op == ScatterOp::Sub)) {
    return scatter_sum_of_halves(target, shape, positions, source, op, is_scalar);
  }
  visit_dtype(shape.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    scatter_typed(static_cast<T*>(target), shape, positions, static_cast<const T*>(source), op, is_scalar);
  });
}

void gather_rows_backward(void* target, const RowsShape& shape, std::span<const int64_t> positions, const void* grad) {
  const int64_t elements = shape.outer * shape.rows * shape.inner, one = 1;
  fill_zero({target, shape.dtype, {&elements, 1}, {&one, 1}});
  scatter_rows(target, shape, positions, grad, ScatterOp::Add);
}

// ---- elements -----------------------------------------------------------------------------------
namespace {

// The walk over an index array along lines of the last axis. Places of a scatter conflict along the indexed axis alone,
// so an ordered walk keeps all of that axis in one task.
class ElementWalk {
 public:
  ElementWalk(std::span<const int64_t> shape, int64_t axis, bool is_ordered)
      : shape_(shape), axis_(axis), rank_(static_cast<int64_t>(shape.size())) {
    last_ = rank_ - 1;
    depth_ = axis == last_ ? 1 : shape[axis];
    groups_ = 1;
    for (int64_t idx = 0; idx < last_; ++idx) groups_ *= idx == axis ? 1 : shape[idx];
    // Where the lines alone are too few tasks, they are cut.
    const bool is_whole = (axis == last_ && is_ordered) || groups_ >= scatter_parts;
    pieces_ = is_whole ? 1 : std::clamp<int64_t>(shape[last_] / 256, 1, scatter_parts);
  }

  // fn(position of the line's first element, count): in order along the indexed axis within a task.
  template <class F>
  void run(F&& fn) const {
    const int64_t width = shape_[last_], piece_size = (width + pieces_ - 1) / pieces_;
    const int64_t grain = std::max<int64_t>(1, task_elements / std::max<int64_t>(1, depth_ * piece_size));
    parallel_for(groups_ * pieces_, grain, [&](int64_t begin, int64_t end) {
      Numbers position(rank_, 0);
      for (int64_t task = begin; task < end; ++task) {
        int64_t rest = task / pieces_;
        for (int64_t idx = last_; idx-- > 0;) {
          if (idx == axis_) continue;
          position[idx] = rest % shape_[idx];
          rest /= shape_[idx];
        }
        position[last_] = task % pieces_ * piece_size;
        const int64_t count = std::min(piece_size, width - position[last_]);
        if (count <= 0) continue;
        for (int64_t step = 0; step < depth_; ++step) {
          if (axis_ != last_) position[axis_] = step;
          fn(position, count);
        }
      }
    });
  }

 private:
  std::span<const int64_t> shape_;
  int64_t axis_, rank_, last_, depth_, groups_, pieces_;
};

int64_t offset_at(const Numbers& position, std::span<const int64_t> strides) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < position.size(); ++axis) offset += position[axis] * strides[axis];
  return offset;
}
int64_t offset_without(const Numbers& position, std::span<const int64_t> strides, int64_t axis) {
  return offset_at(position, strides) - position[axis] * strides[axis];
}

// A line of elements of which `place` says where along the indexed axis each one lies; steps in elements.
struct ElementLine {
  const int64_t* place;
  int64_t count;
  int64_t axis_step, indexed_step;  // of the array that is indexed
  int64_t other_step;
};
template <class T>
void gather_line(const ElementLine& line, char* to_bytes, const char* from_bytes) {
  T* to = reinterpret_cast<T*>(to_bytes);
  const T* from = reinterpret_cast<const T*>(from_bytes);
  for (int64_t idx = 0; idx < line.count; ++idx)
    to[idx * line.other_step] = from[line.place[idx] * line.axis_step + idx * line.indexed_step];
}
template <class T>
void scatter_line(const ElementLine& line, char* to_bytes, const char* from_bytes, ScatterOp op) {
  T* to = reinterpret_cast<T*>(to_bytes);
  const T* from = reinterpret_cast<const T*>(from_bytes);
  for (int64_t idx = 0; idx < line.count; ++idx)
    combine_element(to[line.place[idx] * line.axis_step + idx * line.indexed_step], from[idx * line.other_step], op);
}

std::vector<int64_t> resolve_element_indices(IndexRule rule, const ConstView& index, int64_t size, int64_t axis) {
  rule.first_axis = axis;
  const IndexArray array{index.data, index.dtype, index.strides};
  return resolve_indices(rule, index.shape, {&array, 1}, {&size, 1});
}

}  // namespace

void gather_elements(const IndexRule& rule, const View& out, const ConstView& input, const ConstView& index,
                     int64_t axis) {
  MOREL_ASSERT(out.dtype == input.dtype && !index.shape.empty());
  const std::vector<int64_t> places = resolve_element_indices(rule, index, input.shape[axis], axis);
  if (places.empty()) return;
  const int64_t last = static_cast<int64_t>(index.shape.size()) - 1, size = size_of(out.dtype);
  const int64_t axis_step = input.strides[axis], input_step = axis == last ? 0 : input.strides[last];
  const Numbers place_strides = dense_strides(index.shape);
  const auto gather =
      visit_item_size(size, []<class T>(TypeTag<T>) -> decltype(&gather_line<char>) { return &gather_line<T>; });
  ElementWalk(index.shape, axis, false).run([&](const Numbers& position, int64_t count) {
    const int64_t* place = places.data() + offset_at(position, {place_strides.data(), place_strides.size()});
    gather({place, count, axis_step, input_step, out.strides[last]},
           static_cast<char*>(out.data) + offset_at(position, out.strides) * size,
           static_cast<const char*>(input.data) + offset_without(position, input.strides, axis) * size);
  });
}

void scatter_elements(const IndexRule& rule, const View& target, const ConstView& index, const ConstView& source,
                      int64_t axis, ScatterOp op) {
  MOREL_ASSERT(target.dtype == source.dtype && !index.shape.empty());
  check_op(target.dtype, op);
  const std::vector<int64_t> places = resolve_element_indices(rule, index, target.shape[axis], axis);
  if (places.empty()) return;
  if (is_half(target.dtype) && (op == ScatterOp::Add || op == ScatterOp::Sub)) {  // sums in float32, as scatter_rows
    std::vector<float> sums(count_elements(target.shape)), values(count_elements(index.shape));
    const Numbers sum_strides = dense_strides(target.shape), value_strides = dense_strides(index.shape);
    const View wide{sums.data(), DType::Float32, target.shape, {sum_strides.data(), sum_strides.size()}};
    const View wide_source{values.data(), DType::Float32, index.shape, {value_strides.data(), value_strides.size()}};
    copy(wide, target);
    copy(wide_source, {source.data, source.dtype, index.shape, source.strides});
    scatter_elements(rule, wide, index, wide_source, axis, op);
    return copy(target, wide);
  }
  const int64_t last = static_cast<int64_t>(index.shape.size()) - 1, size = size_of(target.dtype);
  const int64_t axis_step = target.strides[axis], target_step = axis == last ? 0 : target.strides[last];
  const Numbers place_strides = dense_strides(index.shape);
  const auto scatter =
      visit_dtype(target.dtype, []<class T>(TypeTag<T>) -> decltype(&scatter_line<bool>) { return &scatter_line<T>; });
  ElementWalk(index.shape, axis, true).run([&](const Numbers& position, int64_t count) {
    const int64_t* place = places.data() + offset_at(position, {place_strides.data(), place_strides.size()});
    scatter({place, count, axis_step, target_step, source.strides[last]},
            static_cast<char*>(target.data) + offset_without(position, target.strides, axis) * size,
            static_cast<const char*>(source.data) + offset_at(position, source.strides) * size, op);
  });
}

}  // namespace morel::kernels
