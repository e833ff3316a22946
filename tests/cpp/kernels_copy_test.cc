// Copies, conversions, ranges and padding against element-by-element references.
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/copy.h"
#include "morel/kernels/fill.h"
#include "morel/kernels/pad.h"

namespace morel::kernels {
namespace {

std::span<const int64_t> span_of(const Numbers& values) { return {values.data(), values.size()}; }

// Visits every position of a shape.
template <class F>
void for_each_position(const Numbers& shape, F&& fn) {
  if (count_elements(span_of(shape)) == 0) return;
  Numbers position(shape.size(), 0);
  while (true) {
    fn(position);
    size_t axis = shape.size();
    while (axis-- > 0) {
      if (++position[axis] < shape[axis]) break;
      position[axis] = 0;
    }
    if (axis == static_cast<size_t>(-1)) return;
  }
}
int64_t offset_of(const Numbers& position, const Numbers& strides) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < position.size(); ++axis) offset += position[axis] * strides[axis];
  return offset;
}
Numbers dense(const Numbers& shape) { return dense_strides(span_of(shape)); }

template <class T>
std::vector<T> iota(int64_t n) {
  std::vector<T> values(n);
  for (int64_t idx = 0; idx < n; ++idx) values[idx] = static_cast<T>(idx + 1);
  return values;
}

// ---- strided copies -----------------------------------------------------------------------------

// Copies a permuted, stepped, flipped and broadcast view of a dense array and compares each element.
template <class T>
void check_random_views(uint32_t seed, int cases) {
  std::mt19937 random(seed);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int idx = 0; idx < cases; ++idx) {
    const size_t rank = pick(0, 5);
    Numbers base_shape(rank), shape(rank);
    for (size_t axis = 0; axis < rank; ++axis) base_shape[axis] = pick(1, rank <= 2 ? 150 : 12);
    std::vector<T> source(std::max<int64_t>(1, count_elements(span_of(base_shape))));
    for (T& value : source) value = static_cast<T>(random());
    Numbers strides = dense(base_shape);
    int64_t start = 0;
    std::vector<size_t> order(rank);
    for (size_t axis = 0; axis < rank; ++axis) order[axis] = axis;
    std::shuffle(order.begin(), order.end(), random);
    Numbers view_strides(rank);
    for (size_t axis = 0; axis < rank; ++axis) {
      const size_t from = order[axis];
      shape[axis] = base_shape[from];
      view_strides[axis] = strides[from];
      switch (pick(0, 5)) {
        case 0:  // every second one
          shape[axis] = (shape[axis] + 1) / 2;
          view_strides[axis] *= 2;
          break;
        case 1:
          start += (shape[axis] - 1) * view_strides[axis];
          view_strides[axis] = -view_strides[axis];
          break;
        case 2: view_strides[axis] = 0; break;
        default: break;
      }
    }
    // The target: dense, or a permuted one with gaps.
    Numbers target_strides = dense(shape);
    int64_t target_size = std::max<int64_t>(1, count_elements(span_of(shape)));
    if (pick(0, 1)) {
      std::vector<size_t> target_order(rank);
      for (size_t axis = 0; axis < rank; ++axis) target_order[axis] = axis;
      std::shuffle(target_order.begin(), target_order.end(), random);
      int64_t stride = pick(1, 2);
      for (const size_t axis : target_order) {
        target_strides[axis] = stride;
        stride *= shape[axis];
      }
      target_size = stride;
    }
    std::vector<T> target(target_size, T(77));
    copy({target.data(), dtype_of<T>, span_of(shape), span_of(target_strides)},
         {source.data() + start, dtype_of<T>, span_of(shape), span_of(view_strides)});
    for_each_position(shape, [&](const Numbers& position) {
      ASSERT_EQ(target[offset_of(position, target_strides)], source[start + offset_of(position, view_strides)]);
    });
  }
}

TEST(KernelsCopy, RandomViews) {
  check_random_views<uint8_t>(1, 150);
  check_random_views<int16_t>(2, 150);
  check_random_views<int32_t>(3, 150);
  check_random_views<int64_t>(4, 150);
  check_random_views<std::complex<double>>(5, 100);
}

