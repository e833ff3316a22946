// batch_norm and group_norm against the formulas in double precision.
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/batch_norm.h"

namespace morel::kernels {
namespace {

// An array of the dtype filled from doubles, and read back as doubles.
class Numbers {
 public:
  Numbers(DType dtype, int64_t count) : dtype_(dtype), bytes_(count * size_of(dtype) + 1), count_(count) {}
  Numbers(DType dtype, const std::vector<double>& values) : Numbers(dtype, static_cast<int64_t>(values.size())) {
    for (int64_t idx = 0; idx < count_; ++idx) set(idx, values[idx]);
  }
  void* data() { return bytes_.data(); }
  const std::vector<char>& bytes() const { return bytes_; }
  int64_t size() const { return count_; }
  double operator[](int64_t idx) const {
    const char* place = bytes_.data() + idx * size_of(dtype_);
    switch (dtype_) {
      case DType::Float16: return to_float(*reinterpret_cast<const Float16*>(place));
      case DType::BFloat16: return to_float(*reinterpret_cast<const BFloat16*>(place));
      case DType::Float32: return *reinterpret_cast<const float*>(place);
      default: return *reinterpret_cast<const double*>(place);
    }
  }

 private:
  void set(int64_t idx, double value) {
    char* place = bytes_.data() + idx * size_of(dtype_);
    switch (dtype_) {
      case DType::Float16: *reinterpret_cast<Float16*>(place) = to_float16(static_cast<float>(value)); return;
      case DType::BFloat16: *reinterpret_cast<BFloat16*>(place) = to_bfloat16(static_cast<float>(value)); return;
      case DType::Float32: *reinterpret_cast<float*>(place) = static_cast<float>(value); return;
      default: *reinterpret_cast<double*>(place) = value;
    }
  }
  DType dtype_;
  std::vector<char> bytes_;
  int64_t count_;
};

std::vector<double> random_values(int64_t count, double mean, double deviation, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(mean, deviation);
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  return values;
}

void expect_near(const Numbers& got, const std::vector<double>& wanted, double tolerance, const char* name) {
  double worst = 0;
  for (size_t idx = 0; idx < wanted.size(); ++idx) {
    ASSERT_FALSE(std::isnan(got[idx])) << name;
    worst = std::max(worst, std::abs(got[idx] - wanted[idx]) / (1.0 + std::abs(wanted[idx])));
  }
  EXPECT_LE(worst, tolerance) << name;
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::Float16: return 2e-3;
    case DType::BFloat16: return 1.5e-2;
    case DType::Float32: return 4e-6;
    default: return 1e-12;
  }
}
DType parameter_dtype(DType dtype) { return dtype == DType::Float64 ? DType::Float64 : DType::Float32; }

struct BatchCase {
  NormShape shape;
  bool relu = false;
  double mean = 0.5;
};

// Everything about one run: inputs, outputs of the kernels, and the reference.
struct BatchRun {
  explicit BatchRun(const BatchCase& c)
      : shape(c.shape),
        count(shape.outer * shape.channels * shape.inner),
        parameters(parameter_dtype(shape.dtype)),
        input(shape.dtype, random_values(count, c.mean, 2.0, 1)),
        grad(shape.dtype, random_values(count, 0.1, 1.0, 2)),
        gamma(parameters, random_values(shape.channels, 1.0, 0.5, 3)),
        beta(parameters, random_values(shape.channels, 0.0, 0.5, 4)),
        output(shape.dtype, count),
        input_grad(shape.dtype, count),
        mean(parameters, shape.channels),
        variance(parameters, shape.channels),
        inverse_std(parameters, shape.channels),
        gamma_grad(parameters, shape.channels),
        beta_grad(parameters, shape.channels),
        relu(c.relu) {}

  void run(bool is_training) {
    const BatchNormForward forward{shape, input.data(),  gamma.data(), beta.data(),     1e-5,
                                   relu,  output.data(), mean.data(),  variance.data(), inverse_std.data()};
    is_training ? batch_norm_training(forward) : batch_norm_inference(forward);
    batch_norm_backward({shape, input.data(), grad.data(), gamma.data(), beta.data(), mean.data(), inverse_std.data(),
                         relu, is_training, input_grad.data(), gamma_grad.data(), beta_grad.data()});
  }

