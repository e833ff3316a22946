#include "morel/tensor/tensor.h"

#include "morel/tensor/allocator.h"
#include "morel/tensor/device.h"

namespace morel {

Ref<Storage> Storage::allocate(size_t bytes, Device device) {
  if (!device.is_cpu()) return device_memory(device).allocate(bytes);
  void* data = morel::allocate(bytes);
  return make_ref<Storage>(
      data, bytes, Device{}, [](void* block, size_t size, void*) { deallocate(block, size); }, nullptr);
}

Dim num_elements(const Shape& shape) {
  int64_t count = 1;
  Dim symbolic = 1;
  for (const Dim dim : shape) {
    if (dim.is_symbolic()) {
      symbolic *= dim;
    } else {
      MOREL_CHECK(!__builtin_mul_overflow(count, dim.code(), &count), Value, "a tensor of shape ", to_string(shape),
                  " is too large");
    }
  }
  return symbolic * count;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides(shape.size(), 1);
  Dim stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    if (shape[i] > 1) stride *= shape[i];
  }
  return strides;
}

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? "," : "") + to_string(shape[i]);
  return out + "]";
}

std::string describe(DType dtype, const Shape& shape) { return std::string(info(dtype).short_name) + to_string(shape); }

namespace {

bool has_contiguous_strides(const Layout& layout) {
  Dim stride = 1;
  for (size_t i = layout.shape.size(); i-- > 0;) {
    if (layout.shape[i] == 0) return true;
    if (layout.shape[i] == 1) continue;
    if (layout.strides[i] != stride) return false;
    stride *= layout.shape[i];
  }
  return true;
}

}  // namespace

Tensor Tensor::from_storage(Ref<Storage> storage, Layout layout, DType dtype) {
  auto impl = make_ref<TensorImpl>();
  impl->storage = std::move(storage);
  impl->size = num_elements(layout.shape);
  impl->layout = std::move(layout);
  impl->dtype = dtype;
  impl->contiguous = has_contiguous_strides(impl->layout);
  return Tensor(std::move(impl));
}

Tensor Tensor::symbolic(Layout layout, DType dtype, GradLink symbol) {
  const Tensor out = from_storage(nullptr, std::move(layout), dtype);
  out->symbol = std::move(symbol);
  return out;
}

void TensorImpl::raise_no_data() const {
  MOREL_CHECK(
      !shards, Runtime,
      "the value of a distributed tensor is asked for: take full_tensor() (all processes together) or to_local()");
  MOREL_CHECK(storage, Runtime,
              "the value of a tensor is asked for while a graph is compiled, where only its shape and dtype are known; "
              "do it outside of the compiled function");
  raise(ErrorKind::Runtime, "the CPU cannot read a tensor that is on ", to_string(storage->device()),
        "; copy it first, x.to(\"CPU\")");
}

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  auto impl = make_ref<TensorImpl>();
  impl->size = num_elements(shape);
  impl->layout.shape = shape;
  impl->layout.strides = contiguous_strides(shape);
  impl->dtype = dtype;
  int64_t bytes;
  MOREL_CHECK(!__builtin_mul_overflow(static_cast<int64_t>(impl->size), size_of(dtype), &bytes), Value, "a tensor ",
              describe(dtype, shape), " is too large");
  impl->storage = Storage::allocate(static_cast<size_t>(bytes), device);
  return Tensor(std::move(impl));
}

Tensor Tensor::empty_strided(const Shape& shape, const Strides& strides, DType dtype, Device device) {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * strides[i];
  const int64_t extent = num_elements(shape) == 0 ? 0 : last + 1;
  return from_storage(Storage::allocate(static_cast<size_t>(extent * size_of(dtype)), device),
                      Layout{shape, strides, 0}, dtype);
}

Tensor Tensor::full(const Shape& shape, DType dtype, double value) {
  Tensor out = empty(shape, dtype);
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T element;
    if constexpr (std::is_same_v<T, Float16>) {
      element = to_float16(static_cast<float>(value));
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      element = to_bfloat16(static_cast<float>(value));
    } else {
      element = static_cast<T>(value);
    }
    std::fill_n(out.as<T>(), out.size(), element);
  });
  return out;
}

Tensor Tensor::with_layout(Layout layout) const {
  Tensor out = from_storage(impl_->storage, std::move(layout), impl_->dtype);
  out->shards = impl_->shards;
  return out;
}

}  // namespace morel
