// Operators that look at the same elements in another shape or order: views, and what is composed of them.
#include "morel/ops/array.h"
#include "morel/ops/registry.h"

namespace morel {
namespace {

// The requested shape with a -1 resolved; ValueError where the number of elements differs.
Shape resolve_shape(const ArgView& call, const Shape& from, const Ints& wanted) {
  const int64_t total = num_elements(from);
  Shape out(wanted.begin(), wanted.end());
  int64_t known = 1, free = -1;
  for (size_t i = 0; i < out.size(); ++i) {
    MOREL_CHECK(out[i] >= -1, Value, "For '", display_name(call.op()), "', 'shape' must not contain ", out[i]);
    if (out[i] == -1) {
      MOREL_CHECK(free < 0, Value, "For '", display_name(call.op()), "', 'shape' may contain -1 only once, but got ",
                  to_string(out));
      free = static_cast<int64_t>(i);
    } else {
      known *= out[i];
    }
  }
  if (free >= 0 && known != 0 && total % known == 0) out[static_cast<size_t>(free)] = known = total / known;
  MOREL_CHECK(num_elements(out) == total && (free < 0 || out[static_cast<size_t>(free)] >= 0), Value, "For '",
              display_name(call.op()), "', a tensor ", to_string(from), " of ", total,
              " elements cannot have the shape ", to_string(Shape(wanted.begin(), wanted.end())));
  return out;
}

// Layout of `input` seen in another shape; nothing where the elements of a new axis do not lie evenly.
std::optional<Layout> reshaped(const Layout& input, const Shape& shape) {
  Layout out{shape, contiguous_strides(shape), input.offset};
  if (num_elements(shape) == 0) return out;
  // Old axes are merged from the right into runs that lie evenly; each run must be a product of new axes.
  size_t old = input.shape.size(), fresh = shape.size();
  while (true) {
    while (old > 0 && input.shape[old - 1] == 1) --old;
    if (old == 0) break;
    int64_t stride = input.strides[old - 1], run = input.shape[old - 1];
    for (--old; old > 0 && (input.shape[old - 1] == 1 || input.strides[old - 1] == stride * run); --old)
      run *= input.shape[old - 1];
    while (run > 1) {
      if (fresh == 0 || run % shape[fresh - 1] != 0) return std::nullopt;
      --fresh;
      out.strides[fresh] = stride;
      stride *= shape[fresh];
      run /= shape[fresh];
    }
  }
  return out;
}

bool is_row_major(const Layout& layout) {
  if (num_elements(layout.shape) == 0) return true;
  const Strides wanted = contiguous_strides(layout.shape);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (layout.shape[i] != 1 && layout.strides[i] != wanted[i]) return false;
  return true;
}

Layout dense(const Shape& shape) { return {shape, contiguous_strides(shape), 0}; }

// Gradient of a view that picks elements: zeros with the cotangent at the picked places.
Syms picking_grad(const GradCall& g) {
  const Layout picked = *g.op().view(g, dense(g.shape(0)));
  return {g.builder()("as_strided_grad", g.dout(), Ints(g.shape(0)), Ints(picked.shape), Ints(picked.strides),
                      picked.offset)};
}

// Gradient of a view that has the same elements in another shape.
Syms reshape_grad(const GradCall& g) { return {g.builder()("reshape", g.dout(), Ints(g.shape(0)))}; }

// ---- reshape and relatives ----

std::optional<Layout> reshape_view(const ArgView& call, const Layout& input) {
  return reshaped(input, resolve_shape(call, input.shape, call.value(1).ints()));
}

std::optional<Layout> expand_dims_view(const ArgView& call, const Layout& input) {
  const int64_t rank = static_cast<int64_t>(input.shape.size()) + 1;
  const size_t axis =
      static_cast<size_t>(normalize_axis(call.op(), call.op().schema.args[1].name, call.value(1).integer(), rank));
  Layout out = input;
  out.strides.insert(out.strides.begin() + axis,
                     axis < input.shape.size() ? input.shape[axis] * input.strides[axis] : 1);
  out.shape.insert(out.shape.begin() + axis, 1);
  return out;
}

std::optional<Layout> squeeze_view(const ArgView& call, const Layout& input) {
  const bool all = !call.has("axis");
  const Ints axes =
      all ? Ints{} : normalize_axes(call.op(), "axis", call.value("axis"), static_cast<int64_t>(input.shape.size()));
  Layout out{{}, {}, input.offset};
  size_t next = 0;
  for (size_t i = 0; i < input.shape.size(); ++i) {
    const bool named = next < axes.size() && axes[next] == static_cast<int64_t>(i);
    if (named) ++next;
    if ((named || all) && input.shape[i] == 1) continue;
    out.shape.push_back(input.shape[i]);
    out.strides.push_back(input.strides[i]);
  }
  return out;
}

std::optional<Layout> view_view(const ArgView& call, const Layout& input) {
  std::optional<Layout> out = reshape_view(call, input);
  MOREL_CHECK(out, Runtime, "For 'View', the elements of a tensor ", to_string(input.shape), " with strides ",
              to_string(Shape(input.strides)), " do not lie evenly in the new shape; use reshape, which copies them");
  return out;
}

void register_reshape(Family& add) {
  add({.name = "reshape",
       .args = "input: Tensor, shape: int[]",
       .doc = "The same elements, in order, in another shape; one size may be -1. A view where the layout allows, else "
              "a copy.",
       .view = reshape_view,
       .grad = reshape_grad,
       .onnx = {"Reshape", 14, ""}});
  add({.name = "view",
       .args = "input: Tensor, shape: int[]",
       .doc = "The same elements, in order, in another shape, never copied: an error where the layout does not allow "
              "that.",
       .view = view_view,
       .grad = reshape_grad});
  add({.name = "expand_dims",
       .args = "input_x: Tensor, axis: int",
       .doc = "A new axis of one element before axis.",
       .view = expand_dims_view,
       .grad = reshape_grad,
       .onnx = {"Unsqueeze", 13, ""}});
  add({.name = "unsqueeze",
       .args = "input: Tensor, dim: int",
       .doc = "A new axis of one element before dim.",
       .view = expand_dims_view,
       .grad = reshape_grad,
       .onnx = {"Unsqueeze", 13, ""}});
  add({.name = "squeeze",
       .args = "input: Tensor, axis: int|int[]? = None",
       .doc = "Without the axes of one element: those in axis, or all of them. Longer axes stay.",
       .view = squeeze_view,
       .grad = reshape_grad,
       .onnx = {"Squeeze", 13, ""}});
  add({.name = "contiguous",
       .args = "input: Tensor",
       .doc = "The same elements in row-major order; a copy where they are not so already.",
       .view = [](const ArgView&, const Layout& input) -> std::optional<Layout> {
         return is_row_major(input) ? std::optional(input) : std::nullopt;
       },
       .grad = [](const GradCall& g) -> Syms { return {g.dout()}; }});
  add({.name = "flatten",
       .args = "input: Tensor, order: str = 'C', *, start_dim: int = 1, end_dim: int = -1",
       .doc = "Axes start_dim to end_dim merged into one; order 'F' takes the elements in column-major order.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const std::string& order = c.str("order");
         MOREL_CHECK(order == "C" || order == "F", Value, "For 'Flatten', 'order' must be 'C' or 'F', but got '", order,
                     "'");
         Sym x = c[0];
         const int64_t rank = c.rank(0);
         if (order == "F") {
           Ints reversed;
           for (int64_t i = rank; i-- > 0;) reversed.push_back(i);
           x = b("transpose", x, reversed);
         }
         if (rank == 0) return {b("reshape", x, Ints{1})};
         // An input of one axis flattens to itself with the default start_dim of 1.
         const int64_t first = rank == 1 && c.integer("start_dim") == 1 ? 0 : c.axis("start_dim", rank),
                       last = c.axis("end_dim", rank);
         MOREL_CHECK(first <= last, Value, "For 'Flatten', 'start_dim' must not lie behind 'end_dim', but got ", first,
                     " and ", last);
         Ints shape;
         int64_t merged = 1;
         for (int64_t i = 0; i < rank; ++i) {
           if (i >= first && i <= last) merged *= x.dim(i);
           if (i == last) shape.push_back(merged);
           if (i < first || i > last) shape.push_back(x.dim(i));
         }
         return {b("reshape", x, shape)};
       },
       .onnx = {"Flatten", 13, "axis=start_dim"}});
  add({.name = "ravel",
       .args = "input: Tensor",
       .doc = "All elements in one axis, in row-major order.",
       .compose = [](const Call& c) -> Syms { return {c.builder()("reshape", c[0], Ints{-1})}; }});
}

// ---- order of axes ----

Ints permutation(const ArgView& call) {
  const Ints& dims = call.value(1).ints();
  const int64_t rank = call.rank(0);
  const std::string& name = call.op().schema.args[1].name;
  MOREL_CHECK(static_cast<int64_t>(dims.size()) == rank, Value, "For '", display_name(call.op()), "', '", name,
              "' must name each of the ", rank, " axes once, but got ", to_string(call.value(1)));
  normalize_axes(call.op(), name, call.value(1), rank);  // for its checks
  Ints out;
  for (const int64_t axis : dims) out.push_back(axis < 0 ? axis + rank : axis);
  return out;
}

std::optional<Layout> transpose_view(const ArgView& call, const Layout& input) {
  Layout out{{}, {}, input.offset};
  for (const int64_t axis : permutation(call)) {
    out.shape.push_back(input.shape[static_cast<size_t>(axis)]);
    out.strides.push_back(input.strides[static_cast<size_t>(axis)]);
  }
  return out;
}

Syms transpose_grad(const GradCall& g) {
  const Ints dims = permutation(g);
  Ints inverse(dims.size(), 0);
  for (size_t i = 0; i < dims.size(); ++i) inverse[static_cast<size_t>(dims[i])] = static_cast<int64_t>(i);
  return {g.builder()("transpose", g.dout(), inverse)};
}

std::optional<Layout> swapaxes_view(const ArgView& call, const Layout& input) {
  const int64_t rank = static_cast<int64_t>(input.shape.size());
  const size_t a = static_cast<size_t>(call.axis("axis0", rank)), b = static_cast<size_t>(call.axis("axis1", rank));
  Layout out = input;
  if (rank == 0) return out;
  std::swap(out.shape[a], out.shape[b]);
  std::swap(out.strides[a], out.strides[b]);
  return out;
}

Syms movedim(const Call& c) {
  const int64_t rank = c.rank(0);
  const auto axes = [&](std::string_view name) {
    Ints out;
    if (c.value(name).tag() == Value::Tag::Int) return Ints{c.axis(name, rank)};
    normalize_axes(c.op(), name, c.value(name), rank);
    for (const int64_t axis : c.ints(name)) out.push_back(axis < 0 ? axis + rank : axis);
    return out;
  };
  const Ints from = axes("source"), to = axes("destination");
  MOREL_CHECK(from.size() == to.size(), Value,
              "For 'Movedim', 'source' and 'destination' must name as many axes, but got ", from.size(), " and ",
              to.size());
  Ints dims(static_cast<size_t>(rank), -1);
  for (size_t i = 0; i < from.size(); ++i) dims[static_cast<size_t>(to[i])] = from[i];
  int64_t next = 0;
  for (int64_t& axis : dims) {
    if (axis >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    axis = next++;
  }
  return {c.builder()("transpose", c[0], dims)};
}

void register_order(Family& add) {
  add({.name = "transpose",
       .args = "input: Tensor, dims: int[]",
       .doc = "View with the axes in the order of dims.",
       .view = transpose_view,
       .grad = transpose_grad,
       .onnx = {"Transpose", 13, "perm=dims"}});
  add({.name = "permute",
       .args = "input: Tensor, axis: int[]",
       .doc = "View with the axes in the order of axis.",
       .view = transpose_view,
       .grad = transpose_grad,
       .onnx = {"Transpose", 13, "perm=axis"}});
  add({.name = "swapaxes",
       .args = "input: Tensor, axis0: int, axis1: int",
       .doc = "View with two axes exchanged.",
       .view = swapaxes_view,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("swapaxes", g.dout(), g[1], g[2])}; }});
  add({.name = "movedim",
       .args = "x: Tensor, source: int|int[], destination: int|int[]",
       .doc = "View with the axes source moved to the places destination; the others keep their order.",
       .compose = movedim});
}

