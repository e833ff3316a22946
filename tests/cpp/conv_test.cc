#include "morel/kernels/conv.h"

#include <cmath>
#include <complex>
#include <random>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/conv_direct.h"
#include "morel/kernels/conv_paths.h"

namespace morel {
namespace {

using Values = std::vector<std::complex<double>>;  // in channels-first order

enum class Layout { First, Last, Strided };

// An array of any dtype and layout, with its values in double precision beside it.
struct Array {
  DType dtype;
  std::vector<std::byte> bytes;
  View4 view;

  Array(DType type, std::array<int64_t, 4> size, Layout layout) : dtype(type) {
    const View4 dense =
        layout == Layout::Last ? View4::channels_last(nullptr, size) : View4::channels_first(nullptr, size);
    view = dense;
    const int64_t spread = layout == Layout::Strided ? 2 : 1;
    for (int64_t& stride : view.stride) stride *= spread;
    bytes.assign(std::max<int64_t>(1, dense.count() * spread * size_of(type)), std::byte{0x77});
    view.data = bytes.data();
  }
  template <class F>
  void each(F&& fn) {
    int64_t idx = 0;
    for (int64_t n = 0; n < view.size[0]; ++n) {
      for (int64_t c = 0; c < view.size[1]; ++c) {
        for (int64_t h = 0; h < view.size[2]; ++h) {
          for (int64_t w = 0; w < view.size[3]; ++w) {
            fn(idx++, n * view.stride[0] + c * view.stride[1] + h * view.stride[2] + w * view.stride[3]);
          }
        }
      }
    }
  }
  // Fills with random numbers (small integers for integer types) and returns them as stored.
  Values fill(uint32_t seed) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<double> real(-1, 1);
    std::uniform_int_distribution<int> integer(0, 3);
    visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      each([&](int64_t, int64_t place) {
        T& target = static_cast<T*>(view.data)[place];
        if constexpr (std::is_same_v<T, Float16>) {
          target = to_float16(static_cast<float>(real(engine)));
        } else if constexpr (std::is_same_v<T, BFloat16>) {
          target = to_bfloat16(static_cast<float>(real(engine)));
        } else if constexpr (std::is_integral_v<T>) {
          target = static_cast<T>(integer(engine));
        } else if constexpr (std::is_floating_point_v<T>) {
          target = static_cast<T>(real(engine));
        } else {
          target =
              T(static_cast<typename T::value_type>(real(engine)), static_cast<typename T::value_type>(real(engine)));
        }
      });
    });
    return values();
  }
  Values values() {
    Values out(view.count());
    visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      each([&](int64_t idx, int64_t place) {
        const T value = static_cast<const T*>(view.data)[place];
        if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
          out[idx] = to_float(value);
        } else {
          out[idx] = std::complex<double>(value);
        }
      });
    });
    return out;
  }
};

struct Sizes {
  int64_t n, in_channels, out_channels, height, width, kernel_height, kernel_width;
  Conv2d conv;

  std::array<int64_t, 4> input() const { return {n, in_channels, height, width}; }
  std::array<int64_t, 4> weight() const {
    return {out_channels, in_channels / conv.groups, kernel_height, kernel_width};
  }
  std::array<int64_t, 4> output() const {
    return {n, out_channels, conv.output_size(0, height, kernel_height), conv.output_size(1, width, kernel_width)};
  }
};

// Calls fn(input index, weight index, output index) for every product of the convolution.
template <class F>
void each_product(const Sizes& s, F&& fn) {
  const auto [n, channels, height, width] = s.output();
  const int64_t in_group = s.in_channels / s.conv.groups, out_group = s.out_channels / s.conv.groups;
  for (int64_t image = 0; image < n; ++image) {
    for (int64_t o = 0; o < channels; ++o) {
      for (int64_t y = 0; y < height; ++y) {
        for (int64_t x = 0; x < width; ++x) {
          for (int64_t c = 0; c < in_group; ++c) {
            for (int64_t ky = 0; ky < s.kernel_height; ++ky) {
              for (int64_t kx = 0; kx < s.kernel_width; ++kx) {
                const int64_t row = y * s.conv.stride[0] - s.conv.padding[0] + ky * s.conv.dilation[0];
                const int64_t col = x * s.conv.stride[1] - s.conv.padding[2] + kx * s.conv.dilation[1];
                if (row < 0 || row >= s.height || col < 0 || col >= s.width) continue;
                const int64_t channel = o / out_group * in_group + c;
                fn(((image * s.in_channels + channel) * s.height + row) * s.width + col,
                   ((o * in_group + c) * s.kernel_height + ky) * s.kernel_width + kx,
                   ((image * channels + o) * height + y) * width + x);
              }
            }
          }
        }
      }
    }
  }
}

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::Float16: return 4e-3;
    case DType::BFloat16: return 3e-2;
    case DType::Float32:
    case DType::Complex64: return 1e-5;
    case DType::Float64:
    case DType::Complex128: return 1e-13;
    default: return 0;
  }
}

