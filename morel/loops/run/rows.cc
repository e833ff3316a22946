#include "morel/loops/run/rows.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"

namespace morel::loops {
namespace {

constexpr size_t max_buffers = max_row_buffers;
constexpr size_t max_rank = max_row_rank;
constexpr int64_t parallel_elements = 16384;
constexpr int64_t task_elements = 32768;
// Rows of one block of a columns program: what rows and columns programs read together stays in the second-level cache.
constexpr int64_t block_elements = 49152;
// Rows of at most this many elements run side by side.
constexpr int64_t short_row = 32;

// One operand: first element, strides in bytes along the outer axes and then the row axis.
struct Operand {
  char* data;
  std::array<int64_t, max_rank> strides;
};

struct RowsCall {
  const RowsKernel& kernel;
  const RowOperands& in;
  std::array<Operand, max_buffers> operands;
  size_t inputs, count;
  int64_t sizes[max_rank];  // outer axes
  size_t rank = 0;
  int64_t n = 1, rows = 1;  // length and number of rows
  bool stream = false;      // LoopArgs::stream
  RowsCall(const RowsKernel& k, const RowOperands& given) : kernel(k), in(given), inputs(given.count), count(inputs) {}
};

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
  void run(const Kernel& kernel, int64_t rows, int64_t n) const {
    kernel({rows, n, at_, row_strides_, strides_, call_.in.params.data(), call_.stream});
  }

 private:
  const RowsCall& call_;
  size_t count_;
  char* at_[max_buffers];
  int64_t row_strides_[max_buffers], strides_[max_buffers], offsets_[max_buffers];
};

// Rows [begin, end) of the outer axes, counted row-major.
void run_piece(const RowsCall& call, int64_t begin, int64_t end) {
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
    run_piece(call, begin, end);
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
    (*call.kernel.columns)({end - begin, call.n, at, row_strides, strides, call.in.params.data()});
  };
  if (call.rows * call.n < parallel_elements) {
    for (int64_t task = 0; task < blocks; ++task) run(task);
  } else {
    parallel_tasks(blocks, run);
  }
  for (size_t i = 0; i < count && blocks > 1; ++i) reduce(*call.kernel.sum, partial[i], {0}, sums[i], false);
}

}  // namespace

void run_rows(const RowsKernel& kernel, const RowOperands& in, const Shape& space, size_t axis,
              std::span<Tensor> outs) {
  RowsCall call(kernel, in);
  for (size_t i = 0; i < call.inputs; ++i) {
    const TensorImpl* tensor = in.tensors[i];
    if (!tensor) {
      call.operands[i] = {const_cast<char*>(in.scalars[i].data()), {}};
      continue;
    }
    call.operands[i].data = static_cast<char*>(tensor->data());
    const Layout& layout = tensor->layout;
    set_strides(call.operands[i], space, axis, layout.shape, layout.strides, size_of(kernel.signature.inputs[i]));
  }
  const size_t num_rows_outs = call.kernel.signature.outputs.size();
  for (size_t i = 0; i < num_rows_outs; ++i) {
    const LoopSignature::Output& spec = call.kernel.signature.outputs[i];
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
  call.stream = num_rows_outs > 0 && call.rows * call.n * size_of(outs[0].dtype()) >= streaming_bytes;
  if (call.rows > 0) merge_outer(call);
  if (call.kernel.columns) {
    if (call.rows == 0) call.rank = 1;
    return run_with_columns(call, outs.subspan(num_rows_outs));
  }
  if (call.rows == 0) return;
  if (const std::optional<size_t> side = side_axis(call)) {
    run_across(call, *side);
  } else if (call.rows * call.n < parallel_elements) {
    run_piece(call, 0, call.rows);
  } else {
    parallel_for(call.rows, std::max<int64_t>(1, task_elements / call.n),
                 [&](int64_t begin, int64_t end) { run_piece(call, begin, end); });
  }
}

}  // namespace morel::loops