// ---- broadcasting ----

std::optional<Layout> broadcast_view(const ArgView& call, const Layout& input) {
  const Ints& wanted = call.value(1).ints();
  const OpDef& op = call.op();
  MOREL_CHECK(wanted.size() >= input.shape.size(), Value, "For '", display_name(op), "', a tensor ",
              to_string(input.shape), " cannot be broadcast to the smaller rank of ",
              to_string(Shape(wanted.begin(), wanted.end())));
  const size_t shift = wanted.size() - input.shape.size();
  Layout out{Shape(wanted.begin(), wanted.end()), Strides(wanted.size(), 0), input.offset};
  for (size_t i = 0; i < wanted.size(); ++i) {
    const int64_t have = i < shift ? 1 : input.shape[i - shift];
    if (wanted[i] == -1 && i >= shift) out.shape[i] = have;
    MOREL_CHECK(out.shape[i] >= 0 && (have == 1 || have == out.shape[i]), Value, "For '", display_name(op),
                "', a tensor ", to_string(input.shape), " cannot be broadcast to ",
                to_string(Shape(wanted.begin(), wanted.end())), ": axis ", i, " has ", have);
    if (have != 1 || (i >= shift && out.shape[i] == 1)) out.strides[i] = input.strides[i - shift];
  }
  return out;
}

