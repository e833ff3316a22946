#include "morel/kernels/pad.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"

namespace morel::kernels {
namespace {

constexpr int64_t task_elements = 16384;
constexpr int64_t outside = -1;

int64_t source_index(int64_t position, int64_t size, PadMode mode) {
  if (position >= 0 && position < size) return position;
  switch (mode) {
    case PadMode::Constant: return outside;
    case PadMode::Reflect: {
      if (size == 1) return 0;
      const int64_t period = 2 * (size - 1), place = (position % period + period) % period;
      return place < size ? place : period - place;
    }
    case PadMode::Symmetric: {
      const int64_t period = 2 * size, place = (position % period + period) % period;
      return place < size ? place : period - 1 - place;
    }
    case PadMode::Replicate: return position < 0 ? 0 : size - 1;
    case PadMode::Circular: return (position % size + size) % size;
  }
  __builtin_unreachable();
}

using IndexMap = std::vector<int64_t>;

// For each axis: the source index of every target index.
std::vector<IndexMap> make_maps(std::span<const int64_t> padded, std::span<const int64_t> shape,
                                std::span<const int64_t> before, PadMode mode) {
  std::vector<IndexMap> maps(shape.size());
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t size = shape[axis], after = padded[axis] - size - before[axis];
    const int64_t widest = std::max(before[axis], after);
    MOREL_CHECK(mode != PadMode::Reflect || widest < size || widest <= 0, Value, "For 'pad', reflect padding of ",
                widest, " along axis ", axis, " must be less than the axis size ", size, ".");
    MOREL_CHECK(mode == PadMode::Constant || size > 0 || widest <= 0, Value, "For 'pad', axis ", axis,
                " is empty and can only be padded with a constant.");
    MOREL_CHECK((mode != PadMode::Circular && mode != PadMode::Symmetric) || widest <= size, Value,
                "For 'pad', padding of ", widest, " along axis ", axis, " must not be greater than the axis size ",
                size, ".");
    maps[axis].resize(padded[axis]);
    for (int64_t idx = 0; idx < padded[axis]; ++idx) maps[axis][idx] = source_index(idx - before[axis], size, mode);
  }
  return maps;
}

// The target positions [first, last) of an axis that hold the source's elements in order.
struct Middle {
  int64_t first;
  int64_t last;
};
Middle middle_of(int64_t padded, int64_t size, int64_t before) {
  const int64_t first = std::clamp<int64_t>(before, 0, padded);
  return {first, std::clamp<int64_t>(before + size, first, padded)};
}

void copy_element(char* target, const char* source, int64_t size) {
  switch (size) {
    case 1: *target = *source; return;
    case 4: std::memcpy(target, source, 4); return;
    default: std::memcpy(target, source, size);
  }
}

}  // namespace

void pad(const View& target, const ConstView& source, std::span<const int64_t> before, PadMode mode,
         const void* value) {
  MOREL_ASSERT(target.dtype == source.dtype);
  const size_t rank = target.shape.size();
  const std::vector<IndexMap> maps = make_maps(target.shape, source.shape, before, mode);
  if (count_elements(target.shape) == 0) return;
  if (rank == 0) return copy(target, source);
  if (mode == PadMode::Constant) fill(target, value);
  // The outer axes go by their maps, the inner one as edge elements around one strip of the source.
  const size_t inner = rank - 1;
  const int64_t columns = target.shape[inner], rows = count_elements(target.shape.first(inner)),
                size = size_of(target.dtype);
  const Middle middle = middle_of(columns, source.shape[inner], before[inner]);
  const IndexMap& inner_map = maps[inner];
  const int64_t target_step = target.strides[inner] * size, source_step = source.strides[inner] * size;
  parallel_for(rows, std::max<int64_t>(1, task_elements / columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row, target_offset = 0, source_offset = 0;
      bool is_outside = false;
      for (size_t axis = inner; axis-- > 0;) {
        const int64_t position = rest % target.shape[axis], from = maps[axis][position];
        rest /= target.shape[axis];
        is_outside |= from == outside;
        target_offset += position * target.strides[axis];
        source_offset += from * source.strides[axis];
      }
      if (is_outside) continue;
      char* to = static_cast<char*>(target.data) + target_offset * size;
      const char* from = static_cast<const char*>(source.data) + source_offset * size;
      if (mode != PadMode::Constant) {
        for (int64_t idx = 0; idx < middle.first; ++idx)
          copy_element(to + idx * target_step, from + inner_map[idx] * source_step, size);
        for (int64_t idx = middle.last; idx < columns; ++idx) {
          copy_element(to + idx * target_step, from + inner_map[idx] * source_step, size);
        }
      }
      const int64_t count = middle.last - middle.first;
      if (count == 0) continue;
      if (target_step == size && source_step == size) {
        std::memcpy(to + middle.first * size, from + inner_map[middle.first] * size, count * size);
        continue;
      }
      copy({to + middle.first * target_step, target.dtype, {&count, 1}, {&target.strides[inner], 1}},
           {from + inner_map[middle.first] * source_step, source.dtype, {&count, 1}, {&source.strides[inner], 1}});
    }
  });
}

