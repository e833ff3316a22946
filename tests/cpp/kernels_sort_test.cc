// Sorting, selection and search against the standard library on wide copies.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/sort.h"

namespace morel::kernels {
namespace {

template <class T>
double wide(const T& value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return to_float(value);
  } else {
    return static_cast<double>(value);
  }
}
template <class T>
T number(double value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}
// NaN after all numbers.
bool less(double x, double y) { return std::isnan(y) ? !std::isnan(x) : x < y; }

template <class T>
std::vector<T> random_values(int64_t n, uint32_t seed, int distinct) {
  std::mt19937 random(seed);
  std::vector<T> values(n);
  for (T& value : values) {
    const int draw = static_cast<int>(random() % distinct);
    double x = is_float(dtype_of<T>) ? (draw - distinct / 2) * 0.25 : std::is_signed_v<T> ? draw - distinct / 2 : draw;
    if (is_float(dtype_of<T>)) {
      const uint32_t special = random() % 40;
      if (special == 0) x = std::nan("");
      if (special == 1) x = std::numeric_limits<double>::infinity();
      if (special == 2) x = -std::numeric_limits<double>::infinity();
      if (special == 3) x = -0.0;
      if (special == 4) x = -std::nan("");
    }
    value = number<T>(x);
  }
  return values;
}

template <class T>
void check_sort_and_topk(int64_t outer, int64_t n, int64_t inner, int distinct) {
  const SortShape shape{dtype_of<T>, outer, n, inner};
  const std::vector<T> input = random_values<T>(outer * n * inner, 3, distinct);
  for (const bool descending : {false, true}) {
    std::vector<T> values(input.size()), best;
    std::vector<int64_t> indices(input.size()), best_indices;
    sort(input.data(), shape, descending, values.data(), indices.data());
    const int64_t k = std::min<int64_t>(n, n > 1000 ? 5 : n / 2 + 1);
    best.resize(outer * k * inner);
    best_indices.resize(best.size());
    topk(input.data(), shape, k, descending, best.data(), best_indices.data());
    for (int64_t line = 0; line < outer * inner; ++line) {
      const int64_t start = line / inner * n * inner + line % inner;
      std::vector<int64_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
        const double a = wide(input[start + x * inner]), b = wide(input[start + y * inner]);
        return descending ? less(b, a) : less(a, b);
      });
      for (int64_t idx = 0; idx < n; ++idx) {
        ASSERT_EQ(indices[start + idx * inner], order[idx]) << info(dtype_of<T>).name << " n " << n << " at " << idx;
        ASSERT_EQ(std::memcmp(&values[start + idx * inner], &input[start + order[idx] * inner], sizeof(T)), 0);
      }
      const int64_t best_start = line / inner * k * inner + line % inner;
      for (int64_t idx = 0; idx < k; ++idx) {
        ASSERT_EQ(best_indices[best_start + idx * inner], order[idx]);
        ASSERT_EQ(std::memcmp(&best[best_start + idx * inner], &input[start + order[idx] * inner], sizeof(T)), 0);
      }
    }
  }
}

template <class T>
void check_dtype() {
  check_sort_and_topk<T>(3, 1, 2, 5);
  check_sort_and_topk<T>(4, 37, 1, 20);
  check_sort_and_topk<T>(2, 300, 5, 100);
  check_sort_and_topk<T>(1, 5000, 1, 100);
  check_sort_and_topk<T>(1, 700, 3, 1);
}

TEST(KernelsSort, SortAndTopkOfEveryRealType) {
  check_dtype<int8_t>();
  check_dtype<int16_t>();
  check_dtype<int32_t>();
  check_dtype<int64_t>();
  check_dtype<uint8_t>();
  check_dtype<uint16_t>();
  check_dtype<uint32_t>();
  check_dtype<uint64_t>();
  check_dtype<Float16>();
  check_dtype<BFloat16>();
  check_dtype<float>();
  check_dtype<double>();
}

TEST(KernelsSort, Bool) {
  const bool input[] = {true, false, true, false};
  bool values[4];
  int64_t indices[4];
  sort(input, {DType::Bool, 1, 4, 1}, true, values, indices);
  const int64_t wanted[] = {0, 2, 1, 3};
  for (int idx = 0; idx < 4; ++idx) {
    EXPECT_EQ(indices[idx], wanted[idx]);
    EXPECT_EQ(values[idx], idx < 2);
  }
}