// Large enough for the path that writes past the caches, at addresses on and off cache lines.
template <class T>
void check_streaming_transpose(int64_t rows, int64_t columns, int64_t start) {
  const std::vector<T> source = iota<T>(rows * columns);
  std::vector<T> target(rows * columns + start);
  const Numbers shape{columns, rows};
  const Numbers to{rows, 1}, from{1, columns};
  copy({target.data() + start, dtype_of<T>, span_of(shape), span_of(to)},
       {source.data(), dtype_of<T>, span_of(shape), span_of(from)});
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) ASSERT_EQ(target[start + c * rows + r], source[r * columns + c]);
  }
}
TEST(KernelsCopy, StreamingTranspose) {
  check_streaming_transpose<int32_t>(1600, 1500, 0);
  check_streaming_transpose<int32_t>(1600, 1501, 7);
  check_streaming_transpose<int64_t>(1000, 1111, 3);
  check_streaming_transpose<int64_t>(1001, 1111, 0);
  check_streaming_transpose<int16_t>(3200, 1500, 1);
  check_streaming_transpose<uint8_t>(6400, 1500, 9);
}

TEST(KernelsCopy, LargeTransposeAndLongRows) {
  for (const int64_t rows : {3, 64, 257, 1000}) {
    const int64_t columns = 515;
    const std::vector<float> source = iota<float>(rows * columns);
    std::vector<float> target(rows * columns);
    const Numbers shape{columns, rows};
    const Numbers to{rows, 1}, from{1, columns};
    copy({target.data(), DType::Float32, span_of(shape), span_of(to)},
         {source.data(), DType::Float32, span_of(shape), span_of(from)});
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) ASSERT_EQ(target[c * rows + r], source[r * columns + c]);
    }
  }
  for (const int64_t n : {100003, 131072, 200000}) {  // a prime length and ones that split
    const std::vector<int32_t> source = iota<int32_t>(2 * n);
    std::vector<int64_t> target(n);
    const int64_t one = 1, two = 2;
    copy({target.data(), DType::Int64, {&n, 1}, {&one, 1}}, {source.data(), DType::Int32, {&n, 1}, {&two, 1}});
    for (int64_t idx = 0; idx < n; ++idx) ASSERT_EQ(target[idx], source[2 * idx]);
  }
}

// ---- conversions --------------------------------------------------------------------------------

template <class T>
auto widen(T value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return to_float(value);
  } else {
    return value;
  }
}

template <class T, class S>
T convert_one(S value) {
  const auto wide = widen(value);
  using W = std::remove_const_t<decltype(wide)>;
  if constexpr (is_complex(dtype_of<S>)) {
    if constexpr (is_complex(dtype_of<T>)) {
      return T(static_cast<typename T::value_type>(wide.real()), static_cast<typename T::value_type>(wide.imag()));
    } else if constexpr (std::is_same_v<T, bool>) {
      return wide != W{};
    } else {
      return convert_one<T>(wide.real());
    }
  } else if constexpr (is_complex(dtype_of<T>)) {
    return T(static_cast<typename T::value_type>(wide), 0);
  } else if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(static_cast<float>(wide));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(static_cast<float>(wide));
  } else if constexpr (std::is_same_v<T, bool>) {
    return wide != W{};
  } else if constexpr (std::is_floating_point_v<W> && std::is_integral_v<T>) {
    return static_cast<T>(static_cast<int64_t>(wide));
  } else {
    return static_cast<T>(wide);
  }
}

template <class T>
bool same(T x, T y) {
  return std::memcmp(&x, &y, sizeof(T)) == 0;
}

