#include "morel/kernels/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/copy.h"

#define MOREL_SIMD_FILE "morel/kernels/random_simd.inc"
#include "morel/kernels/simd.h"

namespace morel::kernels {
namespace {

constexpr int64_t task_elements = 16384;
constexpr int64_t block_elements = 512;

void check_float(const char* name, DType dtype) {
  MOREL_CHECK(is_float(dtype), Type, "For '", name, "', the dtype must be a float type, but got ", info(dtype).name,
              ".");
}

// Calls value(index in the call, 64 random bits) for elements [begin, end): those of two words each.
template <class F>
void for_each_wide(int64_t begin, int64_t end, const RandomStream& stream, F&& value) {
  const auto make_words = MOREL_SIMD_CALL(words_run);
  uint32_t words[2 * block_elements];
  for (int64_t first = begin; first < end; first += block_elements) {
    const int64_t count = std::min(block_elements, end - first);
    make_words(words, 2 * (stream.first + first), 2 * (stream.first + first + count), stream);
    for (int64_t idx = 0; idx < count; ++idx) value(first + idx, words[2 * idx] | uint64_t{words[2 * idx + 1]} << 32);
  }
}

// 53 bits in [0, 1) and in (0, 1].
double unit_interval(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }
double positive_unit(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

template <class F>
void fill_doubles(void* out, int64_t n, const RandomStream& stream, F&& value) {
  double* to = static_cast<double*>(out);
  parallel_for(n, task_elements / 4, [&](int64_t begin, int64_t end) {
    for_each_wide(begin, end, stream, [&](int64_t idx, uint64_t bits) { to[idx] = value(bits); });
  });
}

// Newton's method on erf from a float32 start would need derivatives near 1; bisection is simple, exact and rare
// (float64 only).
double erfinv(double x) {
  double low = -6.0, high = 6.0;
  for (int step = 0; step < 80 && low < high; ++step) {
    const double middle = low + (high - low) / 2;
    (std::erf(middle) < x ? low : high) = middle;
  }
  return high;
}

// A probability as a threshold for 32 random bits.
struct Threshold {
  explicit Threshold(double probability)
      : value(static_cast<uint32_t>(std::min(std::nearbyint(probability * 0x1p32), 0x1p32 - 1))),
        always(probability * 0x1p32 >= 0x1p32 - 0.5) {}
  uint32_t value;
  bool always;
};

}  // namespace

void philox_block(uint64_t seed, uint64_t offset, uint64_t block, uint32_t words[4]) {
  uint32_t c[4] = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(offset),
                   static_cast<uint32_t>(offset >> 32)};
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0], p1 = uint64_t{0xCD9E8D57u} * c[2];
    c[0] = static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0;
    c[1] = static_cast<uint32_t>(p1);
    c[2] = static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1;
    c[3] = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  std::copy_n(c, 4, words);
}

void random_uniform(void* out, DType dtype, int64_t n, double low, double high, const RandomStream& stream) {
  check_float("uniform", dtype);
  if (dtype == DType::Float64) {
    const double top = high > low ? std::nextafter(high, low) : high;
    return fill_doubles(out, n, stream,
                        [=](uint64_t bits) { return std::min(low + unit_interval(bits) * (high - low), top); });
  }
  const auto run = MOREL_SIMD_CALL(uniform_any);
  parallel_for(n, task_elements, [&](int64_t begin, int64_t end) { run(out, dtype, begin, end, low, high, stream); });
}

