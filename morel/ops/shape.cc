// Operators that look at the same elements in another shape or order: views, and what is composed of them.
#include "morel/ops/registry.h"
#include "morel/ops/shape_parts.h"

namespace morel {
namespace {

// The requested shape with a -1 resolved; ValueError where the number of elements differs.
Shape resolve_shape(const ArgView& call, const Shape& from, const Ints& wanted) {
  const Dim total = num_elements(from);
  Shape out(wanted.begin(), wanted.end());
  Dim known = 1;
  int64_t free = -1;
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
    Dim stride = input.strides[old - 1], run = input.shape[old - 1];
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
                     axis < input.shape.size() ? input.shape[axis] * input.strides[axis] : Dim(1));
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
       .args = "input: Tensor, shape: shape",
       .doc = "The same elements, in order, in another shape; one size may be -1. A view where the layout allows, else "
              "a copy.",
       .view = reshape_view,
       .grad = reshape_grad,
       .flags = kConversion,
       .onnx = {{"Reshape", 5, "input, shape:reshape; 0 <- allowzero = 0"}}});
  add({.name = "view",
       .args = "input: Tensor, shape: shape",
       .doc = "The same elements, in order, in another shape, never copied: an error where the layout does not allow "
              "that.",
       .view = view_view,
       .grad = reshape_grad,
       .onnx_compose = [](const Call& c) -> Syms { return {c.builder()("reshape", c[0], c[1])}; }});
  add({.name = "expand_dims",
       .args = "input_x: Tensor, axis: axis",
       .doc = "A new axis of one element before axis.",
       .view = expand_dims_view,
       .grad = reshape_grad,
       .onnx = {{"Unsqueeze", 1, "input_x, axis:list <- axes@13"}}});
  add({.name = "unsqueeze",
       .args = "input: Tensor, dim: axis",
       .doc = "A new axis of one element before dim.",
       .view = expand_dims_view,
       .grad = reshape_grad,
       .onnx = {{"Unsqueeze", 1, "input, dim:list <- axes@13"}}});
  add({.name = "squeeze",
       .args = "input: Tensor, axis: axis|axes? = None",
       .doc = "Without the axes of one element: those in axis, or all of them. Longer axes stay.",
       .view = squeeze_view,
       .grad = reshape_grad,
       .onnx = {{"Squeeze", 1, "input, axis <- axes@13"}}});
  add({.name = "contiguous",
       .args = "input: Tensor",
       .doc = "The same elements in row-major order; a copy where they are not so already.",
       .view = [](const ArgView&, const Layout& input) -> std::optional<Layout> {
         return is_row_major(input) ? std::optional(input) : std::nullopt;
       },
       .grad = [](const GradCall& g) -> Syms { return {g.dout()}; }});
  add({.name = "flatten",
       .args = "input: Tensor, order: str = 'C', *, start_dim: axis = 1, end_dim: axis = -1",
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
         Dim merged = 1;
         for (int64_t i = 0; i < rank; ++i) {
           if (i >= first && i <= last) merged *= x.dim(i);
           if (i == last) shape.push_back(merged);
           if (i < first || i > last) shape.push_back(x.dim(i));
         }
         return {b("reshape", x, shape)};
       }});
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
    if (c.value(name).is_integer()) return Ints{c.axis(name, rank)};
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
  for (Dim& axis : dims) {
    if (axis >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    axis = next++;
  }
  return {c.builder()("transpose", c[0], dims)};
}

