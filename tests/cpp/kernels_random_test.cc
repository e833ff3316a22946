// Philox against its published vectors; distributions by their definition from the words and by their moments.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/random.h"

namespace morel::kernels {
namespace {

constexpr RandomStream stream{0x243f6a8885a308d3u, 17, 0};

uint32_t word_of(const RandomStream& from, int64_t element) {
  uint32_t words[4];
  philox_block(from.seed, from.offset, static_cast<uint64_t>(from.first + element) / 4, words);
  return words[(from.first + element) % 4];
}
uint64_t wide_word_of(const RandomStream& from, int64_t element) {
  uint32_t words[4];
  philox_block(from.seed, from.offset, static_cast<uint64_t>(from.first + element) / 2, words);
  const int64_t half = (from.first + element) % 2 * 2;
  return words[half] | uint64_t{words[half + 1]} << 32;
}

TEST(KernelsRandom, PublishedVectors) {  // kat_vectors of the authors' Random123: philox4x32 with 10 rounds
  const auto check = [](uint64_t seed, uint64_t offset, uint64_t block, std::vector<uint32_t> wanted) {
    std::vector<uint32_t> words(4);
    philox_block(seed, offset, block, words.data());
    EXPECT_EQ(words, wanted);
  };
  check(0, 0, 0, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  check(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
  check(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u,
        {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST(KernelsRandom, UniformFollowsTheWords) {
  for (const int64_t first : {int64_t{0}, int64_t{5}, (int64_t{1} << 34) + 3}) {
    const RandomStream from{stream.seed, stream.offset, first};
    const int64_t n = 40000;
    std::vector<float> x(n);
    random_uniform(x.data(), DType::Float32, n, 0, 1, from);
    for (int64_t idx = 0; idx < n; ++idx) ASSERT_EQ(x[idx], static_cast<float>(word_of(from, idx) >> 8) * 0x1p-24f);
    std::vector<double> y(n);
    random_uniform(y.data(), DType::Float64, n, 0, 1, from);
    for (int64_t idx = 0; idx < n; ++idx)
      ASSERT_EQ(y[idx], static_cast<double>(wide_word_of(from, idx) >> 11) * 0x1p-53);
    std::vector<Float16> h(n);
    random_uniform(h.data(), DType::Float16, n, 0, 1, from);
    for (int64_t idx = 0; idx < n; ++idx)
      ASSERT_EQ(to_float(h[idx]), static_cast<float>(word_of(from, idx) >> 21) * 0x1p-11f);
  }
  std::vector<float> x(100000);
  random_uniform(x.data(), DType::Float32, 100000, 5.0, 5.0 + 1e-6, stream);  // few floats lie between
  for (const float value : x) ASSERT_TRUE(value >= 5.0f && value < static_cast<float>(5.0 + 1e-6));
}

TEST(KernelsRandom, NormalFollowsTheWords) {
  const int64_t n = 20001;
  std::vector<float> x(n);
  std::vector<double> y(n);
  random_normal(x.data(), DType::Float32, n, 1.0, 2.0, stream);
  random_normal(y.data(), DType::Float64, n, 1.0, 2.0, stream);
  for (int64_t idx = 0; idx < n; ++idx) {
    const int64_t even = idx / 2 * 2;
    const double u = (word_of(stream, even) + 0.5) * 0x1p-32, v = (word_of(stream, even + 1) >> 8) * 0x1p-24;
    const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * M_PI * v;
    ASSERT_NEAR(x[idx], 1 + 2 * radius * (idx % 2 ? std::sin(angle) : std::cos(angle)), 4e-6);
    const double wide_u = ((wide_word_of(stream, even) >> 11) + 0.5) * 0x1p-53,
                 wide_v = (wide_word_of(stream, even + 1) >> 11) * 0x1p-53;
    const double wide_radius = std::sqrt(-2 * std::log(wide_u));
    ASSERT_NEAR(y[idx], 1 + 2 * wide_radius * (idx % 2 ? std::sin(2 * M_PI * wide_v) : std::cos(2 * M_PI * wide_v)),
                1e-13);
  }
}

struct Statistics {
  double mean = 0, deviation = 0, least = 1e30, most = -1e30;
};
Statistics statistics(const std::vector<double>& values) {
  Statistics s;
  for (const double x : values) {
    s.mean += x / values.size();
    s.least = std::min(s.least, x);
    s.most = std::max(s.most, x);
  }
  for (const double x : values) s.deviation += (x - s.mean) * (x - s.mean) / values.size();
  s.deviation = std::sqrt(s.deviation);
  return s;
}
template <class T>
std::vector<double> draw(int64_t n, const std::function<void(void*, DType, int64_t)>& fill) {
  std::vector<T> values(n);
  fill(values.data(), dtype_of<T>, n);
  std::vector<double> out(n);
  for (int64_t idx = 0; idx < n; ++idx) {
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
      out[idx] = to_float(values[idx]);
    } else {
      out[idx] = static_cast<double>(values[idx]);
    }
  }
  return out;
}
void check_moments(int64_t n, const std::function<void(void*, DType, int64_t)>& fill, double mean, double deviation,
                   double low, double high, double half_tolerance = 0.02) {
  const std::vector<double> all[] = {draw<float>(n, fill), draw<double>(n, fill), draw<Float16>(n, fill),
                                     draw<BFloat16>(n, fill)};
  for (int kind = 0; kind < 4; ++kind) {
    const Statistics s = statistics(all[kind]);
    const double tolerance = kind < 2 ? 5 * deviation / std::sqrt(static_cast<double>(n)) : half_tolerance;
    EXPECT_NEAR(s.mean, mean, tolerance) << kind;
    EXPECT_NEAR(s.deviation, deviation, tolerance * 1.5) << kind;
    EXPECT_GE(s.least, low) << kind;
    EXPECT_LE(s.most, high) << kind;
  }
}

TEST(KernelsRandom, Moments) {
  const int64_t n = 300000;
  check_moments(
      n, [](void* out, DType dtype, int64_t k) { random_uniform(out, dtype, k, -1, 3, stream); }, 1.0,
      4 / std::sqrt(12.0), -1, 3);
  check_moments(
      n, [](void* out, DType dtype, int64_t k) { random_normal(out, dtype, k, -1, 0.5, stream); }, -1.0, 0.5, -5, 3);
  check_moments(
      n, [](void* out, DType dtype, int64_t k) { random_truncated_normal(out, dtype, k, 0, 1, -2, 2, stream); }, 0.0,
      0.8796, -2, 2);
  check_moments(
      n, [](void* out, DType dtype, int64_t k) { random_truncated_normal(out, dtype, k, 1, 2, 0.5, 3, stream); },
      1 + 2 * (0.3520653 - 0.0044318) / (0.9986501 - 0.6914625), 2 * 0.5004, 1.999, 7);
  check_moments(
      n, [](void* out, DType dtype, int64_t k) { random_exponential(out, dtype, k, 2.0, stream); }, 0.5, 0.5, 0, 20);
}

TEST(KernelsRandom, TruncatedNormalIsTheInverse) {
  const int64_t n = 10000;
  std::vector<float> x(n);
  random_truncated_normal(x.data(), DType::Float32, n, 0, 1, -4, 4, stream);
  for (int64_t idx = 0; idx < n; ++idx) {
    const double u = (word_of(stream, idx) + 0.5) * 0x1p-32, cdf = 0.5 * std::erf(x[idx] / std::sqrt(2.0));
    ASSERT_NEAR(cdf, (u - 0.5) * std::erf(4 / std::sqrt(2.0)), 2e-7);
  }
}

TEST(KernelsRandom, BernoulliAndDropout) {
  const int64_t n = 100003;
  for (const double p : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    std::vector<uint8_t> bytes(n);
    std::vector<float> floats(n), input(n), out(n);
    std::vector<double> wide_input(n, 2.0), wide_out(n);
    std::vector<char> mask(n), wide_mask(n);
    for (int64_t idx = 0; idx < n; ++idx) input[idx] = static_cast<float>(idx + 1);
    random_bernoulli(bytes.data(), DType::UInt8, n, p, stream);
    random_bernoulli(floats.data(), DType::Float32, n, p, stream);
    dropout(out.data(), reinterpret_cast<bool*>(mask.data()), input.data(), DType::Float32, n, p, stream);
    dropout(wide_out.data(), reinterpret_cast<bool*>(wide_mask.data()), wide_input.data(), DType::Float64, n, p,
            stream);
    int64_t ones = 0;
    for (int64_t idx = 0; idx < n; ++idx) {
      const bool wanted = word_of(stream, idx) < p * 0x1p32;
      ASSERT_EQ(bytes[idx], wanted);
      ASSERT_EQ(floats[idx], wanted);
      ASSERT_EQ(mask[idx], wanted);
      ASSERT_EQ(wide_mask[idx], wanted);
      ASSERT_EQ(out[idx], wanted ? input[idx] * static_cast<float>(1 / p) : 0.0f);
      ASSERT_EQ(wide_out[idx], wanted ? 2.0 * (1 / p) : 0.0);
      ones += wanted;
    }
    EXPECT_NEAR(static_cast<double>(ones) / n, p, 0.01);
    std::vector<Float16> half_input(n, to_float16(1.5f)), half_out(n);
    dropout(half_out.data(), nullptr, half_input.data(), DType::Float16, n, p, stream);
    for (int64_t idx = 0; idx < n; ++idx) ASSERT_EQ(to_float(half_out[idx]) != 0, mask[idx] != 0);
  }
  std::vector<float> probabilities(1000);
  std::vector<int32_t> choices(1000);
  for (int idx = 0; idx < 1000; ++idx) probabilities[idx] = static_cast<float>(idx) / 999.0f;
  random_bernoulli(choices.data(), DType::Int32, 1000, probabilities.data(), stream);
  for (int idx = 0; idx < 1000; ++idx)
    EXPECT_EQ(choices[idx], (word_of(stream, idx) >> 8) * 0x1p-24 < probabilities[idx]);
}

TEST(KernelsRandom, IntegersAndPermutations) {
  std::vector<int32_t> dice(60000);
  random_integers(dice.data(), DType::Int32, 60000, -2, 4, stream);
  std::vector<int> counts(6);
  for (const int32_t value : dice) {
    ASSERT_TRUE(value >= -2 && value < 4);
    ++counts[value + 2];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
  std::vector<int64_t> wide(1000);
  random_integers(wide.data(), DType::Int64, 1000, INT64_MIN, INT64_MAX, stream);
  EXPECT_TRUE(std::any_of(wide.begin(), wide.end(), [](int64_t x) { return x < -(int64_t{1} << 61); }));
  EXPECT_TRUE(std::any_of(wide.begin(), wide.end(), [](int64_t x) { return x > int64_t{1} << 61; }));
  std::vector<int64_t> order(5000), sorted(5000);
  random_permutation(order.data(), DType::Int64, 5000, stream);
  sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> identity(5000);
  std::iota(identity.begin(), identity.end(), 0);
  EXPECT_EQ(sorted, identity);
  EXPECT_NE(order, identity);
  std::vector<int32_t> narrow(5000);
  random_permutation(narrow.data(), DType::Int32, 5000, stream);
  EXPECT_TRUE(std::equal(narrow.begin(), narrow.end(), order.begin()));
  // all 6 orders of 3 are about equally likely
  std::vector<int> seen(27);
  for (uint64_t offset = 0; offset < 6000; ++offset) {
    int64_t p[3];
    random_permutation(p, DType::Int64, 3, {1, offset, 0});
    ++seen[p[0] * 9 + p[1] * 3 + p[2]];
  }
  for (const int index : {5, 7, 11, 15, 19, 21}) EXPECT_NEAR(seen[index], 1000, 150);
}

TEST(KernelsRandom, SameBitsForAnyThreadCountAndSharding) {
  const int before = num_threads();
  const int64_t n = 100000;
  using Fill = std::function<void(float*, int64_t, const RandomStream&)>;
  const std::vector<float> ones(n, 1.0f);
  const Fill fills[] = {
      [](float* out, int64_t k, const RandomStream& s) { random_uniform(out, DType::Float32, k, -1, 1, s); },
      [](float* out, int64_t k, const RandomStream& s) { random_normal(out, DType::Float32, k, 0, 1, s); },
      [](float* out, int64_t k, const RandomStream& s) {
        random_truncated_normal(out, DType::Float32, k, 0, 1, -2, 2, s);
      },
      [](float* out, int64_t k, const RandomStream& s) { random_exponential(out, DType::Float32, k, 1, s); },
      [&](float* out, int64_t k, const RandomStream& s) {
        dropout(out, nullptr, ones.data(), DType::Float32, k, 0.7, s);
      },
  };
  for (const Fill& fill : fills) {
    std::vector<float> whole(n), parts(n);
    set_num_threads(1);
    fill(whole.data(), n, stream);
    set_num_threads(3);
    for (int64_t begin = 0, size = 1; begin < n; begin += size, size = size * 3 + 1) {
      fill(parts.data() + begin, std::min(size, n - begin), {stream.seed, stream.offset, begin});
    }
    EXPECT_EQ(whole, parts);
  }
  set_num_threads(before);
}

TEST(KernelsRandom, Errors) {
  float x;
  EXPECT_THROW(random_uniform(&x, DType::Int32, 1, 0, 1, stream), Error);
  EXPECT_THROW(random_integers(&x, DType::Int32, 1, 3, 3, stream), Error);
  EXPECT_THROW(random_bernoulli(&x, DType::Float32, 1, 1.5, stream), Error);
  EXPECT_THROW(dropout(&x, nullptr, &x, DType::Float32, 1, -0.1, stream), Error);
  EXPECT_THROW(random_truncated_normal(&x, DType::Float32, 1, 0, 1, 2, 1, stream), Error);
  random_normal(nullptr, DType::Float32, 0, 0, 1, stream);
}

}  // namespace
}  // namespace morel::kernels
