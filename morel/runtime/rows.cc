// Row-wise operators (softmax, layer_norm, ...): a loop program along one axis, for every position of the other axes.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "morel/base/thread_pool.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/loop_kernel.h"
#include "morel/runtime/reduce.h"
#include "morel/tensor/scalar.h"

namespace morel {
namespace {

constexpr size_t max_buffers = 12;
constexpr size_t max_rank = 16;
constexpr int64_t parallel_elements = 16384;
constexpr int64_t task_elements = 32768;
// Rows of one block of a columns program: what rows and columns programs read together stays in the second-level cache.
constexpr int64_t block_elements = 49152;

struct RowsKernel {
  const RowsSignature& signature;
  std::unique_ptr<LoopKernel> rows;
  const RowsSignature* columns_signature = nullptr;
  std::unique_ptr<LoopKernel> columns;
};

const RowsKernel& rows_kernel(const OpDef& op, DType dtype) {
  using Row = std::array<std::atomic<const RowsKernel*>, num_dtypes>;
  static std::vector<Row> table(registry().ops().size());
  std::atomic<const RowsKernel*>& slot = table[static_cast<size_t>(op.id)][static_cast<size_t>(dtype)];
  const RowsKernel* kernel = slot.load(std::memory_order_acquire);
  if (kernel) [[likely]]
    return *kernel;
  auto made = std::make_unique<RowsKernel>(RowsKernel{rows_signature(op, dtype), {}, nullptr, {}});
  made->rows = make_loop_kernel(rows_name(op, dtype), [&] { return rows_program(op, dtype); });
  if (op.columns) {
    made->columns_signature = &columns_signature(op, dtype);
    made->columns = make_loop_kernel(columns_name(op, dtype), [&] { return columns_program(op, dtype); });
  }
  if (slot.compare_exchange_strong(kernel, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *kernel;
}

// One call: buffers in the order of the program, their strides over (outer axes..., row axis) in bytes.
struct RowsCall {
  std::array<Value, max_buffers> kept;  // keeps converted tensors alive
  std::array<char*, max_buffers> data{};
  std::array<std::array<char, 16>, max_buffers> scalars;
  std::array<std::array<int64_t, max_rank>, max_buffers> strides{};
  std::array<double, max_buffers> params{};
  std::array<const TensorImpl*, max_buffers> tensors{};
  size_t inputs = 0, count = 0, num_params = 0;
  int64_t sizes[max_rank];  // outer axes, innermost last
  size_t rank = 0;
  int64_t n = 1;  // length of a row
};

void gather_inputs(const OpDef& op, std::span<const Value> args, const RowsSignature& signature, RowsCall& call) {
  for (size_t i = 0; i < args.size(); ++i) {
    const ArgSpec& spec = op.schema.args[i];
    if (spec.name == "axis") continue;
    if (!spec.is_tensor_like() && !(spec.kinds & kNumber)) {
      call.params[call.num_params++] = args[i].number();
      continue;
    }
    const size_t idx = call.inputs++;
    const DType wanted = signature.inputs[idx];
    if (!args[i].is_tensor()) {
      store_scalar(args[i], wanted, call.scalars[idx].data());
      call.data[idx] = call.scalars[idx].data();
      continue;
    }
    Tensor tensor = args[i].tensor();
    if (tensor.dtype() != wanted) tensor = convert(tensor, wanted);
    call.tensors[idx] = tensor.get();
    call.data[idx] = tensor.as<char>();
    call.kept[idx] = std::move(tensor);
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
    space = first ? shape : broadcast_shapes(op, space, shape);
    first = false;
  }
  return space;
}

void set_strides(RowsCall& call, size_t buffer, const Shape& space, size_t axis, const Layout& layout, int64_t item) {
  const size_t shift = space.size() - layout.shape.size();
  size_t outer = 0;
  for (size_t k = 0; k < space.size(); ++k) {
    int64_t stride = 0;
    if (k >= shift && layout.shape[k - shift] != 1) stride = layout.strides[k - shift] * item;
    call.strides[buffer][k == axis ? space.size() - 1 : outer++] = stride;
  }
}

// Merges neighbouring outer axes that every buffer walks through evenly.
void merge_outer(RowsCall& call) {
  size_t kept = 0;
  const size_t row = call.rank;
  for (size_t k = 0; k < call.rank; ++k) {
    if (call.sizes[k] == 1) continue;
    bool merge = kept > 0;
    for (size_t i = 0; i < call.count && merge; ++i) merge = call.strides[i][kept - 1] == call.strides[i][k] * call.sizes[k];
    const size_t to = merge ? kept - 1 : kept++;
    call.sizes[to] = merge ? call.sizes[to] * call.sizes[k] : call.sizes[k];
    for (size_t i = 0; i < call.count; ++i) call.strides[i][to] = call.strides[i][k];
  }
  for (size_t i = 0; i < call.count; ++i) call.strides[i][std::max<size_t>(kept, 1)] = call.strides[i][row];
  if (kept == 0) {
    call.sizes[0] = 1;
    for (size_t i = 0; i < call.count; ++i) call.strides[i][0] = 0;
    kept = 1;
  }
  call.rank = kept;
}

// Rows [begin, end) of the outer axes, counted row-major.
void run_rows(const LoopKernel& kernel, const RowsCall& call, int64_t begin, int64_t end) {
  const size_t last = call.rank - 1;
  int64_t row_strides[max_buffers], strides[max_buffers];
  for (size_t i = 0; i < call.count; ++i) row_strides[i] = call.strides[i][last], strides[i] = call.strides[i][call.rank];
  while (begin < end) {
    int64_t rest = begin / call.sizes[last];
    const int64_t row = begin % call.sizes[last], batch = std::min(end - begin, call.sizes[last] - row);
    char* at[max_buffers];
    for (size_t i = 0; i < call.count; ++i) at[i] = call.data[i] + row * row_strides[i];
    for (size_t k = last; k-- > 0; rest /= call.sizes[k])
      for (size_t i = 0; i < call.count; ++i) at[i] += rest % call.sizes[k] * call.strides[i][k];
    kernel({batch, call.n, at, row_strides, strides, call.params.data()});
    begin += batch;
  }
}

// Rows and columns programs block by block; the partial sums of the blocks are added in order.
Values run_with_columns(const RowsKernel& kernel, const RowsCall& call, int64_t rows, Values outs, const Types& types) {
  MOREL_CHECK(call.rank == 1, Internal, "internal error: rows that cannot be merged reached a columns program");
  const size_t first = kernel.signature.outputs.size(), count = kernel.columns_signature->outputs.size();
  const int64_t block = std::clamp<int64_t>(block_elements / std::max<int64_t>(call.n, 1), 8, 256);
  const int64_t blocks = std::max<int64_t>(1, (rows + block - 1) / block);
  std::array<Tensor, max_buffers> partial;
  for (size_t i = 0; i < count; ++i) partial[i] = Tensor::empty({blocks, call.n}, types[first + i].dtype);
  const auto run = [&](int64_t task) {
    const int64_t begin = task * block, end = std::min(begin + block, rows);
    run_rows(*kernel.rows, call, begin, end);
    char* at[max_buffers];
    int64_t row_strides[max_buffers] = {}, strides[max_buffers];
    for (size_t i = 0; i < call.inputs; ++i) {
      row_strides[i] = call.strides[i][0];
      strides[i] = call.strides[i][1];
      at[i] = call.data[i] + begin * row_strides[i];
    }
    for (size_t i = 0; i < count; ++i) {
      strides[call.inputs + i] = size_of(partial[i].dtype());
      at[call.inputs + i] = partial[i].as<char>() + task * call.n * strides[call.inputs + i];
    }
    (*kernel.columns)({end - begin, call.n, at, row_strides, strides, call.params.data()});
  };
  if (rows * call.n < parallel_elements) {
    for (int64_t task = 0; task < blocks; ++task) run(task);
  } else {
    parallel_tasks(blocks, run);
  }
  for (size_t i = 0; i < count; ++i) {
    if (blocks == 1) {
      outs.push_back(partial[i].with_layout({types[first + i].shape, contiguous_strides(types[first + i].shape), 0}));
      continue;
    }
    const Tensor sum = Tensor::empty(types[first + i].shape, types[first + i].dtype);
    reduce_into(find_op("sum"), partial[i], {0}, sum, false);
    outs.push_back(sum);
  }
  return outs;
}

}  // namespace

Values execute_rows(const OpDef& op, std::span<const Value> args) {
  const Types types = op.infer(ArgView(op, args));
  size_t lead = 0;
  while (!args[lead].is_tensor()) ++lead;
  const RowsKernel& kernel = rows_kernel(op, args[lead].tensor_impl()->dtype);
  RowsCall call;
  gather_inputs(op, args, kernel.signature, call);
  Shape space = space_of(op, call);
  MOREL_CHECK(space.size() < max_rank, NotImplemented, "For '", display_name(op), "', tensors of more than ", max_rank - 1,
              " dimensions are not supported");
  if (space.empty()) space.push_back(1);
  const int axis_at = op.schema.find("axis");
  const int64_t rank = static_cast<int64_t>(space.size());
  const size_t axis = static_cast<size_t>(axis_at < 0 ? rank - 1 : normalize_axis(op, "axis", args[static_cast<size_t>(axis_at)].integer(), rank));
  for (size_t i = 0; i < call.inputs; ++i) {
    if (!call.tensors[i]) continue;
    if (op.columns && !call.tensors[i]->contiguous) {  // rows must merge into one axis
      Tensor dense = contiguous(call.kept[i].tensor());
      call.tensors[i] = dense.get();
      call.data[i] = dense.as<char>();
      call.kept[i] = std::move(dense);
    }
    set_strides(call, i, space, axis, call.tensors[i]->layout, size_of(kernel.signature.inputs[i]));
  }
  Values outs;
  for (size_t i = 0; i < kernel.signature.outputs.size(); ++i) {
    const RowsSignature::Output& spec = kernel.signature.outputs[i];
    Tensor out = Tensor::empty(types[i].shape, spec.dtype);
    Layout layout{space, {}, 0};
    if (spec.per_row) layout.shape[axis] = 1;
    layout.strides = contiguous_strides(layout.shape);
    call.data[call.count] = out.as<char>();
    set_strides(call, call.count++, space, axis, layout, size_of(spec.dtype));
    outs.push_back(std::move(out));
  }
  call.n = space[axis];
  int64_t rows = 1;
  for (size_t k = 0; k < space.size(); ++k) {
    if (k == axis) continue;
    call.sizes[call.rank++] = space[k];
    rows *= space[k];
  }
  if (rows > 0) merge_outer(call);
  if (op.columns) {
    if (rows == 0) call.rank = 1;
    return run_with_columns(kernel, call, rows, std::move(outs), types);
  }
  if (rows * call.n < parallel_elements) {
    if (rows > 0) run_rows(*kernel.rows, call, 0, rows);
  } else {
    parallel_for(rows, std::max<int64_t>(1, task_elements / call.n), [&](int64_t begin, int64_t end) { run_rows(*kernel.rows, call, begin, end); });
  }
  return outs;
}

}  // namespace morel
