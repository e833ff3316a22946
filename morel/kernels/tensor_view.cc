#include "morel/kernels/tensor_view.h"

namespace morel::kernels {

Tensor converted(const Tensor& tensor, DType dtype) {
  const Tensor out = Tensor::empty(tensor.shape(), dtype);
  if (tensor.is_contiguous()) {
    convert(out.data(), dtype, tensor.data(), tensor.dtype(), tensor.size());
  } else {
    copy(view_of(out), view_of(tensor));
  }
  return out;
}

void copy_tensor(const Tensor& target, const Tensor& given) {
  const Shape &to = target.shape(), &from = given.shape();
  const bool same = given.strides() == target.strides() && from == to && given->layout.offset == target->layout.offset;
  const Tensor source =
      given->storage.get() == target->storage.get() && !same ? converted(given, target.dtype()) : given;
  const size_t shift = to.size() - from.size();
  Strides strides(to.size(), 0);
  bool fits = from.size() <= to.size();
  for (size_t i = 0; i < from.size() && fits; ++i) {
    fits = from[i] == to[i + shift] || from[i] == 1;
    if (from[i] != 1) strides[i + shift] = source.strides()[i];
  }
  MOREL_CHECK(fits, Value, "a tensor ", describe(source.dtype(), from), " cannot be copied into one of shape ",
              to_string(to));
  copy(view_of(target), {source.data(), source.dtype(), numbers_of(to), numbers_of(strides)});
}

}  // namespace morel::kernels
