// Views that pick elements: slices, diagonals, splits, windows.
#include <array>

#include "morel/ops/axes.h"
#include "morel/ops/shape_parts.h"

namespace morel {

Ints strides_of_batch(const Shape& example, const Ints& strides) {
  Ints out = strides;
  out.insert(out.begin(), num_elements(example));
  return out;
}

bool is_row_major(const Layout& layout) {
  if (num_elements(layout.shape) == 0) return true;
  const Strides wanted = contiguous_strides(layout.shape);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (layout.shape[i] != 1 && layout.strides[i] != wanted[i]) return false;
  return true;
}

namespace {

Layout dense(const Shape& shape) { return {shape, contiguous_strides(shape), 0}; }

// Gradient of a view that picks elements: zeros with the cotangent at the picked places.
Syms picking_grad(const GradCall& g) {
  const Layout picked = *g.op().view(g, dense(g.shape(0)));
  return {g.builder()("as_strided_grad", g.dout(), Ints(g.shape(0)), Ints(picked.shape), Ints(picked.strides),
                      picked.offset)};
}

// ---- slices ----

Layout narrowed(const Layout& input, size_t axis, Dim start, Dim length) {
  Layout out = input;
  out.shape[axis] = length;
  out.offset += start * input.strides[axis];
  return out;
}

std::optional<Layout> narrow_view(const ArgView& call, const Layout& input) {
  const size_t axis = static_cast<size_t>(call.axis("axis", static_cast<int64_t>(input.shape.size())));
  MOREL_CHECK(!input.shape.empty(), Value, "For 'Narrow', the input must have an axis");
  const Dim n = input.shape[axis], length = call.dim("length");
  const Dim start = call.dim("start") < 0 ? call.dim("start") + n : call.dim("start");
  MOREL_CHECK(start >= 0 && length >= 0 && start + length <= n, Value, "For 'Narrow', 'start' ", call.integer("start"),
              " and 'length' ", length, " leave axis ", axis, " of ", to_string(input.shape));
  return narrowed(input, axis, start, length);
}

std::optional<Layout> select_view(const ArgView& call, const Layout& input) {
  MOREL_CHECK(!input.shape.empty(), Index, "For 'Select', a tensor without axes cannot be indexed");
  const size_t axis = static_cast<size_t>(call.axis("dim", static_cast<int64_t>(input.shape.size())));
  const Dim n = input.shape[axis], index = call.dim("index");
  MOREL_CHECK(index >= -n && index < n, Index, "For 'Select', index ", index, " is out of range for axis ", axis,
              " with ", n, " elements");
  Layout out = narrowed(input, axis, index < 0 ? index + n : index, 1);
  out.shape.erase(out.shape.begin() + axis);
  out.strides.erase(out.strides.begin() + axis);
  return out;
}

// One axis of a strided slice: first element and number of elements, by the rules of Python's slices.
struct Range {
  Dim start, length;
};
Range slice_range(Dim n, Dim begin, Dim end, Dim step, bool open_begin, bool open_end) {
  const Dim low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto limit = [&](Dim at) { return std::clamp(at < 0 ? at + n : at, low, high); };
  begin = open_begin ? (step > 0 ? low : high) : limit(begin);
  end = open_end ? (step > 0 ? high : low) : limit(end);
  const Dim length = step > 0 ? (end - begin + step - 1) / step : (begin - end - step - 1) / -step;
  return {length > 0 ? begin : Dim(0), std::max<Dim>(0, length)};
}

// begin, end and strides for the leading axes; bit i of a mask speaks of entry i. ellipsis: the entry stands for all
// axes that have no other; new_axis: it adds an axis of one element; shrink_axis: it is an index.
std::optional<Layout> strided_slice_view(const ArgView& call, const Layout& input) {
  const OpDef& op = call.op();
  const Ints &begin = call.ints("begin"), &end = call.ints("end"), &steps = call.ints("strides");
  MOREL_CHECK(begin.size() == end.size() && begin.size() == steps.size(), Value, "For '", display_name(op),
              "', 'begin', 'end' and 'strides' must have as many entries, but got ", begin.size(), ", ", end.size(),
              " and ", steps.size());
  const auto bit = [&](const char* mask, size_t i) { return (call.integer(mask) >> i & 1) != 0; };
  size_t named = 0;
  for (size_t i = 0; i < begin.size(); ++i)
    if (!bit("ellipsis_mask", i) && !bit("new_axis_mask", i)) ++named;
  MOREL_CHECK(named <= input.shape.size(), Index, "For '", display_name(op), "', ", named,
              " axes are sliced, but the input ", to_string(input.shape), " has ", input.shape.size());
  Layout out{{}, {}, input.offset};
  size_t axis = 0;
  const auto keep = [&] {
    out.shape.push_back(input.shape[axis]);
    out.strides.push_back(input.strides[axis]);
    ++axis;
  };
  for (size_t i = 0; i < begin.size(); ++i) {
    if (bit("ellipsis_mask", i)) {
      for (size_t rest = input.shape.size() - named; rest > 0; --rest) keep();
    } else if (bit("new_axis_mask", i)) {
      out.shape.push_back(1);
      out.strides.push_back(0);
    } else if (bit("shrink_axis_mask", i)) {
      const Dim n = input.shape[axis], at = begin[i] < 0 ? begin[i] + n : begin[i];
      MOREL_CHECK(at >= 0 && at < n, Index, "For '", display_name(op), "', index ", begin[i],
                  " is out of range for axis ", axis, " with ", n, " elements");
      out.offset += at * input.strides[axis++];
    } else {
      MOREL_CHECK(steps[i] != 0, Value, "For '", display_name(op), "', 'strides' must not contain 0");
      const Range range =
          slice_range(input.shape[axis], begin[i], end[i], steps[i], bit("begin_mask", i), bit("end_mask", i));
      out.offset += range.start * input.strides[axis];
      out.shape.push_back(range.length);
      out.strides.push_back(input.strides[axis++] * steps[i]);
    }
  }
  while (axis < input.shape.size()) keep();
  return out;
}

std::optional<Layout> diagonal_view(const ArgView& call, const Layout& input) {
  const int64_t rank = static_cast<int64_t>(input.shape.size());
  MOREL_CHECK(rank >= 2, Value, "For 'Diagonal', the input must have at least 2 dimensions, but got ",
              to_string(input.shape));
  const size_t row = static_cast<size_t>(call.axis("dim1", rank)),
               column = static_cast<size_t>(call.axis("dim2", rank));
  MOREL_CHECK(row != column, Value, "For 'Diagonal', 'dim1' and 'dim2' must differ, but got ", row, " twice");
  const int64_t offset = call.integer("offset");
  const Dim length = offset >= 0 ? std::min(input.shape[row], input.shape[column] - offset)
                                 : std::min(input.shape[row] + offset, input.shape[column]);
  Layout out{{}, {}, input.offset};
  for (size_t i = 0; i < input.shape.size(); ++i) {
    if (i == row || i == column) continue;
    out.shape.push_back(input.shape[i]);
    out.strides.push_back(input.strides[i]);
  }
  out.shape.push_back(std::max<Dim>(0, length));
  out.strides.push_back(input.strides[row] + input.strides[column]);
  if (length > 0) out.offset += offset >= 0 ? offset * input.strides[column] : -offset * input.strides[row];
  return out;
}

std::optional<Layout> as_strided_view(const ArgView& call, const Layout& input) {
  const Ints &size = call.ints("size"), &stride = call.ints("stride");
  MOREL_CHECK(size.size() == stride.size(), Value,
              "For 'AsStrided', 'size' and 'stride' must have as many entries, but got ", size.size(), " and ",
              stride.size());
  const Shape& shape = input.shape;
  if (!is_row_major(input)) return std::nullopt;
  Dim low = call.dim("offset"), high = low;
  for (size_t i = 0; i < size.size(); ++i) {
    MOREL_CHECK(size[i] >= 0, Value, "For 'AsStrided', 'size' must not contain ", size[i]);
    (stride[i] < 0 ? low : high) += (size[i] - 1) * stride[i];
  }
  const Shape wanted(size.begin(), size.end());
  MOREL_CHECK(num_elements(wanted) == 0 || (low >= 0 && high < num_elements(shape)), Value,
              "For 'AsStrided', elements ", low, " to ", high, " are asked of a tensor of ", num_elements(shape));
  return Layout{wanted, Strides(stride.begin(), stride.end()), input.offset + call.dim("offset")};
}

// In a batch: all of the batch's axis, then what is picked of each example.
Syms strided_slice_vmap(const VmapCall& c) {
  Builder& b = c.builder();
  const auto prefixed = [](const Ints& each, Dim first) {
    Ints out = each;
    out.insert(out.begin(), first);
    return out;
  };
  const auto shifted = [&](size_t mask) { return Value(c.value(mask).integer() << 1); };
  return {b("strided_slice", c[0], prefixed(c.ints("begin"), 0), prefixed(c.ints("end"), c.batch()),
            prefixed(c.ints("strides"), 1), shifted(4), shifted(5), shifted(6), shifted(7), shifted(8))};
}
Syms as_strided_vmap(const VmapCall& c) {
  return {c.builder()("as_strided", c[0], with_batch(c, c.ints("size")),
                      strides_of_batch(c.example_shape(0), c.ints("stride")), c["offset"])};
}

// ---- as ONNX slices ----

constexpr int64_t open_end = std::numeric_limits<int64_t>::max(), open_start = std::numeric_limits<int64_t>::min();

// Sizes can be added to it.
Dim within_sizes(Dim at) {
  constexpr int64_t far = int64_t{1} << 60;
  return at.is_symbolic() ? at : Dim(std::clamp<int64_t>(at, -far, far));
}

// Slices of some axes, by the rules of Python.
Syms slice_axes(const Call& c) {
  const Ints &starts = c.ints("starts"), &ends = c.ints("ends"), &axes = c.ints("axes"), &steps = c.ints("steps");
  MOREL_CHECK(starts.size() == ends.size() && ends.size() == axes.size() && axes.size() == steps.size(), Value,
              "For 'SliceAxes', 'starts', 'ends', 'axes' and 'steps' must have as many entries, but got ",
              starts.size(), ", ", ends.size(), ", ", axes.size(), " and ", steps.size());
  const size_t rank = c.shape(0).size();
  Ints begin(rank, 0), end(rank, 0), strides(rank, 1);
  int64_t open = (int64_t{1} << rank) - 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(normalize_axis(c.op(), "axes", axes[i], c.rank(0)));
    begin[axis] = within_sizes(starts[i]), end[axis] = within_sizes(ends[i]), strides[axis] = steps[i];
    open &= ~(int64_t{1} << axis);
  }
  return {c.builder()("strided_slice", c[0], begin, end, strides, open, open)};
}

Syms strided_slice_in_onnx(const Call& c) {
  Builder& b = c.builder();
  const Ints &begin = c.ints("begin"), &end = c.ints("end"), &steps = c.ints("strides");
  const auto bit = [&](const char* mask, size_t i) { return (c.integer(mask) >> i & 1) != 0; };
  const Shape& shape = c.shape(0);
  size_t named = 0;
  for (size_t i = 0; i < begin.size(); ++i)
    if (!bit("ellipsis_mask", i) && !bit("new_axis_mask", i)) ++named;
  Ints starts, ends, axes, strides;
  size_t axis = 0;
  for (size_t i = 0; i < begin.size(); ++i) {
    if (bit("ellipsis_mask", i)) {
      axis += shape.size() - named;
    } else if (bit("shrink_axis_mask", i)) {
      const bool is_last = !begin[i].is_symbolic() && begin[i] == -1;
      starts.push_back(begin[i]), ends.push_back(is_last ? Dim(open_end) : begin[i] + 1);
      axes.push_back(static_cast<int64_t>(axis++)), strides.push_back(1);
    } else if (!bit("new_axis_mask", i)) {
      const bool forwards = steps[i] > 0;
      starts.push_back(!bit("begin_mask", i) ? begin[i] : Dim(forwards ? 0 : open_end));
      ends.push_back(!bit("end_mask", i) ? end[i] : Dim(forwards ? open_end : open_start));
      axes.push_back(static_cast<int64_t>(axis++)), strides.push_back(steps[i]);
    }
  }
  const Layout wanted = *strided_slice_view(c, Layout{shape, contiguous_strides(shape), 0});
  const Sym cut = axes.empty() ? c[0] : b("slice_axes", c[0], starts, ends, axes, strides);
  return {cut.shape() == wanted.shape ? cut : b("reshape", cut, Ints(wanted.shape))};
}

void register_picks(Family& add) {
  add({.name = "slice_axes",
       .args = "input: Tensor, starts: int[], ends: int[], axes: int[], steps: int[]",
       .doc = "View of every steps[i]-th element of [starts[i], ends[i]) along axes[i].",
       .compose = slice_axes,
       .flags = kHidden,
       .onnx = {{"Slice", 10, "input, starts, ends, axes, steps"}}});
  add({.name = "narrow",
       .args = "input: Tensor, axis: axis, start: int, length: int",
       .doc = "View of `length` elements along axis from `start` on.",
       .view = narrow_view,
       .grad = picking_grad,
       .onnx_compose = [](const Call& c) -> Syms {
         const Dim start = c.dim("start") < 0 ? c.dim("start") + c[0].dim(c.integer("axis")) : c.dim("start");
         return {
             c.builder()("slice_axes", c[0], Ints{start}, Ints{start + c.dim("length")}, Ints{c.dim("axis")}, Ints{1})};
       }});
  add({.name = "select",
       .args = "input: Tensor, dim: axis, index: int",
       .doc = "View of one position along dim, without that axis.",
       .view = select_view,
       .grad = picking_grad,
       .onnx_compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const Ints axis{c.dim("dim")};
         const Dim at = c.dim("index") < 0 ? c.dim("index") + c[0].dim(axis[0]) : c.dim("index");
         return {b("squeeze", b("slice_axes", c[0], Ints{at}, Ints{at + 1}, axis, Ints{1}), axis)};
       }});
  add({.name = "strided_slice",
       .args = "input_x: Tensor, begin: int[], end: int[], strides: int[], begin_mask: int = 0, end_mask: int = 0, "
               "ellipsis_mask: int = 0, "
               "new_axis_mask: int = 0, shrink_axis_mask: int = 0",
       .doc = "View of every strides[i]-th element of [begin[i], end[i]) along the leading axes, as Python's slices. "
              "Bit i of a mask says: "
              "begin or end is open, the entry stands for all other axes, is a new axis, or is an index.",
       .view = strided_slice_view,
       .grad = picking_grad,
       .vmap = strided_slice_vmap,
       .onnx_compose = strided_slice_in_onnx});
  add({.name = "diagonal",
       .args = "input: Tensor, offset: int = 0, dim1: axis = 0, dim2: axis = 1",
       .doc = "View of the diagonal of axes dim1 and dim2, as a last axis; offset > 0 lies above the main one.",
       .view = diagonal_view,
       .grad = picking_grad});
  add({.name = "as_strided",
       .args = "input: Tensor, size: int[], stride: int[], offset: int = 0",
       .doc = "View of any shape and strides (in elements) over the elements of input in row-major order, from element "
              "`offset` on.",
       .axes = "[...] -> [...]",
       .view = as_strided_view,
       .grad = picking_grad,
       .vmap = as_strided_vmap});
}