  void check(bool is_training) {
    const int64_t per = shape.outer * shape.inner;
    std::vector<double> y(count), dx(count), m(shape.channels), v(shape.channels), dgamma(shape.channels),
        dbeta(shape.channels);
    const auto index = [&](int64_t channel, int64_t k) {
      return (k / shape.inner * shape.channels + channel) * shape.inner + k % shape.inner;
    };
    for (int64_t channel = 0; channel < shape.channels; ++channel) {
      for (int64_t k = 0; k < per; ++k) m[channel] += input[index(channel, k)] / per;
      for (int64_t k = 0; k < per; ++k) v[channel] += std::pow(input[index(channel, k)] - m[channel], 2) / per;
      if (!is_training) m[channel] = mean[channel], v[channel] = variance[channel];
      const double inverse = 1.0 / std::sqrt(v[channel] + 1e-5);
      double sum = 0, product = 0;
      std::vector<double> passed(per);
      for (int64_t k = 0; k < per; ++k) {
        const int64_t i = index(channel, k);
        const double xhat = (input[i] - m[channel]) * inverse;
        y[i] = xhat * gamma[channel] + beta[channel];
        passed[k] = relu && y[i] <= 0 ? 0 : grad[i];
        if (relu) y[i] = std::max(0.0, y[i]);
        sum += passed[k];
        product += passed[k] * xhat;
      }
      for (int64_t k = 0; k < per; ++k) {
        const int64_t i = index(channel, k);
        const double xhat = (input[i] - m[channel]) * inverse;
        dx[i] = gamma[channel] * inverse * (is_training ? passed[k] - sum / per - xhat * product / per : passed[k]);
      }
      dgamma[channel] = product;
      dbeta[channel] = sum;
    }
    const double tolerance = tolerance_of(shape.dtype), narrow = tolerance_of(parameters) * 10;
    expect_near(mean, m, narrow, "mean");
    expect_near(variance, v, narrow, "variance");
    expect_near(output, y, tolerance, "output");
    expect_near(input_grad, dx, tolerance, "input_grad");
    expect_near(gamma_grad, dgamma, narrow * 10, "gamma_grad");
    expect_near(beta_grad, dbeta, narrow * 10, "beta_grad");
  }

  NormShape shape;
  int64_t count;
  DType parameters;
  Numbers input, grad, gamma, beta, output, input_grad, mean, variance, inverse_std, gamma_grad, beta_grad;
  bool relu;
};

TEST(KernelsBatchNorm, TrainingAndInference) {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    const NormShape shapes[] = {{dtype, 4, 20, 49},   {dtype, 3, 2, 5},     {dtype, 100, 17, 1}, {dtype, 2, 1, 3},
                                {dtype, 2, 3, 40000}, {dtype, 50, 3, 3000}, {dtype, 3000, 5, 1}, {dtype, 8, 70, 1}};
    for (const NormShape& shape : shapes) {
      SCOPED_TRACE(testing::Message() << info(dtype).name << " " << shape.outer << "," << shape.channels << ","
                                      << shape.inner);
      BatchRun run(BatchCase{shape});
      run.run(true);
      run.check(true);
      run.run(false);
      run.check(false);
    }
  }
}

TEST(KernelsBatchNorm, Relu) {
  for (const NormShape& shape : {NormShape{DType::Float64, 4, 20, 49}, NormShape{DType::Float64, 300, 17, 1},
                                 NormShape{DType::Float64, 3, 2, 70000}}) {
    BatchRun run(BatchCase{shape, true});
    run.run(true);
    run.check(true);
    run.run(false);
    run.check(false);
  }
}

TEST(KernelsBatchNorm, LargeMeanStaysStable) {
  for (const NormShape& shape : {NormShape{DType::Float32, 8, 16, 1024}, NormShape{DType::Float32, 8192, 16, 1}}) {
    BatchRun run(BatchCase{shape, false, 3000.0});
    run.run(true);
    for (int channel = 0; channel < 16; ++channel) {
      double mean = 0, square = 0;
      const int64_t per = shape.outer * shape.inner;
      for (int64_t k = 0; k < per; ++k)
        mean += run.input[(k / shape.inner * 16 + channel) * shape.inner + k % shape.inner] / per;
      for (int64_t k = 0; k < per; ++k) {
        square += std::pow(run.input[(k / shape.inner * 16 + channel) * shape.inner + k % shape.inner] - mean, 2) / per;
      }
      EXPECT_NEAR(run.variance[channel], square, 5e-6 * square);
    }
  }
}

