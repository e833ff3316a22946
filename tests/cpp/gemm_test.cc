#include "morel/kernels/gemm.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/gemm_block.h"

namespace morel {
namespace {

using Wide = std::complex<double>;

Wide to_wide(const void* data, DType dtype, int64_t idx) {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) -> Wide {
    const T value = static_cast<const T*>(data)[idx];
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
      return to_float(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<double>(value);
    } else {
      return Wide(value.real(), value.imag());
    }
  });
}

void from_wide(Wide value, void* data, DType dtype, int64_t idx) {
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    T& target = static_cast<T*>(data)[idx];
    if constexpr (std::is_same_v<T, Float16>) {
      target = to_float16(static_cast<float>(value.real()));
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      target = to_bfloat16(static_cast<float>(value.real()));
    } else if constexpr (std::is_same_v<T, bool>) {
      target = value.real() != 0;
    } else if constexpr (std::is_integral_v<T>) {
      target = static_cast<T>(static_cast<int64_t>(value.real()));
    } else if constexpr (std::is_floating_point_v<T>) {
      target = static_cast<T>(value.real());
    } else {
      target = T(static_cast<typename T::value_type>(value.real()), static_cast<typename T::value_type>(value.imag()));
    }
  });
}

struct Buffer {
  DType dtype;
  std::vector<std::byte> bytes;

  Buffer(DType type, int64_t count, uint32_t seed) : dtype(type), bytes(std::max<int64_t>(count, 1) * size_of(type)) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<double> real(-1, 1);
    std::uniform_int_distribution<int> integer(info(type).kind == DTypeKind::Int ? -5 : 0, 5);
    for (int64_t idx = 0; idx < count; ++idx) {
      const bool floating = is_float(type) || is_complex(type);
      from_wide(floating ? Wide(real(engine), real(engine)) : Wide(integer(engine)), bytes.data(), type, idx);
    }
  }
  Wide operator[](int64_t idx) const { return to_wide(bytes.data(), dtype, idx); }
};

// rows x cols elements, or those of the transposed matrix, as row-major planes.
struct Planes {
  std::vector<double> real, imaginary;
  Planes(const Buffer& buffer, int64_t rows, int64_t cols, bool transposed)
      : real(rows * cols), imaginary(rows * cols) {
    for (int64_t idx = 0; idx < rows * cols; ++idx) {
      const Wide value = buffer[transposed ? idx % cols * rows + idx / cols : idx];
      real[idx] = value.real();
      imaginary[idx] = value.imag();
    }
  }
};

// Sum and sum of magnitudes of the products of n elements.
std::pair<double, double> dot(const double* x, const double* y, int64_t n) {
  double sum = 0, size = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += x[i] * y[i];
    size += std::abs(x[i] * y[i]);
  }
  return {sum, size};
}

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::Float16: return 2e-3;
    case DType::BFloat16: return 1e-2;
    case DType::Float32:
    case DType::Complex64: return 3e-6;
    case DType::Float64:
    case DType::Complex128: return 1e-14;
    default: return 0;
  }
}

struct Case {
  DType dtype = DType::Float32;
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  bool bias = false, relu = false;
};

// Multiplies with NaN where C is not to be read, and compares with sums in float64.
void check(const Case& c) {
  SCOPED_TRACE(testing::Message() << info(c.dtype).name << " " << c.m << "x" << c.n << "x" << c.k << " ta "
                                  << c.transpose_a << " tb " << c.transpose_b << " alpha " << c.alpha << " beta "
                                  << c.beta << " bias " << c.bias);
  const Buffer a(c.dtype, c.m * c.k, 1), b(c.dtype, c.k * c.n, 2), bias(c.dtype, c.n, 3);
  Buffer out(c.dtype, c.m * c.n, 4);
  const Buffer before = out;
  if (c.beta == 0) std::memset(out.bytes.data(), 0xff, out.bytes.size());
  Gemm problem = Gemm::contiguous(c.dtype, c.m, c.n, c.k, a.bytes.data(), c.transpose_a, b.bytes.data(), c.transpose_b,
                                  out.bytes.data());
  problem.alpha = c.alpha;
  problem.beta = c.beta;
  problem.bias = c.bias ? bias.bytes.data() : nullptr;
  problem.activation = c.relu ? GemmActivation::Relu : GemmActivation::None;
  gemm(problem);
  const Planes left(a, c.m, c.k, c.transpose_a), right(b, c.n, c.k, !c.transpose_b);
  int wrong = 0;
  for (int64_t i = 0; i < c.m && wrong < 3; ++i) {
    for (int64_t j = 0; j < c.n && wrong < 3; ++j) {
      const double *left_real = left.real.data() + i * c.k, *right_real = right.real.data() + j * c.k;
      const double *left_imaginary = left.imaginary.data() + i * c.k,
                   *right_imaginary = right.imaginary.data() + j * c.k;
      const auto [sum_real, size_real] = dot(left_real, right_real, c.k);
      Wide sum = sum_real;
      double size = 1 + size_real;
      if (is_complex(c.dtype)) {
        const auto [minus, size_minus] = dot(left_imaginary, right_imaginary, c.k);
        const auto [first, size_first] = dot(left_real, right_imaginary, c.k);
        const auto [second, size_second] = dot(left_imaginary, right_real, c.k);
        sum = Wide(sum_real - minus, first + second);
        size += size_minus + size_first + size_second;
      }
      Wide expected =
          c.alpha * sum + c.beta * (c.beta == 0 ? Wide(0) : before[i * c.n + j]) + (c.bias ? bias[j] : Wide(0));
      if (c.relu && expected.real() < 0) expected = 0;
      if (c.dtype == DType::Bool) expected = expected.real() != 0;
      if (!is_float(c.dtype) && !is_complex(c.dtype)) {  // wraps as the type does
        Buffer wrapped(c.dtype, 1, 0);
        from_wide(expected, wrapped.bytes.data(), c.dtype, 0);
        expected = wrapped[0];
      }
      const double error = std::abs(out[i * c.n + j] - expected);
      const double rounding = is_half(c.dtype) ? std::abs(expected) + 1e-2 * size : size;
      if (!(error <= tolerance(c.dtype) * rounding)) {
        ++wrong;
        ADD_FAILURE() << "at " << i << ", " << j << ": " << out[i * c.n + j] << " instead of " << expected;
      }
    }
  }
}

