// Reading and writing elements by index.
#include "morel/ops/registry.h"

namespace morel {
namespace {

void check_integer_index(const ArgView& c, size_t arg) {
  MOREL_CHECK(is_integral(c.tensor_dtype(arg)), Type, "For '", display_name(c.op()), "', '",
              c.op().schema.args[arg].name, "' must hold integers, but got ", to_string(type_of(c.value(arg))));
}

// -- advanced indexing: one index tensor (or None) per axis; the index tensors broadcast --

Types index_infer(const ArgView& c) {
  const OpDef& op = c.op();
  const Shape& x = c.shape(0);
  const Value::List& indices = c.value("indices").list();
  MOREL_CHECK(indices.size() <= x.size(), Index, "For '", display_name(op), "', too many indices (", indices.size(),
              ") for a tensor of ", x.size(), " dimensions");
  Shape broadcast;
  size_t first = x.size(), last = 0, count = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i].is_none()) continue;
    broadcast = broadcast_shapes(op, broadcast, shape_of(indices[i]));
    first = std::min(first, i);
    last = i;
    ++count;
  }
  const bool adjacent = count && last - first + 1 == count;
  const size_t at = adjacent ? first : 0;
  Shape out;
  for (size_t i = 0; i <= x.size(); ++i) {
    if (count && i == at) out.append(broadcast.begin(), broadcast.end());
    if (i < x.size() && (i >= indices.size() || indices[i].is_none())) out.push_back(x[i]);
  }
  // Kept axes before a non-adjacent group come after it: the group was put first above.
  return {Type{c.tensor_dtype(0), out}};
}

void register_advanced(Family& add) {
  add({.name = "index",
       .args = "input: Tensor, indices: Tensor[]",
       .doc = "input[indices]: one integer tensor (or None: the whole axis) per leading axis; index tensors broadcast "
              "against each other. "
              "Their axes stand where the indexed axes were, or first when those are not adjacent.",
       .infer = index_infer,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("index_grad", g.dout(), g[1], Ints(g.shape(0)))}; },
       .saves = {bits({1}), 0},
       .flags = kHidden});
  add({.name = "index_grad",
       .args = "dout: Tensor, indices: Tensor[], size: int[]",
       .doc = "Zeros of `size` with dout added at the indices, in their order.",
       .infer = [](const ArgView& c) -> Types {
         return {Type{c.tensor_dtype(0), Shape(c.ints("size"))}};
       },
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("index", g.dout(), g[1])}; },
       .saves = {bits({1}), 0},
       .flags = kHidden});
  add({.name = "index_put_",
       .args = "input: Tensor, indices: Tensor[], values: Tensor, accumulate: bool = False",
       .doc = "Writes values (broadcast) to input at the indices, in place; with accumulate adds them.",
       .infer = infer_like_first,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         const Sym dout = g.dout();
         Sym dx = dout;
         if (!g.flag("accumulate")) dx = b("index_put_", b("clone", dout), g[1], b("zeros", Ints{}, dout.dtype()));
         Sym dvalues;
         if (g.needs(2)) dvalues = b("sum_to", b("index", dout, g[1]), Ints(g.shape(2)));
         return {dx, Sym(), dvalues};
       },
       .saves = {bits({1}), 0},
       .flags = kInPlace});
  add({.name = "index_put",
       .args = "input: Tensor, indices: Tensor[], values: Tensor, accumulate: bool = False",
       .doc = "A copy of input with values (broadcast) written at the indices; with accumulate they are added.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         return {b("index_put_", b("clone", c[0]), c[1], c[2], c[3])};
       }});
}

// -- along one axis --

