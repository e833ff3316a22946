#include "morel/loops/run/space.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "morel/base/error.h"
#include "morel/base/short_sort.h"
#include "morel/base/thread_pool.h"

namespace morel::loops {
namespace {

// Work below this many elements is not worth waking another core for.
constexpr int64_t parallel_elements = 32768;

int64_t task_grain(int64_t total) { return std::clamp<int64_t>(total / 64, 16384, 131072); }

}  // namespace

LoopSpace::LoopSpace(const Shape& shape, std::span<const LoopOperand> operands, const Strides& target)
    : count_(operands.size()) {
  MOREL_CHECK(shape.size() <= max_rank, NotImplemented, "tensors of more than ", max_rank,
              " dimensions are not supported");
  // Axes from the innermost outwards; axes of one element are dropped, mergeable ones merged.
  std::array<size_t, max_rank> order;
  size_t rank = 0;
  for (size_t i = shape.size(); i-- > 0;)
    if (shape[i] != 1) order[rank++] = i;
  short_sort(order.data(), order.data() + rank,
             [&](size_t a, size_t b) { return std::abs(target[a]) < std::abs(target[b]); });
  for (size_t i = 0; i < count_; ++i) data_[i] = operands[i].data;
  for (size_t k = 0; k < rank; ++k) {
    const size_t axis = order[k];
    bool merge = axes_ > 0;
    for (size_t i = 0; i < count_ && merge; ++i)
      merge = operands[i].strides[axis] == strides_[axes_ - 1][i] * sizes_[axes_ - 1];
    if (merge) {
      sizes_[axes_ - 1] *= shape[axis];
    } else {
      sizes_[axes_] = shape[axis];
      for (size_t i = 0; i < count_; ++i) strides_[axes_][i] = operands[i].strides[axis];
      ++axes_;
    }
  }
  for (; axes_ < 2; ++axes_) {
    sizes_[axes_] = 1;
    std::fill_n(strides_[axes_], count_, 0);
  }
}

void LoopSpace::locate(int64_t row, int64_t column, char** at) const {
  for (size_t i = 0; i < count_; ++i) at[i] = data_[i] + column * strides_[0][i];
  for (size_t k = 1; k < axes_; ++k) {
    const int64_t position = row % sizes_[k];
    row /= sizes_[k];
    for (size_t i = 0; i < count_; ++i) at[i] += position * strides_[k][i];
  }
}

void LoopSpace::run_rows(const Kernel& kernel, int64_t begin, int64_t end, int64_t from, int64_t to,
                         const double* params, bool stream) const {
  while (begin < end) {
    const int64_t batch = std::min(end - begin, sizes_[1] - begin % sizes_[1]);
    char* at[max_loop_operands];
    locate(begin, from, at);
    kernel({batch, to - from, at, strides_[1], strides_[0], params, stream});
    begin += batch;
  }
}

void LoopSpace::run(const Kernel& kernel, const double* params, bool stream) const {
  const int64_t n = sizes_[0];
  int64_t rows = 1;
  for (size_t k = 1; k < axes_; ++k) rows *= sizes_[k];
  const int64_t total = n * rows;
  if (total == 0) return;
  if (total < parallel_elements) return run_rows(kernel, 0, rows, 0, n, params, stream);
  const int64_t grain = task_grain(total);
  if (rows >= 16 || n < 2 * grain) {
    parallel_for(rows, std::max<int64_t>(1, grain / n),
                 [&](int64_t begin, int64_t end) { run_rows(kernel, begin, end, 0, n, params, stream); });
  } else {
    for (int64_t row = 0; row < rows; ++row)
      parallel_for(n, grain,
                   [&](int64_t from, int64_t to) { run_rows(kernel, row, row + 1, from, to, params, stream); });
  }
}

// Elements [begin, begin + n): the end of a row, whole rows, the start of another one.
void LoopSpace::run_piece(const Kernel& kernel, int64_t begin, int64_t n) const {
  const int64_t length = sizes_[0];
  while (n > 0) {
    const int64_t row = begin / length, column = begin % length;
    const bool whole = column == 0 && n >= length;
    const int64_t taken = whole ? n / length * length : std::min(n, length - column);
    run_rows(kernel, row, whole ? row + taken / length : row + 1, column, whole ? length : column + taken, nullptr,
             false);
    begin += taken;
    n -= taken;
  }
}

void LoopSpace::run_part(const Kernel& kernel, int64_t begin, int64_t rows, int64_t step, int64_t n) const {
  const int64_t length = sizes_[0], column = begin % length;
  const bool within_row = column + (rows - 1) * step + n <= length;
  if (within_row) {
    int64_t row_strides[max_loop_operands];
    for (size_t i = 0; i < count_; ++i) row_strides[i] = step * strides_[0][i];
    char* at[max_loop_operands];
    locate(begin / length, column, at);
    return kernel({rows, n, at, row_strides, strides_[0], nullptr});
  }
  if (column + n <= length && step == length) {
    const int64_t row = begin / length;
    return run_rows(kernel, row, row + rows, column, column + n, nullptr, false);
  }
  for (int64_t row = 0; row < rows; ++row) run_piece(kernel, begin + row * step, n);
}

}  // namespace morel::loops