// ---- several views ----

// Sections of a split along an axis of n elements.
Ints sections_of(const ArgView& call, Dim n) {
  const Value& spec = call.value(1);
  Ints out;
  if (spec.is_integer()) {
    const Dim size = spec.dim();
    MOREL_CHECK(size > 0, Value, "For 'Split', 'split_size_or_sections' must be positive, but got ", size);
    for (Dim at = 0; at < n || out.empty(); at += size) out.push_back(std::min(size, n - at));
    return out;
  }
  Dim total = 0;
  for (const Dim size : spec.ints()) {
    MOREL_CHECK(size >= 0, Value, "For 'Split', 'split_size_or_sections' must not contain negative numbers, but got ",
                size);
    out.push_back(size);
    total += size;
  }
  MOREL_CHECK(total == n, Value, "For 'Split', the sections ", to_string(spec), " must add up to ", n,
              ", the size of axis ", call.integer("axis"));
  return out;
}

size_t split_axis(const ArgView& call, std::string_view name, const Shape& shape) {
  MOREL_CHECK(!shape.empty(), Value, "For '", display_name(call.op()), "', the input must have an axis");
  return static_cast<size_t>(call.axis(name, static_cast<int64_t>(shape.size())));
}

std::vector<Layout> split_views(const ArgView& call, const Layout& input) {
  const size_t axis = split_axis(call, "axis", input.shape);
  std::vector<Layout> out;
  Dim at = 0;
  for (const Dim size : sections_of(call, input.shape[axis])) {
    out.push_back(narrowed(input, axis, at, size));
    at += size;
  }
  return out;
}

