// Operators that move elements into new tensors: joins, reorderings, padding, conversion, and copies in place.
#include "morel/ops/axes.h"
#include "morel/ops/registry.h"
#include "morel/ops/shape_parts.h"

namespace morel {
namespace {

// ---- joins ----

Types infer_concat(const ArgView& call) {
  const OpDef& op = call.op();
  const Value::List& parts = call.value(0).list();
  MOREL_CHECK(!parts.empty(), Value, "For '", display_name(op), "', 'tensors' must not be empty");
  const Shape& first = shape_of(parts[0]);
  const int64_t rank = static_cast<int64_t>(first.size());
  MOREL_CHECK(rank > 0, Value, "For '", display_name(op), "', tensors without axes cannot be joined");
  const size_t axis = static_cast<size_t>(call.axis("axis", rank));
  Type out{dtype_of_value(parts[0]), first};
  out.shape[axis] = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Shape& shape = shape_of(parts[i]);
    bool same = shape.size() == first.size();
    for (size_t k = 0; k < shape.size() && same; ++k) same = k == axis || shape[k] == first[k];
    MOREL_CHECK(same, Value, "For '", display_name(op), "', all tensors must agree but along axis ", axis,
                "; tensor 0 is ", to_string(parts[0]), ", tensor ", i, " is ", to_string(parts[i]));
    out.shape[axis] += shape[axis];
    out.dtype = promote(out.dtype, dtype_of_value(parts[i]));
  }
  return {std::move(out)};
}

// A value that is a list, also where a split gave a single piece.
Sym as_list(const Sym& value) {
  return value.value().is_list() ? value : Sym(value.builder(), Value(Value::List{value.value()}));
}

void register_joins(Family& add) {
  add({.name = "concat",
       .args = "tensors: Tensor[], axis: axis = 0",
       .doc = "The tensors one after another along an existing axis.",
       .axes = "...[axis] -> ...[axis]",
       .infer = infer_concat,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         const Value::List& parts = g.value(0).list();
         const size_t axis = static_cast<size_t>(g.axis("axis", static_cast<int64_t>(shape_of(parts[0]).size())));
         Ints sections;
         for (const Value& part : parts) sections.push_back(shape_of(part)[axis]);
         return {as_list(g.builder()("split", g.dout(), sections, static_cast<int64_t>(axis)))};
       },
       .flags = kSelects,
       .onnx = {{"Concat", 4, "tensors; axis <- axis"}}});
  add({.name = "stack",
       .args = "tensors: Tensor[], axis: axis = 0",
       .doc = "The tensors, all of one shape, one after another along a new axis.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const Value::List& parts = c.value(0).list();
         MOREL_CHECK(!parts.empty(), Value, "For 'Stack', 'tensors' must not be empty");
         const Shape& first = shape_of(parts[0]);
         const int64_t axis = c.axis("axis", static_cast<int64_t>(first.size()) + 1);
         Ints shape(first);
         shape.insert(shape.begin() + axis, 1);
         Syms wide;
         for (size_t i = 0; i < parts.size(); ++i) {
           MOREL_CHECK(shape_of(parts[i]) == first, Value, "For 'Stack', all tensors must have one shape; tensor 0 is ",
                       to_string(parts[0]), ", tensor ", i, " is ", to_string(parts[i]));
           wide.push_back(b("reshape", Sym(b, parts[i]), shape));
         }
         return {b("concat", wide, axis)};
       }});
}

// ---- reordering ----

