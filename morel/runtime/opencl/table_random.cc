// Random numbers: Philox4x32-10, the same words for the same element as on the CPU (kernels/random.h).
#include <bit>
#include <cmath>

#include "morel/runtime/opencl/support.h"

namespace morel::opencl {
namespace {

constexpr const char* source = R"C(
/* Word `at` of the stream. */
MOREL_INLINE uint32_t random_word(uint64_t seed, uint64_t offset, int64_t at) {
  const uint64_t block = (uint64_t)at / 4;
  uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = (uint32_t)offset, c3 = (uint32_t)(offset >> 32);
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1, c3 = (uint32_t)p0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return at % 4 == 0 ? c0 : at % 4 == 1 ? c1 : at % 4 == 2 ? c2 : c3;
}
MOREL_INLINE uint64_t random_pair(uint64_t seed, uint64_t offset, int64_t at) {
  return random_word(seed, offset, at) | (uint64_t)random_word(seed, offset, at + 1) << 32;
}
KERNEL dropout(TENSOR(const T, x), TENSOR(T, y), const int64_t count, const uint64_t seed, const uint64_t offset,
               const uint32_t threshold, const int32_t always, const double scale) {
  const int64_t item = get_global_id(0);
  if (item >= count) return;
  const bool kept = always || random_word(seed, offset, item) < threshold;
  STORE(y + y_at + item, kept ? LOAD(x + x_at + item) * (A)scale : 0);
}
/* `bits` of each word; low + value * width, which never reaches the upper bound. */
KERNEL uniform(TENSOR(T, y), const int64_t count, const uint64_t seed, const uint64_t offset, const float low,
               const float width, const float top, const int32_t bits) {
  const int64_t item = get_global_id(0);
  if (item >= count) return;
  const float unit = (float)(int32_t)(random_word(seed, offset, item) >> (32 - bits)) * (1.0f / (float)(1 << bits));
  const float value = fma(unit, width, low);
  STORE(y + y_at + item, value < top ? value : top);
}
KERNEL uniform_wide(TENSOR(T, y), const int64_t count, const uint64_t seed, const uint64_t offset, const double low,
                    const double high, const double top) {
  const int64_t item = get_global_id(0);
  if (item >= count) return;
  const double value = low + (double)(random_pair(seed, offset, 2 * item) >> 11) * 0x1p-53 * (high - low);
  STORE(y + y_at + item, value < top ? value : top);
}
KERNEL bernoulli(TENSOR(const float, p), TENSOR(T, y), const int64_t count, const uint64_t seed, const uint64_t offset) {
  const int64_t item = get_global_id(0);
  if (item >= count) return;
  const float unit = (float)(int32_t)(random_word(seed, offset, item) >> 8) * 0x1p-24f;
  STORE(y + y_at + item, unit < p[p_at + item] ? 1 : 0);
}
/* Box and Muller's method: elements 2j and 2j + 1 share the words that their pair starts with. */
KERNEL normal(TENSOR(T, y), const int64_t count, const uint64_t seed, const uint64_t offset, const float mean,
              const float deviation) {
  const int64_t item = get_global_id(0);
  if (item >= count) return;
  const float radius_unit = fma((float)random_word(seed, offset, item & ~1L), 0x1p-32f, 0x1p-33f);
  const float turn = 2.0f * ((float)(int32_t)(random_word(seed, offset, item | 1L) >> 8) * 0x1p-24f);
  const float radius = sqrt(log(radius_unit) * -2.0f) * deviation;
  STORE(y + y_at + item, fma(radius, item & 1 ? sinpi(turn) : cospi(turn), mean));
}
KERNEL normal_wide(TENSOR(T, y), const int64_t count, const uint64_t seed, const uint64_t offset, const double mean,
                   const double deviation) {
  const int64_t item = get_global_id(0), first = item / 2 * 4;
  if (item >= count) return;
  const double radius_unit = ((double)(random_pair(seed, offset, first) >> 11) + 0.5) * 0x1p-53;
  const double turn = 2.0 * ((double)(random_pair(seed, offset, first + 2) >> 11) * 0x1p-53);
  const double radius = sqrt(-2.0 * log(radius_unit)) * deviation;
  STORE(y + y_at + item, mean + radius * (item & 1 ? sinpi(turn) : cospi(turn)));
}
/* The upper half of bits * range. */
KERNEL integers(TENSOR(T, y), const int64_t count, const uint64_t seed, const uint64_t offset, const int64_t low,
                const uint64_t range) {
  const int64_t item = get_global_id(0);
  if (item >= count) return;
  STORE(y + y_at + item, (T)(int64_t)((uint64_t)low + mul_hi(random_pair(seed, offset, 2 * item), range)));
}
)C";

struct Stream {
  uint64_t seed, offset;
};
Stream stream_of(const KernelCall& call, size_t arg) {
  const Ints& state = call.ints(arg);
  return {static_cast<uint64_t>(int64_t{state[0]}), static_cast<uint64_t>(int64_t{state[1]})};
}

// args: input, p, rng.
void dropout_mask(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor input = dense(call.tensor(0));
  const double keep = 1 - call.number(1);
  MOREL_CHECK(keep >= 0 && keep <= 1, Value, "For 'dropout', the probability must be in [0, 1], but got ", 1 - keep,
              ".");
  const auto threshold = static_cast<uint32_t>(std::min(std::nearbyint(keep * 0x1p32), 0x1p32 - 1));
  const int32_t always = keep * 0x1p32 >= 0x1p32 - 0.5;
  const Stream stream = stream_of(call, 2);
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, out.dtype(), "dropout"), out.size(), input, out, static_cast<int64_t>(out.size()),
                stream.seed, stream.offset, threshold, always, keep > 0 ? 1 / keep : 0.0);
}

