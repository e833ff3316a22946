// Gathers and scatters. Indices are checked before they are used, for which the host waits; what is added to one place
// is added in the order of the indices, one work-item for each place.
#include "morel/runtime/opencl/support.h"

namespace morel::opencl {
namespace {

constexpr const char* source = R"C(
#define MAX_AXES 8
/* positions[i] += index[i], counted from the start, times `step`; bad[0]: the last wrong one plus 1, bad[1] its value. */
KERNEL resolve(TENSOR(const int64_t, index), TENSOR(int64_t, positions), TENSOR(int64_t, bad), const int64_t count,
               const int64_t size, const int64_t step) {
  const int64_t item = get_global_id(0);
  if (item >= count) return;
  const int64_t given = index[index_at + item], at = given < 0 ? given + size : given;
  if (at < 0 || at >= size) bad[bad_at] = item + 1, bad[bad_at + 1] = given;
  else positions[positions_at + item] += at * step;
}
KERNEL take_rows(TENSOR(const T, x), TENSOR(const int64_t, positions), TENSOR(T, y), const int64_t total,
                 const int64_t rows, const int64_t count, const int64_t inner) {
  const int64_t item = get_global_id(0);
  if (item >= total) return;
  const int64_t i = item / inner % count, outer = item / inner / count;
  y[y_at + item] = x[x_at + (outer * rows + positions[positions_at + i]) * inner + item % inner];
}
KERNEL put_rows(TENSOR(const T, values), TENSOR(const int64_t, positions), TENSOR(T, target), const int64_t columns,
                const int64_t rows, const int64_t count, const int64_t inner, const int64_t add) {
  const int64_t column = get_global_id(0);
  if (column >= columns) return;
  const int64_t outer = column / inner;
  for (int64_t i = 0; i < count; ++i) {
    __global T* to = target + target_at + (outer * rows + positions[positions_at + i]) * inner + column % inner;
    const int64_t from = values_at + (outer * count + i) * inner + column % inner;
    if (add) STORE(to, LOAD(to) + LOAD(values + from));
    else *to = values[from];
  }
}
/* The weight of each label, 0 for the ignored one. */
KERNEL label_weights(TENSOR(const int64_t, labels), TENSOR(const T, weights), TENSOR(T, y), TENSOR(int64_t, bad),
                     const int64_t count, const int64_t classes, const int64_t ignored) {
  const int64_t item = get_global_id(0);
  if (item >= count) return;
  const int64_t label = labels[labels_at + item];
  const bool counts = label != ignored, valid = label >= 0 && label < classes;
  if (counts && !valid) bad[bad_at] = item + 1, bad[bad_at + 1] = label;
  if (counts && valid && weights) y[y_at + item] = weights[weights_at + label];
  else STORE(y + y_at + item, counts);
}
typedef struct {
  int64_t lines, n, axis, shape[MAX_AXES], index[MAX_AXES], array[MAX_AXES], other[MAX_AXES];
} along;
/* Offsets of line `rest` of the index, whose element i is `i` steps along the axis further. */
#define START_LINE                                                   \
  int64_t rest = get_global_id(0), at = 0, place = 0, beside = 0;    \
  if (rest >= p.lines) return;                                       \
  for (int k = MAX_AXES - 1; k >= 0; --k) {                          \
    if (k == p.axis) continue;                                       \
    const int64_t coordinate = rest % p.shape[k];                    \
    rest /= p.shape[k];                                              \
    at += coordinate * p.index[k];                                   \
    place += coordinate * p.array[k];                                \
    beside += coordinate * p.other[k];                               \
  }
KERNEL gather_lines(TENSOR(const T, x), TENSOR(const int64_t, index), TENSOR(T, y), const along p) {
  START_LINE
  for (int64_t i = 0; i < p.n; ++i)
    y[y_at + beside + i * p.other[p.axis]] = x[x_at + place + index[index_at + at + i * p.index[p.axis]] * p.array[p.axis]];
}
KERNEL scatter_lines(TENSOR(const T, values), TENSOR(const int64_t, index), TENSOR(T, target), const along p,
                     const int64_t add) {
  START_LINE
  for (int64_t i = 0; i < p.n; ++i) {
    __global T* to = target + target_at + place + index[index_at + at + i * p.index[p.axis]] * p.array[p.axis];
    const int64_t from = values_at + beside + i * p.other[p.axis];
    if (add) STORE(to, LOAD(to) + LOAD(values + from));
    else *to = values[from];
  }
}
)C";
constexpr size_t max_axes = 8;

struct Along {
  int64_t lines, n, axis;
  int64_t shape[max_axes] = {1, 1, 1, 1, 1, 1, 1, 1}, index[max_axes] = {}, array[max_axes] = {}, other[max_axes] = {};
};

Tensor zeros(const Shape& shape, DType dtype) {
  const Tensor out = empty_there(shape, dtype);
  fill_on_device(out, 0);
  return out;
}

size_t axis_of(int64_t axis, const Shape& shape) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(std::max<size_t>(shape.size(), 1)) : axis);
}