std::vector<Layout> unbind_views(const ArgView& call, const Layout& input) {
  const size_t axis = split_axis(call, "dim", input.shape);
  std::vector<Layout> out;
  for (int64_t i = 0; i < input.shape[axis]; ++i) {
    Layout part = narrowed(input, axis, i, 1);
    part.shape.erase(part.shape.begin() + axis);
    part.strides.erase(part.strides.begin() + axis);
    out.push_back(std::move(part));
  }
  return out;
}

Syms all_douts(const GradCall& g) {
  Syms parts;
  for (size_t i = 0; i < g.num_outs(); ++i) parts.push_back(g.dout(i));
  return parts;
}

Syms chunk(const Call& c) {
  const size_t axis = split_axis(c, "axis", c.shape(0));
  const Dim chunks = c.dim("chunks"), n = c.shape(0)[axis];
  MOREL_CHECK(chunks > 0, Value, "For 'Chunk', 'chunks' must be positive, but got ", chunks);
  const Sym parts = c.builder()("split", c[0], std::max<Dim>(1, (n + chunks - 1) / chunks), static_cast<int64_t>(axis));
  Syms out;
  if (!parts.value().is_list()) return {parts};
  for (size_t i = 0; i < parts.value().list().size(); ++i) out.push_back(parts.item(i));
  return out;
}

