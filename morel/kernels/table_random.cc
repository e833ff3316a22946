// Random numbers of the kernel table.
#include "morel/kernels/random.h"
#include "morel/kernels/table.h"
#include "morel/tensor/generator.h"

namespace morel {
namespace {

// Calls fill(first, n, stream) for runs of the result's elements that follow each other in the whole array, of which
// the result may be a part: the rng argument is (seed, offset) or (seed, offset, sizes of the whole..., where the part
// begins...).
template <class F>
void for_each_run(const KernelCall& call, size_t arg, F&& fill) {
  const std::span<const int64_t> state = numbers_of(call.ints(arg));
  const Tensor& out = call.outs[0];
  kernels::RandomStream stream{static_cast<uint64_t>(state[0]), static_cast<uint64_t>(state[1]), 0};
  if (state.size() == 2) return fill(0, out.size(), stream);
  if (out.size() == 0) return;
  const size_t rank = out.shape().size();
  const int64_t *whole = state.data() + 2, *begin = whole + rank;
  size_t outer = rank;  // axes before the last one that is cut
  int64_t run = 1;
  while (outer > 0) {
    --outer;
    run *= out.shape()[outer];
    if (whole[outer] != out.shape()[outer]) break;
  }
  for (int64_t first = 0; first < out.size(); first += run) {
    int64_t index = 0, place = 1, rest = first;
    for (size_t axis = rank; axis-- > 0; place *= whole[axis]) {
      index += (begin[axis] + rest % out.shape()[axis]) * place;
      rest /= out.shape()[axis];
    }
    stream.first = index;
    fill(first, run, stream);
  }
}

// The same where a run is filled from its address on.
template <class F>
void fill_runs(const KernelCall& call, size_t arg, F&& fill) {
  const Tensor& out = call.outs[0];
  for_each_run(call, arg, [&](int64_t first, int64_t n, const kernels::RandomStream& stream) {
    fill(static_cast<char*>(out.data()) + first * size_of(out.dtype()), out.dtype(), n, stream);
  });
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
  fill_runs(call, 4, [&](void* out, DType dtype, int64_t n, const kernels::RandomStream& stream) {
    kernels::random_uniform(out, dtype, n, call.number(1), call.number(2), stream);
  });
}

// args: size, mean, std, dtype, rng.
void random_normal(const KernelCall& call) {
  fill_runs(call, 4, [&](void* out, DType dtype, int64_t n, const kernels::RandomStream& stream) {
    kernels::random_normal(out, dtype, n, call.number(1), call.number(2), stream);
  });
}

// args: size, mean, std, low, high, dtype, rng.
void random_truncated_normal(const KernelCall& call) {
  fill_runs(call, 6, [&](void* out, DType dtype, int64_t n, const kernels::RandomStream& stream) {
    kernels::random_truncated_normal(out, dtype, n, call.number(1), call.number(2), call.number(3), call.number(4),
                                     stream);
  });
}

// args: size, low, high, dtype, rng.
void random_integers(const KernelCall& call) {
  fill_runs(call, 4, [&](void* out, DType dtype, int64_t n, const kernels::RandomStream& stream) {
    kernels::random_integers(out, dtype, n, call.integer(1), call.integer(2), stream);
  });
}

// args: n, dtype, rng.
void random_permutation(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const std::span<const int64_t> state = numbers_of(call.ints(2));
  kernels::random_permutation(out.data(), out.dtype(), out.size(),
                              {static_cast<uint64_t>(state[0]), static_cast<uint64_t>(state[1]), 0});
}

// args: p, rng.
void random_bernoulli(const KernelCall& call) {
  const Tensor probabilities = call.contiguous(0, DType::Float32);
  const Tensor& out = call.outs[0];
  for_each_run(call, 1, [&](int64_t first, int64_t n, const kernels::RandomStream& stream) {
    kernels::random_bernoulli(static_cast<char*>(out.data()) + first * size_of(out.dtype()), out.dtype(), n,
                              probabilities.as<float>() + first, stream);
  });
}

// args: input, p, rng.
void dropout_mask(const KernelCall& call) {
  const Tensor input = call.contiguous(0);
  const double keep = 1 - call.number(1);
  const Tensor& out = call.outs[0];
  for_each_run(call, 2, [&](int64_t first, int64_t n, const kernels::RandomStream& stream) {
    const int64_t at = first * size_of(out.dtype());
    kernels::dropout(static_cast<char*>(out.data()) + at, nullptr, static_cast<const char*>(input.data()) + at,
                     out.dtype(), n, keep, stream);
  });
}

}  // namespace

std::span<const KernelEntry> random_kernels() {
  static constexpr KernelEntry entries[] = {
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
  };
  return selected<entries>;
}

}  // namespace morel
