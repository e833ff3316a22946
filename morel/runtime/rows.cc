// Row-wise operators (softmax, layer_norm, ...): conversion of the operands, broadcasting, and the loops of an
// operator.
#include "morel/loops/run/rows.h"

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "morel/runtime/device.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/loop_kernel.h"
#include "morel/runtime/reduce.h"
#include "morel/tensor/scalar.h"

namespace morel {
namespace {

using loops::RowsKernel;

const RowsKernel& rows_kernel(const OpDef& op, DType dtype) {
  using Row = std::array<std::atomic<const RowsKernel*>, num_dtypes>;
  // Never destroyed: threads may use it while the process ends.
  static std::vector<Row>& table = *new std::vector<Row>(registry().ops().size());
  std::atomic<const RowsKernel*>& slot = table[static_cast<size_t>(op.id)][static_cast<size_t>(dtype)];
  const RowsKernel* kernel = slot.load(std::memory_order_acquire);
  if (kernel) [[likely]]
    return *kernel;
  auto made = std::make_unique<RowsKernel>(RowsKernel{rows_signature(op, dtype), {}, {}, {}, nullptr});
  made->rows = make_loop_kernel(rows_name(op, dtype), [&] { return rows_program(op, dtype); });
  if (can_go_across(op))
    made->across = make_loop_kernel(across_name(op, dtype), [&] { return across_program(op, dtype); });
  if (op.columns) {
    made->columns = make_loop_kernel(columns_name(op, dtype), [&] { return columns_program(op, dtype); });
    made->sum = &partial_sums();
  }
  if (slot.compare_exchange_strong(kernel, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *kernel;
}

struct Operands : loops::RowOperands {
  std::array<Value, loops::max_row_buffers> converted;  // keeps converted tensors alive
};

void gather_inputs(const OpDef& op, std::span<const Value> args, const loops::LoopSignature& signature, Device device,
                   Operands& out) {
  for (size_t i = 0; i < args.size(); ++i) {
    const ArgSpec& spec = op.schema.args[i];
    if (!spec.is_tensor_like() && !(spec.kinds & kNumber)) {
      if (spec.name != "axis") out.params[out.num_params++] = args[i].number();
      continue;
    }
    const size_t idx = out.count++;
    const DType wanted = signature.inputs[idx];
    if (!args[i].is_tensor() && !device.is_cpu()) {
      out.converted[idx] = device_scalar(device, args[i], wanted);
      out.tensors[idx] = out.converted[idx].tensor_impl();
      continue;
    }
    if (!args[i].is_tensor()) {
      store_scalar(args[i], wanted, out.scalars[idx].data());
      continue;
    }
    const TensorImpl* tensor = args[i].tensor_impl();
    // Rows must merge into one axis for a columns program.
    if (tensor->dtype != wanted || (op.columns && !tensor->contiguous)) {
      out.converted[idx] = convert(args[i].tensor(), wanted);
      tensor = out.converted[idx].tensor_impl();
    }
    out.tensors[idx] = tensor;
  }
  MOREL_ASSERT(out.count == signature.inputs.size());
}

Shape space_of(const OpDef& op, const Operands& in) {
  Shape space;
  bool first = true;
  for (size_t i = 0; i < in.count; ++i) {
    if (!in.tensors[i]) continue;
    const Shape& shape = in.tensors[i]->layout.shape;
    if (first) space = shape;
    else if (shape != space) space = broadcast_shapes(op, space, shape);
    first = false;
  }
  return space;
}

// -- on another device than the CPU --

// The operand's strides over `space`, the row axis last.
DeviceOperand row_operand(const TensorImpl* tensor, const Shape& space, size_t axis) {
  DeviceOperand out = device_operand(tensor, space);
  std::rotate(out.strides.begin() + axis, out.strides.begin() + axis + 1, out.strides.end());
  return out;
}

// All outer axes as one, which a columns program needs.
void merge_rows(DeviceLoop& loop) {
  const size_t outer = loop.space.size() - 1;
  int64_t rows = 1;
  for (size_t k = 0; k < outer; ++k) rows *= loop.space[k];
  for (DeviceOperand& operand : loop.operands) {
    int64_t step = 0, size = 1;
    for (size_t k = outer; k-- > 0;) {
      if (loop.space[k] == 1) continue;
      if (size == 1) step = operand.strides[k];
      MOREL_CHECK(operand.strides[k] == step * size, Internal,
                  "internal error: rows that cannot be merged reached a columns program");
      size *= loop.space[k];
    }
    operand.strides = {step, operand.strides[outer]};
  }
  loop.space = {rows, loop.space[outer]};
}

void run_on_device(const OpDef& op, DType dtype, const RowsKernel& kernel, const Operands& in, const Shape& space,
                   size_t axis, std::span<Tensor> outs) {
  const Device device = outs[0].device();
  Shape rows_space = space;
  std::rotate(rows_space.begin() + axis, rows_space.begin() + axis + 1, rows_space.end());
  DeviceLoop loop{rows_name(op, dtype), [&] { return rows_program(op, dtype); }, rows_space, {}, {}};
  loop.params.append(in.params.begin(), in.params.begin() + in.num_params);
  for (size_t i = 0; i < in.count; ++i) loop.operands.push_back(row_operand(in.tensors[i], space, axis));
  DeviceLoop columns{columns_name(op, dtype), [&] { return columns_program(op, dtype); }, rows_space, loop.operands,
                     loop.params};
  const loops::LoopSignature& signature = kernel.signature;
  const size_t num_rows_outs = signature.outputs.size();
  for (size_t i = 0; i < num_rows_outs; ++i) {
    Shape shape = space;
    if (signature.outputs[i].per_row) shape[axis] = 1;
    const Tensor out = outs[i].with_layout({shape, contiguous_strides(shape), outs[i]->layout.offset});
    loop.operands.push_back(row_operand(out.get(), space, axis));
  }
  std::array<Tensor, loops::max_row_buffers> scratch;
  for (size_t i = 0; i < signature.scratch.size(); ++i) {
    scratch[i] = Tensor::empty(rows_space, signature.scratch[i], device);
    loop.operands.push_back(device_operand(scratch[i].get(), rows_space));
  }
  device_runtime(device).run(loop);
  if (!op.columns) return;
  merge_rows(columns);
  for (const Tensor& sum : outs.subspan(num_rows_outs))
    columns.operands.push_back(
        {sum->storage.get(), sum->layout.offset * size_of(sum.dtype()), {0, size_of(sum.dtype())}});
  device_runtime(device).run(columns);
}

}  // namespace

void rows_into(const OpDef& op, std::span<const Value> args, std::span<Tensor> outs) {
  size_t lead = 0;
  while (!args[lead].is_tensor()) ++lead;
  const DType dtype = args[lead].tensor_impl()->dtype;
  const Device device = outs[0].device();
  const RowsKernel& kernel = rows_kernel(op, dtype);
  Operands in;
  gather_inputs(op, args, kernel.signature, device, in);
  Shape space = space_of(op, in);
  constexpr size_t max_rank = loops::max_row_rank;
  MOREL_CHECK(space.size() < max_rank, NotImplemented, "For '", display_name(op), "', tensors of more than ",
              max_rank - 1, " dimensions are not supported");
  if (space.empty()) space.push_back(1);
  const int axis_at = op.schema.find("axis");
  const int64_t rank = static_cast<int64_t>(space.size());
  const size_t axis = static_cast<size_t>(
      axis_at < 0 ? rank - 1 : normalize_axis(op, "axis", args[static_cast<size_t>(axis_at)].integer(), rank));
  if (!device.is_cpu()) [[unlikely]]
    return run_on_device(op, dtype, kernel, in, space, axis, outs);
  loops::run_rows(kernel, in, space, axis, outs);
}

}  // namespace morel
