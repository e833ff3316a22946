// What the tests of operators share: small tensors from lists, comparison, gradients against finite differences.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "morel/runtime/eager.h"
#include "morel/runtime/tape.h"

namespace morel::testing {

using Function = std::function<Tensor(std::span<const Tensor>)>;

inline Tensor one(std::string_view name, std::initializer_list<Value> args) { return call(name, args)[0].tensor(); }

inline std::vector<double> elements(const Tensor& tensor) {
  const Tensor wide = convert(tensor, DType::Float64);
  return std::vector<double>(wide.as<double>(), wide.as<double>() + wide.size());
}

inline Tensor tensor(const Shape& shape, const std::vector<double>& values, DType dtype = DType::Float32) {
  const Tensor wide = Tensor::empty(shape, DType::Float64);
  std::copy(values.begin(), values.end(), wide.as<double>());
  return convert(wide, dtype);
}

// Reproducible numbers in (-1, 1), away from each other.
inline Tensor sample(const Shape& shape, DType dtype = DType::Float32, uint64_t seed = 1) {
  std::vector<double> values(static_cast<size_t>(num_elements(shape)));
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 12345;
  for (double& value : values) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    value = static_cast<double>(state >> 40) / static_cast<double>(1 << 23) - 1.0;
  }
  return tensor(shape, values, dtype);
}

inline void expect_near(const Tensor& got, const std::vector<double>& wanted, double tolerance = 1e-5) {
  const std::vector<double> values = elements(got);
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(wanted[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << "at " << i << ": " << values[i];
    } else if (std::isinf(wanted[i])) {
      EXPECT_EQ(values[i], wanted[i]) << "at " << i;
    } else {
      EXPECT_NEAR(values[i], wanted[i], tolerance * (1 + std::abs(wanted[i]))) << "at " << i;
    }
  }
}

inline void expect_same(const Tensor& got, const Tensor& wanted, double tolerance = 1e-5) {
  ASSERT_EQ(to_string(got.shape()), to_string(wanted.shape()));
  expect_near(got, elements(wanted), tolerance);
}

// Gradients of sum(fn(inputs) * weights), with fixed weights for the elements of the result.
inline std::vector<Tensor> gradients(const Function& fn, std::span<const Tensor> inputs) {
  const GradScope scope;
  std::vector<Tensor> places;
  for (const Tensor& input : inputs) places.push_back(make_input(input));
  const Tensor out = fn(places);
  const Value seed = sample(out.shape(), out.dtype(), 99);
  const Values grads = backward({&out, 1}, {&seed, 1}, places, true);
  std::vector<Tensor> result;
  for (size_t i = 0; i < inputs.size(); ++i)
    result.push_back(grads[i].is_none() ? Tensor::full(inputs[i].shape(), inputs[i].dtype(), 0) : grads[i].tensor());
  return result;
}

inline double weighted_sum(const Function& fn, std::span<const Tensor> inputs) {
  const Tensor out = fn(inputs);
  const std::vector<double> values = elements(out), weights = elements(sample(out.shape(), out.dtype(), 99));
  double total = 0;
  for (size_t i = 0; i < values.size(); ++i) total += values[i] * weights[i];
  return total;
}

// Gradients of fn at float64 inputs against central differences.
inline void check_gradient(const Function& fn, const std::vector<Tensor>& inputs, double tolerance = 1e-6) {
  const std::vector<Tensor> grads = gradients(fn, inputs);
  for (size_t k = 0; k < inputs.size(); ++k) {
    ASSERT_EQ(to_string(grads[k].shape()), to_string(inputs[k].shape())) << "input " << k;
    if (!is_float(inputs[k].dtype())) continue;
    const std::vector<double> got = elements(grads[k]), values = elements(inputs[k]);
    constexpr double step = 1e-5;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto at = [&](double delta) {
        std::vector<double> moved = values;
        moved[i] += delta;
        std::vector<Tensor> others = inputs;
        others[k] = tensor(inputs[k].shape(), moved, DType::Float64);
        return weighted_sum(fn, others);
      };
      const double wanted = (at(step) - at(-step)) / (2 * step);
      EXPECT_NEAR(got[i], wanted, tolerance * (1 + std::abs(wanted))) << "input " << k << ", element " << i;
    }
  }
}

// First gradients, and the gradients of each of them.
inline void check_gradients(const Function& fn, const std::vector<Tensor>& inputs, double tolerance = 1e-6) {
  check_gradient(fn, inputs, tolerance);
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!is_float(inputs[k].dtype())) continue;
    SCOPED_TRACE("second gradient, of that of input " + std::to_string(k));
    check_gradient([&](std::span<const Tensor> at) { return gradients(fn, at)[k]; }, inputs, tolerance * 10);
  }
}

}  // namespace morel::testing