void register_order(Family& add) {
  add({.name = "transpose",
       .args = "input: Tensor, dims: permutation",
       .doc = "View with the axes in the order of dims.",
       .view = transpose_view,
       .grad = transpose_grad,
       .onnx = {{"Transpose", 1, "input; dims:axes <- perm"}}});
  add({.name = "permute",
       .args = "input: Tensor, axis: permutation",
       .doc = "View with the axes in the order of axis.",
       .view = transpose_view,
       .grad = transpose_grad,
       .onnx = {{"Transpose", 1, "input; axis:axes <- perm"}}});
  add({.name = "swapaxes",
       .args = "input: Tensor, axis0: axis, axis1: axis",
       .doc = "View with two axes exchanged.",
       .view = swapaxes_view,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("swapaxes", g.dout(), g[1], g[2])}; },
       .onnx_compose = [](const Call& c) -> Syms {
         Ints axes;
         for (int64_t i = 0; i < c.rank(0); ++i) axes.push_back(i);
         std::swap(axes[static_cast<size_t>(c.axis("axis0", c.rank(0)))],
                   axes[static_cast<size_t>(c.axis("axis1", c.rank(0)))]);
         return {c.builder()("transpose", c[0], axes)};
       }});
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
    const Dim have = i < shift ? Dim(1) : input.shape[i - shift];
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
    const Dim size = x.shape()[i];
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
  for (const Dim count : counts)
    MOREL_CHECK(count >= 0, Value, "For 'Tile', 'dims' must not contain negative numbers, but got ", count);
  const size_t rank = c.shape(0).size();
  while (counts.size() < rank) counts.insert(counts.begin(), 1);
  Ints shape(counts.size() - rank, 1);
  shape.append(c.shape(0).begin(), c.shape(0).end());
  bool once = shape.size() == rank;
  for (const Dim count : counts) once = once && count == 1;
  if (once) return {b("clone", c[0])};
  return {tiled(b, shape.size() == rank ? c[0] : b("reshape", c[0], shape), counts)};
}

// Numbers of repetitions as integers; a tensor of them is read now.
Ints repeats_of(const Call& c) {
  const Value& repeats = c.value("repeats");
  if (repeats.is_integer()) return Ints{repeats.dim()};
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
        out.push_back(static_cast<int64_t>(tensor.as<T>()[i * (tensor.rank() ? tensor.strides()[0] : Dim(1))]));
  });
  return out;
}

Syms repeat_interleave(const Call& c) {
  Builder& b = c.builder();
  const bool flat = !c.has("axis") || c.rank(0) == 0;
  const Sym x = flat ? b("reshape", c[0], Ints{-1}) : c[0];
  const size_t axis = flat ? 0 : static_cast<size_t>(c.axis("axis", x.rank()));
  const Dim n = x.shape()[axis];
  const Ints repeats = repeats_of(c);
  for (const Dim count : repeats)
    MOREL_CHECK(count >= 0, Value, "For 'RepeatInterleave', 'repeats' must not be negative, but got ", count);
  MOREL_CHECK(repeats.size() == 1 || static_cast<int64_t>(repeats.size()) == n, Value,
              "For 'RepeatInterleave', 'repeats' must be one number or ", n, " of them, but got ", repeats.size());
  // A new axis behind `axis`, broadcast, merged.
  const auto repeated = [&](const Sym& part, Dim count) {
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
       .args = "input: Tensor, shape: shape",
       .doc = "View in which axes of one element are repeated; -1 keeps the size of an axis.",
       .view = broadcast_view,
       .grad = broadcast_grad,
       .flags = kConversion,
       .onnx = {{"Expand", 8, "input, shape:broadcast"}}});
  add({.name = "expand",
       .args = "input_x: Tensor, size: shape",
       .doc = "View in which axes of one element are repeated; -1 keeps the size of an axis.",
       .view = broadcast_view,
       .grad = broadcast_grad,
       .onnx = {{"Expand", 8, "input_x, size:broadcast"}}});
  add({.name = "tile",
       .args = "input: Tensor, dims: int[]",
       .doc = "input repeated dims[i] times along each axis i; missing axes are added in front.",
       .compose = tile,
       .onnx = {{"Tile", 6, "input, dims:per_axis"}}});
  add({.name = "repeat_interleave",
       .args = "input: Tensor, repeats: int|int[]|Tensor, axis: axis? = None",
       .doc = "Each element along axis repeated in place; of the flattened input without axis.",
       .compose = repeat_interleave});
  add({.name = "meshgrid",
       .args = "inputs: Tensor[], indexing: str = 'xy'",
       .doc = "Coordinates of a grid over the input axes; 'xy' exchanges the first two axes, 'ij' keeps their order.",
       .compose = meshgrid});
}

}  // namespace

void register_shape(Registry& registry) {
  Family add(registry, "shape");
  register_reshape(add);
  register_order(add);
  register_broadcast(add);
  register_slices(add);
  register_array(add);
}

}  // namespace morel
