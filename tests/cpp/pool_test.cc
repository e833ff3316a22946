#include "morel/kernels/pool.h"

#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"

namespace morel {
namespace {

enum class Layout { First, Last, Strided };

struct Array {
  DType dtype;
  std::vector<std::byte> bytes;
  View4 view;

  Array(DType type, std::array<int64_t, 4> size, Layout layout) : dtype(type) {
    view = layout == Layout::Last ? View4::channels_last(nullptr, size) : View4::channels_first(nullptr, size);
    const int64_t spread = layout == Layout::Strided ? 2 : 1;
    for (int64_t& stride : view.stride) stride *= spread;
    bytes.assign(std::max<int64_t>(1, view.count() * spread * size_of(type)), std::byte{0x77});
    view.data = bytes.data();
  }
  Array(const Array& other) : dtype(other.dtype), bytes(other.bytes), view(other.view) { view.data = bytes.data(); }
  int64_t place(int64_t n, int64_t c, int64_t y, int64_t x) const {
    return n * view.stride[0] + c * view.stride[1] + y * view.stride[2] + x * view.stride[3];
  }
  double get(int64_t n, int64_t c, int64_t y, int64_t x) const {
    return visit_dtype(dtype, [&]<class T>(TypeTag<T>) -> double {
      const T value = static_cast<const T*>(view.data)[place(n, c, y, x)];
      if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
        return to_float(value);
      } else if constexpr (std::is_arithmetic_v<T>) {
        return static_cast<double>(value);
      } else {
        return 0;
      }
    });
  }
  void set(int64_t n, int64_t c, int64_t y, int64_t x, double value) {
    visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      T& target = static_cast<T*>(view.data)[place(n, c, y, x)];
      if constexpr (std::is_same_v<T, Float16>) {
        target = to_float16(static_cast<float>(value));
      } else if constexpr (std::is_same_v<T, BFloat16>) {
        target = to_bfloat16(static_cast<float>(value));
      } else if constexpr (std::is_arithmetic_v<T>) {
        target = static_cast<T>(value);
      }
    });
  }
  template <class F>
  void each(F&& fn) const {
    for (int64_t n = 0; n < view.size[0]; ++n) {
      for (int64_t c = 0; c < view.size[1]; ++c) {
        for (int64_t y = 0; y < view.size[2]; ++y) {
          for (int64_t x = 0; x < view.size[3]; ++x) fn(n, c, y, x);
        }
      }
    }
  }
  void fill(uint32_t seed) {
    std::mt19937 engine(seed);
    std::uniform_int_distribution<int> values(-20, 20);  // with ties
    each([&](auto... at) { set(at..., values(engine) / 8.0); });
  }
};

struct Case {
  Pool2d pool;
  int64_t n, channels, height, width, out_height, out_width;
};

// Positions of window `idx` inside the input, and how many lie inside the padded input.
std::pair<std::vector<int64_t>, int64_t> window(const Case& c, int axis, int64_t idx) {
  const int64_t in = axis ? c.width : c.height, out = axis ? c.out_width : c.out_height;
  std::vector<int64_t> inside;
  if (c.pool.adaptive) {
    for (int64_t p = idx * in / out; p * out < (idx + 1) * in; ++p) inside.push_back(p);
    return {inside, static_cast<int64_t>(inside.size())};
  }
  int64_t padded = 0;
  for (int64_t tap = 0; tap < c.pool.kernel[axis]; ++tap) {
    const int64_t p = idx * c.pool.stride[axis] - c.pool.padding[2 * axis] + tap * c.pool.dilation[axis];
    padded += p < in + c.pool.padding[2 * axis + 1];
    if (p >= 0 && p < in) inside.push_back(p);
  }
  return {inside, padded};
}

double tolerance(DType dtype) {
  return dtype == DType::Float16 ? 2e-3 : dtype == DType::BFloat16 ? 2e-2 : dtype == DType::Float32 ? 1e-6 : 1e-14;
}

void expect_equal(const Array& actual, const Array& expected, double allowed, const char* what) {
  int wrong = 0;
  expected.each([&](auto... at) {
    const double a = actual.get(at...), e = expected.get(at...);
    if (std::abs(a - e) > allowed * std::max(1.0, std::abs(e)) && wrong++ < 3)
      ADD_FAILURE() << what << ": " << a << " not " << e;
  });
}