const DType all_dtypes[] = {DType::Bool,     DType::Int8,    DType::Int16,   DType::Int32,     DType::Int64,
                            DType::UInt8,    DType::UInt16,  DType::UInt32,  DType::UInt64,    DType::Float16,
                            DType::BFloat16, DType::Float32, DType::Float64, DType::Complex64, DType::Complex128};

TEST(GemmTest, SmallShapes) {
  for (int64_t m : {1, 2, 5, 8, 9, 17}) {
    for (int64_t n : {1, 3, 16, 33, 49, 100}) {
      for (int64_t k : {0, 1, 2, 7, 64, 70}) {
        for (int transposes = 0; transposes < 4; ++transposes) {
          check({.m = m, .n = n, .k = k, .transpose_a = (transposes & 1) != 0, .transpose_b = (transposes & 2) != 0});
        }
      }
    }
  }
}

TEST(GemmTest, AllDtypes) {
  for (DType dtype : all_dtypes) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      const bool ta = transposes & 1, tb = transposes & 2;
      check({dtype, 7, 21, 19, ta, tb});
      check({dtype, 60, 50, 130, ta, tb, 1, 0, true});
      check({dtype, 1, 50, 33, ta, tb});
      check({dtype, 50, 1, 33, ta, tb});
      check({dtype, 9, 17, 1100, ta, tb, 2, 3, true});
    }
  }
}

TEST(GemmTest, ScalesBiasAndActivation) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::BFloat16}) {
    for (double beta : {0.0, 1.0, -0.5}) {
      for (bool bias : {false, true}) {
        for (int64_t m : {1, 3, 40}) {
          check({dtype, m, 37, 300, false, false, 0.75, beta, bias, false});
          check({dtype, m, 37, 300, false, true, 0.75, beta, bias, true});
        }
      }
    }
  }
}

TEST(GemmTest, LargeEnoughForSeveralTasks) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Complex64}) {
    check({dtype, 203, 410, 130});
    check({dtype, 203, 410, 130, true, true, 1, 0, true});
    check({dtype, 203, 410, 130, true, true, 1, 1, true});
  }
  for (int transposes = 0; transposes < 4; ++transposes) {
    check({DType::Float32, 530, 520, 290, (transposes & 1) != 0, (transposes & 2) != 0, 0.5, 2, true, true});
  }
}

TEST(GemmTest, FewRowsAndALargeMatrix) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    for (int64_t m : {1, 2, 3, 5, 8, 16}) {
      check({dtype, m, 531, 537, false, false, 1, 0, true});
      check({dtype, m, 531, 537, false, true, 0.5, 1});
      check({dtype, m, 531, 537, true, true, 1, 0, false, true});
    }
    check({dtype, 531, 1, 1037, false, false});
    check({dtype, 531, 1, 1037, true, false});
  }
}

