// Losses: values by hand, gradients, reductions, errors.
#include "ops_support.h"

namespace morel {
namespace {

using namespace morel::testing;  // NOLINT

double log_p(std::initializer_list<double> logits, size_t target) {
  double total = 0;
  for (const double x : logits) total += std::exp(x);
  return logits.begin()[target] - std::log(total);
}

TEST(CrossEntropy, ClassIndices) {
  const Tensor x = tensor({3, 3}, {1, 2, 3, 0, 0, 1, 2, 1, 0}), target = tensor({3}, {2, 0, 1}, DType::Int32);
  const double a = -log_p({1, 2, 3}, 2), b = -log_p({0, 0, 1}, 0), c = -log_p({2, 1, 0}, 1);
  expect_near(one("cross_entropy", {x, target, Value(), -100, "none"}), {a, b, c});
  expect_near(one("cross_entropy", {x, target}), {(a + b + c) / 3});
  expect_near(one("cross_entropy", {x, target, Value(), 0, "mean"}), {(a + c) / 2});
  const Tensor weight = tensor({3}, {0.5, 1, 2});
  expect_near(one("cross_entropy", {x, target, weight, -100, "none"}), {2 * a, 0.5 * b, c});
  expect_near(one("cross_entropy", {x, target, weight}), {(2 * a + 0.5 * b + c) / 3.5});
  expect_near(one("cross_entropy", {x, target, weight, -100, "sum"}), {2 * a + 0.5 * b + c});
  // Smoothing 0.3: 0.7 of the target's loss, 0.1 of each class's.
  const double all = -(log_p({1, 2, 3}, 0) + log_p({1, 2, 3}, 1) + log_p({1, 2, 3}, 2));
  expect_near(
      one("cross_entropy", {one("narrow", {x, 0, 0, 1}), tensor({1}, {2}, DType::Int64), Value(), -100, "mean", 0.3}),
      {0.7 * a + 0.1 * all});
  expect_near(one("nll_loss", {one("log_softmax", {x}), target, weight}), {(2 * a + 0.5 * b + c) / 3.5});
  expect_near(one("cross_entropy", {tensor({3}, {1, 2, 3}), tensor({}, {2}, DType::Int32)}), {a});
  EXPECT_THROW(one("cross_entropy", {x, tensor({3}, {0, 1, 3}, DType::Int32)}), Error);
  EXPECT_THROW(one("cross_entropy", {x, tensor({2}, {0, 1}, DType::Int32)}), Error);
  EXPECT_THROW(one("cross_entropy", {x, target, tensor({2}, {1, 1})}), Error);
  EXPECT_THROW(one("cross_entropy", {x, target, Value(), -100, "average"}), Error);
}

TEST(CrossEntropy, HigherRanksAndProbabilities) {
  const Tensor x = sample({2, 3, 4}), target = tensor({2, 4}, {0, 1, 2, 0, 2, 2, 1, 0}, DType::Int32);
  const Tensor loss = one("cross_entropy", {x, target, Value(), -100, "none"});
  EXPECT_EQ(loss.shape(), (Shape{2, 4}));
  const Tensor dense = one("one_hot", {target, 3, 1.0, 0.0, 1});
  expect_same(one("cross_entropy", {x, dense, Value(), -100, "none"}), loss);
  const Tensor rows = one("reshape", {one("transpose", {x, Ints{0, 2, 1}}), Ints{8, 3}});
  expect_near(one("cross_entropy", {rows, one("reshape", {target, Ints{8}}), Value(), -100, "none"}), elements(loss));
}

TEST(CrossEntropy, Gradients) {
  const Tensor x = sample({4, 3}, DType::Float64), target = tensor({4}, {2, 0, 1, 0}, DType::Int32),
               weight = tensor({3}, {0.5, 1, 2}, DType::Float64);
  for (const char* how : {"none", "mean", "sum"}) {
    check_gradients(
        [&](std::span<const Tensor> in) {
          return one("cross_entropy", {in[0], target, weight, 1, how});
        },
        {x});
    check_gradients(
        [&](std::span<const Tensor> in) {
          return one("cross_entropy", {in[0], target, weight, 1, how, 0.2});
        },
        {x});
    check_gradients([&](std::span<const Tensor> in) { return one("nll_loss", {in[0], target, weight, 1, how}); }, {x});
  }
  const Tensor probabilities = one("softmax", {sample({4, 3}, DType::Float64, 7)});
  check_gradients([](std::span<const Tensor> in) { return one("cross_entropy", {in[0], in[1]}); }, {x, probabilities});
  const Tensor images = sample({2, 3, 2}, DType::Float64), labels = tensor({2, 2}, {0, 1, 2, 1}, DType::Int64);
  check_gradients([&](std::span<const Tensor> in) { return one("cross_entropy", {in[0], labels}); }, {images});
}

TEST(CrossEntropy, ManyClasses) {
  const Tensor x = sample({40, 3000}), target = one("cast", {one("arange", {0, 40 * 70, 70}), DType::Int32});
  const Tensor plain =
      one("neg", {one("sum", {one("mul", {one("log_softmax", {x}), one("one_hot", {target, 3000, 1.0, 0.0})}), 1})});
  expect_same(one("cross_entropy", {x, target, Value(), -100, "none"}), plain, 1e-4);
}

TEST(Loss, Values) {
  const Tensor x = tensor({2}, {1, 3}), y = tensor({2}, {0.5, 5});
  expect_near(one("mse_loss", {x, y}), {(0.25 + 4) / 2});
  expect_near(one("l1_loss", {x, y, "sum"}), {2.5});
  expect_near(one("smooth_l1_loss", {x, y}), {0.125, 1.5});
  expect_near(one("huber_loss", {x, y, "none", 1.5}), {0.125, 1.5 * (2 - 0.75)});
  const Tensor p = tensor({2}, {0.2, 0.9}), t = tensor({2}, {0, 1});
  expect_near(one("binary_cross_entropy", {p, t}), {-(std::log(0.8) + std::log(0.9)) / 2});
  expect_near(one("binary_cross_entropy", {tensor({2}, {0, 1}), tensor({2}, {1, 0}), Value(), "none"}),
              {27.631021, 27.631021});
  expect_near(one("binary_cross_entropy_with_logits", {tensor({1}, {0.3}), tensor({1}, {1})}),
              {std::log1p(std::exp(-0.3))});
  expect_near(
      one("binary_cross_entropy_with_logits", {tensor({1}, {0.3}), tensor({1}, {1}), Value(), tensor({1}, {3})}),
      {3 * std::log1p(std::exp(-0.3))});
  expect_near(one("kl_div", {tensor({1, 2}, {-1, -2}), tensor({1, 2}, {0.5, 0}), "batchmean"}),
              {0.5 * (std::log(0.5) + 1)});
  expect_near(one("cosine_similarity", {tensor({1, 2}, {3, 4}), tensor({1, 2}, {4, 3})}), {0.96});
  expect_near(one("cosine_embedding_loss",
                  {tensor({2, 2}, {3, 4, 3, 4}), tensor({2, 2}, {4, 3, 4, 3}), tensor({2}, {1, -1}), 0.5, "none"}),
              {0.04, 0.46});
  expect_near(one("margin_ranking_loss", {x, y, tensor({2}, {1, 1})}), {1});
  expect_near(one("hinge_embedding_loss", {tensor({2}, {0.3, 0.3}), tensor({2}, {1, -1}), 1.0, "none"}), {0.3, 0.7});
  expect_near(one("soft_margin_loss", {tensor({1}, {0.5}), tensor({1}, {-1})}), {std::log1p(std::exp(0.5))});
  expect_near(one("triplet_margin_loss",
                  {tensor({1, 2}, {0, 0}), tensor({1, 2}, {3, 4}), tensor({1, 2}, {0, 1}), 1.0, 2.0, 0.0}),
              {5});
  expect_near(one("multi_margin_loss", {tensor({1, 3}, {0.1, 0.2, 0.7}), tensor({1}, {2}, DType::Int64)}),
              {(0.4 + 0.5) / 3});
  expect_near(one("gaussian_nll_loss", {tensor({1}, {1}), tensor({1}, {3}), tensor({1}, {2})}),
              {0.5 * (std::log(2.0) + 2)});
}

TEST(Loss, Gradients) {
  const Tensor x = sample({3, 4}, DType::Float64), y = sample({3, 4}, DType::Float64, 2), p = one("sigmoid", {x});
  const Tensor positive = one("add", {one("mul", {y, y}), 0.5}),
               signs = one("sign", {sample({3, 4}, DType::Float64, 5)});
  for (const char* name : {"mse_loss", "l1_loss", "soft_margin_loss", "binary_cross_entropy_with_logits", "kl_div",
                           "multilabel_soft_margin_loss", "cosine_similarity", "squared_difference"}) {
    SCOPED_TRACE(name);
    check_gradients([&](std::span<const Tensor> in) { return one(name, {in[0], in[1]}); }, {x, positive});
  }
  check_gradients([](std::span<const Tensor> in) { return one("smooth_l1_loss", {in[0], in[1], 0.7}); }, {x, y});
  check_gradients([](std::span<const Tensor> in) { return one("huber_loss", {in[0], in[1], "mean", 0.7}); }, {x, y});
  check_gradients(
      [](std::span<const Tensor> in) {
        return one("binary_cross_entropy", {in[0], in[1]});
      },
      {p, one("sigmoid", {y})}, 1e-5);
  check_gradients(
      [&](std::span<const Tensor> in) {
        return one("gaussian_nll_loss", {in[0], in[1], in[2]});
      },
      {x, y, positive});
  check_gradients([&](std::span<const Tensor> in) { return one("hinge_embedding_loss", {in[0], signs}); }, {x});
  check_gradients(
      [](std::span<const Tensor> in) {
        return one("triplet_margin_loss", {in[0], in[1], in[2]});
      },
      {x, y, positive});
  check_gradients(
      [](std::span<const Tensor> in) {
        return one("multi_margin_loss", {in[0], tensor({3}, {0, 3, 1}, DType::Int64), 2});
      },
      {x});
}

}  // namespace
}  // namespace morel
