// Tensors as the strided arrays that the raw kernels take, and copies between tensors.
#pragma once

#include "morel/kernels/copy.h"
#include "morel/tensor/tensor.h"

namespace morel::kernels {

inline View view_of(const Tensor& tensor) {
  return {tensor.data(), tensor.dtype(), {tensor.shape().data(), tensor.shape().size()}, {tensor.strides().data(), tensor.strides().size()}};
}

// A dense copy of the tensor, converted to `dtype`.
Tensor converted(const Tensor& tensor, DType dtype);
// Copies (and converts) the elements of `source` into `target`, broadcasting; the two may overlap.
void copy_tensor(const Tensor& target, const Tensor& source);

}  // namespace morel::kernels