Syms broadcast_grad(const GradCall& g) { return {g.builder()("sum_to", g.dout(), Ints(g.shape(0)))}; }

// Each axis i repeated counts[i] times: a new axis before it, broadcast, merged.
Sym tiled(Builder& b, const Sym& x, const Ints& counts) {
  Ints apart, wide, merged;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t size = x.shape()[i];
    apart.push_back(1);
    apart.push_back(size);
    wide.push_back(counts[i]);
    wide.push_back(size);
    merged.push_back(counts[i] * size);
  }
  return b("reshape", b("broadcast_to", b("reshape", x, apart), wide), merged);
}

Syms tile(const Call& c) {
  Builder& b = c.builder();
  Ints counts = c.ints("dims");
  for (const int64_t count : counts)
    MOREL_CHECK(count >= 0, Value, "For 'Tile', 'dims' must not contain negative numbers, but got ", count);
  const size_t rank = c.shape(0).size();
  while (counts.size() < rank) counts.insert(counts.begin(), 1);
  Ints shape(counts.size() - rank, 1);
  shape.append(c.shape(0).begin(), c.shape(0).end());
  bool once = shape.size() == rank;
  for (const int64_t count : counts) once = once && count == 1;
  if (once) return {b("clone", c[0])};
  return {tiled(b, shape.size() == rank ? c[0] : b("reshape", c[0], shape), counts)};
}