// positions += indices * step, checked.
void resolve(const char* name, const Tensor& indices, size_t axis, int64_t size, int64_t step,
             const Tensor& positions) {
  if (positions.size() == 0) return;
  const Tensor wide = empty_there(positions.shape(), DType::Int64);
  copy_into(wide, indices);
  const Tensor bad = zeros({2}, DType::Int64);
  OpenClDevice& device = active_device();
  const int64_t count = positions.size();
  device.launch(device.kernel(source, DType::Int64, "resolve"), count, wide, positions, bad, count, size, step);
  int64_t found[2];
  device.read(*bad->storage, 0, sizeof found, found);
  if (found[0] == 0) return;
  std::string place;
  int64_t flat = found[0] - 1;
  for (size_t k = positions.shape().size(); k-- > 0; flat /= positions.shape()[k])
    place = cat(flat % positions.shape()[k], place.empty() ? "" : ", ", place);
  raise(ErrorKind::Index, "For '", name, "', index ", found[1], " at position [", place, "] is out of bounds for axis ",
        axis, " with size ", size, ": it must be in [", -size, ", ", size, ").");
}

Tensor resolved(const char* name, const Tensor& indices, size_t axis, int64_t size) {
  const Tensor positions = zeros(indices.shape(), DType::Int64);
  resolve(name, indices, axis, size, 1, positions);
  return positions;
}

// A dense block [outer, rows, inner] whose rows are picked.
struct Rows {
  int64_t outer, rows, inner;
};
Rows rows_around(const Shape& shape, size_t axis) {
  const Lines lines = lines_around(shape, static_cast<int64_t>(axis));
  return {lines.outer, lines.n, lines.inner};
}

// args: target, weight, classes, ignore_index, dtype.
void class_weights(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor labels = dense(call.tensor(0), DType::Int64), bad = zeros({2}, DType::Int64);
  const Tensor weights = call.has(1) ? dense(call.tensor(1), out.dtype()) : Tensor();
  const int64_t classes = call.integer(2), ignored = call.integer(3);
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, out.dtype(), "label_weights"), out.size(), labels, weights, out, bad,
                static_cast<int64_t>(out.size()), classes, ignored);
  int64_t found[2];
  device.read(*bad->storage, 0, sizeof found, found);
  MOREL_CHECK(found[0] == 0, Value, "For 'CrossEntropy', 'target' has class ", found[1], " at position ", found[0] - 1,
              ", but there are ", classes, " classes and class ", ignored, " is ignored");
}

void take_rows(const Tensor& block, const Rows& rows, const Tensor& positions, const Tensor& out) {
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, out.dtype(), "take_rows"), out.size(), block, positions, out,
                static_cast<int64_t>(out.size()), rows.rows, static_cast<int64_t>(positions.size()), rows.inner);
}

void put_rows(const Tensor& values, const Tensor& positions, const Tensor& block, const Rows& rows, bool add) {
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, block.dtype(), "put_rows"), rows.outer * rows.inner, values, positions, block,
                rows.outer * rows.inner, rows.rows, static_cast<int64_t>(positions.size()), rows.inner, int64_t{add});
}

