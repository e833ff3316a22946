// Moving and converting elements between strided arrays: the kernel below every view, cast, contiguous(), concat and
// setitem.
#pragma once

#include <cstdint>
#include <span>

#include "morel/base/small_vector.h"
#include "morel/tensor/dtype.h"

namespace morel::kernels {

// A strided array: strides in elements, negative or zero ones allowed (zero in a written array only for axes of size
// 1).
struct ConstView {
  const void* data;
  DType dtype;
  std::span<const int64_t> shape;
  std::span<const int64_t> strides;
};
struct View {
  void* data;
  DType dtype;
  std::span<const int64_t> shape;
  std::span<const int64_t> strides;
  operator ConstView() const { return {data, dtype, shape, strides}; }
};

int64_t count_elements(std::span<const int64_t> shape);
// Numbers of a dense row-major array.
Numbers dense_strides(std::span<const int64_t> shape);

// target = source, converted to the target's dtype; equal shapes; the arrays must not overlap unless they are the same
// elements. Float to integer truncates; a value outside the integer's range gives an unspecified one. To bool: not
// equal to zero. Complex to real takes the real part. Wide to half types round once, to nearest even.
void copy(const View& target, const ConstView& source);
// The same for n dense elements.
void convert(void* target, DType target_dtype, const void* source, DType source_dtype, int64_t n);

// target[..., i, ...] = source[..., n - 1 - i, ...] along `axes`.
void flip(const View& target, const ConstView& source, std::span<const int64_t> axes);
// target[..., (i + shift) mod n, ...] = source[..., i, ...] along each axis; an axis may occur more than once.
void roll(const View& target, const ConstView& source, std::span<const int64_t> shifts, std::span<const int64_t> axes);
// The sources one after another along `axis`; converts dtypes.
void concat(const View& target, std::span<const ConstView> sources, int64_t axis);
// Keeps the elements of the last two axes with column - row <= diagonal (lower) or >= diagonal (upper), zeros
// elsewhere.
enum class Triangle : uint8_t { Lower, Upper };
void triangle(const View& target, const ConstView& source, Triangle part, int64_t diagonal);

// Every element = *value, one element of the target's dtype.
void fill(const View& target, const void* value);
void fill_zero(const View& target);

}  // namespace morel::kernels