// Pieces at the given positions, or n pieces of which the first n % count are longer by one.
Syms tensor_split(const Call& c) {
  Builder& b = c.builder();
  const size_t axis = split_axis(c, "axis", c.shape(0));
  const Dim n = c.shape(0)[axis];
  Ints starts{0};
  if (c.value(1).is_integer()) {
    const int64_t count = c.integer("indices_or_sections");
    MOREL_CHECK(count > 0, Value, "For 'TensorSplit', 'indices_or_sections' must be positive, but got ", count);
    for (int64_t i = 1; i < count; ++i) starts.push_back(i * (n / count) + std::min<Dim>(i, n % count));
  } else {
    for (const Dim at : c.ints("indices_or_sections")) starts.push_back(std::clamp<Dim>(at < 0 ? at + n : at, 0, n));
  }
  starts.push_back(n);
  Syms out;
  for (size_t i = 0; i + 1 < starts.size(); ++i)
    out.push_back(b("narrow", c[0], static_cast<int64_t>(axis), std::min(starts[i], n),
                    std::max<Dim>(0, starts[i + 1] - starts[i])));
  return out;
}

// ---- windows ----

// Two numbers of an int or int[] argument: for rows and columns.
std::array<Dim, 2> pair_of(const ArgView& call, std::string_view name, int64_t least) {
  const Value& value = call.value(name);
  const Ints given = value.is_integer() ? Ints{value.dim(), value.dim()} : value.ints();
  MOREL_CHECK(given.size() == 2 && given[0] >= least && given[1] >= least, Value, "For '", display_name(call.op()),
              "', '", name, "' must be one or two numbers of at least ", least, ", but got ", to_string(value));
  return {given[0], given[1]};
}