// out = zeros with values added; halves are added in float32 and rounded once.
void add_rows(const Tensor& values, const Tensor& positions, const Rows& rows, const Tensor& out) {
  const DType wide = compute_dtype(out.dtype());
  const Tensor sums = wide == out.dtype() ? out : empty_there(out.shape(), wide);
  fill_on_device(sums, 0);
  put_rows(dense(values, wide), positions, sums, rows, true);
  if (!(sums == out)) copy_into(out, sums);
}

// args: input, indices, axis.
void take_axis(const KernelCall& call) {
  check_real("Gather", call.outs[0].dtype());
  const Tensor input = dense(call.tensor(0));
  const size_t axis = axis_of(call.integer(2), input.shape());
  const Rows rows = rows_around(input.shape(), axis);
  take_rows(input, rows, resolved("Gather", call.tensor(1), axis, rows.rows), call.outs[0]);
}

// args: dout, indices, size, axis.
void take_axis_grad(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  check_real("Gather", out.dtype());
  const size_t axis = axis_of(call.integer(3), out.shape());
  const Rows rows = rows_around(out.shape(), axis);
  add_rows(call.tensor(0), resolved("Gather", call.tensor(1), axis, rows.rows), rows, out);
}

// -- several index tensors at once --

struct Advanced {
  std::vector<size_t> order;  // axes of the input with the indexed ones as a block
  Rows rows{1, 1, 1};
  Shape result;      // shape of input[indices]
  Tensor positions;  // row of the block for every element of the indices' common shape
};

Advanced resolve_all(const Shape& shape, const Value::List& given) {
  std::vector<size_t> indexed, kept;
  Shape common;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i >= given.size() || given[i].is_none()) {
      kept.push_back(i);
      continue;
    }
    indexed.push_back(i);
    const Shape& own = given[i].tensor_impl()->layout.shape;
    while (common.size() < own.size()) common.insert(common.begin(), 1);
    for (size_t k = 0; k < own.size(); ++k)
      if (own[k] != 1) common[common.size() - own.size() + k] = own[k];
  }
  bool adjacent = !indexed.empty();
  for (size_t k = 1; k < indexed.size(); ++k) adjacent &= indexed[k] == indexed[k - 1] + 1;
  const size_t at = adjacent ? indexed[0] : 0;
  Advanced out;
  out.positions = zeros(common, DType::Int64);
  for (size_t k = indexed.size(); k-- > 0;) {
    const size_t axis = indexed[k];
    resolve("Index", given[axis].tensor(), axis, shape[axis], out.rows.rows, out.positions);
    out.rows.rows *= shape[axis];
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    if (i == at)
      out.order.insert(out.order.end(), indexed.begin(), indexed.end()),
          out.result.append(common.begin(), common.end());
    out.order.push_back(kept[i]);
    out.result.push_back(shape[kept[i]]);
    (i < at ? out.rows.outer : out.rows.inner) *= shape[kept[i]];
  }
  if (kept.size() <= at)
    out.order.insert(out.order.end(), indexed.begin(), indexed.end()), out.result.append(common.begin(), common.end());
  return out;
}

Tensor permuted(const Tensor& tensor, const std::vector<size_t>& order) {
  Layout layout{{}, {}, tensor->layout.offset};
  for (const size_t axis : order) {
    layout.shape.push_back(tensor.shape()[axis]);
    layout.strides.push_back(tensor.strides()[axis]);
  }
  return tensor.with_layout(std::move(layout));
}

// args: input, indices.
void index(const KernelCall& call) {
  const Tensor input = call.tensor(0);
  check_real("Index", input.dtype());
  const Advanced advanced = resolve_all(input.shape(), call.args[1].list());
  take_rows(dense(permuted(input, advanced.order)), advanced.rows, advanced.positions, call.outs[0]);
}

// args: dout, indices, size.
void index_grad(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  check_real("Index", out.dtype());
  const Advanced advanced = resolve_all(out.shape(), call.args[1].list());
  const Tensor view = permuted(out, advanced.order);
  const Tensor block = view.is_contiguous() ? view : empty_there(view.shape(), view.dtype());
  add_rows(call.tensor(0), advanced.positions, advanced.rows, block);
  if (!(block == view)) copy_into(view, block);
}

