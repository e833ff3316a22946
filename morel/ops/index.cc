// Reading and writing elements by index.
#include "morel/ops/axes.h"
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

// Axes of a call that puts the axes of index tensors where axes of a tensor were: `of_tensor` has those, `of_values`
// the others. Which slices are read depends on the indices, so indexed axes are whole.
AxisMap indexed_axes(const Shape& tensor, std::span<const char> indexed, const Values& indices, const Shape& values,
                     size_t at, TensorFactors& of_tensor, TensorFactors& of_values) {
  AxisMap map;
  for (size_t i = 0; i < tensor.size(); ++i)
    of_tensor.push_back({map.add(indexed[i] ? FactorKind::Whole : FactorKind::Map, tensor[i])});
  size_t picked = 0;
  for (const Value& index : indices) picked = std::max(picked, shape_of(index).size());
  std::vector<int> of_index;
  for (size_t i = 0; i < picked; ++i) of_index.push_back(map.add(FactorKind::Map, values[at + i]));
  for (size_t i = 0; i <= tensor.size(); ++i) {
    if (of_values.size() == at)
      for (const int factor : of_index) of_values.push_back({factor});
    if (i < tensor.size() && !indexed[i]) of_values.push_back(of_tensor[i]);
  }
  for (const Value& index : indices) {
    const Shape& shape = shape_of(index);
    map.inputs.emplace_back(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) {
      const size_t place = i + picked - shape.size();
      if (shape[i].identical(values[at + place])) map.inputs.back()[i].push_back(of_index[place]);
    }
  }
  return map;
}

// The same for `index` (from_values: and for its gradient, which has the values as argument 0).
template <bool from_values>
AxisMap index_axes(const ArgView& c, std::span<const Type> outs) {
  const Shape &tensor = from_values ? outs[0].shape : c.shape(0), &values = from_values ? c.shape(0) : outs[0].shape;
  const Value::List& list = c.value("indices").list();
  std::vector<char> indexed(tensor.size());
  Values indices;
  size_t first = tensor.size(), last = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_none()) continue;
    indexed[i] = 1;
    indices.push_back(list[i]);
    first = std::min(first, i);
    last = i;
  }
  const bool adjacent = !indices.empty() && last - first + 1 == indices.size();
  TensorFactors of_tensor, of_values;
  AxisMap map = indexed_axes(tensor, indexed, indices, values, adjacent ? first : 0, of_tensor, of_values);
  map.inputs.insert(map.inputs.begin(), from_values ? of_values : of_tensor);
  map.outputs = {from_values ? of_tensor : of_values};
  return map;
}

template <bool from_values>
AxisMap take_axis_axes(const ArgView& c, std::span<const Type> outs) {
  const Shape &tensor = from_values ? outs[0].shape : c.shape(0), &values = from_values ? c.shape(0) : outs[0].shape;
  const size_t axis = static_cast<size_t>(c.axis("axis", static_cast<int64_t>(tensor.size())));
  std::vector<char> indexed(tensor.size());
  if (!indexed.empty()) indexed[axis] = 1;
  TensorFactors of_tensor, of_values;
  AxisMap map = indexed_axes(tensor, indexed, {c.value("indices")}, values, axis, of_tensor, of_values);
  map.inputs.insert(map.inputs.begin(), from_values ? of_values : of_tensor);
  map.outputs = {from_values ? of_tensor : of_values};
  return map;
}

