// Reductions: the type in which an operator computes, and its kernels.
#include "morel/runtime/reduce.h"

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "morel/runtime/device.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/loop_kernel.h"

namespace morel {
namespace {

using loops::Kernel;
using loops::ProgramKind;

const Kernel& reduce_kernel(const OpDef& op, DType in, DType out, ProgramKind kind) {
  using Slots = std::array<std::atomic<const Kernel*>, num_dtypes * num_dtypes * 2>;
  // Never destroyed: threads may use it while the process ends.
  static std::vector<std::atomic<Slots*>>& table = *new std::vector<std::atomic<Slots*>>(registry().ops().size());
  std::atomic<Slots*>& entry = table[static_cast<size_t>(op.id)];
  Slots* slots = entry.load(std::memory_order_acquire);
  if (!slots) [[unlikely]] {
    auto made = std::make_unique<Slots>();
    if (entry.compare_exchange_strong(slots, made.get(), std::memory_order_acq_rel)) slots = made.release();
  }
  const size_t idx =
      (static_cast<size_t>(in) * num_dtypes + static_cast<size_t>(out)) * 2 + (kind == ProgramKind::Columns);
  std::atomic<const Kernel*>& slot = (*slots)[idx];
  const Kernel* kernel = slot.load(std::memory_order_acquire);
  if (kernel) [[likely]]
    return *kernel;
  auto made = make_loop_kernel(reduce_name(op, in, out, kind), [&] { return reduce_program(op, in, out, kind); });
  if (slot.compare_exchange_strong(kernel, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *kernel;
}

}  // namespace

const loops::Reduction& partial_sums() {
  static const OpReduction sum(find_op("sum"));
  return sum;
}

const Kernel& OpReduction::kernel(DType in, DType out, ProgramKind kind) const {
  return reduce_kernel(entry_, in, out, kind);
}

ReduceTypes reduce_types(const OpDef& op, DType in, DType wanted) {
  if (OpReduction(op).is_positional()) return {in, DType::Int64};
  if (has_reduce_program(op, in, wanted)) return {in, wanted};
  // A result type the library lacks: of integers sum in int64, else convert first.
  if (is_integral(wanted) && has_reduce_program(op, in, DType::Int64)) return {in, DType::Int64};
  return {wanted, has_reduce_program(op, wanted, wanted) ? wanted : DType::Int64};
}

static void run_reduction(const OpDef& op, const Tensor& input, const Ints& axes, const Tensor& out, bool keep_dims) {
  if (!out.device().is_cpu()) [[unlikely]] {
    if (out.size() > 0) reduce_on_device(op, input, axes, out, keep_dims);
    return;
  }
  loops::reduce(OpReduction(op), input, axes, out, keep_dims);
}

void reduce_into(const OpDef& op, std::span<const Value> args, const Tensor& out) {
  Tensor input = args[0].tensor();
  const bool keep_dims = args[2].boolean();
  const Ints axes = normalize_axes(op, "axis", args[1], input.rank());
  const ReduceTypes types = reduce_types(op, input.dtype(), out.dtype());
  if (types.in != input.dtype()) input = convert(input, types.in);
  const Tensor result = types.out == out.dtype() ? out : Tensor::empty(out.shape(), types.out, out.device());
  if (OpReduction(op).is_positional() && !loops::can_merge(input, axes)) {
    const Tensor moved = contiguous(input.with_layout(loops::reduced_last(input->layout, axes)));
    Ints last;
    for (int64_t axis = input.rank() - static_cast<int64_t>(axes.size()); axis < input.rank(); ++axis)
      last.push_back(axis);
    // Kept axes come first and in order, so the result lies as if it had no reduced axes.
    const Shape kept = reduced_shape(moved.shape(), last, false);
    run_reduction(op, moved, last, result.with_layout({kept, contiguous_strides(kept), result->layout.offset}), false);
  } else {
    run_reduction(op, input, axes, result, keep_dims);
  }
  if (types.out != out.dtype()) copy_into(out, result);
}

}  // namespace morel