void register_reordering(Family& add) {
  add({.name = "flip",
       .args = "input: Tensor, dims: axis|axes",
       .doc = "Elements in opposite order along dims.",
       .axes = "...[dims] -> ...[dims]",
       .infer =
           [](const ArgView& call) {
             normalize_axes(call.op(), "dims", call.value(1), call.rank(0));  // for its checks
             return infer_like_first(call);
           },
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("flip", g.dout(), g[1])}; },
       .flags = kSelects,
       .onnx_compose = [](const Call& c) -> Syms {
         const Ints axes = normalize_axes(c.op(), "dims", c.value(1), c.rank(0));
         const Ints all(axes.size(), -1), first(axes.size(), std::numeric_limits<int64_t>::min());
         return {c.builder()("slice_axes", c[0], all, first, axes, all)};
       }});
  add({.name = "roll_axes",
       .args = "input: Tensor, shifts: int[], dims: axes",
       .doc = "Elements moved on by shifts[i] places along dims[i]; what leaves at the end comes in at the front.",
       .axes = "...[dims] -> ...[dims]",
       .infer = infer_like_first,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         Ints back = g.ints("shifts");
         for (Dim& shift : back) shift = -shift;
         return {g.builder()("roll_axes", g.dout(), back, g[2])};
       },
       .flags = kHidden | kSelects,
       .onnx_compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         Sym out = c[0];
         for (size_t i = 0; i < c.ints("dims").size(); ++i) {
           const int64_t axis = c.ints("dims")[i];
           const Dim size = out.dim(axis), shift = c.ints("shifts")[i] % size;
           const Dim back = shift < 0 ? shift + size : shift;
           out = b("concat", Syms{b("narrow", out, axis, size - back, back), b("narrow", out, axis, 0, size - back)},
                   axis);
         }
         return {out};
       }});
  add({.name = "roll",
       .args = "input: Tensor, shifts: int|int[], dims: axis|axes? = None",
       .doc = "Elements moved on by shifts[i] places along dims[i]; what leaves at the end comes in at the front. "
              "Without dims the input is "
              "taken as one axis.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const auto ints = [&](const char* name) {
           return c.value(name).is_integer() ? Ints{c.dim(name)} : c.ints(name);
         };
         const Ints shifts = ints("shifts");
         if (!c.has("dims")) {
           MOREL_CHECK(shifts.size() == 1, Value, "For 'Roll', 'dims' must be given for more than one shift");
           return {b("reshape", b("roll_axes", b("reshape", c[0], Ints{-1}), shifts, Ints{0}), Ints(c.shape(0)))};
         }
         Ints dims = ints("dims");
         MOREL_CHECK(dims.size() == shifts.size(), Value,
                     "For 'Roll', 'shifts' and 'dims' must have as many entries, but got ", shifts.size(), " and ",
                     dims.size());
         for (Dim& axis : dims) axis = normalize_axis(c.op(), "dims", axis, c.rank(0));
         return {b("roll_axes", c[0], shifts, dims)};
       }});
  for (const bool lower : {true, false}) {
    OpDef op{.name = lower ? "tril" : "triu", .args = "input: Tensor, diagonal: int = 0"};
    op.doc =
        lower
            ? "The matrices of the last two axes with zeros above the diagonal `diagonal` places right of the main one."
            : "The matrices of the last two axes with zeros below the diagonal `diagonal` places right of the main "
              "one.";
    op.axes = "... [m] [n] -> ... [m] [n]";
    op.infer = [](const ArgView& call) {
      MOREL_CHECK(call.rank(0) >= 2, Value, "For '", display_name(call.op()),
                  "', the input must have at least 2 dimensions, but got ", to_string(call.value(0)));
      return infer_like_first(call);
    };
    op.kernel = true;
    op.grad = lower ? GradRule([](const GradCall& g) -> Syms { return {g.builder()("tril", g.dout(), g[1])}; })
                    : GradRule([](const GradCall& g) -> Syms { return {g.builder()("triu", g.dout(), g[1])}; });
    op.onnx = {{"Trilu", 14, lower ? "input, diagonal; 0 <- upper = 1" : "input, diagonal; 1 <- upper = 1"}};
    add(std::move(op));
  }
}

// ---- padding ----