// Numbers of repetitions as integers; a tensor of them is read now.
Ints repeats_of(const Call& c) {
  const Value& repeats = c.value("repeats");
  if (repeats.tag() == Value::Tag::Int) return Ints{repeats.integer()};
  if (repeats.tag() == Value::Tag::Ints) return repeats.ints();
  MOREL_CHECK(repeats.is_tensor(), NotImplemented,
              "For 'RepeatInterleave', a tensor of 'repeats' is only supported outside of graphs");
  const Tensor tensor = repeats.tensor();
  MOREL_CHECK(is_integral(tensor.dtype()) && tensor.rank() <= 1, Type,
              "For 'RepeatInterleave', 'repeats' must be integers in one axis, but got ", to_string(repeats));
  Ints out;
  visit_dtype(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>)
      for (int64_t i = 0; i < tensor.size(); ++i)
        out.push_back(static_cast<int64_t>(tensor.as<T>()[i * (tensor.rank() ? tensor.strides()[0] : 1)]));
  });
  return out;
}

Syms repeat_interleave(const Call& c) {
  Builder& b = c.builder();
  const bool flat = !c.has("axis") || c.rank(0) == 0;
  const Sym x = flat ? b("reshape", c[0], Ints{-1}) : c[0];
  const size_t axis = flat ? 0 : static_cast<size_t>(c.axis("axis", x.rank()));
  const int64_t n = x.shape()[axis];
  const Ints repeats = repeats_of(c);
  for (const int64_t count : repeats)
    MOREL_CHECK(count >= 0, Value, "For 'RepeatInterleave', 'repeats' must not be negative, but got ", count);
  MOREL_CHECK(repeats.size() == 1 || static_cast<int64_t>(repeats.size()) == n, Value,
              "For 'RepeatInterleave', 'repeats' must be one number or ", n, " of them, but got ", repeats.size());
  // A new axis behind `axis`, broadcast, merged.
  const auto repeated = [&](const Sym& part, int64_t count) {
    Ints apart(part.shape()), merged(part.shape());
    apart.insert(apart.begin() + axis + 1, 1);
    Ints wide = apart;
    wide[axis + 1] = count;
    merged[axis] *= count;
    return b("reshape", b("broadcast_to", b("reshape", part, apart), wide), merged);
  };
  if (repeats.size() == 1) return {repeated(x, repeats[0])};
  Syms parts;
  for (int64_t i = 0; i < n; ++i)
    parts.push_back(repeated(b("narrow", x, static_cast<int64_t>(axis), i, 1), repeats[static_cast<size_t>(i)]));
  return {b("concat", parts, static_cast<int64_t>(axis))};
}

