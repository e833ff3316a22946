// Elementwise operators: promotion, broadcasting, one pass of a loop kernel.
#include "morel/loops/run/elementwise.h"

#include <array>
#include <atomic>
#include <vector>

#include "morel/runtime/device.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/loop_kernel.h"
#include "morel/tensor/scalar.h"

namespace morel {
namespace {

using loops::find_donor;
using loops::Kernel;

const Kernel& elementwise_kernel(const OpDef& op, DType dtype) {
  using Row = std::array<std::atomic<const Kernel*>, num_dtypes>;
  // Never destroyed: threads may use it while the process ends.
  static std::vector<Row>& table = *new std::vector<Row>(registry().ops().size());
  std::atomic<const Kernel*>& slot = table[static_cast<size_t>(op.id)][static_cast<size_t>(dtype)];
  const Kernel* kernel = slot.load(std::memory_order_acquire);
  if (kernel) [[likely]]
    return *kernel;
  auto made = make_loop_kernel(elementwise_name(op, dtype), [&] { return elementwise_program(op, dtype); });
  if (slot.compare_exchange_strong(kernel, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *kernel;
}

struct Operands : loops::ElementOperands {
  std::array<Value, loops::max_elementwise_operands> converted;  // keeps converted tensors alive
};

void gather_operands(const OpDef& op, std::span<const Value> args, DType dtype, Device device, Operands& out) {
  for (size_t i = 0; i < args.size(); ++i) {
    const Value& arg = args[i];
    const ArgSpec& spec = op.schema.args[i];
    if (!spec.is_tensor_like() && !(spec.kinds & kNumber)) {
      out.params[out.num_params++] = arg.number();
      continue;
    }
    const DType wanted = op.bool_args >> i & 1 ? DType::Bool : dtype;
    const size_t idx = out.count++;
    if (arg.is_tensor()) {
      const TensorImpl* impl = arg.tensor_impl();
      if (impl->dtype != wanted) {
        out.converted[idx] = convert(arg.tensor(), wanted);
        impl = out.converted[idx].tensor_impl();
      }
      out.tensors[idx] = impl;
    } else if (device.is_cpu()) {
      store_scalar(arg, wanted, out.scalars[idx].data());
    } else {
      out.converted[idx] = device_scalar(device, arg, wanted);
      out.tensors[idx] = out.converted[idx].tensor_impl();
    }
  }
}

// The same loop on another device than the CPU.
void run_on_device(const OpDef& op, DType dtype, const Operands& in, const Tensor& out) {
  const Device device = out.device();
  DeviceLoop loop{elementwise_name(op, dtype), [&] { return elementwise_program(op, dtype); }, out.shape(), {}, {}};
  for (size_t i = 0; i < in.count; ++i) loop.operands.push_back(device_operand(in.tensors[i], out.shape()));
  loop.operands.push_back(device_operand(out.get(), out.shape()));
  loop.params.append(in.params.begin(), in.params.begin() + in.num_params);
  device_runtime(device).run(loop);
}

// One pass of the loop over what was gathered.
void run_elementwise(const OpDef& op, DType dtype, const Operands& in, const Tensor& out) {
  if (!out.device().is_cpu()) [[unlikely]]
    return run_on_device(op, dtype, in, out);
  loops::run_elementwise(elementwise_kernel(op, dtype), in, out);
}

}  // namespace

Tensor execute_elementwise(const OpDef& op, std::span<const Value> args) {
  const DType dtype = elementwise_compute_dtype(op, args);
  const Device device = has_devices() ? current_device() : Device{};
  Operands in;
  gather_operands(op, args, dtype, device, in);

  // Shape of the result, and the tensor whose order of axes it takes over.
  const Shape* shape = nullptr;
  Shape broadcast;
  for (size_t i = 0; i < in.count; ++i) {
    const TensorImpl* impl = in.tensors[i];
    if (!impl || (shape && *shape == impl->layout.shape)) continue;
    if (shape) {
      broadcast = broadcast_shapes(op, *shape, impl->layout.shape);
      shape = &broadcast;
    } else {
      shape = &impl->layout.shape;
    }
  }
  if (!shape) shape = &broadcast;
  const TensorImpl* donor = find_donor({in.tensors.data(), in.count}, *shape);
  const DType result = elementwise_result_dtype(op, dtype);
  const Tensor out = donor ? Tensor::empty_strided(*shape, donor->layout.strides, result, device)
                           : Tensor::empty(*shape, result, device);
  run_elementwise(op, dtype, in, out);
  return out;
}

void elementwise_into(const OpDef& op, std::span<const Value> args, const Tensor& out) {
  const DType dtype = elementwise_compute_dtype(op, args);
  Operands in;
  gather_operands(op, args, dtype, out.device(), in);
  run_elementwise(op, dtype, in, out);
}

std::optional<Strides> elementwise_strides(const OpDef& op, std::span<const Value> args, const Shape& shape) {
  const DType dtype = elementwise_compute_dtype(op, args);
  for (size_t i = 0; i < args.size(); ++i) {
    if (!op.schema.args[i].is_tensor_like() || !args[i].is_tensor() || shape_of(args[i]) != shape) continue;
    // What is converted first is contiguous then.
    if (dtype_of_value(args[i]) != (op.bool_args >> i & 1 ? DType::Bool : dtype)) return std::nullopt;
    const TensorImpl* impl = args[i].tensor_impl();
    if (const TensorImpl* donor = find_donor({&impl, 1}, shape)) return donor->layout.strides;
    if (impl->contiguous) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace morel