namespace {

// The inverse of a map: for source index i, positions[starts[i] .. starts[i + 1]) hold its copies, ascending.
struct Inverse {
  std::vector<int64_t> starts;
  std::vector<int64_t> positions;
};
Inverse invert(const IndexMap& map, int64_t size) {
  Inverse inverse;
  inverse.starts.assign(size + 1, 0);
  for (const int64_t from : map) {
    if (from != outside) ++inverse.starts[from + 1];
  }
  for (int64_t idx = 0; idx < size; ++idx) inverse.starts[idx + 1] += inverse.starts[idx];
  inverse.positions.resize(inverse.starts[size]);
  std::vector<int64_t> next(inverse.starts.begin(), inverse.starts.end() - 1);
  for (size_t position = 0; position < map.size(); ++position) {
    if (map[position] != outside) inverse.positions[next[map[position]]++] = static_cast<int64_t>(position);
  }
  return inverse;
}

float load_value(const Float16& value) { return to_float(value); }
float load_value(const BFloat16& value) { return to_float(value); }
template <class T>
T load_value(const T& value) {
  return value;
}
void store_value(Float16& target, float value) { target = to_float16(value); }
void store_value(BFloat16& target, float value) { target = to_bfloat16(value); }
template <class T>
void store_value(T& target, T value) {
  target = value;
}

template <class T>
class PadBackward {
 public:
  PadBackward(const View& source_grad, const ConstView& grad, const std::vector<Inverse>& inverses)
      : source_grad_(source_grad), grad_(grad), inverses_(inverses) {}

  void run_rows(int64_t begin, int64_t end) const {
    const size_t inner = inverses_.size() - 1;
    const int64_t columns = source_grad_.shape[inner];
    Numbers position(inner + 1, 0);
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row;
      for (size_t axis = inner; axis-- > 0;) {
        position[axis] = rest % source_grad_.shape[axis];
        rest /= source_grad_.shape[axis];
      }
      T* out = static_cast<T*>(source_grad_.data) + row * columns;
      for (int64_t column = 0; column < columns; ++column) {
        position[inner] = column;
        store_value(out[column], sum_copies(position, 0, 0));
      }
    }
  }

 private:
  using Value = decltype(load_value(std::declval<T>()));
  Value sum_copies(const Numbers& position, size_t axis, int64_t offset) const {
    if (axis == inverses_.size()) return load_value(static_cast<const T*>(grad_.data)[offset]);
    const Inverse& inverse = inverses_[axis];
    Value sum{};
    for (int64_t idx = inverse.starts[position[axis]]; idx < inverse.starts[position[axis] + 1]; ++idx) {
      sum += sum_copies(position, axis + 1, offset + inverse.positions[idx] * grad_.strides[axis]);
    }
    return sum;
  }

  const View& source_grad_;
  const ConstView& grad_;
  const std::vector<Inverse>& inverses_;
};

}  // namespace

void pad_backward(const View& source_grad, const ConstView& grad, std::span<const int64_t> before, PadMode mode) {
  MOREL_ASSERT(source_grad.dtype == grad.dtype && is_differentiable(grad.dtype));
  const size_t rank = grad.shape.size();
  if (count_elements(source_grad.shape) == 0) return;
  if (rank == 0) return copy(source_grad, grad);
  const std::vector<IndexMap> maps = make_maps(grad.shape, source_grad.shape, before, mode);
  std::vector<Inverse> inverses;
  for (size_t axis = 0; axis < rank; ++axis) inverses.push_back(invert(maps[axis], source_grad.shape[axis]));
  const int64_t columns = source_grad.shape[rank - 1], rows = count_elements(source_grad.shape.first(rank - 1));
  visit_dtype(grad.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_differentiable(dtype_of<T>)) {
      const PadBackward<T> kernel(source_grad, grad, inverses);
      parallel_for(rows, std::max<int64_t>(1, task_elements / 4 / columns),
                   [&](int64_t begin, int64_t end) { kernel.run_rows(begin, end); });
    }
  });
}

}  // namespace morel::kernels