void random_normal(void* out, DType dtype, int64_t n, double mean, double deviation, const RandomStream& stream) {
  check_float("normal", dtype);
  if (dtype != DType::Float64) {
    const auto run = MOREL_SIMD_CALL(normal_any);
    return parallel_for(n, task_elements,
                        [&](int64_t begin, int64_t end) { run(out, dtype, begin, end, mean, deviation, stream); });
  }
  // Elements 2j and 2j + 1 share block j.
  double* to = static_cast<double*>(out);
  parallel_for(n, task_elements / 4, [&](int64_t begin, int64_t end) {
    for (int64_t pair = (stream.first + begin) / 2; 2 * pair < stream.first + end; ++pair) {
      uint32_t words[4];
      philox_block(stream.seed, stream.offset, static_cast<uint64_t>(pair), words);
      const double radius = std::sqrt(-2.0 * std::log(positive_unit(words[0] | uint64_t{words[1]} << 32))) * deviation;
      const double angle = unit_interval(words[2] | uint64_t{words[3]} << 32) * (2.0 * M_PI);
      const int64_t first = 2 * pair - stream.first;
      if (first >= begin) to[first] = mean + radius * std::cos(angle);
      if (first + 1 >= begin && first + 1 < end) to[first + 1] = mean + radius * std::sin(angle);
    }
  });
}

void random_truncated_normal(void* out, DType dtype, int64_t n, double mean, double deviation, double low, double high,
                             const RandomStream& stream) {
  check_float("truncated_normal", dtype);
  MOREL_CHECK(low < high, Value, "For 'truncated_normal', the lower bound must be less than the upper one, but got ",
              low, " and ", high, ".");
  if (dtype == DType::Float64) {
    const double from = std::erf(low / std::sqrt(2.0)), to = std::erf(high / std::sqrt(2.0));
    return fill_doubles(out, n, stream, [=](uint64_t bits) {
      return mean +
             deviation * std::clamp(erfinv(from + positive_unit(bits) * (to - from)) * std::sqrt(2.0), low, high);
    });
  }
  const auto run = MOREL_SIMD_CALL(truncated_normal_any);
  parallel_for(n, task_elements,
               [&](int64_t begin, int64_t end) { run(out, dtype, begin, end, mean, deviation, low, high, stream); });
}

void random_exponential(void* out, DType dtype, int64_t n, double rate, const RandomStream& stream) {
  check_float("exponential", dtype);
  if (dtype == DType::Float64) {
    return fill_doubles(out, n, stream, [=](uint64_t bits) { return -std::log(positive_unit(bits)) / rate; });
  }
  const auto run = MOREL_SIMD_CALL(exponential_any);
  parallel_for(n, task_elements, [&](int64_t begin, int64_t end) { run(out, dtype, begin, end, rate, stream); });
}

namespace {

void bernoulli(void* out, DType dtype, int64_t n, const float* probabilities, const Threshold& threshold,
               const RandomStream& stream) {
  const auto run = MOREL_SIMD_CALL(bernoulli_run);
  const bool is_byte = size_of(dtype) == 1;  // 0 and 1 have the same bits in Bool, Int8 and UInt8
  parallel_for(n, task_elements, [&](int64_t begin, int64_t end) {
    if (is_byte) {
      return run(static_cast<uint8_t*>(out), probabilities, begin, end, threshold.value, threshold.always, stream);
    }
    uint8_t choices[block_elements];
    for (int64_t first = begin; first < end; first += block_elements) {
      const int64_t last = std::min(end, first + block_elements);
      const RandomStream shifted{stream.seed, stream.offset, stream.first + first};
      run(choices, probabilities ? probabilities + first : nullptr, 0, last - first, threshold.value, threshold.always,
          shifted);
      convert(static_cast<char*>(out) + first * size_of(dtype), dtype, choices, DType::UInt8, last - first);
    }
  });
}

}  // namespace

void random_bernoulli(void* out, DType dtype, int64_t n, double probability, const RandomStream& stream) {
  MOREL_CHECK(probability >= 0 && probability <= 1, Value,
              "For 'bernoulli', the probability must be in [0, 1], but got ", probability, ".");
  bernoulli(out, dtype, n, nullptr, Threshold(probability), stream);
}