template <class S, class T>
void check_convert() {
  std::mt19937 random(7);
  for (const int64_t n : {0, 1, 5, 16, 33, 700}) {
    std::vector<char> source_bytes(n * 2 * sizeof(S) + 16), target_bytes(n * 2 * sizeof(T) + 16);
    S* source = reinterpret_cast<S*>(source_bytes.data());
    T* target = reinterpret_cast<T*>(target_bytes.data());
    for (int64_t idx = 0; idx < 2 * n; ++idx) {
      // Values that every pair of types can represent, so that no conversion is undefined; fractions for floats.
      const double value = is_integral(dtype_of<S>) || is_integral(dtype_of<T>) ? random() % 120 + 0.75
                                                                                : (random() % 20000) / 64.0 - 150.0;
      source[idx] = idx % 7 == 0 ? convert_one<S>(0.0) : convert_one<S>(value);
    }
    convert(target, dtype_of<T>, source, dtype_of<S>, n);
    for (int64_t idx = 0; idx < n; ++idx) {
      ASSERT_TRUE(same(target[idx], (convert_one<T, S>(source[idx]))))
          << info(dtype_of<S>).name << " to " << info(dtype_of<T>).name;
    }
    const int64_t two = 2;
    copy({target, dtype_of<T>, {&n, 1}, {&two, 1}}, {source, dtype_of<S>, {&n, 1}, {&two, 1}});
    for (int64_t idx = 0; idx < n; ++idx) ASSERT_TRUE(same(target[2 * idx], (convert_one<T, S>(source[2 * idx]))));
  }
}

TEST(KernelsCopy, ConvertsEveryPairOfTypes) {
  for (int source = 0; source < num_dtypes; ++source) {
    for (int target = 0; target < num_dtypes; ++target) {
      visit_dtype(static_cast<DType>(source), [&](auto source_tag) {
        visit_dtype(static_cast<DType>(target), [&](auto target_tag) {
          check_convert<typename decltype(source_tag)::type, typename decltype(target_tag)::type>();
        });
      });
    }
  }
}

TEST(KernelsCopy, ConvertsNegativeAndLargeNumbers) {
  const std::vector<double> source{-1.9, -128.0, 3e9, -3e9, 1.8e19, 9.3e18, -9e18, 0.0};
  std::vector<uint64_t> unsigned_target(source.size());
  convert(unsigned_target.data(), DType::UInt64, source.data(), DType::Float64, 5);
  EXPECT_EQ(unsigned_target[0], static_cast<uint64_t>(-1));
  EXPECT_EQ(unsigned_target[2], 3000000000u);
  EXPECT_EQ(unsigned_target[4], 18000000000000000000u);
  std::vector<uint32_t> narrow(source.size());
  convert(narrow.data(), DType::UInt32, source.data(), DType::Float64, 4);
  EXPECT_EQ(narrow[0], 0xffffffffu);
  EXPECT_EQ(narrow[2], 3000000000u);
  std::vector<int8_t> bytes(source.size());
  convert(bytes.data(), DType::Int8, source.data(), DType::Float64, 2);
  EXPECT_EQ(bytes[0], -1);
  EXPECT_EQ(bytes[1], -128);
}

TEST(KernelsCopy, HalvesRoundTripAndRoundOnce) {
  std::vector<uint16_t> all(65536), back(65536);
  std::vector<float> wide(65536);
  for (int bits = 0; bits < 65536; ++bits) all[bits] = static_cast<uint16_t>(bits);
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    convert(wide.data(), DType::Float32, all.data(), dtype, 65536);
    convert(back.data(), dtype, wide.data(), DType::Float32, 65536);
    for (int bits = 0; bits < 65536; ++bits) {
      if (std::isnan(wide[bits])) {
        const uint16_t mantissa = dtype == DType::Float16 ? 0x3ff : 0x7f;
        ASSERT_NE(back[bits] & mantissa, 0);
      } else {
        ASSERT_EQ(back[bits], all[bits]);
      }
    }
  }
  // Just above the middle of 1 and the next half: rounding to float first would lose the excess and round to even.
  const std::vector<double> source{1.0 + 0x1p-11 + 0x1p-40,    1.0 + 0x1p-11, 1.0 + 0x1p-11 - 0x1p-40,
                                   -(1.0 + 0x1p-11 + 0x1p-40), 1e300,         std::numeric_limits<double>::infinity(),
                                   0x1p-25 + 0x1p-60,          -0.0};
  std::vector<Float16> target(source.size());
  convert(target.data(), DType::Float16, source.data(), DType::Float64, source.size());
  const std::vector<uint16_t> wanted{0x3c01, 0x3c00, 0x3c00, 0xbc01, 0x7c00, 0x7c00, 0x0001, 0x8000};
  for (size_t idx = 0; idx < wanted.size(); ++idx) EXPECT_EQ(target[idx].bits, wanted[idx]) << idx;
}

