// Tensor: a shared handle {Storage, Layout, DType, grad link}. Views share the storage, so slicing, transposing and
// broadcasting move no data, and in-place operators on views change their base.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "morel/base/error.h"
#include "morel/base/ref.h"
#include "morel/tensor/dim.h"
#include "morel/tensor/dtype.h"

namespace morel {

enum class DeviceKind : uint8_t { CPU, OpenCL };
inline constexpr int num_device_kinds = 2;
struct Device {
  DeviceKind kind = DeviceKind::CPU;
  int8_t index = 0;
  bool operator==(const Device&) const = default;
  bool is_cpu() const { return kind == DeviceKind::CPU; }
};
std::string to_string(Device device);        // "CPU", "OpenCL:0"
Device parse_device(std::string_view name);  // of any case; the index may be left out

// Bytes of one allocation. `version` counts in-place changes, so that autograd can tell when a saved tensor was
// overwritten.
class Storage final : public RefCounted {
 public:
  using Deleter = void (*)(void* data, size_t bytes, void* context);
  Storage(void* data, size_t bytes, Device device, Deleter deleter, void* context)
      : data_(data), bytes_(bytes), deleter_(deleter), context_(context), device_(device) {}
  ~Storage() override { deleter_(data_, bytes_, context_); }
  static Ref<Storage> allocate(size_t bytes, Device device = {});

  // On a device beside the CPU no address but what its memory is known by there (tensor/device.h).
  void* handle() const { return data_; }
  char* data() const { return static_cast<char*>(data_); }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  // The bytes of an arena lie elsewhere from now on; for its owner, while no kernel runs.
  void move_to(void* data) { data_ = data; }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void* data_;
  size_t bytes_;
  Deleter deleter_;
  void* context_;
  std::atomic<uint32_t> version_{0};
  Device device_;
};

// Where the elements of a tensor lie: sizes and strides in elements, offset of the first element in elements.
struct Layout {
  Shape shape;
  Strides strides;
  Dim offset = 0;
};

Dim num_elements(const Shape& shape);
Strides contiguous_strides(const Shape& shape);
std::string to_string(const Shape& shape);  // "[2,3]"

// Link to a node of the tape (runtime/tape.h) or of a graph (ir/graph.h): what produced a tensor, and which of its
// outputs it is.
struct GradLink {
  Ref<RefCounted> node;
  int32_t output = 0;
};

class Tensor;

class TensorImpl final : public RefCounted {
 public:
  Ref<Storage> storage;
  Layout layout;
  Dim size = 0;  // number of elements
  DType dtype = DType::Float32;
  bool contiguous = true;
  bool is_parameter = false;
  GradLink grad;
  // While a graph is built: the node that stands for this tensor, which then has no storage.
  GradLink symbol;
  // For a view: the tensor it was made from, and the version of the storage when `grad` was last right.
  Ref<TensorImpl> base;
  uint32_t grad_version = 0;
  // Rarely used facts of upper layers (gradient hooks).
  Ref<RefCounted> extra;
  // A distributed tensor: its parts (dist/shards.h); the storage is empty then.
  Ref<RefCounted> shards;

  bool is_symbolic() const { return !storage; }
  void* data() const {
    if (!storage || shards || !storage->device().is_cpu()) [[unlikely]]
      raise_no_data();
    return storage->data() + layout.offset * size_of(dtype);
  }

 private:
  [[noreturn]] void raise_no_data() const;
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  // Uninitialised, contiguous.
  static Tensor empty(const Shape& shape, DType dtype, Device device = {});
  static Tensor empty_strided(const Shape& shape, const Strides& strides, DType dtype, Device device = {});
  static Tensor full(const Shape& shape, DType dtype, double value);
  static Tensor from_storage(Ref<Storage> storage, Layout layout, DType dtype);
  // A tensor of a graph that is being built: shape and dtype, no data.
  static Tensor symbolic(Layout layout, DType dtype, GradLink symbol);
  // Same storage (and parts, where distributed), another layout; no grad link.
  Tensor with_layout(Layout layout) const;

  explicit operator bool() const { return static_cast<bool>(impl_); }
  TensorImpl* operator->() const { return impl_.get(); }
  TensorImpl* get() const { return impl_.get(); }
  const Ref<TensorImpl>& impl() const { return impl_; }
  bool operator==(const Tensor& other) const { return impl_ == other.impl_; }

  const Shape& shape() const { return impl_->layout.shape; }
  const Strides& strides() const { return impl_->layout.strides; }
  int64_t dim(int64_t axis) const { return impl_->layout.shape[static_cast<size_t>(axis)]; }
  int64_t rank() const { return static_cast<int64_t>(impl_->layout.shape.size()); }
  int64_t size() const { return impl_->size; }
  DType dtype() const { return impl_->dtype; }
  Device device() const { return impl_->storage ? impl_->storage->device() : Device{}; }
  bool is_contiguous() const { return impl_->contiguous; }
  void* data() const { return impl_->data(); }
  template <class T>
  T* as() const {
    return static_cast<T*>(impl_->data());
  }

 private:
  Ref<TensorImpl> impl_;
};

// "f32[2,3]"
std::string describe(DType dtype, const Shape& shape);

}  // namespace morel
