// Optimiser updates against scalar formulas in double precision, over several steps and ragged lists of tensors.
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/optim.h"

namespace morel::kernels {
namespace {

const std::vector<int64_t> sizes{1, 0, 5, 16, 33, 20000, 7, 40000};

double read(const std::vector<char>& bytes, DType dtype, int64_t idx) {
  switch (dtype) {
    case DType::Float16: return to_float(reinterpret_cast<const Float16*>(bytes.data())[idx]);
    case DType::BFloat16: return to_float(reinterpret_cast<const BFloat16*>(bytes.data())[idx]);
    case DType::Float32: return reinterpret_cast<const float*>(bytes.data())[idx];
    default: return reinterpret_cast<const double*>(bytes.data())[idx];
  }
}
void write(std::vector<char>& bytes, DType dtype, int64_t idx, double value) {
  switch (dtype) {
    case DType::Float16: reinterpret_cast<Float16*>(bytes.data())[idx] = to_float16(static_cast<float>(value)); return;
    case DType::BFloat16:
      reinterpret_cast<BFloat16*>(bytes.data())[idx] = to_bfloat16(static_cast<float>(value));
      return;
    case DType::Float32: reinterpret_cast<float*>(bytes.data())[idx] = static_cast<float>(value); return;
    default: reinterpret_cast<double*>(bytes.data())[idx] = value;
  }
}

// Parameters, gradients and states of a small model.
struct Model {
  explicit Model(OptimTypes types) : types(types) {
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    for (const int64_t size : sizes) {
      const auto fill = [&](DType dtype, double scale) {
        std::vector<char> bytes(size * size_of(dtype));
        for (int64_t idx = 0; idx < size; ++idx) write(bytes, dtype, idx, scale * normal(random));
        return bytes;
      };
      parameters.push_back(fill(types.dtype, 1.0));
      grads.push_back(fill(types.dtype, 0.5));
      for (auto& list : states) list.push_back(fill(types.state_dtype, 0.0));
    }
  }
  std::vector<OptimTensor> tensors() {
    std::vector<OptimTensor> list;
    for (size_t idx = 0; idx < sizes.size(); ++idx) {
      list.push_back({parameters[idx].data(),
                      grads[idx].data(),
                      {states[0][idx].data(), states[1][idx].data(), states[2][idx].data()},
                      sizes[idx]});
    }
    return list;
  }
  OptimTypes types;
  std::vector<std::vector<char>> parameters, grads, states[3];
};

// One element in double precision: updates p and s from g.
using Rule = std::function<void(double& p, double g, double* s, int step)>;

void check(OptimTypes types, const std::function<void(std::span<const OptimTensor>, int step)>& update,
           const Rule& rule) {
  Model model(types), before(types);
  for (int step = 1; step <= 3; ++step) update(model.tensors(), step);
  const double tolerance = types.dtype == DType::Float16    ? 4e-3
                           : types.dtype == DType::BFloat16 ? 3e-2
                           : types.dtype == DType::Float32  ? 2e-6
                                                            : 1e-13;
  for (size_t tensor = 0; tensor < sizes.size(); ++tensor) {
    for (int64_t idx = 0; idx < sizes[tensor]; ++idx) {
      double p = read(before.parameters[tensor], types.dtype, idx), s[3] = {0, 0, 0};
      const double g = read(before.grads[tensor], types.dtype, idx);
      for (int step = 1; step <= 3; ++step) rule(p, g, s, step);
      ASSERT_NEAR(read(model.parameters[tensor], types.dtype, idx), p, tolerance * (1 + std::abs(p)))
          << tensor << " " << idx;
    }
  }
}

const OptimTypes all_types[] = {{DType::Float32, DType::Float32}, {DType::Float64, DType::Float64},
                                {DType::Float16, DType::Float32}, {DType::BFloat16, DType::Float32},
                                {DType::Float16, DType::Float16}, {DType::BFloat16, DType::BFloat16}};

TEST(KernelsOptim, Sgd) {
  for (const OptimTypes types : all_types) {
    for (const bool nesterov : {false, true}) {
      for (const double momentum : {0.0, 0.9}) {
        check(
            types,
            [&](auto tensors, int step) {
              sgd(tensors, types,
                  {.learning_rate = 0.1,
                   .momentum = momentum,
                   .dampening = nesterov ? 0.0 : 0.2,
                   .weight_decay = 0.01,
                   .nesterov = nesterov,
                   .is_first_step = step == 1,
                   .maximize = nesterov});
            },
            [&](double& p, double g, double* s, int step) {
              g = (nesterov ? -g : g) + 0.01 * p;
              if (momentum != 0) s[0] = step == 1 ? g : momentum * s[0] + (nesterov ? 1.0 : 0.8) * g;
              p -= 0.1 * (momentum == 0 ? g : nesterov ? g + momentum * s[0] : s[0]);
            });
      }
    }
  }
}

TEST(KernelsOptim, AdamInItsThreeForms) {
  for (const OptimTypes types : all_types) {
    if (types.dtype == types.state_dtype && is_half(types.dtype)) continue;  // v of a half is too coarse to compare
    const double b1 = 0.9, b2 = 0.99, lr = 0.01, eps = 1e-6, wd = 0.02;
    for (const bool nesterov : {false, true}) {
      check(
          types,
          [&](auto tensors, int step) {
            Adam options = adam_factored(lr, b1, b2, eps, wd, step);
            options.nesterov = nesterov;
            adam(tensors, types, options);
          },
          [&](double& p, double g, double* s, int step) {
            g += wd * p;
            s[0] = b1 * s[0] + (1 - b1) * g;
            s[1] = b2 * s[1] + (1 - b2) * g * g;
            const double rate = lr * std::sqrt(1 - std::pow(b2, step)) / (1 - std::pow(b1, step));
            p -= rate * (nesterov ? b1 * s[0] + (1 - b1) * g : s[0]) / (std::sqrt(s[1]) + eps);
          });
    }
    for (const bool is_decoupled : {false, true}) {
      check(
          types,
          [&](auto tensors, int step) {
            Adam options = adam_corrected(lr, b1, b2, eps, wd, is_decoupled, step);
            options.amsgrad = is_decoupled;
            adam(tensors, types, options);
          },
          [&](double& p, double g, double* s, int step) {
            if (is_decoupled) {
              p *= 1 - lr * wd;
            } else {
              g += wd * p;
            }
            s[0] = b1 * s[0] + (1 - b1) * g;
            s[1] = b2 * s[1] + (1 - b2) * g * g;
            s[2] = std::max(s[2], s[1]);
            p -= lr / (1 - std::pow(b1, step)) * s[0] /
                 (std::sqrt((is_decoupled ? s[2] : s[1]) / (1 - std::pow(b2, step))) + eps);
          });
    }
    check(
        types, [&](auto tensors, int) { adam(tensors, types, adam_uncorrected(lr, b1, b2, eps, wd)); },
        [&](double& p, double g, double* s, int) {
          s[0] = b1 * s[0] + (1 - b1) * g;
          s[1] = b2 * s[1] + (1 - b2) * g * g;
          p -= lr * (s[0] / (std::sqrt(s[1]) + eps) + wd * p);
        });
  }
}

TEST(KernelsOptim, RmsPropAndAdagrad) {
  const OptimTypes types{DType::Float64, DType::Float64};
  for (int flags = 0; flags < 16; ++flags) {
    const RmsProp options{.learning_rate = 0.01,
                          .decay = 0.9,
                          .momentum = flags & 1 ? 0.8 : 0.0,
                          .epsilon = 1e-4,
                          .weight_decay = 0.01,
                          .centered = (flags & 2) != 0,
                          .epsilon_in_root = (flags & 4) != 0,
                          .rate_in_momentum = (flags & 8) != 0};
    check(
        types, [&](auto tensors, int) { rmsprop(tensors, types, options); },
        [&](double& p, double g, double* s, int) {
          g += 0.01 * p;
          s[0] = 0.9 * s[0] + 0.1 * g * g;
          s[2] = 0.9 * s[2] + 0.1 * g;
          const double mean_square = s[0] - (options.centered ? s[2] * s[2] : 0);
          const double q =
              g / (options.epsilon_in_root ? std::sqrt(mean_square + 1e-4) : std::sqrt(mean_square) + 1e-4);
          if (options.momentum == 0) {
            p -= 0.01 * q;
          } else if (options.rate_in_momentum) {
            s[1] = 0.8 * s[1] + 0.01 * q;
            p -= s[1];
          } else {
            s[1] = 0.8 * s[1] + q;
            p -= 0.01 * s[1];
          }
        });
  }
  check(
      types,
      [&](auto tensors, int) {
        adagrad(tensors, types, {.learning_rate = 0.01, .epsilon = 1e-3, .weight_decay = 0.1});
      },
      [&](double& p, double g, double* s, int) {
        g += 0.1 * p;
        s[0] += g * g;
        p -= 0.01 * g / (std::sqrt(s[0]) + 1e-3);
      });
}

TEST(KernelsOptim, Lamb) {
  const OptimTypes types{DType::Float64, DType::Float64};
  Model model(types), wanted(types);
  for (int step = 1; step <= 2; ++step) {
    lamb(model.tensors(), types, {.learning_rate = 0.01, .weight_decay = 0.1, .step = step});
    for (size_t tensor = 0; tensor < sizes.size(); ++tensor) {
      double parameter = 0, update = 0;
      std::vector<double> u(sizes[tensor]);
      auto* p = reinterpret_cast<double*>(wanted.parameters[tensor].data());
      auto* g = reinterpret_cast<double*>(wanted.grads[tensor].data());
      auto* m = reinterpret_cast<double*>(wanted.states[0][tensor].data());
      auto* v = reinterpret_cast<double*>(wanted.states[1][tensor].data());
      for (int64_t idx = 0; idx < sizes[tensor]; ++idx) {
        m[idx] = 0.9 * m[idx] + 0.1 * g[idx];
        v[idx] = 0.999 * v[idx] + 0.001 * g[idx] * g[idx];
        u[idx] = m[idx] / (1 - std::pow(0.9, step)) / (std::sqrt(v[idx] / (1 - std::pow(0.999, step))) + 1e-6) +
                 0.1 * p[idx];
        parameter += p[idx] * p[idx];
        update += u[idx] * u[idx];
      }
      for (int64_t idx = 0; idx < sizes[tensor]; ++idx) {
        p[idx] -= 0.01 * std::sqrt(parameter) / std::sqrt(update) * u[idx];
        ASSERT_NEAR(reinterpret_cast<double*>(model.parameters[tensor].data())[idx], p[idx], 1e-12);
      }
    }
  }
}

TEST(KernelsOptim, NormScaleAndFiniteCheck) {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    Model model({dtype, dtype});
    std::vector<DenseArray> arrays;
    double wanted = 0;
    for (size_t tensor = 0; tensor < sizes.size(); ++tensor) {
      arrays.push_back({model.grads[tensor].data(), dtype, sizes[tensor]});
      for (int64_t idx = 0; idx < sizes[tensor]; ++idx) wanted += std::pow(read(model.grads[tensor], dtype, idx), 2);
    }
    EXPECT_NEAR(sum_of_squares(arrays), wanted, 1e-6 * wanted);
    const double first = read(model.grads[5], dtype, 19999);
    scale_in_place(arrays, 0.5);
    EXPECT_EQ(read(model.grads[5], dtype, 19999), first * 0.5);
    EXPECT_TRUE(all_finite(arrays));
    for (const double bad :
         {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), std::nan("")}) {
      for (const int64_t place : {0, 17, 32}) {
        const double old = read(model.grads[4], dtype, place);
        write(model.grads[4], dtype, place, bad);
        EXPECT_FALSE(all_finite(arrays));
        write(model.grads[4], dtype, place, old);
      }
    }
  }
}

TEST(KernelsOptim, SameBitsForAnyThreadCountAndErrors) {
  const int before = num_threads();
  const OptimTypes types;
  set_num_threads(1);
  Model one(types);
  lamb(one.tensors(), types, {.learning_rate = 0.01});
  adam(one.tensors(), types, {});
  set_num_threads(4);
  Model many(types);
  lamb(many.tensors(), types, {.learning_rate = 0.01});
  adam(many.tensors(), types, {});
  EXPECT_EQ(one.parameters, many.parameters);
  set_num_threads(before);
  adam({}, types, {});
  EXPECT_THROW(adam({}, {DType::Int32, DType::Int32}, {}), Error);
}

}  // namespace
}  // namespace morel::kernels
