#include "morel/kernels/tensor_view.h"

#include <algorithm>

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

Strides copy_strides(const Tensor& source, const Shape& to) {
  const Shape& from = source.shape();
  const size_t shift = to.size() - from.size();
  Strides strides(to.size(), 0);
  bool fits = from.size() <= to.size();
  for (size_t i = 0; i < from.size() && fits; ++i) {
    fits = from[i] == to[i + shift] || from[i] == 1;
    if (from[i] != 1) strides[i + shift] = source.strides()[i];
  }
  MOREL_CHECK(fits, Value, "a tensor ", describe(source.dtype(), from), " cannot be copied into one of shape ",
              to_string(to));
  return strides;
}

void copy_tensor(const Tensor& target, const Tensor& given) {
  const Shape &to = target.shape(), &from = given.shape();
  const bool same = given.strides() == target.strides() && from == to && given->layout.offset == target->layout.offset;
  const Tensor source =
      given->storage.get() == target->storage.get() && !same ? converted(given, target.dtype()) : given;
  const Strides strides = copy_strides(source, to);
  copy(view_of(target), {source.data(), source.dtype(), numbers_of(to), numbers_of(strides)});
}

bool overlaps(const Ints& size, const Ints& stride) {
  SmallVector<std::pair<int64_t, int64_t>, 6> axes;
  for (size_t i = 0; i < size.size(); ++i) {
    if (size[i] == 0) return false;
    if (size[i] > 1) axes.push_back({std::abs(stride[i]), size[i]});
  }
  std::sort(axes.begin(), axes.end());
  int64_t extent = 1;
  for (const auto& [step, count] : axes) {
    if (step < extent) return true;
    extent = step * (count - 1) + extent;
  }
  return false;
}

void check_written(const char* name, const Tensor& target) {
  if (target.size() == 0) return;
  for (size_t i = 0; i < target.shape().size(); ++i)
    MOREL_CHECK(target.shape()[i] <= 1 || target.strides()[i] != 0, Runtime, "For '", name,
                "', the tensor is a broadcast view: several of its elements share one place; copy it first");
}

}  // namespace morel::kernels
