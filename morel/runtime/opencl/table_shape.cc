// What moves and creates elements: copies of views, which loops do, and ranges.
#include "morel/kernels/tensor_view.h"
#include "morel/runtime/opencl/support.h"

namespace morel::opencl {
namespace {

constexpr const char* source = R"C(
KERNEL range_whole(TENSOR(T, y), const int64_t count, const int64_t start, const int64_t step) {
  const int64_t i = get_global_id(0);
  if (i < count) STORE(y + y_at + i, start + i * step);
}
KERNEL range_real(TENSOR(T, y), const int64_t count, const double start, const double step) {
  const int64_t i = get_global_id(0);
  if (i < count) STORE(y + y_at + i, start + (double)i * step);
}
/* From the nearer end. */
KERNEL points(TENSOR(T, y), const int64_t count, const double start, const double stop, const double step) {
  const int64_t i = get_global_id(0);
  if (i < count) STORE(y + y_at + i, i < (count + 1) / 2 ? start + (double)i * step : stop - (double)(count - 1 - i) * step);
}
/* Keeps what is on or below (sign 1), on or above (sign -1) a diagonal. */
KERNEL triangle(TENSOR(const T, x), TENSOR(T, y), const int64_t count, const int64_t rows, const int64_t columns,
                const int64_t diagonal, const int64_t sign) {
  const int64_t i = get_global_id(0);
  if (i >= count) return;
  const int64_t column = i % columns, row = i / columns % rows;
  y[y_at + i] = sign * (column - row - diagonal) <= 0 ? x[x_at + i] : 0;
}
)C";

int64_t count_of(const Tensor& tensor) { return tensor.size(); }

// Elements [begin, begin + size) of an axis; the other way round where `step` is -1.
Tensor part(const Tensor& tensor, size_t axis, int64_t begin, int64_t size, int64_t step = 1) {
  Layout layout = tensor->layout;
  layout.offset += begin * layout.strides[axis];
  layout.shape[axis] = size;
  layout.strides[axis] = layout.strides[axis] * step;
  return tensor.with_layout(std::move(layout));
}

size_t axis_at(int64_t axis, int64_t rank) { return static_cast<size_t>(axis < 0 ? axis + rank : axis); }

// clone, convert_dtype: args: input, ...
void copied(const KernelCall& call) { copy_into(call.outs[0], call.tensor(0)); }

// args: tensors, axis.
void concat(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const size_t axis = axis_at(call.integer(1), out.rank());
  int64_t begin = 0;
  for (const Value& item : call.args[0].list()) {
    const Tensor tensor = item.tensor();
    const int64_t size = tensor.shape()[axis];
    if (tensor.size()) copy_into(part(out, axis, begin, size), tensor);
    begin += size;
  }
}

// args: input, axes.
void flip(const KernelCall& call) {
  Tensor view = call.tensor(0);
  const Ints axes = call.args[1].is_integer() ? Ints{call.integer(1)} : call.ints(1);
  for (const Dim given : axes) {
    const size_t axis = axis_at(given, view.rank());
    const int64_t size = view.shape()[axis];
    if (size) view = part(view, axis, size - 1, size, -1);
  }
  copy_into(call.outs[0], view);
}

// args: input, shifts, axes.
void roll_axes(const KernelCall& call) {
  Tensor from = call.tensor(0);
  const Ints &shifts = call.ints(1), &axes = call.ints(2);
  for (size_t k = 0; k < axes.size(); ++k) {
    const size_t axis = axis_at(axes[k], from.rank());
    const int64_t size = from.shape()[axis];
    if (size == 0) break;
    const int64_t shift = (shifts[k] % size + size) % size;
    const Tensor to = k + 1 == axes.size() ? call.outs[0] : empty_there(from.shape(), from.dtype());
    copy_into(part(to, axis, shift, size - shift), part(from, axis, 0, size - shift));
    if (shift) copy_into(part(to, axis, 0, shift), part(from, axis, size - shift, shift));
    from = to;
  }
  if (axes.empty()) copy_into(call.outs[0], from);
}

// args: input, diagonal.
void triangle(const KernelCall& call, int64_t sign) {
  const Tensor input = dense(call.tensor(0));
  check_real("Tril", input.dtype());
  const size_t rank = input.shape().size();
  const int64_t rows = input.shape()[rank - 2], columns = input.shape()[rank - 1];
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, input.dtype(), "triangle"), input.size(), input, call.outs[0], count_of(input),
                rows, columns, call.integer(1), sign);
}
void tril(const KernelCall& call) { triangle(call, 1); }
void triu(const KernelCall& call) { triangle(call, -1); }