// ---- flips, rolls, concatenation, triangles -----------------------------------------------------

TEST(KernelsCopy, FlipRollConcat) {
  const Numbers shape{3, 4, 5};
  const Numbers strides = dense(shape);
  const std::vector<int32_t> source = iota<int32_t>(60);
  std::vector<int32_t> target(60);
  const View to{target.data(), DType::Int32, span_of(shape), span_of(strides)};
  const ConstView from{source.data(), DType::Int32, span_of(shape), span_of(strides)};
  const Numbers flipped{0, 2};
  flip(to, from, span_of(flipped));
  for_each_position(shape, [&](const Numbers& p) {
    ASSERT_EQ(target[offset_of(p, strides)], source[offset_of(Numbers{2 - p[0], p[1], 4 - p[2]}, strides)]);
  });
  const Numbers shifts{-1, 7, 2}, axes{0, 2, 2};
  roll(to, from, span_of(shifts), span_of(axes));
  for_each_position(shape, [&](const Numbers& p) {
    ASSERT_EQ(target[offset_of(Numbers{(p[0] + 2) % 3, p[1], (p[2] + 9) % 5}, strides)], source[offset_of(p, strides)]);
  });
  const Numbers wide{3, 9, 5}, other{3, 5, 5};
  const Numbers wide_strides = dense(wide), other_strides = dense(other);
  std::vector<float> joined(135), second = iota<float>(75);
  const ConstView pieces[] = {from, {second.data(), DType::Float32, span_of(other), span_of(other_strides)}};
  concat({joined.data(), DType::Float32, span_of(wide), span_of(wide_strides)}, pieces, 1);
  for_each_position(wide, [&](const Numbers& p) {
    const float wanted = p[1] < 4 ? static_cast<float>(source[offset_of(p, strides)])
                                  : second[offset_of(Numbers{p[0], p[1] - 4, p[2]}, other_strides)];
    ASSERT_EQ(joined[offset_of(p, wide_strides)], wanted);
  });
}

TEST(KernelsCopy, Triangles) {
  const Numbers shape{2, 5, 7};
  const Numbers strides = dense(shape);
  const std::vector<float> source = iota<float>(70);
  for (int64_t diagonal = -6; diagonal <= 8; ++diagonal) {
    for (const Triangle part : {Triangle::Lower, Triangle::Upper}) {
      std::vector<float> target(70, -1.0f);
      triangle({target.data(), DType::Float32, span_of(shape), span_of(strides)},
               {source.data(), DType::Float32, span_of(shape), span_of(strides)}, part, diagonal);
      for_each_position(shape, [&](const Numbers& p) {
        const bool kept = part == Triangle::Lower ? p[2] - p[1] <= diagonal : p[2] - p[1] >= diagonal;
        ASSERT_EQ(target[offset_of(p, strides)], kept ? source[offset_of(p, strides)] : 0.0f);
      });
    }
  }
}

TEST(KernelsCopy, RangesAndIdentity) {
  std::vector<float> range(100);
  arange(range.data(), DType::Float32, 100, 0.5, 0.1);
  for (int idx = 0; idx < 100; ++idx) ASSERT_EQ(range[idx], static_cast<float>(0.5 + idx * 0.1));
  std::vector<int64_t> whole(50000);
  arange(whole.data(), DType::Int64, 50000, int64_t{1} << 60, int64_t{-3});
  for (int64_t idx = 0; idx < 50000; ++idx) ASSERT_EQ(whole[idx], (int64_t{1} << 60) - 3 * idx);
  linspace(range.data(), DType::Float32, 100, -1.0, 1.0);
  EXPECT_EQ(range[0], -1.0f);
  EXPECT_EQ(range[99], 1.0f);
  EXPECT_NEAR(range[50], -1.0 + 2.0 * 50 / 99, 1e-7);
  linspace(range.data(), DType::Float32, 1, 3.0, 9.0);
  EXPECT_EQ(range[0], 3.0f);
  std::vector<int32_t> matrix(2 * 3 * 4, 9);
  for (int64_t diagonal = -4; diagonal <= 5; ++diagonal) {
    eye(matrix.data(), DType::Int32, 2, 3, 4, diagonal);
    for (int idx = 0; idx < 24; ++idx) ASSERT_EQ(matrix[idx], idx % 4 - idx / 4 % 3 == diagonal ? 1 : 0);
  }
  const Numbers shape{3, 2};
  const Numbers gaps{5, 2};
  std::vector<int16_t> filled(15, 0);
  const int16_t value = -7;
  fill({filled.data(), DType::Int16, span_of(shape), span_of(gaps)}, &value);
  for (int idx = 0; idx < 15; ++idx) EXPECT_EQ(filled[idx], idx % 5 == 0 || idx % 5 == 2 ? -7 : 0);
}

