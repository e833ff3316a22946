#include "morel/loops/run/reduce.h"

#include <algorithm>

#include "morel/base/short_sort.h"
#include "morel/base/thread_pool.h"

namespace morel::loops {
namespace {

// Work below this many elements is not worth waking another core for.
constexpr int64_t parallel_elements = 32768;
// Elements of a task, about.
constexpr int64_t task_elements = 65536;
// Long rows are cut into chunks of this many elements; a multiple of the loops' block.
constexpr int64_t chunk_elements = 16384;
// Rows of at most this many elements are reduced side by side.
constexpr int64_t short_row = 32;
// Narrow columns are widened to about this many by treating several rows as one.
constexpr int64_t wide_columns = 256;

struct Axis {
  int64_t size, in, out;  // strides in bytes; out is 0 for a reduced axis
  bool reduced;
};
using Axes = SmallVector<Axis, 8>;

// Runs fn(i) for i in [0, count), in parallel where the whole is worth it; `per_task` of them at a time.
template <class F>
void for_each_task(int64_t count, int64_t per_task, int64_t total_elements, const F& fn) {
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(i);
  };
  if (total_elements < parallel_elements) return run(0, count);
  parallel_for(count, per_task, run);
}

// Offsets of position `idx` of the axes in `outer`, row-major.
struct Position {
  int64_t in = 0, out = 0;
};
Position position(std::span<const Axis> outer, int64_t idx) {
  Position at;
  for (size_t k = outer.size(); k-- > 0;) {
    const int64_t i = idx % outer[k].size;
    idx /= outer[k].size;
    at.in += i * outer[k].in;
    at.out += i * outer[k].out;
  }
  return at;
}

int64_t count_of(std::span<const Axis> axes) {
  int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  return count;
}

// One reduction of one call: the operator and its types. With a loop, what the first pass reduces is not in memory:
// `src` only counts bytes, from the first operand on, of a tensor whose elements the loop computes.
class Pass {
 public:
  Pass(const Reduction& op, DType in, DType out, const ReduceLoop* loop = nullptr)
      : op_(op), in_(in), out_(out), loop_(loop) {}

  // Reduces all reduced axes of `axes` from `src` to `dst`.
  void run(Axes axes, const char* src, char* dst) const {
    simplify(axes);
    int64_t count = 0, last = -1;
    for (size_t k = 0; k < axes.size(); ++k)
      if (axes[k].reduced) ++count, last = static_cast<int64_t>(k);
    if (count == 0) {
      if (axes.empty()) axes.push_back({1, 0, 0, false});
      axes.insert(axes.begin(), Axis{1, 0, 0, true});
      return columns(axes, 0, src, dst);
    }
    if (count == 1) return single(axes, src, dst);
    // The innermost reduced axis first; its results, in the type of partial results, are reduced in turn.
    const DType mid = partial_dtype();
    Axes rest, first = axes;
    int64_t stride = size_of(mid);
    for (size_t k = axes.size(); k-- > 0;) {
      if (static_cast<int64_t>(k) == last) continue;
      first[k].out = stride;
      first[k].reduced = false;
      rest.insert(rest.begin(), Axis{axes[k].size, stride, axes[k].out, axes[k].reduced});
      stride *= axes[k].size;
    }
    const Tensor buffer = Tensor::empty({stride / size_of(mid)}, mid);
    merge(first);
    with_result(mid).single(first, src, buffer.as<char>());
    Pass(op_, mid, out_).run(rest, buffer.as<char>(), dst);
  }

 private:
  bool positional() const { return op_.op == ReduceOp::ArgMin || op_.op == ReduceOp::ArgMax; }

  // Type of partial results: such that rounding to the result's type happens once.
  DType partial_dtype() const {
    const bool adds = op_.op == ReduceOp::Sum || op_.op == ReduceOp::Prod;
    return adds ? compute_dtype(out_) : out_;
  }

  Pass with_result(DType mid) const { return Pass(op_, in_, mid, loop_); }

  // Drops axes of one element, sorts by memory (positions need the given order), merges neighbours.
  void simplify(Axes& axes) const {
    Axes kept;
    for (const Axis& axis : axes)
      if (axis.size != 1) kept.push_back(axis);
    if (!positional())
      short_sort(kept.begin(), kept.end(),
                 [](const Axis& a, const Axis& b) { return std::abs(a.in) > std::abs(b.in); });
    merge(kept);
    axes = std::move(kept);
  }

