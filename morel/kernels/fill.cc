#include "morel/kernels/fill.h"

#include <algorithm>
#include <cstring>

#include "morel/base/thread_pool.h"
#include "morel/kernels/copy.h"

namespace morel::kernels {
namespace {

constexpr int64_t task_elements = 16384;
constexpr int64_t block_elements = 256;

// Writes value(i) for i in [0, n), computed as V and converted to the dtype.
template <class V, class F>
void generate(void* out, DType dtype, int64_t n, F&& value) {
  parallel_for(n, task_elements, [&](int64_t begin, int64_t end) {
    V block[block_elements];
    for (int64_t first = begin; first < end; first += block_elements) {
      const int64_t count = std::min(block_elements, end - first);
      for (int64_t idx = 0; idx < count; ++idx) block[idx] = value(first + idx);
      convert(static_cast<char*>(out) + first * size_of(dtype), dtype, block, dtype_of<V>, count);
    }
  });
}

}  // namespace

void arange(void* out, DType dtype, int64_t n, double start, double step) {
  generate<double>(out, dtype, n, [=](int64_t idx) { return start + static_cast<double>(idx) * step; });
}

void arange(void* out, DType dtype, int64_t n, int64_t start, int64_t step) {
  generate<int64_t>(out, dtype, n, [=](int64_t idx) {
    return static_cast<int64_t>(static_cast<uint64_t>(start) +
                                static_cast<uint64_t>(idx) * static_cast<uint64_t>(step));
  });
}

void linspace(void* out, DType dtype, int64_t n, double start, double stop) {
  const double step = n > 1 ? (stop - start) / static_cast<double>(n - 1) : 0.0;
  generate<double>(out, dtype, n, [=](int64_t idx) {
    return idx < (n + 1) / 2 ? start + static_cast<double>(idx) * step : stop - static_cast<double>(n - 1 - idx) * step;
  });
}

void eye(void* out, DType dtype, int64_t batch, int64_t rows, int64_t columns, int64_t diagonal) {
  const int64_t total = batch * rows * columns, one = 1, size = size_of(dtype);
  if (total == 0) return;
  fill_zero({out, dtype, {&total, 1}, {&one, 1}});
  alignas(16) char unit[16];
  convert(unit, dtype, &one, DType::Int64, 1);
  const int64_t first_row = std::max<int64_t>(0, -diagonal), last_row = std::min(rows, columns - diagonal);
  for (int64_t idx = 0; idx < batch; ++idx) {
    for (int64_t row = first_row; row < last_row; ++row) {
      std::memcpy(static_cast<char*>(out) + ((idx * rows + row) * columns + row + diagonal) * size, unit, size);
    }
  }
}

}  // namespace morel::kernels
