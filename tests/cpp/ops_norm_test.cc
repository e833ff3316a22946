// Normalisations: values against a plain computation, first and second gradients, running statistics.
#include "ops_support.h"

namespace morel {
namespace {

using namespace morel::testing;  // NOLINT

std::vector<double> normalised(const std::vector<double>& x, size_t n, double eps) {
  std::vector<double> out;
  for (size_t row = 0; row * n < x.size(); ++row) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < n; ++i) mean += x[row * n + i] / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i)
      variance += (x[row * n + i] - mean) * (x[row * n + i] - mean) / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) out.push_back((x[row * n + i] - mean) / std::sqrt(variance + eps));
  }
  return out;
}

TEST(LayerNorm, Values) {
  for (const Shape& shape : {Shape{5, 7}, Shape{300, 130}}) {
    const Tensor x = sample(shape);
    const size_t n = static_cast<size_t>(shape[1]);
    const std::vector<double> plain = normalised(elements(x), n, 1e-5);
    expect_near(one("layer_norm", {x, shape[1]}), plain, 1e-4);
    const Tensor weight = sample({shape[1]}, DType::Float32, 2), bias = sample({shape[1]}, DType::Float32, 3);
    std::vector<double> wanted = plain;
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = wanted[i] * elements(weight)[i % n] + elements(bias)[i % n];
    expect_near(one("layer_norm", {x, Ints{shape[1]}, weight, bias}), wanted, 1e-4);
  }
  const Tensor x = sample({2, 3, 4});
  EXPECT_EQ(one("layer_norm", {x, Ints{3, 4}, sample({3, 4})}).shape(), x.shape());
  expect_near(one("layer_norm", {x, Ints{3, 4}}), normalised(elements(x), 12, 1e-5), 1e-4);
  EXPECT_EQ(one("layer_norm", {one("cast", {x, DType::Float16}), 4, sample({4})}).dtype(), DType::Float16);
  EXPECT_THROW(one("layer_norm", {x, 3}), Error);
  EXPECT_THROW(one("layer_norm", {x, 4, sample({3})}), Error);
}

TEST(LayerNorm, Gradients) {
  const Tensor x = sample({3, 5}, DType::Float64), weight = sample({5}, DType::Float64, 2),
               bias = sample({5}, DType::Float64, 3);
  check_gradients(
      [](std::span<const Tensor> in) {
        return one("layer_norm", {in[0], 5, in[1], in[2]});
      },
      {x, weight, bias}, 1e-5);
  check_gradients([](std::span<const Tensor> in) { return one("layer_norm", {in[0], 5}); }, {x}, 1e-5);
  check_gradients(
      [](std::span<const Tensor> in) {
        return call("rms_norm", {in[0], in[1]})[0].tensor();
      },
      {x, weight}, 1e-5);
  check_gradients(
      [](std::span<const Tensor> in) {
        return call("rms_norm", {in[0], in[1]})[1].tensor();
      },
      {x, weight}, 1e-5);
}

TEST(LayerNorm, ParameterGradientsOfManyRows) {
  // Several blocks of rows, whose partial sums are added.
  const Tensor x = sample({4, 500, 40}, DType::Float64), weight = sample({40}, DType::Float64, 2),
               bias = sample({40}, DType::Float64, 3);
  const std::vector<Tensor> fused = gradients(
      [](std::span<const Tensor> in) {
        return one("layer_norm", {in[0], 40, in[1], in[2]});
      },
      std::vector<Tensor>{x, weight, bias});
  const std::vector<Tensor> plain = gradients(
      [](std::span<const Tensor> in) {
        return one("add", {one("mul", {one("layer_norm", {in[0], 40}), in[1]}), in[2]});
      },
      std::vector<Tensor>{x, weight, bias});
  for (size_t i = 0; i < 3; ++i) expect_same(fused[i], plain[i], 1e-9);
}

TEST(RmsNorm, Values) {
  const Values out = call("rms_norm", {tensor({1, 2}, {3, 4}), tensor({2}, {1, 2}), 0.0});
  const double rstd = 1 / std::sqrt(12.5);
  expect_near(out[0].tensor(), {3 * rstd, 8 * rstd});
  expect_near(out[1].tensor(), {rstd});
  EXPECT_EQ(out[1].tensor().shape(), (Shape{1, 1}));
}

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance, const Value& weight, const Value& bias,
                  bool training) {
  return one("batch_norm", {x, mean, variance, weight, bias, training});
}

