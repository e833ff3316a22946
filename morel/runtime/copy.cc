// Copies of whole tensors.
#include "morel/kernels/tensor_view.h"
#include "morel/runtime/eager.h"

namespace morel {

Tensor contiguous(const Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : kernels::converted(tensor, tensor.dtype());
}

Tensor convert(const Tensor& tensor, DType dtype) { return kernels::converted(tensor, dtype); }

void copy_into(const Tensor& target, const Tensor& source) { kernels::copy_tensor(target, source); }

}  // namespace morel
