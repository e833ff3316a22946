// Reductions: every arrangement of axes and strides against a plain loop, sizes that are split into tasks, identities,
// errors.
#include <complex>

#include "morel/base/thread_pool.h"
#include "ops_support.h"

namespace morel {
namespace {

using namespace morel::testing;  // NOLINT

// Reference: sums over axes, in float64.
std::vector<double> reduce_plainly(const Tensor& input, const Ints& axes,
                                   const std::function<double(double, double)>& fn, double start) {
  const std::vector<double> values = elements(input);
  const Shape out_shape = reduced_shape(input.shape(), axes, false);
  std::vector<double> out(static_cast<size_t>(num_elements(out_shape)), start);
  const Strides strides = contiguous_strides(out_shape);
  Shape at(input.shape().size(), 0);
  for (const double value : values) {
    int64_t place = 0;
    size_t next = 0, k = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) {
      if (next < axes.size() && axes[next] == static_cast<int64_t>(axis)) ++next;
      else place += at[axis] * strides[k++];
    }
    out[static_cast<size_t>(place)] = fn(out[static_cast<size_t>(place)], value);
    for (size_t axis = at.size(); axis-- > 0;) {
      if (++at[axis] < input.shape()[axis]) break;
      at[axis] = 0;
    }
  }
  return out;
}

double add(double x, double y) { return x + y; }

Ints axes_from_bits(unsigned bits) {
  Ints out;
  for (int64_t axis = 0; axis < 8; ++axis)
    if (bits >> axis & 1) out.push_back(axis);
  return out;
}

TEST(Reduce, EverySetOfAxesAndOrder) {
  const Tensor base = sample({3, 4, 5, 6});
  const Ints orders[] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 3, 1}, {1, 3, 0, 2}};
  for (const Ints& order : orders) {
    const Tensor input = one("transpose", {base, order});
    for (unsigned bits = 1; bits < 16; ++bits) {
      const Ints axes = axes_from_bits(bits);
      SCOPED_TRACE(to_string(Shape(order)) + " over " + to_string(Shape(axes)));
      expect_near(one("sum", {input, axes}), reduce_plainly(input, axes, add, 0));
      expect_near(one("reduce_max", {input, axes}),
                  reduce_plainly(
                      input, axes, [](double x, double y) { return std::max(x, y); }, -1e30));
      EXPECT_EQ(one("sum", {input, axes, true}).shape(), reduced_shape(input.shape(), axes, true));
    }
  }
}

TEST(Reduce, StridedAndBroadcastInputs) {
  const Tensor base = sample({8, 9, 10});
  const Tensor sliced = one("strided_slice", {base, Ints{1, 8, 0}, Ints{8, -20, 10}, Ints{2, -2, 3}});
  const Tensor wide = one("broadcast_to", {sample({5, 1, 7}), Ints{5, 6, 7}});
  for (const Tensor& input : {sliced, wide})
    for (unsigned bits = 1; bits < 8; ++bits)
      expect_near(one("sum", {input, axes_from_bits(bits)}), reduce_plainly(input, axes_from_bits(bits), add, 0));
}

TEST(Reduce, LargeShapes) {
  const Shape shapes[] = {{300000},   {3, 100000},  {100000, 3},   {20001, 17}, {5000, 100},
                          {70, 3000}, {40, 50, 60}, {2, 40000, 5}, {200000, 1}};
  for (const Shape& shape : shapes) {
    const Tensor input = sample(shape, DType::Float64);
    for (unsigned bits = 1; bits < (1u << shape.size()); ++bits) {
      SCOPED_TRACE(to_string(shape) + " over " + to_string(Shape(axes_from_bits(bits))));
      const Ints axes = axes_from_bits(bits);
      expect_near(one("sum", {input, axes}), reduce_plainly(input, axes, add, 0), 1e-9);
      expect_near(one("reduce_min", {input, axes}),
                  reduce_plainly(
                      input, axes, [](double x, double y) { return std::min(x, y); }, 1e30),
                  0);
    }
  }
}

