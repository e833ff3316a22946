// Padding of an array along all its axes, and its gradient.
#pragma once

#include <cstdint>
#include <span>

#include "morel/kernels/copy.h"

namespace morel::kernels {

enum class PadMode : uint8_t {
  Constant,
  Reflect,    // c b | a b c | b a : the edge is not repeated; needs pads < size
  Symmetric,  // b a | a b c | c b : the edge is repeated
  Replicate,  // a a | a b c | c c
  Circular,   // b c | a b c | a b
};

// target.shape[axis] = before[axis] + source.shape[axis] + (pad behind); negative pads cut elements off. `value` is one
// element of the dtype, read in Constant mode only. Errors: ValueError where a pad is too large for the mode.
void pad(const View& target, const ConstView& source, std::span<const int64_t> before, PadMode mode, const void* value);

// source_grad (dense, float32, float64, halves or complex) = for each element the sum of grad over its copies, in
// order.
void pad_backward(const View& source_grad, const ConstView& grad, std::span<const int64_t> before, PadMode mode);

}  // namespace morel::kernels