Syms meshgrid(const Call& c) {
  Builder& b = c.builder();
  const std::string& indexing = c.str("indexing");
  MOREL_CHECK(indexing == "xy" || indexing == "ij", Value, "For 'Meshgrid', 'indexing' must be 'xy' or 'ij', but got '",
              indexing, "'");
  const Value::List& inputs = c.value(0).list();
  const bool swap = indexing == "xy" && inputs.size() > 1;
  const auto place = [&](size_t i) { return swap && i < 2 ? 1 - i : i; };
  Ints shape(inputs.size(), 1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    MOREL_CHECK(shape_of(inputs[i]).size() <= 1, Value, "For 'Meshgrid', the inputs must have one axis, but got ",
                to_string(inputs[i]));
    shape[place(i)] = num_elements(shape_of(inputs[i]));
  }
  Syms out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Ints own(inputs.size(), 1);
    own[place(i)] = shape[place(i)];
    out.push_back(b("broadcast_to", b("reshape", Sym(b, inputs[i]), own), shape));
  }
  return out;
}

void register_broadcast(Family& add) {
  add({.name = "broadcast_to",
       .args = "input: Tensor, shape: int[]",
       .doc = "View in which axes of one element are repeated; -1 keeps the size of an axis.",
       .view = broadcast_view,
       .grad = broadcast_grad,
       .onnx = {"Expand", 13, ""}});
  add({.name = "expand",
       .args = "input_x: Tensor, size: int[]",
       .doc = "View in which axes of one element are repeated; -1 keeps the size of an axis.",
       .view = broadcast_view,
       .grad = broadcast_grad,
       .onnx = {"Expand", 13, ""}});
  add({.name = "tile",
       .args = "input: Tensor, dims: int[]",
       .doc = "input repeated dims[i] times along each axis i; missing axes are added in front.",
       .compose = tile,
       .onnx = {"Tile", 13, ""}});
  add({.name = "repeat_interleave",
       .args = "input: Tensor, repeats: int|int[]|Tensor, axis: int? = None",
       .doc = "Each element along axis repeated in place; of the flattened input without axis.",
       .compose = repeat_interleave});
  add({.name = "meshgrid",
       .args = "inputs: Tensor[], indexing: str = 'xy'",
       .doc = "Coordinates of a grid over the input axes; 'xy' exchanges the first two axes, 'ij' keeps their order.",
       .compose = meshgrid});
}

// ---- slices ----

Layout narrowed(const Layout& input, size_t axis, int64_t start, int64_t length) {
  Layout out = input;
  out.shape[axis] = length;
  out.offset += start * input.strides[axis];
  return out;
}

std::optional<Layout> narrow_view(const ArgView& call, const Layout& input) {
  const size_t axis = static_cast<size_t>(call.axis("axis", static_cast<int64_t>(input.shape.size())));
  MOREL_CHECK(!input.shape.empty(), Value, "For 'Narrow', the input must have an axis");
  const int64_t n = input.shape[axis], length = call.integer("length");
  const int64_t start = call.integer("start") < 0 ? call.integer("start") + n : call.integer("start");
  MOREL_CHECK(start >= 0 && length >= 0 && start + length <= n, Value, "For 'Narrow', 'start' ", call.integer("start"),
              " and 'length' ", length, " leave axis ", axis, " of ", to_string(input.shape));
  return narrowed(input, axis, start, length);
}

