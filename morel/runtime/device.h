// Devices beside the CPU: where a call runs, and what a device must give so that calls can run there. How one joins:
// docs/devices.md.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "morel/kernels/call.h"
#include "morel/loops/program.h"
#include "morel/ops/opdef.h"
#include "morel/tensor/device.h"

namespace morel {

// A buffer of a loop program over an iteration space: where it begins and, for every axis of the space, its step, in
// bytes.
struct DeviceOperand {
  const Storage* storage = nullptr;
  int64_t offset = 0;
  Strides strides = {};
};
// A program over an iteration space. The last axis is the program's inner one; the axis before it is the one that a
// Columns program reduces; all others are outer axes.
struct DeviceLoop {
  std::string name;  // of the program; stands for it in caches
  std::function<loops::Program()> make;
  Shape space;
  SmallVector<DeviceOperand, 8> operands;
  SmallVector<double, 4> params;
};

// What a device gives: memory, loop programs, kernels under the names of operators.
class DeviceRuntime : public DeviceMemory {
 public:
  virtual void run(const DeviceLoop& loop) = 0;
  virtual KernelFn find_kernel(std::string_view name) const = 0;  // null when absent
  virtual std::string description() const = 0;                    // name of the hardware and its driver
};

// The device, opened when it is first asked for; raises Runtime where the system has none.
DeviceRuntime& device_runtime(Device device);
int device_count(DeviceKind kind);  // 0 where the system has no driver

// Where operators without tensors put their results on this thread: the device of the call that is running, else the
// default of the process.
Device current_device();
Device default_device();
void set_default_device(Device device);
class DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device saved_;
  bool had_;
};

// Where a call runs: the device of all its tensors; ValueError where they are on several.
Device device_of(const OpDef& op, std::span<const Value> args);
Device device_of(std::span<const Value> values);  // of the first tensor
// A dense copy there; the tensor itself where it is there already. Gradients follow.
Tensor to_device(const Tensor& tensor, Device device);

// -- loops on a device (device_loops.cc) --
// One element of `dtype` on the device: a Python number as an operand. What is asked for often stays there.
Tensor device_scalar(Device device, const Value& number, DType dtype);
DeviceOperand device_operand(const TensorImpl* tensor, const Shape& space);  // broadcast to `space`
// target = source, broadcast and converted; both on one device.
void copy_on_device(const Tensor& target, const Tensor& source);
void fill_on_device(const Tensor& target, const Value& number);
// `out` has the dtype in which op computes; positional operators need axes that can be merged.
void reduce_on_device(const OpDef& op, const Tensor& input, const Ints& axes, const Tensor& out, bool keep_dims);

}  // namespace morel
