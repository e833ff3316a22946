#include "morel/kernels/optim.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"

namespace morel::kernels {

struct LambRun {
  double beta1, beta2, epsilon, weight_decay, m_scale, v_scale;
};

struct OptimKernels {
  void (*sgd)(const OptimTensor&, int64_t begin, int64_t count, const Sgd&);
  void (*adam)(const OptimTensor&, int64_t begin, int64_t count, const Adam&);
  void (*rmsprop)(const OptimTensor&, int64_t begin, int64_t count, const RmsProp&);
  void (*adagrad)(const OptimTensor&, int64_t begin, int64_t count, const Adagrad&);
  void (*lamb)(const OptimTensor&, int64_t begin, int64_t count, const LambRun&, double* sums);
  void (*lamb_apply)(const OptimTensor&, int64_t begin, int64_t count, double rate);
};

}  // namespace morel::kernels

#define MOREL_SIMD_FILE "morel/kernels/optim_simd.inc"
#include "morel/kernels/simd.h"

namespace morel::kernels {
namespace {

// Elements of one piece; a task takes pieces until it has about as many.
constexpr int64_t piece_elements = 16384;

// The pieces of a list of arrays, numbered one after another.
template <class Array>
class Pieces {
 public:
  explicit Pieces(std::span<const Array> arrays) : arrays_(arrays), starts_(arrays.size() + 1) {
    for (size_t idx = 0; idx < arrays.size(); ++idx) {
      starts_[idx + 1] = starts_[idx] + (arrays[idx].size + piece_elements - 1) / piece_elements;
      elements_ += arrays[idx].size;
    }
  }
  int64_t count() const { return starts_.back(); }
  int64_t start(size_t array) const { return starts_[array]; }
  // fn(array, begin, count, piece)
  template <class F>
  void for_each(F&& fn) const {
    if (count() == 0) return;
    // Many small arrays make many small pieces: a task takes several.
    const int64_t grain = std::max<int64_t>(1, count() * piece_elements / std::max<int64_t>(elements_, 1));
    parallel_for(count(), grain, [&](int64_t begin, int64_t end) {
      size_t array = std::upper_bound(starts_.begin(), starts_.end(), begin) - starts_.begin() - 1;
      for (int64_t piece = begin; piece < end; ++piece) {
        while (piece >= starts_[array + 1]) ++array;
        const int64_t first = (piece - starts_[array]) * piece_elements;
        fn(arrays_[array], first, std::min(piece_elements, arrays_[array].size - first), piece);
      }
    });
  }

