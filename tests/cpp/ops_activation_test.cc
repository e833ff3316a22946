// Activations: known values, first and second gradients.
#include "morel/loops/math.h"
#include "ops_support.h"

namespace morel {
namespace {

using namespace morel::testing;  // NOLINT

const Tensor points = tensor({5}, {-2, -0.5, 0, 0.5, 2});

TEST(Activation, Values) {
  expect_near(one("relu", {points}), {0, 0, 0, 0.5, 2});
  expect_near(one("relu6", {tensor({3}, {-1, 3, 8})}), {0, 3, 6});
  expect_near(one("leaky_relu", {points, 0.1}), {-0.2, -0.05, 0, 0.5, 2});
  expect_near(one("elu", {points}), {std::expm1(-2), std::expm1(-0.5), 0, 0.5, 2});
  expect_near(one("selu", {points}), {-1.520166, -0.691758, 0, 0.525350, 2.101402});
  expect_near(one("celu", {points, 2.0}), {2 * std::expm1(-1), 2 * std::expm1(-0.25), 0, 0.5, 2});
  expect_near(one("gelu", {points}), {-0.045500, -0.154269, 0, 0.345731, 1.954500});
  expect_near(one("gelu", {points, "tanh"}), {-0.045402, -0.154286, 0, 0.345714, 1.954598});
  expect_near(one("silu", {points}), {-0.238406, -0.188770, 0, 0.311230, 1.761594});
  expect_near(one("mish", {points}), {-0.252502, -0.220744, 0, 0.375245, 1.943960});
  expect_near(one("softplus", {points}), {0.126928, 0.474077, 0.693147, 0.974077, 2.126928});
  expect_near(one("softplus", {tensor({2}, {30, -30})}), {30, std::exp(-30)});
  expect_near(one("softsign", {points}), {-2.0 / 3, -1.0 / 3, 0, 1.0 / 3, 2.0 / 3});
  expect_near(one("hardtanh", {points}), {-1, -0.5, 0, 0.5, 1});
  expect_near(one("hardswish", {points}), {-1.0 / 3, -0.5 * 2.5 / 6, 0, 0.5 * 3.5 / 6, 5.0 / 3});
  expect_near(one("hardsigmoid", {points}), {1.0 / 6, 2.5 / 6, 0.5, 3.5 / 6, 5.0 / 6});
  expect_near(one("logsigmoid", {tensor({3}, {-100, 0, 100})}), {-100, std::log(0.5), 0});
  expect_near(one("threshold", {points, 0.5, 9.0}), {9, 9, 9, 9, 2});
  expect_near(one("hardshrink", {points}), {-2, 0, 0, 0, 2});
  expect_near(one("softshrink", {points}), {-1.5, 0, 0, 0, 1.5});
  expect_near(one("tanhshrink", {points}),
              {-2 - std::tanh(-2), -0.5 - std::tanh(-0.5), 0, 0.5 - std::tanh(0.5), 2 - std::tanh(2)});
  expect_near(one("prelu", {points, tensor({1}, {0.25})}), {-0.5, -0.125, 0, 0.5, 2});
  expect_near(one("prelu", {tensor({1, 2, 2}, {-1, 1, -1, 1}), tensor({2}, {0.5, 0.1})}), {-0.5, 1, -0.1, 1});
  expect_near(one("glu", {tensor({2}, {3, 0})}), {1.5});
  expect_near(one("fast_gelu", {tensor({1}, {1})}), {1 / (1 + std::exp(-1.702))});
}

TEST(Activation, KeepsHalvesAndRefusesIntegers) {
  EXPECT_EQ(one("gelu", {one("cast", {points, DType::Float16})}).dtype(), DType::Float16);
  EXPECT_EQ(one("relu", {tensor({2}, {-3, 4}, DType::Int32)}).dtype(), DType::Int32);
  EXPECT_THROW(one("gelu", {tensor({2}, {-3, 4}, DType::Int32)}), Error);
  EXPECT_THROW(one("gelu", {points, "other"}), Error);
  EXPECT_THROW(one("softmax", {tensor({2}, {-3, 4}, DType::Int32)}), Error);
}

TEST(Activation, Softmax) {
  expect_near(one("softmax", {tensor({2, 2}, {0, std::log(3.0), 1000, 1000})}), {0.25, 0.75, 0.5, 0.5});
  expect_near(one("softmax", {tensor({2, 2}, {0, std::log(3.0), std::log(3.0), 0}), 0}), {0.25, 0.75, 0.75, 0.25});
  expect_near(one("log_softmax", {tensor({2}, {0, std::log(3.0)})}), {std::log(0.25), std::log(0.75)});
  expect_near(one("softmax", {tensor({2}, {-INFINITY, 0})}), {0, 1});
  EXPECT_EQ(one("softmax", {tensor({2}, {1, 2}, DType::Float16), -1, DType::Float32}).dtype(), DType::Float32);
  const Tensor x = sample({3, 5, 7});
  for (const int axis : {0, 1, 2, -1, -2}) {
    const Tensor total = one("sum", {one("softmax", {x, axis}), axis});
    expect_near(total, std::vector<double>(static_cast<size_t>(total.size()), 1.0));
    expect_same(one("exp", {one("log_softmax", {x, axis})}), one("softmax", {x, axis}));
    const Tensor moved = one("transpose", {x, Ints{2, 0, 1}});
    expect_same(one("softmax", {moved, axis}), one("softmax", {contiguous(moved), axis}));
  }
  EXPECT_THROW(one("softmax", {x, 3}), Error);
  EXPECT_EQ(one("softmax", {Tensor::empty({0, 3}, DType::Float32)}).size(), 0);
  EXPECT_EQ(one("softmax", {Tensor::empty({3, 0}, DType::Float32)}).size(), 0);
  expect_near(one("softmax", {tensor({}, {7}), 0}), {1});
  // Rows side by side: other memory orders, short rows, several outer axes, halves.
  for (const Shape& shape :
       {Shape{40, 50}, Shape{9, 40, 50}, Shape{200, 3}, Shape{3, 2000}, Shape{5, 6, 7, 8}, Shape{2, 300, 70}}) {
    const Tensor y = sample(shape);
    for (int64_t axis = 0; axis < y.rank(); ++axis) {
      SCOPED_TRACE(to_string(shape) + " along " + std::to_string(axis));
      const Tensor e = one("exp", {y});
      const Tensor plain = one("true_divide", {e, one("sum", {e, axis, true})});
      expect_same(one("softmax", {y, axis}), plain);
      const int64_t last = y.rank() - 1;
      expect_same(one("softmax", {one("swapaxes", {y, 0, last}), last - axis == last ? last
                                                                 : axis == last      ? 0
                                                                                     : axis}),
                  one("swapaxes", {plain, 0, last}));
      expect_same(one("softmax", {one("cast", {y, DType::BFloat16}), axis}), one("cast", {plain, DType::BFloat16}),
                  0.02);
    }
  }
  const Tensor large = sample({700, 300});
  expect_near(one("sum", {one("softmax", {large}), 1}), std::vector<double>(700, 1.0));
}

TEST(Activation, ExponentialOfNonPositiveNumbers) {
  loops::ProgramBuilder builder("exp_nonpositive");
  const loops::Expr x = builder.input(DType::Float32);
  const int64_t out = builder.output(DType::Float32);
  builder.store(out, loops::exp_nonpositive(x));
  const loops::Program program = builder.finish();
  std::vector<float> in{0, -0.0f, -87.68f, -87.7f, -1000, -INFINITY, std::nanf("7")};
  for (float value = -1e-8f; value > -87.68f; value *= 1.00001f) in.push_back(value);
  std::vector<float> got(in.size());
  char* pointers[] = {reinterpret_cast<char*>(in.data()), reinterpret_cast<char*>(got.data())};
  const int64_t row_strides[] = {0, 0}, strides[] = {4, 4};
  loops::interpret(program, {1, static_cast<int64_t>(in.size()), pointers, row_strides, strides, nullptr});
  for (size_t i = 0; i < in.size(); ++i) {
    const double wanted = std::exp(static_cast<double>(in[i]));
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(got[i]));
    } else if (in[i] < -87.69f) {
      EXPECT_EQ(got[i], 0);
    } else {
      EXPECT_NEAR(got[i], wanted, std::max(2e-7 * wanted, 1e-44)) << in[i];
    }
  }
}