// args: input, before, after, mode, value; negative pads cut off.
void pad_axes(const KernelCall& call) {
  MOREL_CHECK(call.str(3) == "constant", NotImplemented, "For 'Pad', mode '", call.str(3), "' is not supported on ",
              to_string(current_device()), "; 'constant' is, or move the tensor with .to(\"CPU\")");
  Tensor from = call.tensor(0), to = call.outs[0];
  fill_on_device(to, call.args[4]);
  for (size_t axis = 0; axis < from.shape().size(); ++axis) {
    const int64_t before = call.ints(1)[axis], skipped = std::max<int64_t>(0, -before),
                  at = std::max<int64_t>(0, before);
    const int64_t size = std::min<int64_t>(from.shape()[axis] - skipped, to.shape()[axis] - at);
    if (size <= 0) return;
    from = part(from, axis, skipped, size);
    to = part(to, axis, at, size);
  }
  copy_into(to, from);
}

// -- strided places --

Tensor strided(const Tensor& base, const Ints& size, const Ints& stride, int64_t offset) {
  return base.with_layout(
      {Shape(size.begin(), size.end()), Strides(stride.begin(), stride.end()), base->layout.offset + offset});
}

// args: dout, shape, size, stride, offset.
void as_strided_grad(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  fill_on_device(out, 0);
  MOREL_CHECK(!kernels::overlaps(call.ints(2), call.ints(3)), NotImplemented,
              "For 'AsStrided', the gradient of places that overlap is not supported on ", to_string(current_device()),
              "; move the tensor with .to(\"CPU\")");
  if (call.tensor(0).size()) copy_into(strided(out, call.ints(2), call.ints(3), call.integer(4)), call.tensor(0));
}

// args: input, source, size, stride, offset.
void as_strided_scatter(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  copy_into(out, call.tensor(0));
  MOREL_CHECK(!kernels::overlaps(call.ints(2), call.ints(3)), Value, "For 'AsStridedScatter', the places of 'size' ",
              to_string(call.args[2]), " and 'stride' ", to_string(call.args[3]), " overlap");
  if (call.tensor(1).size()) copy_into(strided(out, call.ints(2), call.ints(3), call.integer(4)), call.tensor(1));
}

// -- in place --

void copy_in_place(const KernelCall& call) {
  kernels::check_written("Copy_", call.tensor(0));
  copy_into(call.tensor(0), call.tensor(1));
}

void fill_in_place(const KernelCall& call) {
  kernels::check_written("Fill_", call.tensor(0));
  fill_on_device(call.tensor(0), call.args[1]);
}

// -- creation --

void empty(const KernelCall&) {}
void zeros(const KernelCall& call) { fill_on_device(call.outs[0], 0); }
void ones(const KernelCall& call) { fill_on_device(call.outs[0], 1); }
void full(const KernelCall& call) { fill_on_device(call.outs[0], call.args[1]); }

// args: start, end, step, dtype.
void arange_from(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  check_real("Arange", out.dtype());
  OpenClDevice& device = active_device();
  const auto is_float = [&](size_t arg) { return call.args[arg].tag() == Value::Tag::Float; };
  if (is_integral(out.dtype()) && !is_float(0) && !is_float(2)) {
    device.launch(device.kernel(source, out.dtype(), "range_whole"), out.size(), out, count_of(out), call.integer(0),
                  call.integer(2));
  } else {
    device.launch(device.kernel(source, out.dtype(), "range_real"), out.size(), out, count_of(out), call.number(0),
                  call.number(2));
  }
}

// args: start, end, steps, dtype.
void linspace(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  check_real("Linspace", out.dtype());
  const double start = call.number(0), stop = call.number(1);
  const int64_t count = out.size();
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, out.dtype(), "points"), count, out, count, start, stop,
                count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0.0);
}

void eye(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  fill_on_device(out, 0);
  const int64_t size = std::min(out.dim(0), out.dim(1));
  if (size) fill_on_device(out.with_layout({{size}, {out.dim(1) + 1}, out->layout.offset}), 1);
}

}  // namespace

std::span<const KernelEntry> shape_kernels() {
  static constexpr KernelEntry entries[] = {
      {"clone", copied},
      {"convert_dtype", copied},
      {"concat", concat},
      {"flip", flip},
      {"roll_axes", roll_axes},
      {"tril", tril},
      {"triu", triu},
      {"pad_axes", pad_axes},
      {"as_strided_grad", as_strided_grad},
      {"as_strided_scatter", as_strided_scatter},
      {"copy_", copy_in_place},
      {"fill_", fill_in_place},
      {"empty", empty},
      {"zeros", zeros},
      {"ones", ones},
      {"full", full},
      {"arange_from", arange_from},
      {"linspace", linspace},
      {"eye", eye},
  };
  return entries;
}

}  // namespace morel::opencl
