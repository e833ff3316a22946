// Tensors as the strided arrays that the raw kernels take, and copies between tensors.
#pragma once

#include "morel/kernels/copy.h"
#include "morel/kernels/view4.h"
#include "morel/tensor/tensor.h"

namespace morel::kernels {

inline View view_of(const Tensor& tensor) {
  return {tensor.data(), tensor.dtype(), numbers_of(tensor.shape()), numbers_of(tensor.strides())};
}

// A dense copy of the tensor, converted to `dtype`.
Tensor converted(const Tensor& tensor, DType dtype);
// Copies (and converts) the elements of `source` into `target`, broadcasting; the two may overlap.
void copy_tensor(const Tensor& target, const Tensor& source);
// Strides of `source` over `to`, to which it broadcasts; ValueError where it does not.
Strides copy_strides(const Tensor& source, const Shape& to);

// Whether two positions of the layout may be the same element. Conservative: strides must grow past what lies inside.
bool overlaps(const Ints& size, const Ints& stride);
// RuntimeError where several elements of a tensor that is written share one place.
void check_written(const char* name, const Tensor& target);

// A tensor of four axes.
inline View4 view4(const Tensor& tensor) {
  View4 out;
  out.data = tensor.data();
  for (size_t i = 0; i < 4; ++i) {
    out.size[i] = tensor.shape()[i];
    out.stride[i] = tensor.strides()[i];
  }
  return out;
}

}  // namespace morel::kernels