TEST(KernelsBatchNorm, SameBitsForAnyThreadCount) {
  const int before = num_threads();
  for (const NormShape& shape : {NormShape{DType::Float32, 16, 64, 64}, NormShape{DType::Float32, 10, 3, 20000},
                                 NormShape{DType::Float32, 5000, 40, 1}}) {
    set_num_threads(1);
    BatchRun one(BatchCase{shape});
    one.run(true);
    set_num_threads(4);
    BatchRun many(BatchCase{shape});
    many.run(true);
    EXPECT_EQ(one.output.bytes(), many.output.bytes());
    EXPECT_EQ(one.input_grad.bytes(), many.input_grad.bytes());
    EXPECT_EQ(one.gamma_grad.bytes(), many.gamma_grad.bytes());
    EXPECT_EQ(one.variance.bytes(), many.variance.bytes());
  }
  set_num_threads(before);
}

TEST(KernelsBatchNorm, EmptyAndWrongInputs) {
  BatchRun run(BatchCase{{DType::Float32, 0, 3, 4}});
  EXPECT_THROW(run.run(true), Error);
  run.run(false);
  EXPECT_EQ(run.beta_grad[1], 0.0);
  BatchNormForward wrong{};
  wrong.shape.dtype = DType::Int32;
  EXPECT_THROW(batch_norm_training(wrong), Error);
}

void check_group_norm(const NormShape& shape, int64_t groups) {
  const DType parameters = parameter_dtype(shape.dtype);
  const int64_t count = shape.outer * shape.channels * shape.inner, group = shape.channels / groups,
                per = group * shape.inner;
  Numbers input(shape.dtype, random_values(count, 0.5, 2.0, 1)), grad(shape.dtype, random_values(count, 0.1, 1.0, 2)),
      gamma(parameters, random_values(shape.channels, 1.0, 0.5, 3)),
      beta(parameters, random_values(shape.channels, 0.0, 0.5, 4)), output(shape.dtype, count),
      input_grad(shape.dtype, count), mean(parameters, shape.outer * groups),
      inverse_std(parameters, shape.outer * groups), gamma_grad(parameters, shape.channels),
      beta_grad(parameters, shape.channels);
  group_norm(
      {shape, groups, input.data(), gamma.data(), beta.data(), 1e-5, output.data(), mean.data(), inverse_std.data()});
  group_norm_backward({shape, groups, input.data(), grad.data(), gamma.data(), mean.data(), inverse_std.data(),
                       input_grad.data(), gamma_grad.data(), beta_grad.data()});
  std::vector<double> y(count), dx(count), dgamma(shape.channels), dbeta(shape.channels);
  for (int64_t idx = 0; idx < shape.outer * groups; ++idx) {
    double m = 0, v = 0, sum = 0, product = 0;
    for (int64_t k = 0; k < per; ++k) m += input[idx * per + k] / per;
    for (int64_t k = 0; k < per; ++k) v += std::pow(input[idx * per + k] - m, 2) / per;
    const double inverse = 1.0 / std::sqrt(v + 1e-5);
    for (int64_t k = 0; k < per; ++k) {
      const int64_t i = idx * per + k, channel = i / shape.inner % shape.channels;
      const double xhat = (input[i] - m) * inverse;
      y[i] = xhat * gamma[channel] + beta[channel];
      dgamma[channel] += grad[i] * xhat;
      dbeta[channel] += grad[i];
      sum += grad[i] * gamma[channel];
      product += grad[i] * gamma[channel] * xhat;
    }
    for (int64_t k = 0; k < per; ++k) {
      const int64_t i = idx * per + k, channel = i / shape.inner % shape.channels;
      const double xhat = (input[i] - m) * inverse;
      dx[i] = inverse * (grad[i] * gamma[channel] - sum / per - xhat * product / per);
    }
  }
  const double tolerance = tolerance_of(shape.dtype), narrow = tolerance_of(parameters) * 100;
  expect_near(output, y, tolerance, "output");
  expect_near(input_grad, dx, tolerance, "input_grad");
  expect_near(gamma_grad, dgamma, narrow, "gamma_grad");
  expect_near(beta_grad, dbeta, narrow, "beta_grad");
}

TEST(KernelsBatchNorm, GroupAndInstanceNorm) {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    check_group_norm({dtype, 3, 12, 49}, 4);
    check_group_norm({dtype, 2, 6, 300}, 6);
    check_group_norm({dtype, 2, 6, 3000}, 1);
    check_group_norm({dtype, 5, 8, 1}, 2);
  }
}

}  // namespace
}  // namespace morel::kernels