// Calls of `index` for a batch: the batch is one more indexed axis.
class BatchIndex {
 public:
  // `indices`: of the call for one example; their tensors are batches if `batched`.
  BatchIndex(const VmapCall& c, const Value::List& indices, bool batched) : b_(c.builder()), batch_(c.batch()) {
    size_t last = 0, count = 0;
    first_ = indices.size();
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i].is_none()) continue;
      first_ = std::min(first_, i);
      last = i;
      ++count;
      picked_ = std::max(picked_, shape_of(indices[i]).size() - (batched ? 1 : 0));
    }
    // With the batch in front, the group is not adjacent any more and its axes come first.
    moves_ = first_ > 0 && last - first_ + 1 == count;
    Ints lead(picked_ + 1, 1);
    lead[0] = batch_;
    list_.push_back(b_("reshape", b_("arange_from", 0, batch_, 1, DType::Int64), lead).value());
    for (const Value& index : indices)
      list_.push_back(index.is_none() || !batched ? index : aligned(Sym(b_, index), picked_).value());
  }
  const Value::List& list() const { return list_; }
  // Axes of an example's values that the indices give.
  size_t num_picked() const { return picked_; }
  // A batch of values that broadcast to `rank` axes, with ones in front of theirs.
  Sym aligned(const Sym& x, size_t rank) const {
    Ints size(x.shape());
    while (size.size() < rank + 1) size.insert(size.begin() + 1, 1);
    return b_("reshape", x, size);
  }
  // Results with the picked axes first, put where they belong; and back.
  Sym placed(const Sym& x) const { return moved(x, false); }
  Sym unplaced(const Sym& x) const { return moved(x, true); }

 private:
  Sym moved(const Sym& x, bool back) const {
    if (!moves_) return x;
    Ints dims;  // of the placed one, as axes of the other
    const int64_t rank = x.rank(), first = static_cast<int64_t>(first_), picked = static_cast<int64_t>(picked_);
    dims.push_back(0);
    for (int64_t i = 0; i < first; ++i) dims.push_back(1 + picked + i);
    for (int64_t i = 0; i < picked; ++i) dims.push_back(1 + i);
    for (int64_t i = 1 + first + picked; i < rank; ++i) dims.push_back(i);
    if (!back) return b_("transpose", x, dims);
    Ints inverse(dims.size(), 0);
    for (size_t i = 0; i < dims.size(); ++i) inverse[static_cast<size_t>(int64_t(dims[i]))] = static_cast<int64_t>(i);
    return b_("transpose", x, inverse);
  }

  Builder& b_;
  Dim batch_;
  Value::List list_;
  size_t first_ = 0, picked_ = 0;
  bool moves_ = false;
};

Syms index_vmap(const VmapCall& c) {
  const BatchIndex at(c, c.value(1).list(), c.batched(1));
  return {at.placed(c.builder()("index", in_batch(c, 0), at.list()))};
}
Syms index_grad_vmap(const VmapCall& c) {
  const BatchIndex at(c, c.value(1).list(), c.batched(1));
  return {c.builder()("index_grad", at.unplaced(in_batch(c, 0)), at.list(), with_batch(c, c.ints("size")))};
}
Syms index_put_vmap(const VmapCall& c) {
  const BatchIndex at(c, c.value(1).list(), c.batched(1));
  size_t rank = c.example_shape(0).size();
  for (const Value& index : c.value(1).list()) rank -= index.is_none() ? 0 : 1;
  rank += at.num_picked();
  return {c.builder()("index_put_", c[0], at.list(), at.unplaced(at.aligned(in_batch(c, 2), rank)), c[3])};
}
// Indices that are batches go with the batch axis through `index`; others leave the operand's batch alone.
Syms take_axis_vmap(const VmapCall& c) {
  const int64_t axis =
      normalize_axis(c.op(), "axis", c.integer("axis"), static_cast<int64_t>(c.example_shape(0).size()));
  if (!c.batched(1)) return {c.builder()("take_axis", c[0], c[1], axis + 1)};
  Value::List list(static_cast<size_t>(axis), Value());
  list.push_back(c.value(1));
  const BatchIndex at(c, list, true);
  return {at.placed(c.builder()("index", in_batch(c, 0), at.list()))};
}
Syms take_axis_grad_vmap(const VmapCall& c) {
  const Ints size = with_batch(c, c.ints("size"));
  const int64_t axis = normalize_axis(c.op(), "axis", c.integer("axis"), static_cast<int64_t>(size.size()) - 1);
  if (!c.batched(1)) return {c.builder()("take_axis_grad", c[0], c[1], size, axis + 1)};
  Value::List list(static_cast<size_t>(axis), Value());
  list.push_back(c.value(1));
  const BatchIndex at(c, list, true);
  return {c.builder()("index_grad", at.unplaced(in_batch(c, 0)), at.list(), size)};
}

// Without an operator for several indices: the indexed axes first and as one, along which slices are taken.
Syms index_along_one_axis(const Call& c) {
  Builder& b = c.builder();
  const Sym x = c[0];
  const Value::List& list = c.value("indices").list();
  Ints order, kept, shape;
  Dim places = 1;
  Sym at;
  for (size_t i = 0; i < static_cast<size_t>(x.rank()); ++i) {
    const Dim size = x.shape()[i];
    if (i >= list.size() || list[i].is_none()) {
      kept.push_back(static_cast<int64_t>(i));
      shape.push_back(size);
      continue;
    }
    order.push_back(static_cast<int64_t>(i));
    Sym index = b("cast", Sym(b, list[i]), DType::Int64);
    index = b("where", b("less", index, 0), index + size, index);
    at = at ? at * size + index : index;
    places *= size;
  }
  if (!at) return {x};
  const int64_t first = order[0], count = static_cast<int64_t>(order.size());
  const bool is_adjacent = order[order.size() - 1] - order[0] + 1 == count;
  order.append(kept.begin(), kept.end());
  shape.insert(shape.begin(), places);
  const Sym out = b("take_axis", b("reshape", b("transpose", x, order), shape), at, 0);
  const int64_t before = is_adjacent ? first : 0, picked = at.rank();
  Ints back;
  for (int64_t i = 0; i < out.rank(); ++i)
    back.push_back(i < before ? picked + i : i < before + picked ? i - before : i);
  return {b("transpose", out, back)};
}