void expect_near(const Values& actual, const Values& expected, DType dtype, const char* what) {
  double size = 1;
  for (const auto& value : expected) size = std::max(size, std::abs(value));
  for (size_t idx = 0; idx < expected.size(); ++idx) {
    ASSERT_LE(std::abs(actual[idx] - expected[idx]), tolerance(dtype) * size)
        << what << " at " << idx << ": " << actual[idx] << " instead of " << expected[idx];
  }
}

void check(Sizes s, DType dtype, Layout image_layout, Layout weight_layout, bool with_bias) {
  SCOPED_TRACE(testing::Message() << info(dtype).name << " n " << s.n << " " << s.in_channels << "->" << s.out_channels
                                  << " " << s.height << "x" << s.width << " kernel " << s.kernel_height << "x"
                                  << s.kernel_width << " groups " << s.conv.groups << " layout "
                                  << static_cast<int>(image_layout));
  s.conv.dtype = dtype;
  Array x(dtype, s.input(), image_layout), w(dtype, s.weight(), weight_layout),
      bias(dtype, {1, 1, 1, s.out_channels}, Layout::First);
  Array dy(dtype, s.output(), image_layout);
  const Values xv = x.fill(1), wv = w.fill(2), bv = bias.fill(3), dyv = dy.fill(4);
  Array y(dtype, s.output(), image_layout), dx(dtype, s.input(), image_layout), dw(dtype, s.weight(), weight_layout);
  Array db(dtype, {1, 1, 1, s.out_channels}, Layout::First);
  Values y_expected(dyv.size()), dx_expected(xv.size()), dw_expected(wv.size()), db_expected(bv.size());
  const int64_t plane = dy.view.size[2] * dy.view.size[3];
  for (size_t idx = 0; idx < dyv.size(); ++idx) {
    const int64_t channel = static_cast<int64_t>(idx) / plane % s.out_channels;
    db_expected[channel] += dyv[idx];
    if (with_bias) y_expected[idx] = bv[channel];
  }
  each_product(s, [&](int64_t in, int64_t weight, int64_t out) {
    y_expected[out] += xv[in] * wv[weight];
    dx_expected[in] += dyv[out] * wv[weight];
    dw_expected[weight] += dyv[out] * xv[in];
  });
  conv2d_forward(s.conv, x.view, w.view, with_bias ? bias.view.data : nullptr, y.view);
  expect_near(y.values(), y_expected, dtype, "output");
  conv2d_backward_data(s.conv, dy.view, w.view, dx.view);
  expect_near(dx.values(), dx_expected, dtype, "input gradient");
  conv2d_backward_weight(s.conv, x.view, dy.view, dw.view, with_bias ? db.view.data : nullptr);
  expect_near(dw.values(), dw_expected, dtype, "weight gradient");
  if (with_bias) expect_near(db.values(), db_expected, dtype, "bias gradient");
}

const std::vector<Sizes>& small_cases() {
  static const std::vector<Sizes> cases = {
      {2, 3, 5, 8, 9, 3, 3, {.padding = {1, 1, 1, 1}}},
      {3, 1, 6, 12, 12, 5, 5, {}},
      {2, 6, 16, 9, 9, 5, 5, {}},
      {2, 16, 32, 7, 6, 3, 3, {.stride = {2, 2}, .padding = {1, 1, 1, 1}}},
      {2, 16, 32, 7, 6, 1, 1, {.stride = {2, 2}}},
      {2, 4, 8, 10, 11, 3, 2, {.stride = {2, 1}, .padding = {0, 2, 1, 0}, .dilation = {2, 3}}},
      {2, 8, 12, 6, 6, 3, 3, {.groups = 4, .padding = {1, 1, 1, 1}}},
      {1, 16, 16, 6, 6, 3, 3, {.groups = 16, .padding = {1, 1, 1, 1}}},
      {2, 8, 16, 1, 20, 1, 5, {.padding = {0, 0, 2, 2}}},
      {1, 2, 3, 4, 4, 4, 4, {}},
      {2, 3, 4, 5, 5, 2, 2, {.stride = {3, 3}}},  // the last row and column are read by nobody
  };
  return cases;
}