TEST(BatchNorm, ValuesAndRunningStatistics) {
  const Tensor x = sample({4, 3, 2, 5});
  const Tensor rows = one("reshape", {one("transpose", {x, Ints{1, 0, 2, 3}}), Ints{3, 40}});
  const Tensor mean = tensor({3}, {0, 0, 0}), variance = tensor({3}, {1, 1, 1});
  const Tensor out = batch_norm(x, mean, variance, Value(), Value(), true);
  expect_near(one("reshape", {one("transpose", {out, Ints{1, 0, 2, 3}}), Ints{3, 40}}),
              normalised(elements(rows), 40, 1e-5), 1e-4);
  const std::vector<double> batch_mean = elements(one("mean", {rows, 1})),
                            batch_variance = elements(one("var", {rows, 1, 1}));
  std::vector<double> wanted_mean, wanted_variance;
  for (size_t i = 0; i < 3; ++i) {
    wanted_mean.push_back(0.1 * batch_mean[i]);
    wanted_variance.push_back(0.9 + 0.1 * batch_variance[i]);
  }
  expect_near(mean, wanted_mean);
  expect_near(variance, wanted_variance);
  // Outside of training by the running statistics, which stay.
  const Tensor weight = tensor({3}, {1, 2, 3}), bias = tensor({3}, {0, 1, 2});
  const Tensor fixed = batch_norm(x, tensor({3}, {1, 1, 1}), tensor({3}, {4, 4, 4}), weight, bias, false);
  const std::vector<double> values = elements(x);
  std::vector<double> wanted;
  for (size_t i = 0; i < values.size(); ++i) {
    const double c = static_cast<double>(i / 10 % 3);
    wanted.push_back((values[i] - 1) / std::sqrt(4 + 1e-5) * (c + 1) + c);
  }
  expect_near(fixed, wanted);
  EXPECT_THROW(batch_norm(x, tensor({2}, {1, 1}), variance, Value(), Value(), true), Error);
}

TEST(BatchNorm, Gradients) {
  const Tensor x = sample({3, 2, 2, 2}, DType::Float64), weight = sample({2}, DType::Float64, 2),
               bias = sample({2}, DType::Float64, 3);
  const auto fresh = [] { return std::pair{tensor({2}, {0, 0}, DType::Float64), tensor({2}, {1, 2}, DType::Float64)}; };
  for (const bool training : {true, false}) {
    check_gradients(
        [&](std::span<const Tensor> in) {
          const auto [mean, variance] = fresh();
          return batch_norm(in[0], mean, variance, in[1], in[2], training);
        },
        {x, weight, bias}, 1e-5);
  }
}

TEST(GroupNorm, ValuesAndGradients) {
  const Tensor x = sample({2, 4, 3}, DType::Float64), weight = sample({4}, DType::Float64, 2),
               bias = sample({4}, DType::Float64, 3);
  expect_near(one("group_norm", {x, 2}), normalised(elements(x), 6, 1e-5));
  expect_near(one("instance_norm", {x}), normalised(elements(x), 3, 1e-5));
  check_gradients(
      [](std::span<const Tensor> in) {
        return one("group_norm", {in[0], 2, in[1], in[2]});
      },
      {x, weight, bias}, 1e-5);
  check_gradients(
      [](std::span<const Tensor> in) {
        return one("instance_norm", {in[0], in[1], in[2]});
      },
      {x, weight, bias}, 1e-5);
  EXPECT_THROW(one("group_norm", {x, 3}), Error);
}

TEST(Normalize, Values) {
  expect_near(one("normalize", {tensor({1, 2}, {3, 4})}), {0.6, 0.8});
  expect_near(one("l2_normalize", {tensor({2}, {3, 4})}), {0.6, 0.8});
  check_gradients([](std::span<const Tensor> in) { return one("normalize", {in[0]}); },
                  {sample({2, 3}, DType::Float64)});
}

}  // namespace
}  // namespace morel
