// Devices beside the CPU, as far as tensors know them: memory that the host reaches through copies only. What runs
// there is the business of runtime/device.h.
#pragma once

#include <atomic>

#include "morel/tensor/tensor.h"

namespace morel {

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual Ref<Storage> allocate(size_t bytes) = 0;
  // Copies between the host and bytes [offset, offset + bytes) of a storage, after all that was started before; what
  // they return from is done.
  virtual void read(const Storage& from, size_t offset, size_t bytes, void* to) = 0;
  virtual void write(const Storage& to, size_t offset, size_t bytes, const void* from) = 0;
};

// Raises Runtime where the device was never opened.
DeviceMemory& device_memory(Device device);
void add_device(Device device, DeviceMemory& memory);  // for the lifetime of the process

namespace detail {
inline std::atomic<bool> any_device{false};
}
// Whether tensors may be anywhere else than on the CPU.
inline bool has_devices() { return detail::any_device.load(std::memory_order_relaxed); }

}  // namespace morel