 private:
  std::span<const Array> arrays_;
  std::vector<int64_t> starts_;
  int64_t elements_ = 0;
};

OptimKernels kernels_for(OptimTypes types) {
  const OptimKernels kernels = MOREL_SIMD_CALL(find_optim_kernels)(types.dtype, types.state_dtype);
  MOREL_CHECK(kernels.adam != nullptr, NotImplemented,
              "optimisers support parameters of Float32, Float64, Float16 and BFloat16 with "
              "states of the same type or, for the half types, Float32, but got ",
              info(types.dtype).name, " with ", info(types.state_dtype).name, ".");
  return kernels;
}

}  // namespace

void sgd(std::span<const OptimTensor> tensors, OptimTypes types, const Sgd& options) {
  const OptimKernels kernels = kernels_for(types);
  Pieces(tensors).for_each([&](const OptimTensor& tensor, int64_t begin, int64_t count, int64_t) {
    kernels.sgd(tensor, begin, count, options);
  });
}

Adam adam_factored(double learning_rate, double beta1, double beta2, double epsilon, double weight_decay,
                   int64_t step) {
  const double t = static_cast<double>(step);
  Adam adam;
  adam.beta1 = beta1;
  adam.beta2 = beta2;
  adam.epsilon = epsilon;
  adam.l2 = weight_decay;
  adam.step_size = learning_rate * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
  return adam;
}

Adam adam_corrected(double learning_rate, double beta1, double beta2, double epsilon, double weight_decay,
                    bool is_decoupled, int64_t step) {
  const double t = static_cast<double>(step);
  Adam adam;
  adam.beta1 = beta1;
  adam.beta2 = beta2;
  adam.epsilon = epsilon;
  adam.keep = is_decoupled ? 1 - learning_rate * weight_decay : 1;
  adam.l2 = is_decoupled ? 0 : weight_decay;
  adam.step_size = learning_rate / (1 - std::pow(beta1, t));
  adam.v_scale = 1 / std::sqrt(1 - std::pow(beta2, t));
  return adam;
}

Adam adam_uncorrected(double learning_rate, double beta1, double beta2, double epsilon, double weight_decay) {
  Adam adam;
  adam.beta1 = beta1;
  adam.beta2 = beta2;
  adam.epsilon = epsilon;
  adam.keep = 1 - learning_rate * weight_decay;
  adam.step_size = learning_rate;
  return adam;
}

void adam(std::span<const OptimTensor> tensors, OptimTypes types, const Adam& options) {
  const OptimKernels kernels = kernels_for(types);
  Pieces(tensors).for_each([&](const OptimTensor& tensor, int64_t begin, int64_t count, int64_t) {
    kernels.adam(tensor, begin, count, options);
  });
}

void rmsprop(std::span<const OptimTensor> tensors, OptimTypes types, const RmsProp& options) {
  const OptimKernels kernels = kernels_for(types);
  Pieces(tensors).for_each([&](const OptimTensor& tensor, int64_t begin, int64_t count, int64_t) {
    kernels.rmsprop(tensor, begin, count, options);
  });
}

void adagrad(std::span<const OptimTensor> tensors, OptimTypes types, const Adagrad& options) {
  const OptimKernels kernels = kernels_for(types);
  Pieces(tensors).for_each([&](const OptimTensor& tensor, int64_t begin, int64_t count, int64_t) {
    kernels.adagrad(tensor, begin, count, options);
  });
}

void lamb(std::span<const OptimTensor> tensors, OptimTypes types, const Lamb& options) {
  const OptimKernels kernels = kernels_for(types);
  const double t = static_cast<double>(options.step);
  const LambRun run{options.beta1,
                    options.beta2,
                    options.epsilon,
                    options.weight_decay,
                    1 / (1 - std::pow(options.beta1, t)),
                    1 / (1 - std::pow(options.beta2, t))};
  const Pieces pieces(tensors);
  std::vector<double> sums(2 * pieces.count());
  pieces.for_each([&](const OptimTensor& tensor, int64_t begin, int64_t count, int64_t piece) {
    kernels.lamb(tensor, begin, count, run, &sums[2 * piece]);
  });
  std::vector<double> rates(tensors.size());
  for (size_t idx = 0; idx < tensors.size(); ++idx) {
    double parameter = 0, update = 0;
    for (int64_t piece = pieces.start(idx); piece < pieces.start(idx + 1); ++piece) {
      parameter += sums[2 * piece];
      update += sums[2 * piece + 1];
    }
    const bool has_ratio = parameter > 0 && update > 0;
    rates[idx] = options.learning_rate * (has_ratio ? std::sqrt(parameter) / std::sqrt(update) : 1.0);
  }
  pieces.for_each([&](const OptimTensor& tensor, int64_t begin, int64_t count, int64_t) {
    kernels.lamb_apply(tensor, begin, count, rates[&tensor - tensors.data()]);
  });
}

double sum_of_squares(std::span<const DenseArray> arrays) {
  const Pieces pieces(arrays);
  std::vector<double> sums(pieces.count());
  const auto run = MOREL_SIMD_CALL(squares_run);
  pieces.for_each([&](const DenseArray& array, int64_t begin, int64_t count, int64_t piece) {
    sums[piece] = run(array.data, array.dtype, begin, count);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void scale_in_place(std::span<const DenseArray> arrays, double factor) {
  const auto run = MOREL_SIMD_CALL(scale_run);
  Pieces(arrays).for_each([&](const DenseArray& array, int64_t begin, int64_t count, int64_t) {
    run(array.data, array.dtype, begin, count, factor);
  });
}

bool all_finite(std::span<const DenseArray> arrays) {
  std::atomic<bool> is_finite{true};
  const auto run = MOREL_SIMD_CALL(finite_run);
  Pieces(arrays).for_each([&](const DenseArray& array, int64_t begin, int64_t count, int64_t) {
    if (is_finite.load(std::memory_order_relaxed) && !run(array.data, array.dtype, begin, count)) is_finite = false;
  });
  return is_finite;
}

}  // namespace morel::kernels