// args: size, low, high, dtype, rng.
void random_uniform(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const double low = call.number(1), high = call.number(2);
  const Stream stream = stream_of(call, 4);
  const int64_t count = out.size();
  OpenClDevice& device = active_device();
  if (out.dtype() == DType::Float64) {
    const double top = high > low ? std::nextafter(high, low) : high;
    return device.launch(device.kernel(source, out.dtype(), "uniform_wide"), count, out, count, stream.seed,
                         stream.offset, low, high, top);
  }
  const auto start = static_cast<float>(low), end = static_cast<float>(high);
  const int32_t bits = out.dtype() == DType::Float16 ? 11 : out.dtype() == DType::BFloat16 ? 8 : 24;
  device.launch(device.kernel(source, out.dtype(), "uniform"), count, out, count, stream.seed, stream.offset, start,
                static_cast<float>(high - low), high > low ? std::nextafterf(end, start) : end, bits);
}

// args: size, mean, std, dtype, rng.
void random_normal(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const double mean = call.number(1), deviation = call.number(2);
  const Stream stream = stream_of(call, 4);
  const int64_t count = out.size();
  OpenClDevice& device = active_device();
  if (out.dtype() == DType::Float64)
    return device.launch(device.kernel(source, out.dtype(), "normal_wide"), count, out, count, stream.seed,
                         stream.offset, mean, deviation);
  device.launch(device.kernel(source, out.dtype(), "normal"), count, out, count, stream.seed, stream.offset,
                static_cast<float>(mean), static_cast<float>(deviation));
}

// args: size, low, high, dtype, rng.
void random_integers(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const int64_t low = call.integer(1), high = call.integer(2), count = out.size();
  MOREL_CHECK(low < high, Value, "For 'randint', low must be less than high, but got ", low, " and ", high, ".");
  const Stream stream = stream_of(call, 4);
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, out.dtype(), "integers"), count, out, count, stream.seed, stream.offset, low,
                static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
}

// args: p, rng.
void random_bernoulli(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor probabilities = dense(call.tensor(0), DType::Float32);
  const Stream stream = stream_of(call, 1);
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, out.dtype(), "bernoulli"), out.size(), probabilities, out,
                static_cast<int64_t>(out.size()), stream.seed, stream.offset);
}

}  // namespace

std::span<const KernelEntry> random_kernels() {
  static constexpr KernelEntry entries[] = {{"dropout_mask", dropout_mask},
                                            {"random_uniform", random_uniform},
                                            {"random_normal", random_normal},
                                            {"random_integers", random_integers},
                                            {"random_bernoulli", random_bernoulli}};
  return entries;
}

}  // namespace morel::opencl
