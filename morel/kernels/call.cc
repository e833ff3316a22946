#include "morel/kernels/call.h"

#include "morel/kernels/tensor_view.h"

namespace morel {

Tensor KernelCall::contiguous(size_t idx) const { return contiguous(idx, args[idx].tensor_impl()->dtype); }

Tensor KernelCall::contiguous(size_t idx, DType dtype) const {
  Tensor given = tensor(idx);
  return given.is_contiguous() && given.dtype() == dtype ? given : kernels::converted(given, dtype);
}

}  // namespace morel