void register_gather(Family& add) {
  add({.name = "take_axis",
       .args = "input: Tensor, indices: Tensor, axis: int",
       .doc =
           "Slices of input along axis at the indices: input[..., indices, ...]; negative indices count from the end.",
       .infer = [](const ArgView& c) -> Types {
         check_integer_index(c, 1);
         const Shape &x = c.shape(0), &indices = c.shape(1);
         const size_t axis = static_cast<size_t>(c.axis("axis", c.rank(0)));
         Shape out(x.begin(), x.begin() + axis);
         out.append(indices.begin(), indices.end());
         if (axis < x.size()) out.append(x.begin() + axis + 1, x.end());
         return {Type{c.tensor_dtype(0), out}};
       },
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         return {g.builder()("take_axis_grad", g.dout(), g[1], Ints(g.shape(0)), g[2])};
       },
       .saves = {bits({1}), 0},
       .flags = kHidden,
       .onnx = {{"Gather", 1, "input, indices; axis <- axis = 0"}}});
  add({.name = "take_axis_grad",
       .args = "dout: Tensor, indices: Tensor, size: int[], axis: int",
       .doc = "Zeros of `size` with the slices of dout added at the indices along axis, in their order.",
       .infer = [](const ArgView& c) -> Types {
         return {Type{c.tensor_dtype(0), Shape(c.ints("size"))}};
       },
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("take_axis", g.dout(), g[1], g[3])}; },
       .saves = {bits({1}), 0},
       .flags = kHidden});
  add({.name = "gather",
       .args = "input_params: Tensor, input_indices: Tensor, axis: int, batch_dims: int = 0",
       .doc = "Slices of input_params along axis at input_indices; the first batch_dims axes of both run together.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const int64_t batch = c.integer("batch_dims");
         if (batch == 0) return {b("take_axis", c[0], c[1], c[2])};
         const int64_t axis = c.axis("axis", c.rank(0));
         MOREL_CHECK(batch == 1 && axis >= batch, NotImplemented,
                     "For 'Gather', 'batch_dims' of 0 and 1 are supported, but got ", batch);
         Syms parts;
         for (int64_t i = 0; i < c.shape(0)[0]; ++i)
           parts.push_back(b("take_axis", b("select", c[0], 0, i), b("select", c[1], 0, i), axis - 1));
         return {b("stack", parts, 0)};
       }});
  add({.name = "index_select",
       .args = "input: Tensor, axis: int, index: Tensor",
       .doc = "Slices of input along axis at the positions in the vector index.",
       .compose = [](const Call& c) -> Syms {
         MOREL_CHECK(c.rank(2) <= 1, Value, "For 'IndexSelect', 'index' must have one dimension, but got ",
                     to_string(type_of(c.value(2))));
         Builder& b = c.builder();
         const Sym index = c.rank(2) == 0 ? b("expand_dims", c[2], 0) : c[2];
         return {b("take_axis", c[0], index, c[1])};
       }});
  add({.name = "embedding",
       .args =
           "input: Tensor, weight: Tensor, padding_idx: int? = None, max_norm: float? = None, norm_type: float = 2.0, "
           "scale_grad_by_freq: bool = False",
       .doc = "Rows of weight [V, D] at the ids in input; no gradient flows to the row padding_idx.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         MOREL_CHECK(!c.has("max_norm"), NotImplemented, "For 'Embedding', 'max_norm' is not supported");
         MOREL_CHECK(!c.flag("scale_grad_by_freq"), NotImplemented,
                     "For 'Embedding', 'scale_grad_by_freq' is not supported");
         MOREL_CHECK(c.rank(1) == 2, Value, "For 'Embedding', 'weight' must have 2 dimensions, but got ",
                     to_string(type_of(c.value(1))));
         const Sym out = b("take_axis", c[1], c[0], 0);
         if (!c.has("padding_idx")) return {out};
         int64_t padding = c.integer("padding_idx");
         const Dim rows = c.shape(1)[0];
         MOREL_CHECK(padding >= -rows && padding < rows, Value, "For 'Embedding', 'padding_idx' must be in [", -rows,
                     ", ", rows, "), but got ", padding);
         if (padding < 0) padding += rows;
         const Sym is_padding = b("expand_dims", b("equal", c[0], padding), -1);
         return {b("where", is_padding, b("stop_gradient", out), out)};
       }});
  const auto like_index = [](const ArgView& c) -> Types {
    check_integer_index(c, 2);
    const Shape &x = c.shape(0), &index = c.shape(2);
    const int64_t axis = c.axis("dim", c.rank(0));
    MOREL_CHECK(x.size() == index.size(), Value, "For '", display_name(c.op()),
                "', input and index must have the same number of dimensions, but got ", to_string(x), " and ",
                to_string(index));
    for (size_t i = 0; i < x.size(); ++i)
      MOREL_CHECK(static_cast<int64_t>(i) == axis || index[i] <= x[i], Value, "For '", display_name(c.op()),
                  "', index ", to_string(index), " is larger than input ", to_string(x), " along axis ", i);
    return {Type{c.tensor_dtype(0), index}};
  };
  add({.name = "gather_elements",
       .args = "input: Tensor, dim: int, index: Tensor",
       .doc = "out[i, j, ...] = input[index[i, j, ...], j, ...] for dim 0, alike for others.",
       .infer = like_index,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         const Sym zeros = b("zeros", Ints(g.shape(0)), g.dout().dtype());
         return {b("scatter_add_elements", zeros, g[1], g[2], g.dout())};
       },
       .saves = {bits({2}), 0},
       .onnx = {{"GatherElements", 11, "input, index; dim <- axis = 0"}}});
  add({.name = "scatter_add_elements",
       .args = "input: Tensor, dim: int, index: Tensor, src: Tensor",
       .doc = "A copy of input with src[i, j, ...] added at [index[i, j, ...], j, ...] for dim 0, alike for others, in "
              "order.",
       .infer = infer_like_first,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         return {g.dout(), Sym(), Sym(), g.needs(3) ? g.builder()("gather_elements", g.dout(), g[1], g[2]) : Sym()};
       },
       .saves = {bits({2}), 0},
       .flags = kHidden,
       .onnx = {{"ScatterElements", 11, "input, index, src; dim <- axis = 0, 'add' <- reduction = 'none'"}}});
  add({.name = "scatter_elements",
       .args = "input: Tensor, dim: int, index: Tensor, src: Tensor",
       .doc = "A copy of input with src[i, j, ...] written at [index[i, j, ...], j, ...] for dim 0, alike for others; "
              "the last one wins.",
       .infer = infer_like_first,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         const Sym none = b("zeros", Ints(g.shape(2)), g.dout().dtype());
         return {g.needs(0) ? b("scatter_elements", g.dout(), g[1], g[2], none) : Sym(), Sym(), Sym(),
                 g.needs(3) ? b("gather_elements", g.dout(), g[1], g[2]) : Sym()};
       },
       .saves = {bits({2}), 0},
       .flags = kHidden,
       .onnx = {{"ScatterElements", 11, "input, index, src; dim <- axis = 0, 'none' <- reduction = 'none'"}}});
}