// Every position of a kernel over a padded image [N, C, H, W], as a strided view [N, C, kernel, kernel, rows, columns].
struct Windows {
  Ints padded, size, stride, before;

  Windows(const ArgView& call, Dim batch, Dim channels, Dim height, Dim width) {
    const auto kernel = pair_of(call, "kernel_size", 1), dilation = pair_of(call, "dilation", 1);
    const auto padding = pair_of(call, "padding", 0), step = pair_of(call, "stride", 1);
    const Dim high = height + 2 * padding[0], wide = width + 2 * padding[1];
    const Dim rows = (high - dilation[0] * (kernel[0] - 1) - 1) / step[0] + 1;
    const Dim columns = (wide - dilation[1] * (kernel[1] - 1) - 1) / step[1] + 1;
    MOREL_CHECK(high > dilation[0] * (kernel[0] - 1) && wide > dilation[1] * (kernel[1] - 1), Value, "For '",
                display_name(call.op()), "', a kernel of ", kernel[0], "x", kernel[1],
                " does not fit into the padded image of ", high, "x", wide);
    padded = {batch, channels, high, wide};
    size = {batch, channels, kernel[0], kernel[1], rows, columns};
    stride = {channels * high * wide, high * wide, dilation[0] * wide, dilation[1], step[0] * wide, step[1]};
    before = {0, 0, padding[0], padding[1]};
  }
};

