// Comparisons, logic, bits.
#include "ops_support.h"

namespace morel {
namespace {

using namespace morel::testing;  // NOLINT

TEST(Compare, Values) {
  const Tensor x = tensor({4}, {1, 2, std::nan(""), 3}), y = tensor({4}, {1, 3, std::nan(""), 2});
  expect_near(one("equal", {x, y}), {1, 0, 0, 0});
  expect_near(one("not_equal", {x, y}), {0, 1, 1, 1});
  expect_near(one("less", {x, y}), {0, 1, 0, 0});
  expect_near(one("less_equal", {x, y}), {1, 1, 0, 0});
  expect_near(one("greater", {x, 1.5}), {0, 1, 0, 1});
  expect_near(one("greater_equal", {2, x}), {1, 1, 0, 0});
  EXPECT_EQ(one("equal", {x, y}).dtype(), DType::Bool);
  EXPECT_EQ(one("less", {sample({2, 1}), sample({3})}).shape(), (Shape{2, 3}));
  EXPECT_THROW(one("less", {sample({2}), sample({3})}), Error);
  EXPECT_THROW(one("less", {one("complex", {x, y}), x}), Error);
  expect_near(one("equal", {tensor({2}, {1, 0}, DType::Bool), tensor({2}, {1, 1}, DType::Int64)}), {1, 0});
}

TEST(Compare, Logic) {
  const Tensor x = tensor({4}, {0, 0, 2, 2}), y = tensor({4}, {0, 1, 0, -1}, DType::Int32);
  expect_near(one("logical_and", {x, y}), {0, 0, 0, 1});
  expect_near(one("logical_or", {x, y}), {0, 1, 1, 1});
  expect_near(one("logical_xor", {x, y}), {0, 1, 1, 0});
  expect_near(one("logical_not", {x}), {1, 1, 0, 0});
  expect_near(one("isnan", {tensor({2}, {std::nan(""), 1})}), {1, 0});
  expect_near(one("isinf", {tensor({2}, {-INFINITY, 1})}), {1, 0});
  expect_near(one("isfinite", {tensor({3}, {-INFINITY, 1, std::nan("")})}), {0, 1, 0});
  expect_near(one("isfinite", {y}), {1, 1, 1, 1});
  expect_near(one("isnan", {y}), {0, 0, 0, 0});
}

TEST(Compare, Bits) {
  const Tensor x = tensor({2}, {12, -1}, DType::Int8), y = tensor({2}, {10, 3}, DType::Int8);
  expect_near(one("bitwise_and", {x, y}), {8, 3});
  expect_near(one("bitwise_or", {x, y}), {14, -1});
  expect_near(one("bitwise_xor", {x, y}), {6, -4});
  expect_near(one("bitwise_not", {x}), {-13, 0});
  expect_near(one("bitwise_left_shift", {x, 2}), {48, -4});
  expect_near(one("bitwise_right_shift", {x, 2}), {3, -1});
  expect_near(one("bitwise_xor", {tensor({2}, {1, 0}, DType::Bool), true}), {0, 1});
  EXPECT_THROW(one("bitwise_and", {sample({2}), sample({2})}), Error);
}

TEST(Compare, Close) {
  const Tensor x = tensor({5}, {1, 1, INFINITY, std::nan(""), INFINITY}),
               y = tensor({5}, {1 + 1e-6, 1.1, INFINITY, std::nan(""), 5});
  expect_near(one("isclose", {x, y}), {1, 0, 1, 0, 0});
  expect_near(one("isclose", {x, y, 0.2, 0.0, true}), {1, 1, 1, 1, 0});
  EXPECT_THROW(one("isclose", {x, y, -1.0}), Error);
}

}  // namespace
}  // namespace morel