void random_bernoulli(void* out, DType dtype, int64_t n, const float* probabilities, const RandomStream& stream) {
  if (n > 0) bernoulli(out, dtype, n, probabilities, Threshold(0), stream);
}

void random_integers(void* out, DType dtype, int64_t n, int64_t low, int64_t high, const RandomStream& stream) {
  MOREL_CHECK(is_integral(dtype), Type, "For 'randint', the dtype must be an integer type, but got ", info(dtype).name,
              ".");
  MOREL_CHECK(low < high, Value, "For 'randint', low must be less than high, but got ", low, " and ", high, ".");
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  parallel_for(n, task_elements, [&](int64_t begin, int64_t end) {
    int64_t values[block_elements];
    for (int64_t first = begin; first < end; first += block_elements) {
      const int64_t last = std::min(end, first + block_elements);
      // The upper half of bits * range: uniform up to 2^-64 * range.
      for_each_wide(first, last, stream, [&](int64_t idx, uint64_t bits) {
        const uint64_t value = static_cast<uint64_t>(static_cast<unsigned __int128>(bits) * range >> 64);
        values[idx - first] = static_cast<int64_t>(static_cast<uint64_t>(low) + value);
      });
      convert(static_cast<char*>(out) + first * size_of(dtype), dtype, values, DType::Int64, last - first);
    }
  });
}

void random_permutation(void* out, DType dtype, int64_t n, const RandomStream& stream) {
  MOREL_CHECK(dtype == DType::Int32 || dtype == DType::Int64, Type,
              "For 'randperm', the dtype must be Int32 or Int64, but got ", info(dtype).name, ".");
  const auto shuffle = [&](auto* values) {
    using I = std::remove_pointer_t<decltype(values)>;
    for (int64_t idx = 0; idx < n; ++idx) values[idx] = static_cast<I>(idx);
    for_each_wide(0, n, {stream.seed, stream.offset, 0}, [&](int64_t idx, uint64_t bits) {
      const uint64_t left = static_cast<uint64_t>(n - idx);
      std::swap(values[idx], values[idx + static_cast<int64_t>(static_cast<unsigned __int128>(bits) * left >> 64)]);
    });
  };
  dtype == DType::Int32 ? shuffle(static_cast<int32_t*>(out)) : shuffle(static_cast<int64_t*>(out));
}

void dropout(void* out, bool* mask, const void* input, DType dtype, int64_t n, double keep_probability,
             const RandomStream& stream) {
  check_float("dropout", dtype);
  MOREL_CHECK(keep_probability >= 0 && keep_probability <= 1, Value,
              "For 'dropout', the probability must be in [0, 1], but got ", 1 - keep_probability, ".");
  const Threshold threshold(keep_probability);
  const double scale = keep_probability > 0 ? 1 / keep_probability : 0;
  if (!is_compiled(DType::Float64) || dtype != DType::Float64) {
    const auto run = MOREL_SIMD_CALL(dropout_any);
    return parallel_for(n, task_elements, [&](int64_t begin, int64_t end) {
      run(out, mask, input, dtype, begin, end, threshold.value, threshold.always, scale, stream);
    });
  }
  const auto choose = MOREL_SIMD_CALL(bernoulli_run);
  parallel_for(n, task_elements, [&](int64_t begin, int64_t end) {
    uint8_t choices[block_elements];
    for (int64_t first = begin; first < end; first += block_elements) {
      const int64_t last = std::min(end, first + block_elements);
      const RandomStream shifted{stream.seed, stream.offset, stream.first + first};
      choose(choices, nullptr, 0, last - first, threshold.value, threshold.always, shifted);
      for (int64_t idx = first; idx < last; ++idx) {
        static_cast<double*>(out)[idx] = choices[idx - first] ? static_cast<const double*>(input)[idx] * scale : 0.0;
        if (mask) mask[idx] = choices[idx - first] != 0;
      }
    }
  });
}

}  // namespace morel::kernels