TEST(Activation, Gradients) {
  // Away from the kinks of the piecewise functions.
  const Tensor x = tensor({2, 4}, {-3.3, -1.7, -0.31, -0.12, 0.27, 0.63, 1.9, 3.7}, DType::Float64);
  for (const char* name :
       {"relu",       "relu6",      "leaky_relu", "elu",      "selu",      "celu",        "gelu",       "silu",
        "mish",       "softplus",   "softsign",   "hardtanh", "hardswish", "hardsigmoid", "logsigmoid", "hardshrink",
        "softshrink", "tanhshrink", "fast_gelu",  "glu",      "softmax",   "log_softmax"}) {
    SCOPED_TRACE(name);
    check_gradients([&](std::span<const Tensor> in) { return one(name, {in[0]}); }, {x});
  }
  check_gradients([](std::span<const Tensor> in) { return one("gelu", {in[0], "tanh"}); }, {x});
  check_gradients([](std::span<const Tensor> in) { return one("elu", {in[0], 0.7}); }, {x});
  check_gradients([](std::span<const Tensor> in) { return one("celu", {in[0], 0.7}); }, {x});
  check_gradients([](std::span<const Tensor> in) { return one("softplus", {in[0], 2.0, 3.0}); }, {x});
  check_gradients([](std::span<const Tensor> in) { return one("threshold", {in[0], 0.2, 5.0}); }, {x});
  check_gradients([](std::span<const Tensor> in) { return one("softmax", {in[0], 0}); }, {x});
  check_gradients(
      [](std::span<const Tensor> in) {
        return one("prelu", {in[0], in[1]});
      },
      {x, tensor({4}, {0.1, 0.2, 0.3, 0.4}, DType::Float64)});
}

}  // namespace
}  // namespace morel