TEST(KernelsSort, LongLinesAreMergedTheSameForAnyThreadCount) {
  const int before = num_threads();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    check_sort_and_topk<float>(1, 131072, 1, 1000);
    check_sort_and_topk<float>(1, 300001, 1, 100000);
    check_sort_and_topk<int64_t>(2, 200000, 1, 1000000);
  }
  set_num_threads(before);
}

TEST(KernelsSort, Unique) {
  const std::vector<float> input{3, 1, std::nanf(""), 3, -0.0f, 1, 0.0f, std::nanf(""), 2};
  const Distinct sorted = unique(input.data(), DType::Float32, 9, DistinctOrder::Sorted);
  EXPECT_EQ(sorted.firsts, (std::vector<int64_t>{4, 1, 8, 0, 2}));
  EXPECT_EQ(sorted.inverse, (std::vector<int64_t>{3, 1, 4, 3, 0, 1, 0, 4, 2}));
  EXPECT_EQ(sorted.counts, (std::vector<int64_t>{2, 2, 1, 2, 2}));
  const Distinct seen = unique(input.data(), DType::Float32, 9, DistinctOrder::FirstSeen);
  EXPECT_EQ(seen.firsts, (std::vector<int64_t>{0, 1, 2, 4, 8}));
  EXPECT_EQ(seen.inverse, (std::vector<int64_t>{0, 1, 2, 0, 3, 1, 3, 2, 4}));
  EXPECT_EQ(seen.counts, (std::vector<int64_t>{2, 2, 2, 2, 1}));
  const std::vector<int64_t> runs{5, 5, 1, 5, 5, 5};
  const Distinct consecutive = unique_consecutive(runs.data(), DType::Int64, 6);
  EXPECT_EQ(consecutive.firsts, (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(consecutive.inverse, (std::vector<int64_t>{0, 0, 1, 2, 2, 2}));
  EXPECT_EQ(consecutive.counts, (std::vector<int64_t>{2, 1, 3}));
  EXPECT_TRUE(unique(nullptr, DType::Int32, 0, DistinctOrder::Sorted).firsts.empty());
}

TEST(KernelsSort, Searchsorted) {
  std::mt19937 random(4);
  for (const int64_t n : {0, 1, 2, 7, 100}) {
    const int64_t outer = 3, m = 50;
    for (const bool is_shared : {false, true}) {
      std::vector<double> sequences((is_shared ? 1 : outer) * n), values(outer * m), shuffled;
      for (double& x : sequences) x = static_cast<double>(random() % 30);
      for (double& x : values) x = static_cast<double>(random() % 32) - 1;
      values[3] = std::nan("");
      std::vector<int64_t> sorter(sequences.size()), out(outer * m), by_sorter(outer * m);
      const int64_t rows = is_shared ? 1 : outer;
      sort(sequences.data(), {DType::Float64, rows, n, 1}, false, nullptr, sorter.data());
      shuffled = sequences;
      for (int64_t row = 0; row < rows; ++row)
        std::sort(sequences.begin() + row * n, sequences.begin() + (row + 1) * n);
      for (const bool right : {false, true}) {
        const SearchShape shape{DType::Float64, outer, n, m, is_shared};
        searchsorted(sequences.data(), values.data(), shape, right, nullptr, out.data());
        searchsorted(shuffled.data(), values.data(), shape, right, sorter.data(), by_sorter.data());
        EXPECT_EQ(out, by_sorter);
        for (int64_t idx = 0; idx < outer * m; ++idx) {
          const auto first = sequences.begin() + (is_shared ? 0 : idx / m * n);
          const auto place = right ? std::upper_bound(first, first + n, values[idx], less)
                                   : std::lower_bound(first, first + n, values[idx], less);
          ASSERT_EQ(out[idx], place - first);
        }
      }
    }
  }
  const int64_t bad = 5;
  const float one = 1;
  int64_t out;
  EXPECT_THROW(searchsorted(&one, &one, {DType::Float32, 1, 1, 1, true}, false, &bad, &out), Error);
}

TEST(KernelsSort, Errors) {
  float x = 1;
  int64_t index;
  EXPECT_THROW(topk(&x, {DType::Float32, 1, 1, 1}, 2, true, &x, &index), Error);
  EXPECT_THROW(sort(&x, {DType::Complex64, 1, 1, 1}, true, &x, &index), Error);
}

}  // namespace
}  // namespace morel::kernels
