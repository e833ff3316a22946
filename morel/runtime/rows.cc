// Row-wise operators (softmax, layer_norm, ...): a loop program along one axis, for every position of the other axes.
// Rows whose elements are neighbours in memory run one after the other; where neighbours belong to different rows, or
// rows are very short, many rows run side by side (the `across` program). The choice follows from shapes and strides
// alone.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "morel/base/thread_pool.h"
#include "morel/runtime/device.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/loop_kernel.h"
#include "morel/runtime/reduce.h"
#include "morel/tensor/scalar.h"

namespace morel {
namespace {

constexpr size_t max_buffers = max_row_buffers;
constexpr size_t max_rank = 16;
constexpr int64_t parallel_elements = 16384;
constexpr int64_t task_elements = 32768;
// Rows of one block of a columns program: what rows and columns programs read together stays in the second-level cache.
constexpr int64_t block_elements = 49152;
// Rows of at most this many elements run side by side.
constexpr int64_t short_row = 32;

const RowsKernel& rows_kernel(const OpDef& op, DType dtype) {
  using Row = std::array<std::atomic<const RowsKernel*>, num_dtypes>;
  // Never destroyed: threads may use it while the process ends.
  static std::vector<Row>& table = *new std::vector<Row>(registry().ops().size());
  std::atomic<const RowsKernel*>& slot = table[static_cast<size_t>(op.id)][static_cast<size_t>(dtype)];
  const RowsKernel* kernel = slot.load(std::memory_order_acquire);
  if (kernel) [[likely]]
    return *kernel;
  auto made = std::make_unique<RowsKernel>(RowsKernel{rows_signature(op, dtype), {}, {}, {}, {}});
  made->rows = make_loop_kernel(rows_name(op, dtype), [&] { return rows_program(op, dtype); });
  if (can_go_across(op))
    made->across = make_loop_kernel(across_name(op, dtype), [&] { return across_program(op, dtype); });
  if (op.columns) {
    made->columns_signature = columns_signature(op, dtype);
    made->columns = make_loop_kernel(columns_name(op, dtype), [&] { return columns_program(op, dtype); });
  }
  if (slot.compare_exchange_strong(kernel, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *kernel;
}

// One operand: first element, strides in bytes along the outer axes and then the row axis.
struct Operand {
  char* data;
  std::array<int64_t, max_rank> strides;
};

struct RowsCall {
  const RowsKernel& kernel;
  std::array<Value, max_buffers> kept;  // keeps converted tensors alive
  std::array<const TensorImpl*, max_buffers> tensors;
  std::array<std::array<char, 16>, max_buffers> scalars;
  std::array<Operand, max_buffers> operands;
  std::array<double, max_buffers> params;
  size_t inputs = 0, count = 0, num_params = 0;
  int64_t sizes[max_rank];  // outer axes
  size_t rank = 0;
  int64_t n = 1, rows = 1;  // length and number of rows
  explicit RowsCall(const RowsKernel& k) : kernel(k) {}
};

void gather_inputs(const OpDef& op, std::span<const Value> args, Device device, RowsCall& call) {
  const RowsSignature& signature = call.kernel.signature;
  for (size_t i = 0; i < args.size(); ++i) {
    const ArgSpec& spec = op.schema.args[i];
    if (!spec.is_tensor_like() && !(spec.kinds & kNumber)) {
      if (spec.name != "axis") call.params[call.num_params++] = args[i].number();
      continue;
    }
    const size_t idx = call.inputs++;
    const DType wanted = signature.inputs[idx];
    call.tensors[idx] = nullptr;
    if (!args[i].is_tensor() && !device.is_cpu()) {
      call.kept[idx] = device_scalar(device, args[i], wanted);
      call.tensors[idx] = call.kept[idx].tensor_impl();
      continue;
    }
    if (!args[i].is_tensor()) {
      store_scalar(args[i], wanted, call.scalars[idx].data());
      call.operands[idx] = {call.scalars[idx].data(), {}};
      continue;
    }
    const TensorImpl* tensor = args[i].tensor_impl();
    // Rows must merge into one axis for a columns program.
    if (tensor->dtype != wanted || (op.columns && !tensor->contiguous)) {
      call.kept[idx] = convert(args[i].tensor(), wanted);
      tensor = call.kept[idx].tensor_impl();
    }
    call.tensors[idx] = tensor;
  }
  MOREL_ASSERT(call.inputs == signature.inputs.size());
  call.count = call.inputs;
}

Shape space_of(const OpDef& op, const RowsCall& call) {
  Shape space;
  bool first = true;
  for (size_t i = 0; i < call.inputs; ++i) {
    if (!call.tensors[i]) continue;
    const Shape& shape = call.tensors[i]->layout.shape;
    if (first) space = shape;
    else if (shape != space) space = broadcast_shapes(op, space, shape);
    first = false;
  }
  return space;
}

void set_strides(Operand& operand, const Shape& space, size_t axis, const Shape& shape, const Strides& strides,
                 int64_t item) {
  const size_t shift = space.size() - shape.size();
  size_t outer = 0;
  for (size_t k = 0; k < space.size(); ++k) {
    const int64_t stride = k >= shift && shape[k - shift] != 1 ? strides[k - shift] * item : Dim(0);
    operand.strides[k == axis ? space.size() - 1 : outer++] = stride;
  }
}

// Merges neighbouring outer axes that every buffer walks through evenly.
void merge_outer(RowsCall& call) {
  size_t kept = 0;
  const size_t row = call.rank;
  for (size_t k = 0; k < call.rank; ++k) {
    if (call.sizes[k] == 1) continue;
    bool merge = kept > 0;
    for (size_t i = 0; i < call.count && merge; ++i)
      merge = call.operands[i].strides[kept - 1] == call.operands[i].strides[k] * call.sizes[k];
    const size_t to = merge ? kept - 1 : kept++;
    call.sizes[to] = merge ? call.sizes[to] * call.sizes[k] : call.sizes[k];
    for (size_t i = 0; i < call.count; ++i) call.operands[i].strides[to] = call.operands[i].strides[k];
  }
  if (kept == 0) call.sizes[0] = 1;
  call.rank = std::max<size_t>(kept, 1);
  for (size_t i = 0; i < call.count; ++i) {
    auto& strides = call.operands[i].strides;
    strides[call.rank] = strides[row];
    if (kept == 0) strides[0] = 0;
  }
}

// Memory of a task for values between stages; lives as long as the thread.
char* scratch_memory(int64_t bytes) {
  static thread_local std::vector<char> memory;
  const size_t wanted = static_cast<size_t>(bytes) + 64;
  if (memory.size() < wanted) memory.resize(wanted);
  return memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
}

// What a kernel is called with: pointers at a position of the outer axes, strides along the two axes of the kernel.
class KernelArgs {
 public:
  // Rows of the kernel run along `rows_axis`, its inner positions along `inner_axis` (axes of the operands' strides).
  KernelArgs(const RowsCall& call, size_t rows_axis, size_t inner_axis, int64_t scratch_row, int64_t scratch_n)
      : call_(call), count_(call.count + call.kernel.signature.scratch.size()) {
    for (size_t i = 0; i < call.count; ++i) {
      row_strides_[i] = call.operands[i].strides[rows_axis];
      strides_[i] = call.operands[i].strides[inner_axis];
    }
    int64_t bytes = 0;
    for (size_t i = call.count; i < count_; ++i) {
      const int64_t item = size_of(call.kernel.signature.scratch[i - call.count]);
      strides_[i] = item;
      row_strides_[i] = scratch_row * scratch_n * item;
      offsets_[i] = bytes;
      bytes += std::max<int64_t>(scratch_row * call.n, 1) * scratch_n * item + 256;
    }
    if (bytes == 0) return;
    char* memory = scratch_memory(bytes);
    for (size_t i = call.count; i < count_; ++i) at_[i] = memory + offsets_[i];
  }
  void start() {
    for (size_t i = 0; i < call_.count; ++i) at_[i] = call_.operands[i].data;
  }
  void move(size_t axis, int64_t by) {
    for (size_t i = 0; i < call_.count; ++i) at_[i] += by * call_.operands[i].strides[axis];
  }
  void run(const LoopKernel& kernel, int64_t rows, int64_t n) const {
    kernel({rows, n, at_, row_strides_, strides_, call_.params.data()});
  }

 private:
  const RowsCall& call_;
  size_t count_;
  char* at_[max_buffers];
  int64_t row_strides_[max_buffers], strides_[max_buffers], offsets_[max_buffers];
};

// Rows [begin, end) of the outer axes, counted row-major.
void run_rows(const RowsCall& call, int64_t begin, int64_t end) {
  const size_t last = call.rank - 1;
  KernelArgs args(call, last, call.rank, 0, call.n);
  while (begin < end) {
    int64_t rest = begin / call.sizes[last];
    const int64_t row = begin % call.sizes[last], batch = std::min(end - begin, call.sizes[last] - row);
    args.start();
    args.move(last, row);
    for (size_t k = last; k-- > 0; rest /= call.sizes[k]) args.move(k, rest % call.sizes[k]);
    args.run(*call.kernel.rows, batch, call.n);
    begin += batch;
  }
}

// The outer axis along which rows run side by side; nothing where rows should run one after the other.
std::optional<size_t> side_axis(const RowsCall& call) {
  if (!call.kernel.across || call.rows < 8) return std::nullopt;
  const Operand& lead = call.operands[0];
  const int64_t step = std::abs(lead.strides[call.rank]), item = size_of(call.kernel.signature.inputs[0]);
  if (step == item && call.n > short_row) return std::nullopt;
  size_t best = call.rank - 1;
  for (size_t k = 0; k < call.rank; ++k) {
    const int64_t stride = std::abs(lead.strides[k]);
    if (call.sizes[k] > 1 && stride > 0 && (call.sizes[best] == 1 || stride < std::abs(lead.strides[best]))) best = k;
  }
  const bool closer = std::abs(lead.strides[best]) < step && lead.strides[best] != 0;
  return call.sizes[best] >= 8 && (closer || call.n <= short_row) ? std::optional(best) : std::nullopt;
}

void run_across(const RowsCall& call, size_t side) {
  const bool has_scratch = !call.kernel.signature.scratch.empty();
  const int64_t size = call.sizes[side], other = call.rows / size;
  // The tile and its scratch stay in the second-level cache.
  const int64_t tile = std::min(size, std::clamp<int64_t>(65536 / std::max<int64_t>(call.n, 1) / 64 * 64, 64, 1024));
  const int64_t tiles = (size + tile - 1) / tile;
  const auto run = [&](int64_t begin, int64_t end) {
    KernelArgs args(call, call.rank, side, has_scratch, tile);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % tiles * tile;
      int64_t rest = task / tiles;
      args.start();
      args.move(side, first);
      for (size_t k = call.rank; k-- > 0;) {
        if (k == side) continue;
        args.move(k, rest % call.sizes[k]);
        rest /= call.sizes[k];
      }
      args.run(*call.kernel.across, call.n, std::min(tile, size - first));
    }
  };
  if (call.rows * call.n < parallel_elements) return run(0, tiles * other);
  parallel_for(tiles * other, std::max<int64_t>(1, task_elements / std::max<int64_t>(tile * call.n, 1)), run);
}

// Rows and columns programs block by block; the partial sums of the blocks are added in order.
void run_with_columns(const RowsCall& call, std::span<Tensor> sums) {
  MOREL_CHECK(call.rank == 1, Internal, "internal error: rows that cannot be merged reached a columns program");
  const size_t count = sums.size();
  const int64_t block = std::clamp<int64_t>(block_elements / std::max<int64_t>(call.n, 1), 8, 256);
  const int64_t blocks = std::max<int64_t>(1, (call.rows + block - 1) / block);
  std::array<Tensor, max_buffers> partial;
  for (size_t i = 0; i < count; ++i)
    partial[i] = blocks == 1 ? sums[i] : Tensor::empty({blocks, call.n}, sums[i].dtype());
  const auto run = [&](int64_t task) {
    const int64_t begin = task * block, end = std::min(begin + block, call.rows);
    run_rows(call, begin, end);
    char* at[max_buffers];
    int64_t row_strides[max_buffers], strides[max_buffers];
    for (size_t i = 0; i < call.inputs; ++i) {
      row_strides[i] = call.operands[i].strides[0];
      strides[i] = call.operands[i].strides[1];
      at[i] = call.operands[i].data + begin * row_strides[i];
    }
    for (size_t i = 0; i < count; ++i) {
      row_strides[call.inputs + i] = 0;
      strides[call.inputs + i] = size_of(partial[i].dtype());
      at[call.inputs + i] = partial[i].as<char>() + task * call.n * strides[call.inputs + i];
    }
    (*call.kernel.columns)({end - begin, call.n, at, row_strides, strides, call.params.data()});
  };
  if (call.rows * call.n < parallel_elements) {
    for (int64_t task = 0; task < blocks; ++task) run(task);
  } else {
    parallel_tasks(blocks, run);
  }
  for (size_t i = 0; i < count && blocks > 1; ++i) reduce_into(find_op("sum"), partial[i], {0}, sums[i], false);
}

// Runs the loop; the operands' tensors are known.
void run_call(RowsCall& call, const Shape& space, size_t axis, std::span<Tensor> outs) {
  for (size_t i = 0; i < call.inputs; ++i) {
    if (!call.tensors[i]) continue;
    const Layout& layout = call.tensors[i]->layout;
    call.operands[i].data = static_cast<char*>(call.tensors[i]->data());
    set_strides(call.operands[i], space, axis, layout.shape, layout.strides, size_of(call.kernel.signature.inputs[i]));
  }
  const size_t num_rows_outs = call.kernel.signature.outputs.size();
  for (size_t i = 0; i < num_rows_outs; ++i) {
    const RowsSignature::Output& spec = call.kernel.signature.outputs[i];
    MOREL_ASSERT(outs[i].dtype() == spec.dtype && outs[i].is_contiguous());
    Shape shape = space;
    if (spec.per_row) shape[axis] = 1;
    call.operands[call.count].data = outs[i].as<char>();
    set_strides(call.operands[call.count++], space, axis, shape, contiguous_strides(shape), size_of(spec.dtype));
  }
  call.n = space[axis];
  for (size_t k = 0; k < space.size(); ++k) {
    if (k == axis) continue;
    call.sizes[call.rank++] = space[k];
    call.rows *= space[k];
  }
  if (call.rows > 0) merge_outer(call);
  if (call.kernel.columns) {
    if (call.rows == 0) call.rank = 1;
    return run_with_columns(call, outs.subspan(num_rows_outs));
  }
  if (call.rows == 0) return;
  if (const std::optional<size_t> side = side_axis(call)) {
    run_across(call, *side);
  } else if (call.rows * call.n < parallel_elements) {
    run_rows(call, 0, call.rows);
  } else {
    parallel_for(call.rows, std::max<int64_t>(1, task_elements / call.n),
                 [&](int64_t begin, int64_t end) { run_rows(call, begin, end); });
  }
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

void run_on_device(const OpDef& op, DType dtype, const RowsCall& call, const Shape& space, size_t axis,
                   std::span<Tensor> outs) {
  const Device device = outs[0].device();
  Shape rows_space = space;
  std::rotate(rows_space.begin() + axis, rows_space.begin() + axis + 1, rows_space.end());
  DeviceLoop loop{rows_name(op, dtype), [&] { return rows_program(op, dtype); }, rows_space, {}, {}};
  loop.params.append(call.params.begin(), call.params.begin() + call.num_params);
  for (size_t i = 0; i < call.inputs; ++i) loop.operands.push_back(row_operand(call.tensors[i], space, axis));
  DeviceLoop columns{columns_name(op, dtype), [&] { return columns_program(op, dtype); }, rows_space, loop.operands,
                     loop.params};
  const RowsSignature& signature = call.kernel.signature;
  const size_t num_rows_outs = signature.outputs.size();
  for (size_t i = 0; i < num_rows_outs; ++i) {
    Shape shape = space;
    if (signature.outputs[i].per_row) shape[axis] = 1;
    const Tensor out = outs[i].with_layout({shape, contiguous_strides(shape), outs[i]->layout.offset});
    loop.operands.push_back(row_operand(out.get(), space, axis));
  }
  std::array<Tensor, max_buffers> scratch;
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
  RowsCall call(rows_kernel(op, dtype));
  gather_inputs(op, args, device, call);
  Shape space = space_of(op, call);
  MOREL_CHECK(space.size() < max_rank, NotImplemented, "For '", display_name(op), "', tensors of more than ",
              max_rank - 1, " dimensions are not supported");
  if (space.empty()) space.push_back(1);
  const int axis_at = op.schema.find("axis");
  const int64_t rank = static_cast<int64_t>(space.size());
  const size_t axis = static_cast<size_t>(
      axis_at < 0 ? rank - 1 : normalize_axis(op, "axis", args[static_cast<size_t>(axis_at)].integer(), rank));
  if (!device.is_cpu()) [[unlikely]]
    return run_on_device(op, dtype, call, space, axis, outs);
  run_call(call, space, axis, outs);
}

void run_fused_rows(const RowsKernel& kernel, const Shape& space, std::span<const Value> inputs,
                    std::span<Tensor> outputs) {
  RowsCall call(kernel);
  for (const Value& input : inputs) call.tensors[call.inputs++] = input.tensor_impl();
  call.count = call.inputs;
  run_call(call, space, space.size() - 1, outputs);
}

}  // namespace morel
