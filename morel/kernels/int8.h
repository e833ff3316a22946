// Dense layers, convolutions and sums of int8 with results of int8: sums in int32, requantised as ops/quant.cc says.
#pragma once

#include <cstdint>

#include "morel/kernels/call.h"
#include "morel/kernels/conv.h"
#include "morel/kernels/view4.h"

namespace morel {

// For each output channel; shift > 0 multiplies, shift < 0 divides.
struct Requantisation {
  const int32_t* multiplier;
  const int32_t* shift;
  int32_t input_zero, output_zero;
};

// value * multiplier / 2^31, rounded to nearest, ties up, then * 2^shift, rounded to nearest, ties away from zero.
inline int32_t requantised(int32_t value, int32_t multiplier, int32_t shift) {
  const int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
  const int64_t wide = static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(value) << left)) * multiplier;
  const int32_t high = static_cast<int32_t>((wide + (int64_t{1} << 30)) >> 31);
  const int32_t mask = static_cast<int32_t>((uint32_t{1} << right) - 1), rest = high & mask;
  return (high >> right) + (rest > (mask >> 1) + (high < 0 ? 1 : 0) ? 1 : 0);
}

// out [rows, n] = x [rows, k] times the transpose of weight [n, k], plus bias [n] (null: none); all contiguous.
void int8_dense(const int8_t* x, const int8_t* weight, const int32_t* bias, const Requantisation& to, int64_t rows,
                int64_t k, int64_t n, int8_t* out);
// weight [C_out, C_in / groups, kernel height, kernel width] contiguous; images of any strides.
void int8_convolution(const Conv2d& conv, const View4& input, const int8_t* weight, const int64_t (&kernel)[2],
                      const int32_t* bias, const Requantisation& to, const View4& output);

// (x - zero of x) * factor of x, and the same of y, added.
struct Int8Sum {
  int32_t x_factor, y_factor, x_zero, y_zero;
};
// Of n elements, with one multiplier and shift for all; `to` does not use its input_zero.
void int8_add(const int8_t* x, const int8_t* y, const Int8Sum& sum, const Requantisation& to, int64_t n, int8_t* out);

// The contiguous operands of a call of the kernel table, alive as long as it: weight and bias are arguments 1 and 2,
// multiplier, shift, input_zero and output_zero those from `first` on.
class Int8Operands {
 public:
  Int8Operands(const KernelCall& call, size_t first);
  const Tensor& weight() const { return weight_; }
  const int32_t* bias() const { return bias_ ? bias_.as<int32_t>() : nullptr; }
  const Requantisation& to() const { return to_; }

 private:
  Tensor weight_, bias_, multiplier_, shift_;
  Requantisation to_;
};

}  // namespace morel