  static void merge(Axes& axes) {
    const Axes given = std::move(axes);
    axes.clear();
    for (const Axis& axis : given) {
      if (!axes.empty()) {
        Axis& outer = axes.end()[-1];
        const bool in = outer.in == axis.in * axis.size, out = outer.out == axis.out * axis.size;
        if (outer.reduced == axis.reduced && in && (axis.reduced || out)) {
          outer = {outer.size * axis.size, axis.in, axis.out, axis.reduced};
          continue;
        }
      }
      axes.push_back(axis);
    }
  }

  void call(ProgramKind kind, int64_t rows, int64_t n, const char* src, int64_t in_row, int64_t in, char* dst,
            int64_t out_row, int64_t out) const {
    if (loop_) return call_loop(kind, rows, n, src - loop_->operands[0].data, in_row, in, {dst, out_row, out});
    char* pointers[] = {const_cast<char*>(src), dst};
    const int64_t row_strides[] = {in_row, out_row}, strides[] = {in, out};
    op_.kernel(in_, out_, kind)({rows, n, pointers, row_strides, strides, nullptr});
  }

  struct Target {
    char* data;
    int64_t row, stride;
  };
  void call_loop(ProgramKind kind, int64_t rows, int64_t n, int64_t src, int64_t in_row, int64_t in,
                 const Target& target) const {
    char* pointers[max_loop_operands];
    int64_t row_strides[max_loop_operands], strides[max_loop_operands];
    const int64_t item = size_of(in_);
    size_t count = 0;
    for (const ReduceLoop::Operand& operand : loop_->operands) {
      pointers[count] = operand.data + src / item * operand.stride;
      row_strides[count] = in_row / item * operand.stride;
      strides[count++] = in / item * operand.stride;
    }
    pointers[count] = target.data;
    row_strides[count] = target.row;
    strides[count] = target.stride;
    (kind == ProgramKind::Rows ? loop_->rows : loop_->columns)({rows, n, pointers, row_strides, strides, nullptr});
  }

  // Exactly one axis is reduced.
  void single(const Axes& axes, const char* src, char* dst) const {
    int64_t reduced = 0;
    while (!axes[static_cast<size_t>(reduced)].reduced) ++reduced;
    if (reduced + 1 == static_cast<int64_t>(axes.size())) {
      rows(axes, src, dst);
    } else {
      columns(axes, reduced, src, dst);
    }
  }

  // The last axis is reduced.
  void rows(const Axes& axes, const char* src, char* dst) const {
    const Axis inner = axes.end()[-1];
    std::span<const Axis> outer(axes.data(), axes.size() - 1);
    const int64_t total_rows = count_of(outer);
    if (inner.size >= 4 * chunk_elements && total_rows < 64) return long_rows(inner, outer, src, dst);
    const Axis row = outer.empty() ? Axis{1, 0, 0, false} : outer.back();
    if (inner.size <= short_row && row.size >= 16) {  // many of them side by side
      Axes turned = axes;
      std::swap(turned[axes.size() - 1], turned[axes.size() - 2]);
      return columns(turned, static_cast<int64_t>(axes.size()) - 2, src, dst);
    }
    if (!outer.empty()) outer = outer.first(outer.size() - 1);
    const int64_t batches = total_rows / std::max<int64_t>(row.size, 1), n = inner.size;
    // Rows of a task: a piece of the row axis of one batch.
    const int64_t piece =
        std::clamp<int64_t>(task_elements / std::max<int64_t>(n, 1), 1, std::max<int64_t>(row.size, 1));
    const int64_t pieces = (row.size + piece - 1) / piece;
    const int64_t per_task = std::max<int64_t>(1, task_elements / std::max<int64_t>(piece * n, 1));
    for_each_task(batches * pieces, per_task, total_rows * n, [&](int64_t task) {
      const Position at = position(outer, task / pieces);
      const int64_t begin = task % pieces * piece, end = std::min(begin + piece, row.size);
      call(ProgramKind::Rows, end - begin, n, src + at.in + begin * row.in, row.in, inner.in,
           dst + at.out + begin * row.out, row.out, 0);
    });
  }

  // Few rows, so long that each is cut into chunks whose results are reduced in turn.
  void long_rows(const Axis& inner, std::span<const Axis> outer, const char* src, char* dst) const {
    const int64_t chunks = (inner.size + chunk_elements - 1) / chunk_elements, total_rows = count_of(outer);
    const DType mid = partial_dtype();
    const Tensor partial = Tensor::empty({total_rows, chunks}, mid);
    const Pass first = with_result(mid);
    for_each_task(total_rows * chunks, 1, total_rows * inner.size, [&](int64_t task) {
      const int64_t begin = task % chunks * chunk_elements, count = std::min(chunk_elements, inner.size - begin);
      first.call(ProgramKind::Rows, 1, count, src + position(outer, task / chunks).in + begin * inner.in, 0, inner.in,
                 partial.as<char>() + task * size_of(mid), 0, 0);
    });
    if (positional()) return pick_chunks(inner, outer, chunks, src, partial.as<int64_t>(), dst);
    for (int64_t row = 0; row < total_rows; ++row)
      Pass(op_, mid, out_)
          .call(ProgramKind::Rows, 1, chunks, partial.as<char>() + row * chunks * size_of(mid), 0, size_of(mid),
                dst + position(outer, row).out, 0, 0);
  }