void check(Case c, DType dtype, Layout layout) {
  SCOPED_TRACE(testing::Message() << info(dtype).name << " layout " << static_cast<int>(layout) << " input " << c.n
                                  << "," << c.channels << "," << c.height << "," << c.width << " kernel "
                                  << c.pool.kernel[0] << "x" << c.pool.kernel[1] << " adaptive " << c.pool.adaptive);
  c.pool.dtype = dtype;
  const std::array<int64_t, 4> in_size{c.n, c.channels, c.height, c.width},
      out_size{c.n, c.channels, c.out_height, c.out_width};
  Array x(dtype, in_size, layout), dy(dtype, out_size, layout);
  x.fill(1);
  dy.fill(2);
  Array y(dtype, out_size, layout), index(DType::Int32, out_size, layout), dx(dtype, in_size, layout);
  Array y_expected(DType::Float64, out_size, Layout::First), index_expected(DType::Int64, out_size, Layout::First);
  Array mean_expected = y_expected, dx_max(DType::Float64, in_size, Layout::First);
  dx_max.each([&](auto... at) { dx_max.set(at..., 0); });
  Array dx_mean = dx_max;
  y_expected.each([&](int64_t n, int64_t ch, int64_t oy, int64_t ox) {
    const auto [rows, padded_rows] = window(c, 0, oy);
    const auto [columns, padded_columns] = window(c, 1, ox);
    double best = -std::numeric_limits<double>::infinity(), sum = 0;
    int64_t position = 0;
    for (int64_t py : rows) {
      for (int64_t px : columns) {
        const double value = x.get(n, ch, py, px);
        sum += value;
        if (value > best) {
          best = value;
          position = py * c.width + px;
        }
      }
    }
    const int64_t counted = c.pool.count_include_pad ? padded_rows * padded_columns : rows.size() * columns.size();
    const double divisor = c.pool.divisor_override ? c.pool.divisor_override : counted;
    y_expected.set(n, ch, oy, ox, best);
    index_expected.set(n, ch, oy, ox, static_cast<double>(position));
    mean_expected.set(n, ch, oy, ox, sum / divisor);
    const double grad = dy.get(n, ch, oy, ox);
    const int64_t my = position / c.width, mx = position % c.width;
    dx_max.set(n, ch, my, mx, dx_max.get(n, ch, my, mx) + grad);
    for (int64_t py : rows) {
      for (int64_t px : columns) dx_mean.set(n, ch, py, px, dx_mean.get(n, ch, py, px) + grad / divisor);
    }
  });
  max_pool2d_forward(c.pool, x.view, y.view, index.view);
  expect_equal(y, y_expected, 0, "maximum");
  expect_equal(index, index_expected, 0, "index");
  max_pool2d_backward(c.pool, dy.view, index.view, dx.view);
  expect_equal(dx, dx_max, tolerance(dtype), "max gradient");
  Array without(dtype, out_size, layout);
  max_pool2d_forward(c.pool, x.view, without.view, {});
  expect_equal(without, y_expected, 0, "maximum without indices");
  average_pool2d_forward(c.pool, x.view, y.view);
  expect_equal(y, mean_expected, tolerance(dtype), "mean");
  average_pool2d_backward(c.pool, dy.view, dx.view);
  expect_equal(dx, dx_mean, tolerance(dtype), "mean gradient");
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{.kernel = {2, 2}, .stride = {2, 2}}, 2, 6, 24, 24, 12, 12},
      {{.kernel = {2, 2}, .stride = {2, 2}}, 1, 17, 7, 70, 3, 35},
      {{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1, 1, 1}}, 2, 33, 9, 10, 5, 5},
      {{.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 0, 0, 1}, .count_include_pad = false}, 2, 5, 6, 7, 5, 4},
      {{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1, 1, 1}}, 1, 4, 6, 6, 4, 4},  // ceil_mode: windows cut off
      {{.kernel = {2, 3}, .stride = {1, 2}, .padding = {1, 1, 1, 1}, .dilation = {2, 2}}, 2, 19, 8, 9, 8, 4},
      {{.kernel = {3, 3}, .stride = {1, 1}, .divisor_override = 5}, 1, 3, 5, 5, 3, 3},
      {{.kernel = {2, 2}, .stride = {3, 3}}, 1, 3, 5, 5, 2, 2},  // positions that no window covers
      {{.adaptive = true}, 2, 20, 7, 7, 1, 1},
      {{.adaptive = true}, 2, 3, 8, 10, 3, 4},
      {{.adaptive = true}, 1, 2, 3, 3, 5, 4},  // more windows than positions
      {{.adaptive = true}, 1, 1, 4, 40, 2, 20},
  };
  return all;
}