TEST(GemmTest, FreeStridesOfEveryMatrix) {
  constexpr int64_t m = 13, n = 18, k = 11;
  for (DType dtype : {DType::Float32, DType::Float16, DType::Int16, DType::Complex64}) {
    for (bool column_major : {false, true}) {
      const Buffer a(dtype, m * k * 6, 1), b(dtype, k * n * 6, 2);
      Buffer c(dtype, m * n * 6, 3);
      const Buffer before = c;
      Gemm problem;
      problem.dtype = dtype;
      problem.m = m;
      problem.n = n;
      problem.k = k;
      problem.a = a.bytes.data();
      problem.a_row = 3 * k;
      problem.a_col = 2;
      problem.b = b.bytes.data();
      problem.b_row = 2;
      problem.b_col = 3 * k;
      problem.c = c.bytes.data();
      problem.c_row = column_major ? 1 : 3 * n;
      problem.c_col = column_major ? m + 2 : 2;
      problem.beta = 1;
      gemm(problem);
      Buffer expected = before;
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const int64_t place = i * problem.c_row + j * problem.c_col;
          Wide sum = before[place];
          for (int64_t p = 0; p < k; ++p) sum += a[i * 3 * k + 2 * p] * b[2 * p + j * 3 * k];
          from_wide(sum, expected.bytes.data(), dtype, place);
        }
      }
      for (int64_t idx = 0; idx < m * n * 6; ++idx) {
        ASSERT_LE(std::abs(c[idx] - expected[idx]), 20 * tolerance(dtype)) << info(dtype).name << " at " << idx;
      }
    }
  }
}

TEST(GemmTest, BatchesWithBroadcasting) {
  constexpr int64_t m = 6, n = 10, k = 8;
  const Buffer a(DType::Float32, 3 * 4 * m * k, 1), b(DType::Float32, 4 * k * n, 2);
  for (int broadcast = 0; broadcast < 3; ++broadcast) {
    Buffer c(DType::Float32, 3 * 4 * m * n, 3);
    Gemm problem =
        Gemm::contiguous(DType::Float32, m, n, k, a.bytes.data(), false, b.bytes.data(), false, c.bytes.data());
    // 0: B per inner item; 1: one B for all; 2: A the same for all outer items
    problem.batch = {{3, broadcast == 2 ? 0 : 4 * m * k, 0, 4 * m * n}, {4, m * k, broadcast == 1 ? 0 : k * n, m * n}};
    gemm(problem);
    for (int64_t outer = 0; outer < 3; ++outer) {
      for (int64_t inner = 0; inner < 4; ++inner) {
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            Wide sum = 0;
            for (int64_t p = 0; p < k; ++p) {
              sum += a[(broadcast == 2 ? 0 : outer * 4 * m * k) + inner * m * k + i * k + p] *
                     b[(broadcast == 1 ? 0 : inner * k * n) + p * n + j];
            }
            ASSERT_NEAR(std::abs(c[((outer * 4 + inner) * m + i) * n + j] - sum), 0, 1e-5) << broadcast;
          }
        }
      }
    }
  }
}

TEST(GemmTest, EmptyAndRefused) {
  float c[4] = {1, 2, 3, 4};
  Gemm problem = Gemm::contiguous(DType::Float32, 0, 4, 3, nullptr, false, nullptr, false, c);
  gemm(problem);
  problem = Gemm::contiguous(DType::Float32, 2, 2, 0, nullptr, false, nullptr, false, c);
  problem.beta = 2;
  gemm(problem);
  EXPECT_EQ(c[3], 8);
  problem.batch = {{0, 0, 0, 0}};
  gemm(problem);
  EXPECT_EQ(c[3], 8);
  problem.dtype = DType::Int32;
  problem.activation = GemmActivation::Relu;
  EXPECT_THROW(gemm(problem), Error);
}

TEST(GemmTest, NanAndInfinityPassThrough) {
  for (int64_t m : {1, 4, 20}) {
    std::vector<float> a(m * 30, 1.0f), b(30 * 40, 1.0f), c(m * 40);
    a[3] = std::nanf("");
    b[5] = INFINITY;
    Gemm problem = Gemm::contiguous(DType::Float32, m, 40, 30, a.data(), false, b.data(), false, c.data());
    problem.activation = GemmActivation::Relu;
    gemm(problem);
    EXPECT_TRUE(std::isnan(c[0]));
    EXPECT_TRUE(std::isnan(c[39]));
    if (m == 1) continue;
    EXPECT_TRUE(std::isinf(c[40 + 5]));
    EXPECT_EQ(c[40 + 6], 30.0f);
  }
}

TEST(GemmTest, SameBitsForAnyNumberOfThreads) {
  struct Sizes {
    int64_t m, n, k, batch;
  };
  for (const Sizes& s :
       {Sizes{300, 500, 200, 1}, Sizes{4, 2048, 1024, 1}, Sizes{64, 64, 64, 50}, Sizes{40, 700, 900, 3}}) {
    const Buffer a(DType::Float32, s.batch * s.m * s.k, 1), b(DType::Float32, s.batch * s.k * s.n, 2);
    std::vector<std::vector<std::byte>> results;
    for (int threads : {1, 2, 3}) {
      set_num_threads(threads);
      Buffer c(DType::Float32, s.batch * s.m * s.n, 3);
      Gemm problem =
          Gemm::contiguous(DType::Float32, s.m, s.n, s.k, a.bytes.data(), false, b.bytes.data(), true, c.bytes.data());
      problem.batch = {{s.batch, s.m * s.k, s.k * s.n, s.m * s.n}};
      gemm(problem);
      results.push_back(c.bytes);
    }
    set_num_threads(1);
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

}  // namespace
}  // namespace morel