  // Of the winners of the chunks the first best one; NaN wins.
  void pick_chunks(const Axis& inner, std::span<const Axis> outer, int64_t chunks, const char* src,
                   const int64_t* winners, char* dst) const {
    visit_dtype(in_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto load = [](const char* at) {
        if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
          return to_float(*reinterpret_cast<const T*>(at));
        } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
          return 0;  // complex numbers have no order; the schema's dtypes exclude them
        } else {
          return *reinterpret_cast<const T*>(at);
        }
      };
      for (int64_t row = 0; row < count_of(outer); ++row) {
        const Position at = position(outer, row);
        int64_t best_at = winners[row * chunks];
        auto best = load(src + at.in + best_at * inner.in);
        for (int64_t chunk = 1; chunk < chunks; ++chunk) {
          const int64_t idx = chunk * chunk_elements + winners[row * chunks + chunk];
          const auto value = load(src + at.in + idx * inner.in);
          const bool better = op_.op == ReduceOp::ArgMax ? value > best : value < best;
          if (better || (value != value && best == best)) best = value, best_at = idx;
        }
        *reinterpret_cast<int64_t*>(dst + at.out) = best_at;
      }
    });
  }

  // Axis `reduced` is not the last one.
  void columns(const Axes& axes, int64_t reduced, const char* src, char* dst) const {
    const Axis inner = axes.end()[-1], row = axes[static_cast<size_t>(reduced)];
    Axes outer;
    for (size_t k = 0; k + 1 < axes.size(); ++k)
      if (static_cast<int64_t>(k) != reduced) outer.push_back(axes[k]);
    const int64_t n = inner.size, batches = count_of({outer.data(), outer.size()});
    const int64_t block = std::max<int64_t>(64, task_elements / std::max<int64_t>(n, 1));
    if (!positional()) {
      if (n < wide_columns / 2 && row.in == n * inner.in && row.size * n >= 8 * wide_columns)
        return widened(row, inner, outer, src, dst);
      if (row.size > 2 * block) return row_blocks(row, inner, outer, block, src, dst);
    }
    const int64_t tile = std::max<int64_t>(1024, task_elements / std::max<int64_t>(row.size, 1) / 1024 * 1024);
    const int64_t tiles = std::max<int64_t>(1, (n + tile - 1) / tile);
    const int64_t per_task = std::max<int64_t>(1, task_elements / std::max<int64_t>(row.size * std::min(n, tile), 1));
    for_each_task(batches * tiles, per_task, batches * row.size * n, [&](int64_t task) {
      const Position at = position({outer.data(), outer.size()}, task / tiles);
      const int64_t begin = task % tiles * tile, count = std::min(tile, n - begin);
      call(ProgramKind::Columns, row.size, count, src + at.in + begin * inner.in, row.in, inner.in,
           dst + at.out + begin * inner.out, 0, inner.out);
    });
  }

  // Many rows: blocks of them give partial results, which are reduced in order.
  void row_blocks(const Axis& row, const Axis& inner, const Axes& outer, int64_t block, const char* src,
                  char* dst) const {
    const int64_t n = inner.size, blocks = (row.size + block - 1) / block,
                  batches = count_of({outer.data(), outer.size()});
    const DType mid = partial_dtype();
    const int64_t item = size_of(mid);
    const Tensor partial = Tensor::empty({batches, blocks, n}, mid);
    const Pass first = with_result(mid);
    for_each_task(batches * blocks, 1, batches * row.size * n, [&](int64_t task) {
      const int64_t begin = task % blocks * block, count = std::min(block, row.size - begin);
      first.call(ProgramKind::Columns, count, n,
                 src + position({outer.data(), outer.size()}, task / blocks).in + begin * row.in, row.in, inner.in,
                 partial.as<char>() + task * n * item, 0, item);
    });
    Axes rest = outer;
    int64_t stride = blocks * n * item;
    for (size_t k = rest.size(); k-- > 0; stride *= rest[k].size) rest[k].in = stride;
    rest.push_back({blocks, n * item, 0, true});
    rest.push_back({n, item, inner.out, false});
    const int64_t at = static_cast<int64_t>(rest.size()) - 2;
    Pass(op_, mid, out_).columns(rest, at, partial.as<char>(), dst);
  }

  // Narrow dense rows: `factor` of them are treated as one wide row, whose results are then reduced.
  void widened(const Axis& row, const Axis& inner, const Axes& outer, const char* src, char* dst) const {
    const int64_t n = inner.size, factor = wide_columns / n, rest_rows = row.size % factor;
    const int64_t batches = count_of({outer.data(), outer.size()}), groups = factor + (rest_rows ? 1 : 0);
    const DType mid = partial_dtype();
    const int64_t item = size_of(mid);
    const Tensor partial = Tensor::empty({batches, groups, n}, mid);
    const Pass first = with_result(mid);
    Axes wide = outer, rest = outer;
    int64_t stride = groups * n * item;
    for (size_t k = outer.size(); k-- > 0; stride *= outer[k].size) wide[k].out = rest[k].in = stride;
    Axes tail = wide;
    wide.push_back({row.size / factor, row.in * factor, 0, true});
    wide.push_back({factor * n, inner.in, item, false});
    first.columns(wide, static_cast<int64_t>(outer.size()), src, partial.as<char>());
    if (rest_rows) {
      tail.push_back({rest_rows, row.in, 0, true});
      tail.push_back({n, inner.in, item, false});
      first.columns(tail, static_cast<int64_t>(outer.size()), src + (row.size - rest_rows) * row.in,
                    partial.as<char>() + factor * n * item);
    }
    rest.push_back({groups, n * item, 0, true});
    rest.push_back({n, item, inner.out, false});
    Pass(op_, mid, out_).columns(rest, static_cast<int64_t>(outer.size()), partial.as<char>(), dst);
  }

  const Reduction& op_;
  DType in_, out_;
  const ReduceLoop* loop_;
};

