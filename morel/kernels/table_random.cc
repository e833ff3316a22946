// Random numbers of the kernel table. The rng argument is (seed, offset).
#include "morel/kernels/random.h"
#include "morel/kernels/table.h"
#include "morel/tensor/generator.h"

namespace morel {
namespace {

kernels::RandomStream stream_of(const KernelCall& call, size_t arg) {
  const Ints& state = call.ints(arg);
  return {static_cast<uint64_t>(state[0]), static_cast<uint64_t>(state[1]), 0};
}

void next_rng(const KernelCall& call) {
  const Value state = default_generator().next();
  std::copy_n(state.ints().data(), 2, call.outs[0].as<int64_t>());
}

void write_state(const Generator& generator, const Tensor& out) {
  out.as<int64_t>()[0] = generator.seed();
  out.as<int64_t>()[1] = generator.offset();
}

void rng_state(const KernelCall& call) { write_state(default_generator(), call.outs[0]); }

void exchange_rng(const KernelCall& call) {
  const Tensor state = call.tensor(0);
  const int64_t seed = state.as<int64_t>()[0], offset = state.as<int64_t>()[1];
  Generator& generator = default_generator();
  write_state(generator, call.outs[0]);
  generator.set_seed(seed);
  generator.set_offset(offset);
}

// args: size, low, high, dtype, rng.
void random_uniform(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  kernels::random_uniform(out.data(), out.dtype(), out.size(), call.number(1), call.number(2), stream_of(call, 4));
}

// args: size, mean, std, dtype, rng.
void random_normal(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  kernels::random_normal(out.data(), out.dtype(), out.size(), call.number(1), call.number(2), stream_of(call, 4));
}

// args: size, mean, std, low, high, dtype, rng.
void random_truncated_normal(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  kernels::random_truncated_normal(out.data(), out.dtype(), out.size(), call.number(1), call.number(2), call.number(3),
                                   call.number(4), stream_of(call, 6));
}

// args: size, low, high, dtype, rng.
void random_integers(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  kernels::random_integers(out.data(), out.dtype(), out.size(), call.integer(1), call.integer(2), stream_of(call, 4));
}

// args: n, dtype, rng.
void random_permutation(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  kernels::random_permutation(out.data(), out.dtype(), out.size(), stream_of(call, 2));
}

// args: p, rng.
void random_bernoulli(const KernelCall& call) {
  const Tensor probabilities = call.contiguous(0, DType::Float32);
  const Tensor& out = call.outs[0];
  kernels::random_bernoulli(out.data(), out.dtype(), out.size(), probabilities.as<float>(), stream_of(call, 1));
}

// args: input, p, rng.
void dropout_mask(const KernelCall& call) {
  const Tensor input = call.contiguous(0);
  const Tensor& out = call.outs[0];
  const double keep = 1 - call.number(1);
  kernels::dropout(out.data(), nullptr, input.data(), out.dtype(), out.size(), keep, stream_of(call, 2));
}

}  // namespace

std::span<const KernelEntry> random_kernels() {
  static constexpr auto entries = kernel_list({
      {"next_rng", next_rng},
      {"rng_state", rng_state},
      {"exchange_rng", exchange_rng},
      {"random_uniform", random_uniform},
      {"random_normal", random_normal},
      {"random_truncated_normal", random_truncated_normal},
      {"random_integers", random_integers},
      {"random_permutation", random_permutation},
      {"random_bernoulli", random_bernoulli},
      {"dropout_mask", dropout_mask},
  });
  return entries;
}

}  // namespace morel