void register_advanced(Family& add) {
  add({.name = "index",
       .args = "input: Tensor, indices: Tensor[]",
       .doc = "input[indices]: one integer tensor (or None: the whole axis) per leading axis; index tensors broadcast "
              "against each other. "
              "Their axes stand where the indexed axes were, or first when those are not adjacent.",
       .axis_rule = index_axes<false>,
       .infer = index_infer,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("index_grad", g.dout(), g[1], Ints(g.shape(0)))}; },
       .saves = {bits({1}), 0},
       .vmap = index_vmap,
       .flags = kHidden,
       .onnx_compose = index_along_one_axis});
  add({.name = "index_grad",
       .args = "dout: Tensor, indices: Tensor[], size: shape",
       .doc = "Zeros of `size` with dout added at the indices, in their order.",
       .axis_rule = index_axes<true>,
       .infer = [](const ArgView& c) -> Types {
         return {Type{c.tensor_dtype(0), Shape(c.ints("size"))}};
       },
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("index", g.dout(), g[1])}; },
       .saves = {bits({1}), 0},
       .vmap = index_grad_vmap,
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
       .vmap = index_put_vmap,
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
       .args = "input: Tensor, indices: Tensor, axis: axis",
       .doc =
           "Slices of input along axis at the indices: input[..., indices, ...]; negative indices count from the end.",
       .axis_rule = take_axis_axes<false>,
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
       .vmap = take_axis_vmap,
       .flags = kHidden | kSelects,
       .onnx = {{"Gather", 1, "input, indices; axis <- axis = 0"}}});
  add({.name = "take_axis_grad",
       .args = "dout: Tensor, indices: Tensor, size: shape, axis: axis",
       .doc = "Zeros of `size` with the slices of dout added at the indices along axis, in their order.",
       .axis_rule = take_axis_axes<true>,
       .infer = [](const ArgView& c) -> Types {
         return {Type{c.tensor_dtype(0), Shape(c.ints("size"))}};
       },
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("take_axis", g.dout(), g[1], g[3])}; },
       .saves = {bits({1}), 0},
       .vmap = take_axis_grad_vmap,
       .flags = kHidden});
  add({.name = "gather",
       .args = "input_params: Tensor, input_indices: Tensor, axis: axis, batch_dims: int = 0",
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
       .args = "input: Tensor, axis: axis, index: Tensor",
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
       .args = "input: Tensor, dim: axis, index: Tensor",
       .doc = "out[i, j, ...] = input[index[i, j, ...], j, ...] for dim 0, alike for others.",
       .axes = "...[dim], ...[dim] -> ...[dim]",
       .infer = like_index,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         const Sym zeros = b("zeros", Ints(g.shape(0)), g.dout().dtype());
         return {b("scatter_add_elements", zeros, g[1], g[2], g.dout())};
       },
       .saves = {bits({2}), 0},
       .flags = kSelects,
       .onnx = {{"GatherElements", 11, "input, index; dim <- axis = 0"}}});
  add({.name = "scatter_add_elements",
       .args = "input: Tensor, dim: axis, index: Tensor, src: Tensor",
       .doc = "A copy of input with src[i, j, ...] added at [index[i, j, ...], j, ...] for dim 0, alike for others, in "
              "order.",
       .axes = "...[dim], ...[dim], ...[dim] -> ...[dim]",
       .infer = infer_like_first,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         return {g.dout(), Sym(), Sym(), g.needs(3) ? g.builder()("gather_elements", g.dout(), g[1], g[2]) : Sym()};
       },
       .saves = {bits({2}), 0},
       .flags = kHidden,
       .onnx = {{"ScatterElements", 11, "input, index, src; dim <- axis = 0, 'add' <- reduction = 'none'"}}});
  add({.name = "scatter_elements",
       .args = "input: Tensor, dim: axis, index: Tensor, src: Tensor",
       .doc = "A copy of input with src[i, j, ...] written at [index[i, j, ...], j, ...] for dim 0, alike for others; "
              "the last one wins.",
       .axes = "...[dim], ...[dim], ...[dim] -> ...[dim]",
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