Axes axes_between(const Shape& shape, const Strides& strides, int64_t in_item, const Ints& axes, const Tensor& out,
                  bool keep_dims) {
  Axes all;
  size_t next = 0, out_axis = 0;
  const int64_t out_item = size_of(out.dtype());
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const bool reduced = next < axes.size() && axes[next] == static_cast<int64_t>(axis);
    if (reduced) ++next;
    all.push_back(
        {shape[axis], strides[axis] * in_item, reduced ? Dim(0) : out.strides()[out_axis] * out_item, reduced});
    if (!reduced || keep_dims) ++out_axis;
  }
  return all;
}

}  // namespace

Layout reduced_last(const Layout& layout, const Ints& axes) {
  const auto is_reduced = [&](size_t axis) {
    return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
  };
  Layout out{{}, {}, layout.offset};
  for (const bool reduced : {false, true})
    for (size_t axis = 0; axis < layout.shape.size(); ++axis)
      if (is_reduced(axis) == reduced) {
        out.shape.push_back(layout.shape[axis]);
        out.strides.push_back(layout.strides[axis]);
      }
  return out;
}

bool can_merge(const Tensor& input, const Ints& axes) {
  const Shape& shape = input.shape();
  size_t previous = 0;
  bool first = true;
  for (const int64_t reduced : axes) {
    const size_t axis = static_cast<size_t>(reduced);
    if (shape[axis] == 1) continue;
    if (!first) {
      for (size_t k = previous + 1; k < axis; ++k)
        if (shape[k] != 1) return false;
      if (input.strides()[previous] != input.strides()[axis] * shape[axis]) return false;
    }
    previous = axis;
    first = false;
  }
  return true;
}

void reduce(const Reduction& op, const ReduceLoop& loop, DType in, const Shape& space, const Ints& axes,
            const Tensor& out, bool keep_dims) {
  Axes all = axes_between(space, contiguous_strides(space), size_of(in), axes, out, keep_dims);
  Pass(op, in, out.dtype(), &loop).run(std::move(all), loop.operands[0].data, out.as<char>());
}

void reduce(const Reduction& op, const Tensor& input, const Ints& axes, const Tensor& out, bool keep_dims) {
  if (out.size() == 0) return;
  const int64_t out_item = size_of(out.dtype());
  Axes all = axes_between(input.shape(), input.strides(), size_of(input.dtype()), axes, out, keep_dims);
  if (input.size() == 0) {  // every result is the identity
    all.clear();
    all.push_back({0, 0, 0, true});
    all.push_back({out.size(), 0, out_item, false});
  }
  Pass(op, input.dtype(), out.dtype()).run(std::move(all), input.as<const char>(), out.as<char>());
}

}  // namespace morel::loops
