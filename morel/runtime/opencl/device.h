// A device of OpenCL: buffers, one queue in which everything runs in the order of the calls, and the kernels compiled
// so far. Calls return before the work is done; reads wait for it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "morel/codegen/opencl/emit.h"
#include "morel/runtime/device.h"
#include "morel/runtime/opencl/api.h"

namespace morel::opencl {

int device_count();  // 0 where the system has no OpenCL
std::unique_ptr<DeviceRuntime> open_device(Device device);

class OpenClDevice final : public DeviceRuntime {
 public:
  OpenClDevice(Device device, cl_device_id id);

  Ref<Storage> allocate(size_t bytes) override;
  void read(const Storage& from, size_t offset, size_t bytes, void* to) override;
  void write(const Storage& to, size_t offset, size_t bytes, const void* from) override;
  void run(const DeviceLoop& loop) override;
  KernelFn find_kernel(std::string_view name) const override;
  std::string description() const override;

  // -- for kernels of the table; `source` is a constant of the program --
  // The kernel for elements of `dtype`. Source text sees T (an element in memory), A (the type in which it is
  // computed), LOAD(place), STORE(place, value) and MULTIPLY_ADD(x, y, sum), which rounds once where it can.
  cl_kernel kernel(const char* source, DType dtype, const char* name);
  // Enough groups for `items` work-items, or exactly `groups` of them. A tensor becomes two arguments: its buffer and
  // the offset of its first element in elements; everything else is passed as it is.
  template <class... Args>
  void launch(cl_kernel kernel, int64_t items, const Args&... args) {
    launch_groups(kernel, (items + codegen::opencl_group - 1) / codegen::opencl_group, args...);
  }
  template <class... Args>
  void launch_groups(cl_kernel kernel, int64_t groups, const Args&... args) {
    if (groups == 0) return;
    const std::lock_guard lock(mutex_);
    cl_uint idx = 0;
    (set_argument(kernel, idx, args), ...);
    enqueue(kernel, groups);
  }

 private:
  // A loop program and its kernels, one for each number of outer axes.
  struct Loop {
    loops::Program program;
    codegen::OpenClShape shape;
    std::map<size_t, cl_kernel> kernels;
  };

  Loop& loop_of(const DeviceLoop& loop);
  cl_kernel compile(const std::string& source, const char* name);
  void enqueue(cl_kernel kernel, int64_t groups);
  void set_bytes(cl_kernel kernel, cl_uint idx, const void* data, size_t bytes);
  void set_argument(cl_kernel kernel, cl_uint& idx, const Tensor& tensor);
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void set_argument(cl_kernel kernel, cl_uint& idx, const T& value) { set_bytes(kernel, idx++, &value, sizeof(T)); }
  void give_back(cl_mem buffer, size_t bytes);

  const Device device_;
  const cl_device_id id_;
  std::string options_;
  size_t max_argument_bytes_ = 0;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  std::mutex mutex_;  // of arguments and tables of kernels
  std::unordered_map<std::string, Loop> loops_;
  std::map<std::tuple<const char*, DType, std::string>, cl_kernel> kernels_;
  std::mutex memory_mutex_;
  std::unordered_map<size_t, std::vector<cl_mem>>
      free_;  // by size; what is used again needs no wait, as work is in order
};

}  // namespace morel::opencl
