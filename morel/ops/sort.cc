// Sorting and running sums along an axis.
#include "morel/ops/registry.h"

namespace morel {
namespace {

Types values_and_indices(const ArgView& c) {
  c.axis(c.op().schema.args[1].name == "axis" ? "axis" : "dim", c.rank(0));
  return {Type{c.tensor_dtype(0), c.shape(0)}, Type{DType::Int64, c.shape(0)}};
}

// Cotangent of chosen elements put back at their indices along the axis.
Sym scatter_back(const GradCall& g, const Sym& axis) {
  Builder& b = g.builder();
  return b("scatter_add_elements", b("zeros", Ints(g.shape(0)), g.dout().dtype()), axis, g.out(1), g.dout());
}

Types like_first_along_axis(const ArgView& c) {
  c.axis("axis", c.rank(0));
  return infer_like_first(c);
}

}  // namespace

void register_sort(Registry& registry) {
  Family add(registry, "sort");
  add({.name = "sort",
       .args = "input_x: Tensor, axis: axis = -1, descending: bool = False",
       .doc = "Elements in order along axis, and their former indices (int64). Stable; NaN counts as largest.",
       .axes = "...[axis] -> ...[axis], ...[axis]",
       .infer = values_and_indices,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {scatter_back(g, g[1])}; },
       .saves = {0, bits({1})},
       .onnx_compose = [](const Call& c) -> Syms {
         const Sym all = c.builder()("topk", c[0], c[0].dim(c.integer("axis")), c["axis"], c["descending"], true);
         return {all.item(0), all.item(1)};
       }});
  add({.name = "argsort",
       .args = "input: Tensor, axis: axis = -1, descending: bool = False",
       .doc = "Indices (int64) that put the elements in order along axis.",
       .compose = [](const Call& c) -> Syms { return {c.builder()("sort", c[0], c[1], c[2]).item(1)}; },
       .flags = kNoGrad});
  add({.name = "topk",
       .args = "input: Tensor, k: int, dim: axis? = None, largest: bool = True, sorted: bool = True",
       .doc = "The k largest (or smallest) elements along dim (None: the last), and their indices (int64).",
       .axes = "...[dim] -> ...[dim], ...[dim]",
       .infer = [](const ArgView& c) -> Types {
         const int64_t axis = normalize_axis(c.op(), "dim", c.integer_or("dim", -1), c.rank(0));
         Shape out = c.shape(0);
         const Dim size = out.empty() ? Dim(1) : out[static_cast<size_t>(axis)], k = c.dim("k");
         MOREL_CHECK(k >= 0 && k <= size, Value, "For 'TopK', 'k' must be in [0, ", size, "], but got ", k);
         if (!out.empty()) out[static_cast<size_t>(axis)] = k;
         return {Type{c.tensor_dtype(0), out}, Type{DType::Int64, out}};
       },
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {scatter_back(g, g.has("dim") ? g[2] : Sym(g.builder(), -1))}; },
       .saves = {0, bits({1})},
       .onnx = {{"TopK", 1,
                 "input, k:list <- k@10; dim <- axis = -1, largest <- largest = 1, sorted <- sorted = 1 -> input, "
                 "Int64"}},
       .onnx_compose = [](const Call& c) -> Syms {
         const Sym both = c.builder()("topk", c[0], c["k"], -1, c["largest"], c["sorted"]);
         return {both.item(0), both.item(1)};
       }});
  add({.name = "cumsum",
       .args = "x: Tensor, axis: axis, dtype: dtype? = None",
       .doc = "Running sums along axis; dtype converts x first.",
       .axes = "...[axis] -> ...[axis]",
       .infer = [](const ArgView& c) -> Types {
         Types out = like_first_along_axis(c);
         out[0].dtype = c.dtype_or("dtype", out[0].dtype);
         return out;
       },
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         const Ints axis{g.integer("axis")};
         return {b("flip", b("cumsum", b("flip", g.dout(), axis), g[1]), axis)};
       },
       .dtypes = numbers,
       .onnx = {{"CumSum", 11, "x, axis; 0 <- exclusive = 0, 0 <- reverse = 0 -> x"}}});
  add({.name = "cumprod",
       .args = "input: Tensor, axis: axis, dtype: dtype? = None",
       .doc = "Running products along axis; dtype converts input first.",
       .axes = "...[axis] -> ...[axis]",
       .infer = [](const ArgView& c) -> Types {
         Types out = like_first_along_axis(c);
         out[0].dtype = c.dtype_or("dtype", out[0].dtype);
         return out;
       },
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         // d/dx_i = sum over j >= i of dout_j * prod_{k <= j, k != i} x_k; zeros are treated exactly by a product over
         // prefixes.
         Builder& b = g.builder();
         const Ints axis{g.integer("axis")};
         const Sym weighted = g.dout() * g.out();
         const Sym sums = b("flip", b("cumsum", b("flip", weighted, axis), g[1]), axis);
         return {sums / g[0]};
       },
       .saves = {bits({0}), bits({0})},
       .dtypes = numbers});
  for (const std::string_view name : {"cummax", "cummin"})
    add({.name = name,
         .args = "input: Tensor, axis: axis",
         .doc = name == "cummax" ? "Running maxima along axis, and the indices (int64) of their last occurrence."
                                 : "Running minima along axis, and the indices (int64) of their last occurrence.",
         .axes = "...[axis] -> ...[axis], ...[axis]",
         .infer = values_and_indices,
         .kernel = true,
         .grad = [](const GradCall& g) -> Syms { return {scatter_back(g, g[1])}; },
         .saves = {0, bits({1})},
         .dtypes = reals});
}

}  // namespace morel
