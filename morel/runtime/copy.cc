// Copies of whole tensors, on the device where they are.
#include "morel/kernels/tensor_view.h"
#include "morel/runtime/device.h"
#include "morel/runtime/eager.h"

namespace morel {

Tensor contiguous(const Tensor& tensor) { return tensor.is_contiguous() ? tensor : convert(tensor, tensor.dtype()); }

Tensor convert(const Tensor& tensor, DType dtype) {
  if (tensor.device().is_cpu()) [[likely]]
    return kernels::converted(tensor, dtype);
  const Tensor out = Tensor::empty(tensor.shape(), dtype, tensor.device());
  copy_on_device(out, tensor);
  return out;
}

void copy_into(const Tensor& target, const Tensor& source) {
  if (target.device().is_cpu()) [[likely]]
    return kernels::copy_tensor(target, source);
  copy_on_device(target, source);
}

}  // namespace morel