Syms pad(const Call& c) {
  Builder& b = c.builder();
  const std::string& mode = c.str("mode");
  MOREL_CHECK(mode == "constant" || mode == "reflect" || mode == "replicate" || mode == "circular", Value,
              "For 'Pad', 'mode' must be 'constant', 'reflect', 'replicate' or 'circular', but got '", mode, "'");
  MOREL_CHECK(mode == "constant" || !c.has("value"), Value, "For 'Pad', 'value' goes with mode 'constant' alone");
  const Ints& padding = c.ints("padding");
  const size_t rank = c.shape(0).size();
  MOREL_CHECK(padding.size() % 2 == 0 && padding.size() / 2 <= rank, Value,
              "For 'Pad', 'padding' must have two entries for each padded axis, at most ", 2 * rank, ", but got ",
              padding.size());
  Ints before(rank, 0), after(rank, 0);  // the pairs speak of the last axis first
  for (size_t i = 0; i < padding.size() / 2; ++i)
    before[rank - 1 - i] = padding[2 * i], after[rank - 1 - i] = padding[2 * i + 1];
  return {b("pad_axes", c[0], before, after, mode, c.has("value") ? c["value"] : Sym(b, 0.0))};
}

Types infer_pad(const ArgView& call) {
  Type out{call.tensor_dtype(0), call.shape(0)};
  const Ints &before = call.ints("before"), &after = call.ints("after");
  MOREL_CHECK(before.size() == out.shape.size() && after.size() == out.shape.size(), Value,
              "For 'PadAxes', 'before' and 'after' must have ", out.shape.size(), " entries, but got ", before.size(),
              " and ", after.size());
  for (size_t i = 0; i < out.shape.size(); ++i) {
    out.shape[i] += before[i] + after[i];
    MOREL_CHECK(out.shape[i] >= 0, Value, "For 'Pad', pads of ", before[i], " and ", after[i],
                " leave nothing of axis ", i, " of ", to_string(call.value(0)));
  }
  return {std::move(out)};
}

Types infer_to_shape(const ArgView& call) {
  const Ints& shape = call.ints("shape");
  return {Type{call.tensor_dtype(0), Shape(shape.begin(), shape.end())}};
}

void register_padding(Family& add) {
  add({.name = "pad",
       .args = "input_x: Tensor, padding: int[], mode: str = 'constant', value: number? = None",
       .doc = "Elements added at both ends of the last axes: pairs of numbers for the last axis, the one before it, "
              "... Negative ones cut off.",
       .compose = pad});
  add({.name = "pad_axes",
       .args = "input: Tensor, before: each_axis, after: each_axis, mode: str = 'constant', value: number = 0",
       .doc = "before[i] and after[i] elements added at the ends of each axis i.",
       .axes = "...[before after] -> ...[before after]",
       .infer = infer_pad,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         Ints before = g.ints("before"), after = g.ints("after");
         if (g.str("mode") != "constant") return {b("pad_axes_grad", g.dout(), Ints(g.shape(0)), before, after, g[3])};
         for (size_t i = 0; i < before.size(); ++i) before[i] = -before[i], after[i] = -after[i];
         return {b("pad_axes", g.dout(), before, after)};
       },
       .flags = kHidden,
       .onnx = {
           {"Pad", 2, "input, before + after <- pads@11, value <- value@11; mode:pad_mode <- mode = 'constant'"}}});
  add({.name = "pad_axes_grad",
       .args = "dout: Tensor, shape: shape, before: each_axis, after: each_axis, mode: str",
       .doc = "For each element the sum of dout over its copies.",
       .axes = "...[before after] -> ...[before after]",
       .infer = infer_to_shape,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("pad_axes", g.dout(), g[2], g[3], g[4])}; },
       .flags = kHidden,
       .dtypes = floats | complexes});
}

// ---- copies ----

Types infer_strided_place(const ArgView& call) {
  const Ints &size = call.ints("size"), &stride = call.ints("stride");
  MOREL_CHECK(size.size() == stride.size() && Shape(size) == call.shape(0), Value, "For '", display_name(call.op()),
              "', 'size' must be the shape of the source ", to_string(call.value(0)));
  return infer_to_shape(call);
}

