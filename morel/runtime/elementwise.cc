// Elementwise operators: promotion, broadcasting, one pass of a loop kernel.
#include <array>
#include <atomic>
#include <numeric>
#include <vector>

#include "morel/base/thread_pool.h"
#include "morel/runtime/device.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/loop_kernel.h"
#include "morel/tensor/scalar.h"

namespace morel {
namespace {

constexpr int max_operands = 6;
constexpr int max_rank = 16;
// Work below this many elements is not worth waking another core for.
constexpr int64_t parallel_elements = 32768;
// Results of this many bytes are written past the caches, from which they would be gone before anybody reads them.
constexpr int64_t streaming_bytes = int64_t{32} << 20;

int64_t task_grain(int64_t total) { return std::clamp<int64_t>(total / 64, 16384, 131072); }

const LoopKernel& elementwise_kernel(const OpDef& op, DType dtype) {
  using Row = std::array<std::atomic<const LoopKernel*>, num_dtypes>;
  // Never destroyed: threads may use it while the process ends.
  static std::vector<Row>& table = *new std::vector<Row>(registry().ops().size());
  std::atomic<const LoopKernel*>& slot = table[static_cast<size_t>(op.id)][static_cast<size_t>(dtype)];
  const LoopKernel* kernel = slot.load(std::memory_order_acquire);
  if (kernel) [[likely]]
    return *kernel;
  auto made = make_loop_kernel(elementwise_name(op, dtype), [&] { return elementwise_program(op, dtype); });
  if (slot.compare_exchange_strong(kernel, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *kernel;
}

// Whether the strides are those of a dense permutation of the axes (channels-last, transposed).
bool is_dense_permutation(const Shape& shape, const Strides& strides) {
  std::array<size_t, max_rank> order;
  size_t count = 0;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) order[count++] = i;
  std::sort(order.begin(), order.begin() + count, [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (size_t i = 0; i < count; ++i) {
    if (strides[order[i]] != expected) return false;
    expected *= shape[order[i]];
  }
  return true;
}

struct Operands {
  std::array<Value, max_operands> converted;  // keeps converted tensors alive
  std::array<const TensorImpl*, max_operands> tensors{};
  std::array<std::array<char, 16>, max_operands> scalars;
  std::array<double, max_operands> params{};
  int count = 0, num_params = 0;
};

void gather_operands(const OpDef& op, std::span<const Value> args, DType dtype, Device device, Operands& out) {
  for (size_t i = 0; i < args.size(); ++i) {
    const Value& arg = args[i];
    const ArgSpec& spec = op.schema.args[i];
    if (!spec.is_tensor_like() && !(spec.kinds & kNumber)) {
      out.params[static_cast<size_t>(out.num_params++)] = arg.number();
      continue;
    }
    const DType wanted = op.bool_args >> i & 1 ? DType::Bool : dtype;
    const size_t idx = static_cast<size_t>(out.count++);
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

// All tensors share one shape and lie dense in the same order: one flat loop.
bool run_flat(const LoopKernel& kernel, const Operands& in, const Tensor& out) {
  int64_t strides[max_operands + 1];
  char* data[max_operands + 1];
  for (int i = 0; i < in.count; ++i) {
    const TensorImpl* impl = in.tensors[static_cast<size_t>(i)];
    if (!impl) {
      data[i] = const_cast<char*>(in.scalars[static_cast<size_t>(i)].data());
      strides[i] = 0;
      continue;
    }
    if (impl->layout.shape != out.shape()) return false;
    if (out.is_contiguous() ? !impl->contiguous : impl->layout.strides != out.strides()) return false;
    data[i] = static_cast<char*>(impl->data());
    strides[i] = size_of(impl->dtype);
  }
  data[in.count] = static_cast<char*>(out.data());
  strides[in.count] = size_of(out.dtype());
  const int64_t total = out.size();
  const bool stream = total * size_of(out.dtype()) >= streaming_bytes;
  const auto run = [&](int64_t begin, int64_t end) {
    char* at[max_operands + 1];
    for (int i = 0; i <= in.count; ++i) at[i] = data[i] + begin * strides[i];
    const int64_t row_strides[max_operands + 1] = {};
    kernel({1, end - begin, at, row_strides, strides, in.params.data(), stream});
  };
  if (total < parallel_elements) {
    if (total > 0) run(0, total);
  } else {
    parallel_for(total, task_grain(total), run);
  }
  return true;
}

// The same loop on another device than the CPU.
void run_on_device(const OpDef& op, DType dtype, const Operands& in, const Tensor& out) {
  const Device device = out.device();
  DeviceLoop loop{elementwise_name(op, dtype), [&] { return elementwise_program(op, dtype); }, out.shape(), {}, {}};
  for (size_t i = 0; i < static_cast<size_t>(in.count); ++i)
    loop.operands.push_back(device_operand(in.tensors[i], out.shape()));
  loop.operands.push_back(device_operand(out.get(), out.shape()));
  loop.params.append(in.params.begin(), in.params.begin() + in.num_params);
  device_runtime(device).run(loop);
}

// One pass of the loop over what was gathered.
void run_elementwise(const OpDef& op, DType dtype, const Operands& in, const Tensor& out) {
  if (!out.device().is_cpu()) [[unlikely]]
    return run_on_device(op, dtype, in, out);
  const LoopKernel& kernel = elementwise_kernel(op, dtype);
  if (run_flat(kernel, in, out)) return;
  const Shape& shape = out.shape();
  std::array<LoopOperand, max_operands + 1> operands;
  for (int i = 0; i < in.count; ++i) {
    LoopOperand& operand = operands[static_cast<size_t>(i)];
    operand.strides.assign(shape.size(), 0);
    const TensorImpl* impl = in.tensors[static_cast<size_t>(i)];
    if (impl) operand = {static_cast<char*>(impl->data()), broadcast_strides(impl, shape)};
    else operand.data = const_cast<char*>(in.scalars[static_cast<size_t>(i)].data());
  }
  operands[static_cast<size_t>(in.count)] = {static_cast<char*>(out.data()), broadcast_strides(out.get(), shape)};
  run_loop(kernel, shape, std::span(operands.data(), static_cast<size_t>(in.count) + 1), in.params.data());
}

}  // namespace

Strides broadcast_strides(const TensorImpl* tensor, const Shape& space) {
  Strides out;
  out.assign(space.size(), 0);
  const size_t shift = space.size() - tensor->layout.shape.size();
  for (size_t axis = 0; axis < tensor->layout.shape.size(); ++axis)
    if (tensor->layout.shape[axis] != 1) out[axis + shift] = tensor->layout.strides[axis] * size_of(tensor->dtype);
  return out;
}

const TensorImpl* find_donor(std::span<const TensorImpl* const> tensors, const Shape& shape) {
  for (const TensorImpl* impl : tensors) {
    if (!impl || impl->layout.shape != shape) continue;
    if (impl->contiguous) return nullptr;
    if (is_dense_permutation(impl->layout.shape, impl->layout.strides)) return impl;
  }
  return nullptr;
}

void run_loop(const LoopKernel& kernel, const Shape& shape, std::span<LoopOperand> operands, const double* params,
              bool stream) {
  const size_t count = operands.size();
  MOREL_CHECK(shape.size() <= max_rank, NotImplemented, "tensors of more than ", max_rank,
              " dimensions are not supported");
  if (num_elements(shape) == 0) return;
  // Axes from the innermost of the output outwards; axes of one element are dropped, mergeable ones merged.
  std::array<size_t, max_rank> order;
  size_t rank = 0;
  for (size_t i = shape.size(); i-- > 0;)
    if (shape[i] != 1) order[rank++] = i;
  const Strides& target = operands[count - 1].strides;
  std::stable_sort(order.begin(), order.begin() + rank,
                   [&](size_t a, size_t b) { return std::abs(target[a]) < std::abs(target[b]); });
  int64_t sizes[max_rank], strides[max_rank][max_loop_operands];
  size_t axes = 0;
  for (size_t k = 0; k < rank; ++k) {
    const size_t axis = order[k];
    bool merge = axes > 0;
    for (size_t i = 0; i < count && merge; ++i)
      merge = operands[i].strides[axis] == strides[axes - 1][i] * sizes[axes - 1];
    if (merge) {
      sizes[axes - 1] *= shape[axis];
    } else {
      sizes[axes] = shape[axis];
      for (size_t i = 0; i < count; ++i) strides[axes][i] = operands[i].strides[axis];
      ++axes;
    }
  }
  for (; axes < 2; ++axes) {
    sizes[axes] = 1;
    std::fill_n(strides[axes], count, 0);
  }
  const int64_t n = sizes[0];
  int64_t rows = 1;
  for (size_t k = 1; k < axes; ++k) rows *= sizes[k];
  // Runs rows [begin, end), columns [from, to).
  const auto run = [&](int64_t begin, int64_t end, int64_t from, int64_t to) {
    while (begin < end) {
      int64_t rest = begin / sizes[1];
      const int64_t row = begin % sizes[1], batch = std::min(end - begin, sizes[1] - row);
      char* at[max_loop_operands];
      for (size_t i = 0; i < count; ++i) at[i] = operands[i].data + row * strides[1][i] + from * strides[0][i];
      for (size_t k = 2; k < axes; ++k) {
        const int64_t position = rest % sizes[k];
        rest /= sizes[k];
        for (size_t i = 0; i < count; ++i) at[i] += position * strides[k][i];
      }
      kernel({batch, to - from, at, strides[1], strides[0], params, stream});
      begin += batch;
    }
  };
  const int64_t total = n * rows;
  if (total < parallel_elements) return run(0, rows, 0, n);
  const int64_t grain = task_grain(total);
  if (rows >= 16 || n < 2 * grain) {
    parallel_for(rows, std::max<int64_t>(1, grain / n), [&](int64_t begin, int64_t end) { run(begin, end, 0, n); });
  } else {
    for (int64_t row = 0; row < rows; ++row)
      parallel_for(n, grain, [&](int64_t from, int64_t to) { run(row, row + 1, from, to); });
  }
}

Tensor execute_elementwise(const OpDef& op, std::span<const Value> args) {
  const DType dtype = elementwise_compute_dtype(op, args);
  const Device device = has_devices() ? current_device() : Device{};
  Operands in;
  gather_operands(op, args, dtype, device, in);

  // Shape of the result, and the tensor whose order of axes it takes over.
  const Shape* shape = nullptr;
  Shape broadcast;
  for (int i = 0; i < in.count; ++i) {
    const TensorImpl* impl = in.tensors[static_cast<size_t>(i)];
    if (!impl || (shape && *shape == impl->layout.shape)) continue;
    if (shape) {
      broadcast = broadcast_shapes(op, *shape, impl->layout.shape);
      shape = &broadcast;
    } else {
      shape = &impl->layout.shape;
    }
  }
  if (!shape) shape = &broadcast;
  const TensorImpl* donor = find_donor({in.tensors.data(), static_cast<size_t>(in.count)}, *shape);
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

void run_fused_loop(const LoopKernel& kernel, std::span<const Value> inputs, std::span<Tensor> outputs) {
  MOREL_ASSERT(inputs.size() + outputs.size() <= max_loop_operands);
  const Shape& shape = outputs[0].shape();
  std::array<LoopOperand, max_loop_operands> operands;
  size_t count = 0;
  const auto add = [&](const TensorImpl* tensor) {
    operands[count++] = {static_cast<char*>(tensor->data()), broadcast_strides(tensor, shape)};
  };
  for (const Value& input : inputs) add(input.tensor_impl());
  for (const Tensor& output : outputs) add(output.get());
  const bool stream = outputs[0].size() * size_of(outputs[0].dtype()) >= streaming_bytes;
  run_loop(kernel, shape, {operands.data(), count}, nullptr, stream);
}

}  // namespace morel