std::optional<Layout> select_view(const ArgView& call, const Layout& input) {
  MOREL_CHECK(!input.shape.empty(), Index, "For 'Select', a tensor without axes cannot be indexed");
  const size_t axis = static_cast<size_t>(call.axis("dim", static_cast<int64_t>(input.shape.size())));
  const int64_t n = input.shape[axis], index = call.integer("index");
  MOREL_CHECK(index >= -n && index < n, Index, "For 'Select', index ", index, " is out of range for axis ", axis,
              " with ", n, " elements");
  Layout out = narrowed(input, axis, index < 0 ? index + n : index, 1);
  out.shape.erase(out.shape.begin() + axis);
  out.strides.erase(out.strides.begin() + axis);
  return out;
}

// One axis of a strided slice: first element and number of elements, by the rules of Python's slices.
struct Range {
  int64_t start, length;
};
Range slice_range(int64_t n, int64_t begin, int64_t end, int64_t step, bool open_begin, bool open_end) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto limit = [&](int64_t at) { return std::clamp(at < 0 ? at + n : at, low, high); };
  begin = open_begin ? (step > 0 ? low : high) : limit(begin);
  end = open_end ? (step > 0 ? high : low) : limit(end);
  const int64_t length = step > 0 ? (end - begin + step - 1) / step : (begin - end - step - 1) / -step;
  return {length > 0 ? begin : 0, std::max<int64_t>(0, length)};
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
      const int64_t n = input.shape[axis], at = begin[i] < 0 ? begin[i] + n : begin[i];
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
  const int64_t length = offset >= 0 ? std::min(input.shape[row], input.shape[column] - offset)
                                     : std::min(input.shape[row] + offset, input.shape[column]);
  Layout out{{}, {}, input.offset};
  for (size_t i = 0; i < input.shape.size(); ++i) {
    if (i == row || i == column) continue;
    out.shape.push_back(input.shape[i]);
    out.strides.push_back(input.strides[i]);
  }
  out.shape.push_back(std::max<int64_t>(0, length));
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
  int64_t low = call.integer("offset"), high = low;
  for (size_t i = 0; i < size.size(); ++i) {
    MOREL_CHECK(size[i] >= 0, Value, "For 'AsStrided', 'size' must not contain ", size[i]);
    (stride[i] < 0 ? low : high) += (size[i] - 1) * stride[i];
  }
  const Shape wanted(size.begin(), size.end());
  MOREL_CHECK(num_elements(wanted) == 0 || (low >= 0 && high < num_elements(shape)), Value,
              "For 'AsStrided', elements ", low, " to ", high, " are asked of a tensor of ", num_elements(shape));
  return Layout{wanted, Strides(stride.begin(), stride.end()), input.offset + call.integer("offset")};
}

void register_slices(Family& add) {
  add({.name = "narrow",
       .args = "input: Tensor, axis: int, start: int, length: int",
       .doc = "View of `length` elements along axis from `start` on.",
       .view = narrow_view,
       .grad = picking_grad});
  add({.name = "select",
       .args = "input: Tensor, dim: int, index: int",
       .doc = "View of one position along dim, without that axis.",
       .view = select_view,
       .grad = picking_grad});
  add({.name = "strided_slice",
       .args = "input_x: Tensor, begin: int[], end: int[], strides: int[], begin_mask: int = 0, end_mask: int = 0, "
               "ellipsis_mask: int = 0, "
               "new_axis_mask: int = 0, shrink_axis_mask: int = 0",
       .doc = "View of every strides[i]-th element of [begin[i], end[i]) along the leading axes, as Python's slices. "
              "Bit i of a mask says: "
              "begin or end is open, the entry stands for all other axes, is a new axis, or is an index.",
       .view = strided_slice_view,
       .grad = picking_grad,
       .onnx = {"Slice", 13, ""}});
  add({.name = "diagonal",
       .args = "input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1",
       .doc = "View of the diagonal of axes dim1 and dim2, as a last axis; offset > 0 lies above the main one.",
       .view = diagonal_view,
       .grad = picking_grad});
  add({.name = "as_strided",
       .args = "input: Tensor, size: int[], stride: int[], offset: int = 0",
       .doc = "View of any shape and strides (in elements) over the elements of input in row-major order, from element "
              "`offset` on.",
       .view = as_strided_view,
       .grad = picking_grad});
}