TEST(Reduce, SameBitsForEveryNumberOfThreads) {
  const int before = num_threads();
  for (const Shape& shape : {Shape{300000}, Shape{20001, 17}, Shape{700, 900}, Shape{3, 100000}, Shape{17, 300, 40}}) {
    const Tensor input = sample(shape);
    for (unsigned bits = 1; bits < (1u << shape.size()); ++bits) {
      std::vector<double> first;
      for (const int threads : {1, 2, 3}) {
        set_num_threads(threads);
        const std::vector<double> got = elements(one("sum", {input, axes_from_bits(bits)}));
        if (threads == 1) first = got;
        EXPECT_EQ(got, first) << to_string(shape) << " with " << threads << " threads";
      }
    }
  }
  set_num_threads(before);
}

TEST(Reduce, Types) {
  const Tensor ints = tensor({2, 2}, {100, 100, 100, 27}, DType::Int8);
  EXPECT_EQ(one("sum", {ints}).dtype(), DType::Int64);
  expect_near(one("sum", {ints}), {327});
  expect_near(one("prod", {ints, 1}), {10000, 2700});
  EXPECT_EQ(one("sum", {ints, Value(), false, DType::Float32}).dtype(), DType::Float32);
  EXPECT_EQ(one("sum", {ints, Value(), false, DType::Int8}).dtype(), DType::Int8);
  expect_near(one("sum", {tensor({3}, {1, 0, 1}, DType::Bool)}), {2});
  // 4096 ones: float16 sums would stop at 2048.
  const Tensor halves = Tensor::full({4096}, DType::Float16, 1.0);
  EXPECT_EQ(one("sum", {halves}).dtype(), DType::Float16);
  expect_near(one("sum", {halves}), {4096});
  expect_near(one("mean", {halves}), {1});
  expect_near(one("sum", {Tensor::full({100, 2000}, DType::BFloat16, 1.0), 0}), std::vector<double>(2000, 100));
  expect_near(one("mean", {tensor({2}, {3, 4}, DType::Int32)}), {3});
  EXPECT_THROW(one("mean", {tensor({2}, {1, 0}, DType::Bool)}), Error);
  const Tensor pair = Tensor::empty({2}, DType::Complex64);
  pair.as<std::complex<float>>()[0] = {1, 2};
  pair.as<std::complex<float>>()[1] = {3, -1};
  EXPECT_EQ(*one("sum", {pair}).as<std::complex<float>>(), std::complex<float>(4, 1));
  EXPECT_EQ(*one("prod", {pair}).as<std::complex<float>>(), std::complex<float>(5, 5));
}

TEST(Reduce, Empty) {
  const Tensor empty = Tensor::empty({0, 3}, DType::Float32);
  expect_near(one("sum", {empty, 0}), {0, 0, 0});
  expect_near(one("prod", {empty}), {1});
  expect_near(one("sum", {empty, 1}), std::vector<double>{});
  expect_near(one("mean", {empty}), {std::nan("")});
  expect_near(one("all", {empty, 0}), {1, 1, 1});
  expect_near(one("any", {empty}), {0});
  EXPECT_THROW(one("reduce_max", {empty}), Error);
  EXPECT_THROW(one("argmin", {empty, 0}), Error);
  EXPECT_EQ(one("reduce_max", {empty, 1}).size(), 0);
}

TEST(Reduce, Scalars) {
  expect_near(one("sum", {tensor({}, {3})}), {3});
  expect_near(one("sum", {tensor({}, {3}), 0, true}), {3});
  expect_near(one("argmax", {tensor({}, {3})}), {0});
  expect_near(one("sum", {sample({1, 1}), 0}), elements(sample({1})));
  expect_near(one("sum", {sample({2, 1, 3}), 1}), elements(sample({6})));
}

TEST(Reduce, Positions) {
  const Tensor x = tensor({2, 3}, {1, 5, 5, 7, 2, 7});
  expect_near(one("argmax", {x}), {3});
  expect_near(one("argmax", {x, 1}), {1, 0});
  expect_near(one("argmin", {x, 0}), {0, 1, 0});
  EXPECT_EQ(one("argmax", {x, -1, true}).shape(), (Shape{2, 1}));
  const Tensor swapped = one("transpose", {x, Ints{1, 0}});
  expect_near(one("argmax", {swapped}), {1});
  expect_near(one("argmax", {swapped, 0, true}), {1, 0});
  expect_near(one("argmax", {tensor({3}, {1, std::nan(""), 2})}), {1});
  const Tensor last = sample({200000});
  last.as<float>()[170001] = 2;
  last.as<float>()[170002] = 2;
  expect_near(one("argmax", {last}), {170001});
  last.as<float>()[190000] = std::nanf("");
  expect_near(one("argmin", {last}), {190000});
  EXPECT_EQ(one("argmin", {x, 0, false, DType::Int32}).dtype(), DType::Int32);
}