TEST(ConvTest, Float32InAllLayouts) {
  for (const Sizes& s : small_cases()) {
    for (Layout layout : {Layout::First, Layout::Last, Layout::Strided}) {
      check(s, DType::Float32, layout, Layout::First, true);
      check(s, DType::Float32, layout, layout, false);
    }
  }
}

TEST(ConvTest, OtherDtypes) {
  for (const Sizes& s : small_cases()) {
    for (DType dtype : {DType::Float16, DType::BFloat16, DType::Float64, DType::Int32, DType::Int64, DType::Int16,
                        DType::Complex64, DType::Complex128}) {
      check(s, dtype, Layout::First, Layout::First, true);
      check(s, dtype, Layout::Last, Layout::Last, false);
      check(s, dtype, Layout::Strided, Layout::Strided, true);
    }
  }
}

TEST(ConvTest, MixedLayouts) {
  Sizes s = {4, 16, 32, 8, 8, 3, 3, {.padding = {1, 1, 1, 1}}};
  Array x(DType::Float32, s.input(), Layout::First), w(DType::Float32, s.weight(), Layout::First);
  x.fill(1);
  w.fill(2);
  Array first(DType::Float32, s.output(), Layout::First), last(DType::Float32, s.output(), Layout::Last);
  conv2d_forward(s.conv, x.view, w.view, nullptr, first.view);
  conv2d_forward(s.conv, x.view, w.view, nullptr, last.view);
  expect_near(last.values(), first.values(), DType::Float32, "output");
}

// Cut by images, by rows of one image, and by channels (a weight of more than 1 MiB).
TEST(ConvTest, LargeEnoughForSeveralTasks) {
  for (Layout layout : {Layout::First, Layout::Last}) {
    check({9, 16, 32, 28, 28, 3, 3, {.padding = {1, 1, 1, 1}}}, DType::Float32, layout, Layout::First, true);
    check({1, 32, 32, 40, 40, 3, 3, {.stride = {2, 1}, .padding = {2, 1, 0, 1}}}, DType::Float32, layout, Layout::First,
          true);
    check({2, 192, 176, 6, 6, 3, 3, {.padding = {1, 1, 1, 1}}}, DType::Float32, layout, Layout::First, true);
  }
}

TEST(ConvTest, Im2ColAgreesInFloat32) {
  for (const Sizes& s : small_cases()) {
    for (Layout layout : {Layout::First, Layout::Last}) {
      Array x(DType::Float32, s.input(), layout), w(DType::Float32, s.weight(), Layout::First),
          dy(DType::Float32, s.output(), layout);
      x.fill(1);
      w.fill(2);
      dy.fill(3);
      Array expected(DType::Float32, s.output(), layout), actual(DType::Float32, s.output(), layout);
      conv2d_forward(s.conv, x.view, w.view, nullptr, expected.view);
      im2col_forward(s.conv, x.view, w.view, nullptr, actual.view);
      expect_near(actual.values(), expected.values(), DType::Float32, "output");
      Array dw_expected(DType::Float32, s.weight(), Layout::First),
          dw_actual(DType::Float32, s.weight(), Layout::First);
      conv2d_backward_weight(s.conv, x.view, dy.view, dw_expected.view, nullptr);
      im2col_backward_weight(s.conv, x.view, dy.view, dw_actual.view, nullptr);
      expect_near(dw_actual.values(), dw_expected.values(), DType::Float32, "weight gradient");
    }
  }
}

std::vector<Sizes> direct_cases() {
  std::vector<Sizes> out = small_cases();
  const Conv2d same{.padding = {1, 1, 1, 1}};
  for (const Sizes& s : {Sizes{9, 16, 32, 28, 28, 3, 3, same}, Sizes{1, 32, 32, 40, 40, 3, 3, {.stride = {2, 1}}},
                         Sizes{2, 192, 176, 6, 6, 3, 3, same}, Sizes{3, 40, 70, 5, 7, 1, 1, {}}})
    out.push_back(s);
  return out;
}