TEST(PoolTest, AllLayoutsAndDtypes) {
  for (const Case& c : cases()) {
    for (DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
      for (Layout layout : {Layout::First, Layout::Last, Layout::Strided}) {
        check(c, dtype, layout);
      }
    }
  }
}

TEST(PoolTest, NanWinsAndInfinityIsKept) {
  for (Layout layout : {Layout::First, Layout::Last}) {
    Array x(DType::Float32, {1, 3, 2, 64}, layout), y(DType::Float32, {1, 3, 1, 32}, layout),
        index(DType::Int32, {1, 3, 1, 32}, layout);
    x.each([&](auto... at) { x.set(at..., -std::numeric_limits<double>::infinity()); });
    x.set(0, 1, 0, 5, std::nan(""));
    x.set(0, 1, 0, 4, 1e30);
    Pool2d pool{.kernel = {2, 2}, .stride = {2, 2}};
    max_pool2d_forward(pool, x.view, y.view, index.view);
    EXPECT_TRUE(std::isnan(y.get(0, 1, 0, 2)));
    EXPECT_EQ(index.get(0, 1, 0, 2), 5);
    EXPECT_TRUE(std::isinf(y.get(0, 0, 0, 0)));
    EXPECT_EQ(index.get(0, 0, 0, 3), 6);
  }
}

TEST(PoolTest, EmptyAndRefused) {
  Pool2d pool{.kernel = {2, 2}, .stride = {2, 2}};
  Array x(DType::Float32, {0, 3, 4, 4}, Layout::First), y(DType::Float32, {0, 3, 2, 2}, Layout::First);
  max_pool2d_forward(pool, x.view, y.view, {});
  average_pool2d_backward(pool, y.view, x.view);
  Array z(DType::Int32, {1, 1, 4, 4}, Layout::First), out(DType::Int32, {1, 1, 2, 2}, Layout::First);
  pool.dtype = DType::Int32;
  EXPECT_THROW(max_pool2d_forward(pool, z.view, out.view, {}), Error);
  pool.dtype = DType::Float32;
  pool.padding = {4, 0, 0, 0};
  Array f(DType::Float32, {1, 1, 4, 4}, Layout::First), g(DType::Float32, {1, 1, 4, 2}, Layout::First);
  EXPECT_THROW(max_pool2d_forward(pool, f.view, g.view, {}), Error);
}

TEST(PoolTest, SameBitsForAnyNumberOfThreads) {
  for (Layout layout : {Layout::First, Layout::Last}) {
    Pool2d pool{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1, 1, 1}};
    Array x(DType::Float32, {8, 32, 40, 40}, layout), dy(DType::Float32, {8, 32, 20, 20}, layout);
    x.fill(1);
    dy.fill(2);
    std::vector<std::vector<std::byte>> results;
    for (int threads : {1, 2, 3}) {
      set_num_threads(threads);
      Array y(DType::Float32, dy.view.size, layout), index(DType::Int32, dy.view.size, layout);
      Array dx(DType::Float32, x.view.size, layout), dx_mean = dx;
      max_pool2d_forward(pool, x.view, y.view, index.view);
      max_pool2d_backward(pool, dy.view, index.view, dx.view);
      average_pool2d_backward(pool, dy.view, dx_mean.view);
      results.push_back(y.bytes);
      results.back().insert(results.back().end(), dx.bytes.begin(), dx.bytes.end());
      results.back().insert(results.back().end(), dx_mean.bytes.begin(), dx_mean.bytes.end());
    }
    set_num_threads(1);
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

}  // namespace
}  // namespace morel