TEST(Reduce, Composites) {
  const Tensor x = tensor({2, 3}, {1, 2, 3, 4, 5, 9});
  expect_near(one("mean", {x, 1}), {2, 6});
  expect_near(one("var", {x, 1}), {2.0 / 3, 14.0 / 3});
  expect_near(one("var", {x, 1, 1}), {1, 7});
  expect_near(one("std", {x}), {std::sqrt(20.0 / 3)});
  expect_near(one("logsumexp", {x, 1}),
              {std::log(std::exp(1) + std::exp(2) + std::exp(3)), std::log(std::exp(4) + std::exp(5) + std::exp(9))});
  expect_near(one("logsumexp", {tensor({2}, {-INFINITY, -INFINITY}), 0}), {-INFINITY});
  expect_near(one("count_nonzero", {tensor({4}, {0, 1, 0, 2})}), {2});
  expect_near(one("norm", {x}), {std::sqrt(136.0)});
  expect_near(one("norm", {x, 1}), {12});
  expect_near(one("norm", {x, INFINITY}), {18});
  expect_near(one("vector_norm", {x, 1, 1}), {6, 18});
  expect_near(one("vector_norm", {x, 3.0, 1}), {std::cbrt(36.0), std::cbrt(64.0 + 125 + 729)});
  const Values largest = call("max", {x, 1});
  expect_near(largest[0].tensor(), {3, 9});
  expect_near(largest[1].tensor(), {2, 2});
  expect_near(call("min", {x})[0].tensor(), {1});
  expect_near(one("amax", {x, Ints{0, 1}}), {9});
  expect_near(one("amax", {x, 0, false, 4.5}), {4.5, 5, 9});
  expect_near(one("sum_to", {x, Ints{3}}), {5, 7, 12});
  expect_near(one("sum_to", {x, Ints{2, 1}}), {6, 18});
  expect_near(one("sum_to", {x, Ints{}}), {24});
}

TEST(Reduce, Errors) {
  const Tensor x = sample({2, 3});
  EXPECT_THROW(one("sum", {x, 2}), Error);
  EXPECT_THROW(one("sum", {x, Ints{0, 0}}), Error);
  EXPECT_THROW(one("sum", {x, 1.5}), Error);
  try {
    one("sum", {x, 5});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Value);
    EXPECT_NE(error.message().find("'axis'"), std::string::npos) << error.message();
  }
}

TEST(Reduce, Gradients) {
  const Tensor x = sample({3, 4}, DType::Float64);
  for (const char* name : {"sum", "mean", "prod", "reduce_max", "var", "std", "vector_norm", "logsumexp"}) {
    SCOPED_TRACE(name);
    const bool norm = std::string_view(name) == "vector_norm";
    check_gradients(
        [&](std::span<const Tensor> in) {
          return norm ? one(name, {in[0], 2.0, 1}) : one(name, {in[0], 1});
        },
        {x});
    check_gradients(
        [&](std::span<const Tensor> in) {
          return norm ? one(name, {in[0], 3.0, Ints{0, 1}}) : one(name, {in[0], Ints{0, 1}});
        },
        {x});
  }
  check_gradients([](std::span<const Tensor> in) { return one("max", {in[0], 1}); }, {x});
  check_gradients([](std::span<const Tensor> in) { return one("min", {in[0]}); }, {x});
  check_gradients([](std::span<const Tensor> in) { return one("sum_to", {in[0], Ints{3, 1}}); }, {x});
  // One zero: the other product; two: nothing.
  check_gradient(
      [](std::span<const Tensor> in) {
        return one("prod", {in[0], 1});
      },
      {tensor({2, 3}, {0, 2, 3, 0, 0, 5}, DType::Float64)});
}

}  // namespace
}  // namespace morel