// ---- several views ----

// Sections of a split along an axis of n elements.
Ints sections_of(const ArgView& call, int64_t n) {
  const Value& spec = call.value(1);
  Ints out;
  if (spec.tag() == Value::Tag::Int) {
    const int64_t size = spec.integer();
    MOREL_CHECK(size > 0, Value, "For 'Split', 'split_size_or_sections' must be positive, but got ", size);
    for (int64_t at = 0; at < n || out.empty(); at += size) out.push_back(std::min(size, n - at));
    return out;
  }
  int64_t total = 0;
  for (const int64_t size : spec.ints()) {
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
  int64_t at = 0;
  for (const int64_t size : sections_of(call, input.shape[axis])) {
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
  const int64_t chunks = c.integer("chunks"), n = c.shape(0)[axis];
  MOREL_CHECK(chunks > 0, Value, "For 'Chunk', 'chunks' must be positive, but got ", chunks);
  const Sym parts =
      c.builder()("split", c[0], std::max<int64_t>(1, (n + chunks - 1) / chunks), static_cast<int64_t>(axis));
  Syms out;
  if (!parts.value().is_list()) return {parts};
  for (size_t i = 0; i < parts.value().list().size(); ++i) out.push_back(parts.item(i));
  return out;
}

// Pieces at the given positions, or n pieces of which the first n % count are longer by one.
Syms tensor_split(const Call& c) {
  Builder& b = c.builder();
  const size_t axis = split_axis(c, "axis", c.shape(0));
  const int64_t n = c.shape(0)[axis];
  Ints starts{0};
  if (c.value(1).tag() == Value::Tag::Int) {
    const int64_t count = c.integer("indices_or_sections");
    MOREL_CHECK(count > 0, Value, "For 'TensorSplit', 'indices_or_sections' must be positive, but got ", count);
    for (int64_t i = 1; i < count; ++i) starts.push_back(i * (n / count) + std::min(i, n % count));
  } else {
    for (const int64_t at : c.ints("indices_or_sections"))
      starts.push_back(std::clamp<int64_t>(at < 0 ? at + n : at, 0, n));
  }
  starts.push_back(n);
  Syms out;
  for (size_t i = 0; i + 1 < starts.size(); ++i)
    out.push_back(b("narrow", c[0], static_cast<int64_t>(axis), std::min(starts[i], n),
                    std::max<int64_t>(0, starts[i + 1] - starts[i])));
  return out;
}

void register_splits(Family& add) {
  add({.name = "split",
       .args = "tensor: Tensor, split_size_or_sections: int|int[], axis: int = 0",
       .doc =
           "Views of consecutive pieces along axis: all of one size (the last may be smaller), or of the given sizes.",
       .views = split_views,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("concat", all_douts(g), g["axis"])}; },
       .onnx = {"Split", 18, "axis=axis"}});
  add({.name = "unbind",
       .args = "input: Tensor, dim: int = 0",
       .doc = "Views of each position along dim, without that axis.",
       .views = unbind_views,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("stack", all_douts(g), g["dim"])}; }});
  add({.name = "stop_gradient",
       .args = "value: Tensor",
       .doc = "A view of value through which no gradient flows.",
       .view = [](const ArgView&, const Layout& input) -> std::optional<Layout> { return input; },
       .flags = kNoGrad});
  add({.name = "view_as_self",
       .args = "input: Tensor",
       .doc = "A view of the whole of input.",
       .view = [](const ArgView&, const Layout& input) -> std::optional<Layout> { return input; },
       .grad = [](const GradCall& g) -> Syms { return {g.dout()}; },
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
       .args = "input: Tensor, chunks: int, axis: int = 0",
       .doc = "At most `chunks` views of consecutive pieces of one size along axis; the last may be smaller.",
       .compose = chunk});
  add({.name = "tensor_split",
       .args = "input: Tensor, indices_or_sections: int|int[], axis: int = 0",
       .doc = "Views of pieces along axis that begin at the given positions, or of nearly equal pieces.",
       .compose = tensor_split});
}

}  // namespace

void register_shape(Registry& registry) {
  Family add(registry, "shape");
  register_reshape(add);
  register_order(add);
  register_broadcast(add);
  register_slices(add);
  register_splits(add);
  register_array(add);
}

}  // namespace morel