void register_masks(Family& add) {
  add({.name = "masked_fill",
       .args = "input_x: Tensor, mask: Tensor, value: Tensor|number",
       .doc = "input_x with value where mask holds, with broadcasting.",
       .compose = [](const Call& c) -> Syms {
         MOREL_CHECK(c.tensor_dtype(1) == DType::Bool, Type, "For 'MaskedFill', 'mask' must be Bool, but got ",
                     to_string(type_of(c.value(1))));
         Builder& b = c.builder();
         const Sym value = c.value(2).is_number() ? c[2] : b("cast", c[2], c.tensor_dtype(0));
         const Sym out = b("where", c[1], value, c[0]);
         return {out.dtype() == c.tensor_dtype(0) ? out : b("cast", out, c.tensor_dtype(0))};
       }});
  add({.name = "nonzero",
       .args = "input: Tensor",
       .doc = "Positions of the elements that are not zero: int64 [count, rank], in row-major order. Its shape depends "
              "on the values.",
       .kernel = true,
       .data_dependent = 1,
       .flags = kNoGrad});
  add({.name = "masked_select",
       .args = "input: Tensor, mask: Tensor",
       .doc = "The elements of input where mask holds, as a vector; both broadcast. Its shape depends on the values.",
       .compose = [](const Call& c) -> Syms {
         MOREL_CHECK(c.tensor_dtype(1) == DType::Bool, Type, "For 'MaskedSelect', 'mask' must be Bool, but got ",
                     to_string(type_of(c.value(1))));
         Builder& b = c.builder();
         const Ints shape(broadcast_shapes(c.op(), c.shape(0), c.shape(1)));
         const Sym mask = b("reshape", b("broadcast_to", c[1], shape), Ints{-1});
         const Sym positions = b("reshape", b("nonzero", mask), Ints{-1});
         return {b("take_axis", b("reshape", b("broadcast_to", c[0], shape), Ints{-1}), positions, 0)};
       }});
}

}  // namespace

void register_index(Registry& registry) {
  Family add(registry, "index");
  register_advanced(add);
  register_gather(add);
  register_masks(add);
}

}  // namespace morel
