#include "morel/runtime/device.h"

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "morel/ops/registry.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/opencl/device.h"
#include "morel/runtime/tape.h"

namespace morel {
namespace {

// The kinds of devices beside the CPU: how many there are, and how one is opened.
struct Driver {
  int (*count)();
  std::unique_ptr<DeviceRuntime> (*open)(Device device);
};
constexpr std::array<Driver, num_device_kinds> drivers = {Driver{}, Driver{opencl::device_count, opencl::open_device}};

std::atomic<Device> default_device_{Device{}};
thread_local Device scope_device;
thread_local bool in_scope = false;

std::string argument_name(const OpDef& op, size_t idx, size_t item, bool in_list) {
  const std::string name(op.schema.args[idx].name);
  return in_list ? cat(name, "[", item, "]") : name;
}

// A dense copy on another device; between two devices by way of the host.
Tensor transfer(const Tensor& tensor, Device device) {
  if (!device.is_cpu()) device_runtime(device);
  const Tensor source = contiguous(tensor);
  const size_t bytes = static_cast<size_t>(source.size() * size_of(source.dtype()));
  const Device from = tensor.device();
  if (from.is_cpu()) {
    const Tensor out = Tensor::empty(source.shape(), source.dtype(), device);
    if (bytes) device_memory(device).write(*out->storage, 0, bytes, source.data());
    return out;
  }
  const Tensor host = Tensor::empty(source.shape(), source.dtype());
  const size_t offset = static_cast<size_t>(source->layout.offset * size_of(source.dtype()));
  if (bytes) device_memory(from).read(*source->storage, offset, bytes, host.data());
  return device.is_cpu() ? host : transfer(host, device);
}

}  // namespace

int device_count(DeviceKind kind) { return kind == DeviceKind::CPU ? 1 : drivers[static_cast<size_t>(kind)].count(); }

DeviceRuntime& device_runtime(Device device) {
  MOREL_ASSERT(!device.is_cpu());
  static std::mutex mutex;
  // Never destroyed: tensors may outlive everything else.
  static auto& opened = *new std::vector<std::pair<Device, DeviceRuntime*>>;
  const std::lock_guard lock(mutex);
  for (const auto& [known, runtime] : opened)
    if (known == device) return *runtime;
  DeviceRuntime* runtime = drivers[static_cast<size_t>(device.kind)].open(device).release();
  add_device(device, *runtime);
  opened.emplace_back(device, runtime);
  return *runtime;
}

Device current_device() { return in_scope ? scope_device : default_device(); }
Device default_device() { return default_device_.load(std::memory_order_relaxed); }
void set_default_device(Device device) {
  if (!device.is_cpu()) device_runtime(device);
  default_device_.store(device, std::memory_order_relaxed);
}

DeviceScope::DeviceScope(Device device) : saved_(scope_device), had_(in_scope) {
  scope_device = device;
  in_scope = true;
}
DeviceScope::~DeviceScope() {
  scope_device = saved_;
  in_scope = had_;
}

Device device_of(const OpDef& op, std::span<const Value> args) {
  const TensorImpl* first = nullptr;
  std::string first_name;
  const auto check = [&](const Value& value, size_t idx, size_t item, bool in_list) {
    if (!value.is_tensor() || value.tensor_impl()->is_symbolic()) return;
    const TensorImpl* tensor = value.tensor_impl();
    if (!first) {
      first = tensor;
      first_name = argument_name(op, idx, item, in_list);
      return;
    }
    const Device device = tensor->storage->device(), expected = first->storage->device();
    MOREL_CHECK(device == expected, Value, "For '", display_name(op), "', all tensors must be on one device, but '",
                first_name, "' is on ", to_string(expected), " and '", argument_name(op, idx, item, in_list), "' on ",
                to_string(device), "; move one with .to(\"", to_string(device), "\")");
  };
  for (size_t i = 0; i < args.size(); ++i) {
    check(args[i], i, 0, false);
    if (!args[i].is_list()) continue;
    const Value::List& list = args[i].list();
    for (size_t k = 0; k < list.size(); ++k) check(list[k], i, k, true);
  }
  return first ? first->storage->device() : current_device();
}

Device device_of(std::span<const Value> values) {
  for (const Value& value : values)
    if (value.is_tensor() && !value.tensor_impl()->is_symbolic()) return value.tensor_impl()->storage->device();
  return current_device();
}

Tensor to_device(const Tensor& tensor, Device device) {
  if (tensor->is_symbolic()) {
    MOREL_CHECK(device.is_cpu(), NotImplemented, "compiled functions run on the CPU only: nothing can be moved to ",
                to_string(device), " in them; move the tensors in front of the call");
    return tensor;
  }
  const Device from = tensor.device();
  if (from == device) return tensor;
  Tensor out = transfer(tensor, device);
  if (grad_depth() > 0 && requires_grad(tensor.get()))
    record_function("to_device", {&tensor, 1}, {&out, 1}, [from](std::span<const Value> cotangents) -> Values {
      if (cotangents[0].is_none()) return {Value()};
      return {Value(to_device(cotangents[0].tensor(), from))};
    });
  return out;
}

}  // namespace morel
