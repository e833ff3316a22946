// What the kernels of the OpenCL table share.
#pragma once

#include "morel/runtime/eager.h"
#include "morel/runtime/opencl/device.h"
#include "morel/runtime/opencl/table.h"

namespace morel::opencl {

// The device of the call that is running.
OpenClDevice& active_device();

// The tensor in that dtype, in any order.
inline Tensor typed(const Tensor& tensor, DType dtype) {
  return tensor.dtype() == dtype ? tensor : convert(tensor, dtype);
}
// The tensor in row-major order and of that dtype; itself where it is so already.
inline Tensor dense(const Tensor& tensor, DType dtype) {
  return tensor.is_contiguous() && tensor.dtype() == dtype ? tensor : convert(tensor, dtype);
}
inline Tensor dense(const Tensor& tensor) { return dense(tensor, tensor.dtype()); }

inline Tensor empty_there(const Shape& shape, DType dtype) { return Tensor::empty(shape, dtype, current_device()); }

// [outer, n, inner] around an axis.
struct Lines {
  int64_t outer = 1, n = 1, inner = 1;
};
inline Lines lines_around(const Shape& shape, int64_t axis) {
  Lines out;
  const int64_t rank = static_cast<int64_t>(shape.size());
  if (rank == 0) return out;
  if (axis < 0) axis += rank;
  for (int64_t i = 0; i < rank; ++i)
    (i < axis ? out.outer : i == axis ? out.n : out.inner) *= shape[static_cast<size_t>(i)];
  return out;
}

inline void check_real(const char* name, DType dtype) {
  MOREL_CHECK(!is_complex(dtype), NotImplemented, "For '", name, "', complex numbers are not supported on ",
              to_string(current_device()), "; move the tensors with .to(\"CPU\")");
}

}  // namespace morel::opencl