// args: input, indices, values, accumulate; in place.
void index_put_(const KernelCall& call) {
  const Tensor target = call.tensor(0);
  check_real("IndexPut", target.dtype());
  const Advanced advanced = resolve_all(target.shape(), call.args[1].list());
  const Tensor given = call.tensor(2);
  const Shape& shape = advanced.result;
  bool fits = given.shape().size() <= shape.size();
  for (size_t i = 0; i < given.shape().size() && fits; ++i) {
    const Dim size = given.shape()[i];
    fits = size == 1 || size == shape[shape.size() - given.shape().size() + i];
  }
  MOREL_CHECK(fits, Value, "For 'IndexPut', values of shape ", to_string(given.shape()), " cannot be broadcast to ",
              to_string(shape));
  const Tensor values = empty_there(shape, target.dtype());
  copy_into(values, given);
  const Tensor view = permuted(target, advanced.order);
  const Tensor block = view.is_contiguous() ? view : contiguous(view);
  put_rows(values, advanced.positions, block, advanced.rows, call.flag(3));
  if (!(block == view)) copy_into(view, block);
}

// -- along one axis, an index for every element --

// Lines of the index along the axis; `array` is what the index points into, `other` lies as the index does.
Along along_of(int64_t dim, const Tensor& index, const Tensor& array, const Tensor& other) {
  const size_t rank = index.shape().size();
  MOREL_CHECK(rank <= max_axes, NotImplemented, "For 'GatherElements', tensors of more than ", max_axes,
              " dimensions are not supported on ", to_string(current_device()));
  const size_t axis = axis_of(dim, index.shape()), shift = max_axes - rank;
  Along p{1, rank ? int64_t{index.shape()[axis]} : 1, static_cast<int64_t>(rank ? axis + shift : max_axes - 1)};
  for (size_t k = 0; k < rank; ++k) {
    p.shape[shift + k] = index.shape()[k];
    p.index[shift + k] = index.strides()[k], p.array[shift + k] = array.strides()[k];
    p.other[shift + k] = other.strides()[k];
    if (k != axis) p.lines *= index.shape()[k];
  }
  return p;
}

Tensor positions_along(const Tensor& index, int64_t dim, const Shape& shape) {
  const size_t axis = axis_of(dim, shape);
  return resolved("GatherElements", index, axis, shape.empty() ? 1 : int64_t{shape[axis]});
}

// args: input, dim, index.
void gather_elements(const KernelCall& call) {
  const Tensor input = call.tensor(0);
  check_real("GatherElements", input.dtype());
  const Tensor index = positions_along(call.tensor(2), call.integer(1), input.shape());
  const Along p = along_of(call.integer(1), index, input, call.outs[0]);
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, input.dtype(), "gather_lines"), p.n ? p.lines : 0, input, index, call.outs[0], p);
}

// args: input, dim, index, src.
void scatter_along(const KernelCall& call, bool add) {
  const Tensor& out = call.outs[0];
  check_real("ScatterElements", out.dtype());
  copy_into(out, call.tensor(0));
  const Tensor index = positions_along(call.tensor(2), call.integer(1), out.shape());
  const Tensor values = dense(call.tensor(3), out.dtype());
  const Along p = along_of(call.integer(1), index, out, values);
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, out.dtype(), "scatter_lines"), p.n ? p.lines : 0, values, index, out, p,
                int64_t{add});
}
void scatter_add_elements(const KernelCall& call) { scatter_along(call, true); }
void scatter_elements(const KernelCall& call) { scatter_along(call, false); }

}  // namespace

std::span<const KernelEntry> index_kernels() {
  static constexpr KernelEntry entries[] = {
      {"take_axis", take_axis},
      {"take_axis_grad", take_axis_grad},
      {"index", index},
      {"index_grad", index_grad},
      {"index_put_", index_put_},
      {"gather_elements", gather_elements},
      {"scatter_add_elements", scatter_add_elements},
      {"scatter_elements", scatter_elements},
      {"class_weights", class_weights},
  };
  return entries;
}

}  // namespace morel::opencl