// ---- padding ------------------------------------------------------------------------------------

int64_t naive_source(int64_t position, int64_t size, PadMode mode) {
  while (position < 0 || position >= size) {
    switch (mode) {
      case PadMode::Constant: return -1;
      case PadMode::Reflect: position = position < 0 ? -position : 2 * (size - 1) - position; break;
      case PadMode::Symmetric: position = position < 0 ? -1 - position : 2 * size - 1 - position; break;
      case PadMode::Replicate: position = position < 0 ? 0 : size - 1; break;
      case PadMode::Circular: position += position < 0 ? size : -size; break;
    }
  }
  return position;
}

TEST(KernelsCopy, PadAndItsGradient) {
  const Numbers shape{3, 4, 5};
  const Numbers strides = dense(shape);
  const std::vector<double> source = iota<double>(60);
  const struct {
    Numbers before, after;
  } pads[] = {{{0, 0, 0}, {0, 0, 0}}, {{1, 2, 3}, {2, 1, 0}}, {{-1, 0, 2}, {0, -2, -1}}, {{0, 3, 4}, {0, 3, 4}}};
  for (const PadMode mode :
       {PadMode::Constant, PadMode::Reflect, PadMode::Symmetric, PadMode::Replicate, PadMode::Circular}) {
    for (const auto& [before, after] : pads) {
      Numbers padded(3);
      for (int axis = 0; axis < 3; ++axis) padded[axis] = shape[axis] + before[axis] + after[axis];
      const Numbers padded_strides = dense(padded);
      const int64_t count = count_elements(span_of(padded));
      std::vector<double> target(count), wanted_grad(60), source_grad(60, -1.0), grad = iota<double>(count);
      const double value = -3.5;
      pad({target.data(), DType::Float64, span_of(padded), span_of(padded_strides)},
          {source.data(), DType::Float64, span_of(shape), span_of(strides)}, span_of(before), mode, &value);
      for_each_position(padded, [&](const Numbers& p) {
        Numbers from(3);
        bool is_outside = false;
        for (int axis = 0; axis < 3; ++axis) {
          from[axis] = naive_source(p[axis] - before[axis], shape[axis], mode);
          is_outside |= from[axis] < 0;
        }
        ASSERT_EQ(target[offset_of(p, padded_strides)], is_outside ? value : source[offset_of(from, strides)]);
        if (!is_outside) wanted_grad[offset_of(from, strides)] += grad[offset_of(p, padded_strides)];
      });
      pad_backward({source_grad.data(), DType::Float64, span_of(shape), span_of(strides)},
                   {grad.data(), DType::Float64, span_of(padded), span_of(padded_strides)}, span_of(before), mode);
      EXPECT_EQ(source_grad, wanted_grad);
    }
  }
  const Numbers small{2}, large{6};
  const Numbers one{1};
  std::vector<float> from(2), to(6);
  const Numbers before{2};
  EXPECT_THROW(
      pad({to.data(), DType::Float32, span_of(large), span_of(one)},
          {from.data(), DType::Float32, span_of(small), span_of(one)}, span_of(before), PadMode::Reflect, nullptr),
      Error);
}

}  // namespace
}  // namespace morel::kernels