TEST(ConvTest, DirectInAllLayouts) {
  for (const Sizes& s : direct_cases()) {
    for (Layout in : {Layout::First, Layout::Last, Layout::Strided}) {
      for (Layout to : {Layout::First, Layout::Last, Layout::Strided}) {
        SCOPED_TRACE(testing::Message() << s.in_channels << "->" << s.out_channels << " " << s.height << "x" << s.width
                                        << " layouts " << static_cast<int>(in) << " " << static_cast<int>(to));
        Array x(DType::Float32, s.input(), in), w(DType::Float32, s.weight(), in),
            bias(DType::Float32, {1, 1, 1, s.out_channels}, Layout::First);
        x.fill(1);
        w.fill(2);
        bias.fill(3);
        const float* added = in == to ? nullptr : static_cast<const float*>(bias.view.data);
        Array expected(DType::Float32, s.output(), to);
        conv2d_forward(s.conv, x.view, w.view, added, expected.view);
        std::vector<std::vector<std::byte>> results;
        for (int threads : {1, 3}) {
          set_num_threads(threads);
          Array actual(DType::Float32, s.output(), to);
          const auto direct = DirectConv::make(s.conv, x.view, w.view, actual.view);
          if (!direct) {
            EXPECT_LT(s.out_channels / s.conv.groups, 4);
            continue;
          }
          direct->run(x.view, added, actual.view);
          expect_near(actual.values(), expected.values(), DType::Float32, "output");
          results.push_back(actual.bytes);
        }
        set_num_threads(1);
        for (const auto& bytes : results) EXPECT_EQ(bytes, results[0]);
      }
    }
  }
}

TEST(ConvTest, EmptyBatchAndRefused) {
  Sizes s = {0, 3, 4, 5, 5, 3, 3, {}};
  Array x(DType::Float32, s.input(), Layout::First), w(DType::Float32, s.weight(), Layout::First);
  Array y(DType::Float32, s.output(), Layout::First), dw(DType::Float32, s.weight(), Layout::First);
  w.fill(1);
  dw.fill(1);
  conv2d_forward(s.conv, x.view, w.view, nullptr, y.view);
  conv2d_backward_data(s.conv, y.view, w.view, x.view);
  conv2d_backward_weight(s.conv, x.view, y.view, dw.view, nullptr);
  for (const auto& value : dw.values()) EXPECT_EQ(value, 0.0);
  s.conv.dtype = DType::Bool;
  EXPECT_THROW(conv2d_forward(s.conv, x.view, w.view, nullptr, y.view), Error);
}

TEST(ConvTest, SameBitsForAnyNumberOfThreads) {
  for (Layout layout : {Layout::First, Layout::Last}) {
    for (const Sizes& s : {Sizes{9, 16, 32, 28, 28, 3, 3, {.padding = {1, 1, 1, 1}}},
                           Sizes{1, 32, 32, 40, 40, 3, 3, {}}, Sizes{4, 192, 176, 6, 6, 3, 3, {}}}) {
      for (DType dtype : {DType::Float32, DType::Float64}) {
        Sizes sizes = s;
        sizes.conv.dtype = dtype;
        Array x(dtype, s.input(), layout), w(dtype, s.weight(), Layout::First), dy(dtype, s.output(), layout);
        x.fill(1);
        w.fill(2);
        dy.fill(3);
        std::vector<std::vector<std::byte>> results;
        for (int threads : {1, 2, 3}) {
          set_num_threads(threads);
          Array y(dtype, s.output(), layout), dx(dtype, s.input(), layout), dw(dtype, s.weight(), Layout::First);
          conv2d_forward(sizes.conv, x.view, w.view, nullptr, y.view);
          conv2d_backward_data(sizes.conv, dy.view, w.view, dx.view);
          conv2d_backward_weight(sizes.conv, x.view, dy.view, dw.view, nullptr);
          results.push_back(y.bytes);
          results.back().insert(results.back().end(), dx.bytes.begin(), dx.bytes.end());
          results.back().insert(results.back().end(), dw.bytes.begin(), dw.bytes.end());
        }
        set_num_threads(1);
        EXPECT_EQ(results[0], results[1]);
        EXPECT_EQ(results[0], results[2]);
      }
    }
  }
}

}  // namespace
}  // namespace morel