Syms unfold(const Call& c) {
  Builder& b = c.builder();
  const Shape& shape = c.shape(0);
  MOREL_CHECK(shape.size() == 4, Value, "For 'Unfold', the input must have 4 dimensions, but got ",
              to_string(c.value(0)));
  const Windows windows(c, shape[0], shape[1], shape[2], shape[3]);
  const bool padded = windows.before[2] != 0 || windows.before[3] != 0;
  const Sym image = padded ? b("pad_axes", c[0], windows.before, windows.before) : c[0];
  const Ints& size = windows.size;
  return {b("reshape", b("as_strided", image, size, windows.stride, 0),
            Ints{size[0], size[1] * size[2] * size[3], size[4] * size[5]})};
}

Syms fold(const Call& c) {
  Builder& b = c.builder();
  const Shape& shape = c.shape(0);
  const auto image = pair_of(c, "output_size", 1), kernel = pair_of(c, "kernel_size", 1);
  const Dim area = kernel[0] * kernel[1];
  MOREL_CHECK(shape.size() == 3 && shape[1] % area == 0, Value, "For 'Fold', the input must be [N, C * ", area,
              ", positions], but got ", to_string(c.value(0)));
  const Windows windows(c, shape[0], shape[1] / area, image[0], image[1]);
  const Ints& size = windows.size;
  MOREL_CHECK(shape[2] == size[4] * size[5], Value, "For 'Fold', the input must have ", size[4], " x ", size[5],
              " positions, but got ", to_string(c.value(0)));
  const Sym sums = b("as_strided_grad", b("reshape", c[0], size), windows.padded, size, windows.stride, 0);
  Ints cut = windows.before;
  for (Dim& pad : cut) pad = -pad;
  return {cut[2] || cut[3] ? b("pad_axes", sums, cut, cut) : sums};
}

void register_windows(Family& add) {
  add({.name = "unfold",
       .args = "input: Tensor, kernel_size: int|int[], dilation: int|int[] = 1, padding: int|int[] = 0, stride: "
               "int|int[] = 1",
       .doc =
           "The elements under every position of a kernel over images [N, C, H, W]: [N, C * kernel area, positions].",
       .compose = unfold});
  add({.name = "fold",
       .args = "input: Tensor, output_size: int|int[], kernel_size: int|int[], dilation: int|int[] = 1, padding: "
               "int|int[] = 0, "
               "stride: int|int[] = 1",
       .doc = "Images [N, C, H, W] with what unfold takes apart, [N, C * kernel area, positions], added up.",
       .compose = fold});
}