void register_copies(Family& add) {
  add({.name = "clone",
       .args = "input: Tensor",
       .doc = "A copy of input.",
       .axes = "... -> ...",
       .infer = infer_like_first,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {g.dout()}; },
       .onnx = {{"Identity", 1}}});
  add({.name = "convert_dtype",
       .args = "input: Tensor, dtype: dtype",
       .doc = "input converted to dtype.",
       .axes = "... -> ...",
       .infer = [](const ArgView& call) -> Types {
         return {Type{call.dtype("dtype"), call.shape(0)}};
       },
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("cast", g.dout(), g.tensor_dtype(0))}; },
       .flags = kHidden | kConverts,
       .onnx = {{"Cast", 6, "input; dtype <- to, _ <- saturate = 1"}}});
  add({.name = "cast",
       .args = "input: Tensor, dtype: dtype",
       .doc = "input converted to dtype; input itself where it has that dtype. Floats are truncated to integers, "
              "complex numbers lose their "
              "imaginary part.",
       .compose = [](const Call& c) -> Syms {
         return {c.tensor_dtype(0) == c.dtype("dtype") ? c[0] : c.builder()("convert_dtype", c[0], c["dtype"])};
       }});
  add({.name = "as_strided_grad",
       .args = "src: Tensor, shape: shape, size: int[], stride: int[], offset: int",
       .doc = "Zeros of `shape` with src added at the places of as_strided(size, stride, offset).",
       .infer = infer_strided_place,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("as_strided", g.dout(), g[2], g[3], g[4])}; },
       .vmap = [](const VmapCall& c) -> Syms {
         const Ints& shape = c.ints("shape");
         return {c.builder()("as_strided_grad", c[0], with_batch(c, shape), with_batch(c, c.ints("size")),
                             strides_of_batch(Shape(shape), c.ints("stride")), c["offset"])};
       },
       .flags = kHidden});
  add({.name = "as_strided_scatter",
       .args = "input: Tensor, src: Tensor, size: int[], stride: int[], offset: int = 0",
       .doc = "input, with src at the places of as_strided(size, stride, offset).",
       .infer = infer_like_first,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         Syms out(2);
         if (g.needs(0))
           out[0] = b("as_strided_scatter", g.dout(), b("zeros", g[2], g.out_type().dtype), g[2], g[3], g[4]);
         if (g.needs(1)) out[1] = b("as_strided", g.dout(), g[2], g[3], g[4]);
         return out;
       },
       .vmap = [](const VmapCall& c) -> Syms {
         return {c.builder()("as_strided_scatter", in_batch(c, 0), in_batch(c, 1), with_batch(c, c.ints("size")),
                             strides_of_batch(c.example_shape(0), c.ints("stride")), c["offset"])};
       }});
  add({.name = "copy_",
       .args = "input: Tensor, src: Tensor",
       .doc = "Overwrites input with src, converted and broadcast.",
       .axes = "..., ... -> ...",
       .infer = [](const ArgView& call) -> Types {
         MOREL_CHECK(broadcast_shapes(call.op(), call.shape(0), call.shape(1)) == call.shape(0), Value, "For 'Copy_', ",
                     to_string(call.value(1)), " cannot be copied into ", to_string(call.value(0)));
         return {};
       },
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         return {b("broadcast_to", b("cast", c[1], c.tensor_dtype(0)), Ints(c.shape(0)))};
       },
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         return {Sym(), g.dout()};
       },
       .flags = kInPlace | kBroadcast});
  add({.name = "fill_",
       .args = "input: Tensor, value: number",
       .doc = "Overwrites every element of input with value.",
       .axes = "... -> ...",
       .compose = [](const Call& c) -> Syms {
         return {c.builder()("full", Ints(c.shape(0)), c.value("value"), c.tensor_dtype(0))};
       },
       .kernel = true,
       .grad = [](const GradCall&) -> Syms { return {}; },
       .flags = kInPlace});
}

}  // namespace

void register_array(Family& add) {
  register_joins(add);
  register_reordering(add);
  register_padding(add);
  register_copies(add);
}

}  // namespace morel
