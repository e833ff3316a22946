// Running sums, products and extrema against plain loops.
#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/scan.h"

namespace morel::kernels {
namespace {

template <class T>
std::vector<T> random_values(int64_t n) {
  std::mt19937 random(8);
  std::vector<T> values(n);
  for (T& value : values) value = static_cast<T>(static_cast<double>(random() % 7) - 3.0);
  return values;
}

template <class T>
void check_sums(int64_t outer, int64_t n, int64_t inner) {
  const ScanShape shape{dtype_of<T>, outer, n, inner};
  const std::vector<T> input = random_values<T>(outer * n * inner);
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      std::vector<T> sums(input.size()), products = input;
      cumsum(sums.data(), input.data(), shape, {exclusive, reverse});
      cumprod(products.data(), products.data(), shape, {exclusive, reverse});
      for (int64_t line = 0; line < outer * inner; ++line) {
        T sum(0), product(1);
        for (int64_t step = 0; step < n; ++step) {
          const int64_t place = line / inner * n * inner + line % inner + (reverse ? n - 1 - step : step) * inner;
          const T next_sum = static_cast<T>(sum + input[place]), next_product = static_cast<T>(product * input[place]);
          ASSERT_EQ(sums[place], exclusive ? sum : next_sum);
          if (n < 20) {
            ASSERT_EQ(products[place], exclusive ? product : next_product);
          }
          sum = next_sum;
          product = next_product;
        }
      }
    }
  }
}

TEST(KernelsScan, SumsAndProducts) {
  for (const auto& [outer, n, inner] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {3, 17, 1}, {2, 15, 200}, {2, 0, 3}, {1, 100000, 1}, {2, 40000, 3}}) {
    check_sums<float>(outer, n, inner);
    check_sums<double>(outer, n, inner);
    check_sums<int32_t>(outer, n, inner);
    check_sums<uint8_t>(outer, n, inner);
    check_sums<std::complex<float>>(outer, n, inner);
  }
}

TEST(KernelsScan, RoundsOncePerElement) {
  const int64_t n = 50000;
  const std::vector<float> input(n, 0.1f);
  std::vector<float> out(n);
  cumsum(out.data(), input.data(), {DType::Float32, 1, n, 1}, {});
  for (int64_t idx = 0; idx < n; ++idx)
    ASSERT_NEAR(out[idx], 0.1f * static_cast<double>(idx + 1), 1e-7 * static_cast<double>(idx + 1));
  const std::vector<Float16> halves(4000, to_float16(0.25f));
  std::vector<Float16> sums(4000);
  cumsum(sums.data(), halves.data(), {DType::Float16, 1, 4000, 1}, {});
  EXPECT_EQ(to_float(sums[3999]), 1000.0f);
}

TEST(KernelsScan, SameBitsForAnyThreadCount) {
  const int before = num_threads();
  const int64_t n = 200000;
  std::vector<float> input(n), one(n), many(n);
  std::mt19937 random(2);
  for (float& x : input) x = static_cast<float>(random()) * 1e-9f - 2.0f;
  set_num_threads(1);
  cumsum(one.data(), input.data(), {DType::Float32, 1, n, 1}, {});
  set_num_threads(4);
  cumsum(many.data(), input.data(), {DType::Float32, 1, n, 1}, {});
  set_num_threads(before);
  EXPECT_EQ(one, many);
}

TEST(KernelsScan, Extrema) {
  const int64_t outer = 3, n = 50, inner = 4;
  const std::vector<double> input = random_values<double>(outer * n * inner);
  std::vector<double> values(input.size());
  std::vector<int64_t> indices(input.size());
  for (const bool is_max : {true, false}) {
    (is_max ? cummax : cummin)(values.data(), indices.data(), input.data(), {DType::Float64, outer, n, inner});
    for (int64_t line = 0; line < outer * inner; ++line) {
      const int64_t start = line / inner * n * inner + line % inner;
      int64_t best = 0;
      for (int64_t idx = 0; idx < n; ++idx) {
        const double x = input[start + idx * inner], top = input[start + best * inner];
        if (is_max ? x >= top : x <= top) best = idx;
        ASSERT_EQ(indices[start + idx * inner], best);
        ASSERT_EQ(values[start + idx * inner], input[start + best * inner]);
      }
    }
  }
  const float nan = std::nanf("");
  const std::vector<float> with_nan{1, nan, 5, nan, 7};
  std::vector<float> out(5);
  std::vector<int64_t> places(5);
  cummax(out.data(), places.data(), with_nan.data(), {DType::Float32, 1, 5, 1});
  EXPECT_EQ(places, (std::vector<int64_t>{0, 1, 1, 3, 3}));
  EXPECT_TRUE(out[0] == 1 && std::isnan(out[4]));
}

TEST(KernelsScan, Errors) {
  bool flag = true;
  std::complex<float> x;
  int64_t index;
  EXPECT_THROW(cumsum(&flag, &flag, {DType::Bool, 1, 1, 1}, {}), Error);
  EXPECT_THROW(cummax(&x, &index, &x, {DType::Complex64, 1, 1, 1}), Error);
}

}  // namespace
}  // namespace morel::kernels