void register_splits(Family& add) {
  add({.name = "split",
       .args = "tensor: Tensor, split_size_or_sections: int|int[], axis: axis = 0",
       .doc =
           "Views of consecutive pieces along axis: all of one size (the last may be smaller), or of the given sizes.",
       .views = split_views,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("concat", all_douts(g), g["axis"])}; },
       .onnx = {
           {"Split", 2, "tensor, split_size_or_sections:sections <- split@13; axis <- axis = 0, _ <- num_outputs"}}});
  add({.name = "unbind",
       .args = "input: Tensor, dim: axis = 0",
       .doc = "Views of each position along dim, without that axis.",
       .views = unbind_views,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("stack", all_douts(g), g["dim"])}; },
       .onnx_compose = [](const Call& c) -> Syms {
         Syms out;
         const int64_t count = c.shape(0)[split_axis(c, "dim", c.shape(0))];
         for (int64_t i = 0; i < count; ++i) out.push_back(c.builder()("select", c[0], c["dim"], i));
         return out;
       }});
  add({.name = "stop_gradient",
       .args = "value: Tensor",
       .doc = "A view of value through which no gradient flows.",
       .view = [](const ArgView&, const Layout& input) -> std::optional<Layout> { return input; },
       .flags = kNoGrad | kConversion});
  add({.name = "view_as_self",
       .args = "input: Tensor",
       .doc = "A view of the whole of input.",
       .view = [](const ArgView&, const Layout& input) -> std::optional<Layout> { return input; },
       .grad = [](const GradCall& g) -> Syms { return {g.dout()}; },
       .flags = kHidden | kConversion});
  add({.name = "view_after",
       .args = "input: Tensor, after: Tensor[]",
       .doc =
           "A view of the whole of input that is there once all of `after` are; what is computed from it is not shared "
           "with what is computed from input.",
       .view = [](const ArgView&, const Layout& input) -> std::optional<Layout> { return input; },
       .grad = [](const GradCall& g) -> Syms { return {g.dout()}; },
       .flags = kHidden});
  add({.name = "custom_gradient",
       .args = "input: Tensor, sources: Tensor[]",
       .doc =
           "A view of the whole of input, which was computed from sources. Its gradient is a function of Python, which "
           "only the graph can call that it was given to.",
       .view = [](const ArgView&, const Layout& input) -> std::optional<Layout> { return input; },
       .grad = [](const GradCall&) -> Syms {
         raise(ErrorKind::NotImplemented,
               "the gradient of a Cell with bprop or hooks within an 'if', a 'while' or a recursion on tensors of "
               "a compiled function is not supported");
       },
       .flags = kHidden});
  add({.name = "expand_as",
       .args = "input: Tensor, other: Tensor",
       .doc = "View of input broadcast to the shape of other.",
       .compose = [](const Call& c) -> Syms { return {c.builder()("broadcast_to", c[0], Ints(c.shape(1)))}; }});
  add({.name = "view_as",
       .args = "input: Tensor, other: Tensor",
       .doc = "View of input in the shape of other.",
       .compose = [](const Call& c) -> Syms { return {c.builder()("view", c[0], Ints(c.shape(1)))}; }});
  add({.name = "chunk",
       .args = "input: Tensor, chunks: int, axis: axis = 0",
       .doc = "At most `chunks` views of consecutive pieces of one size along axis; the last may be smaller.",
       .compose = chunk});
  add({.name = "tensor_split",
       .args = "input: Tensor, indices_or_sections: int|int[], axis: axis = 0",
       .doc = "Views of pieces along axis that begin at the given positions, or of nearly equal pieces.",
       .compose = tensor_split});
}

}  // namespace

void register_slices(Family& add) {
  register_picks(add);
  register_splits(add);
  register_windows(add);
}

}  // namespace morel
