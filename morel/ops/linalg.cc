// Matrix products.
#include "morel/ops/quant.h"
#include "morel/ops/registry.h"

namespace morel {
namespace {

Sym transposed(const Sym& x) { return x.builder()("swapaxes", x, -1, -2); }
Sym adjoint(const Sym& x) { return is_complex(x.dtype()) ? x.builder()("conj", transposed(x)) : transposed(x); }
// All leading axes in one.
Sym as_rows(const Sym& x) { return x.rank() == 2 ? x : x.builder()("reshape", x, Ints{-1, x.dim(-1)}); }

Syms matmul_compose(const Call& c) {
  Builder& b = c.builder();
  Sym x = c[0], y = c[1];
  MOREL_CHECK(x.rank() > 0 && y.rank() > 0, Value,
              "For 'MatMul', both operands must have at least one dimension, but got ", to_string(x.type()), " and ",
              to_string(y.type()));
  const bool vector_x = x.rank() == 1, vector_y = y.rank() == 1;
  if (vector_x) x = b("expand_dims", x, 0);
  if (vector_y) y = b("expand_dims", y, 1);
  Sym out;
  if (x.rank() > 2 && y.rank() == 2) {  // one product over all rows
    Ints shape(x.shape());
    shape.back() = y.dim(-1);
    out = b("reshape", b("matrix_product", as_rows(x), y), shape);
  } else {
    out = b("matrix_product", x, y);
  }
  if (vector_x) out = b("squeeze", out, Ints{out.rank() - 2});
  if (vector_y) out = b("squeeze", out, Ints{out.rank() - 1});
  return {out};
}

void check_rank(const Call& c, size_t arg, int64_t rank) {
  MOREL_CHECK(c.rank(arg) == rank, Value, "For '", display_name(c.op()), "', '", c.op().schema.args[arg].name,
              "' must have ", rank, " dimensions, but got ", to_string(type_of(c.value(arg))));
}

}  // namespace

void register_linalg(Registry& registry) {
  Family add(registry, "linalg");
  add({.name = "matrix_product",
       .args = "input: Tensor, mat2: Tensor",
       .doc = "Matrix product over the last two axes; leading axes broadcast.",
       .axes = "... m k, ... k n -> ... m n",
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         return {g.needs(0) ? b("matrix_product", g.dout(), adjoint(g[1])) : Sym(),
                 g.needs(1) ? b("matrix_product", adjoint(g[0]), g.dout()) : Sym()};
       },
       .saves = {bits({0, 1}), 0, true},
       .flags = kHidden | kBroadcast | kEpilogue,
       .onnx = {{"MatMul", 1}}});
  add({.name = "matmul",
       .args = "input: Tensor, other: Tensor",
       .doc = "Matrix product; vectors count as a row on the left and a column on the right, leading axes broadcast.",
       .compose = matmul_compose,
       .onnx = {{"MatMul", 1}}});
  add({.name = "dense",
       .args = "input: Tensor, weight: Tensor, bias: Tensor? = None",
       .doc = "input @ weight.T + bias: input [..., k], weight [n, k], bias [n] -> [..., n].",
       .axes = "... k, n k, n -> ... n",
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         const Sym dout = g.dout(), rows = as_rows(dout);
         return {g.needs(0) ? b("matmul", dout, g[1]) : Sym(),
                 g.needs(1) ? b("matrix_product", adjoint(rows), as_rows(g[0])) : Sym(),
                 g.needs(2) ? b("sum", rows, Ints{0}) : Sym()};
       },
       .saves = {bits({0, 1}), 0, true},
       .flags = kEpilogue,
       .int8 = "int8_dense",
       .onnx = {{"Gemm", 7,
                 "input, weight, bias; 0 <- transA = 0, 1 <- transB = 0, 1.0 <- alpha = 1.0, 1.0 <- beta = 1.0, "
                 "rank(input) == 2, rank(bias) == 1"}},
       .onnx_compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const Sym product = b("matmul", c[0], b("transpose", c[1], Ints{1, 0}));
         return {c.has("bias") ? product + c[2] : product};
       }});
  static const std::string int8_dense_args = cat("input: Tensor, weight: Tensor, bias: Tensor?", int8_results);
  add({.name = "int8_dense",
       .args = int8_dense_args,
       .doc = "input @ weight.T + bias of int8 (ops/quant.cc): weight [n, k] is quantised for each of its n rows.",
       .axes = "... [k], n [k], n, n, n -> ... n",
       .infer = [](const ArgView& c) -> Types {
         const Shape &x = c.shape(0), &w = c.shape(1);
         MOREL_CHECK(!x.empty() && w.size() == 2 && x.back() == w[1], Value, "For 'Int8Dense', axis k differs: input ",
                     to_string(type_of(c.value(0))), ", weight ", to_string(type_of(c.value(1))));
         Shape out = x;
         out.back() = w[0];
         return {Type{DType::Int8, out}};
       },
       .kernel = true,
       .flags = kHidden | kNoGrad});
  const auto transposing = [](const Call& c) -> Syms {
    Builder& b = c.builder();
    return {
        b("matmul", c.flag("transpose_a") ? transposed(c[0]) : c[0], c.flag("transpose_b") ? transposed(c[1]) : c[1])};
  };
  constexpr std::string_view transposing_args =
      "x: Tensor, y: Tensor, transpose_a: bool = False, transpose_b: bool = False";
  add({.name = "batch_matmul",
       .args = transposing_args,
       .doc = "Matrix products of a batch; each operand may be transposed.",
       .compose = transposing,
       .flags = kHidden});
  add({.name = "matmul_transposed",
       .args = transposing_args,
       .doc = "Matrix product; each operand may be transposed.",
       .compose = transposing,
       .flags = kHidden});
  add({.name = "bias_add",
       .args = "input_x: Tensor, bias: Tensor",
       .doc = "input_x [N, C, ...] plus bias [C] along axis 1.",
       .compose = [](const Call& c) -> Syms {
         check_rank(c, 1, 1);
         MOREL_CHECK(c.rank(0) >= 2 && c.shape(0)[1] == c.shape(1)[0], Value, "For 'BiasAdd', bias ",
                     to_string(c[1].type()), " does not fit axis 1 of ", to_string(c[0].type()));
         Ints shape(static_cast<size_t>(c.rank(0)), 1);
         shape[1] = c.shape(1)[0];
         return {c[0] + c.builder()("reshape", c[1], shape)};
       }});
  add({.name = "add_n",
       .args = "x: Tensor[]",
       .doc = "Sum of all tensors of a list.",
       .compose = [](const Call& c) -> Syms {
         const Value::List& list = c.value(0).list();
         MOREL_CHECK(!list.empty(), Value, "For 'AddN', the list of tensors is empty");
         Sym sum(c.builder(), list[0]);
         for (size_t i = 1; i < list.size(); ++i) sum = c.builder()("add", sum, list[i]);
         return {sum};
       }});
  add({.name = "mm",
       .args = "input: Tensor, mat2: Tensor",
       .doc = "Matrix product of two matrices.",
       .compose = [](const Call& c) -> Syms {
         check_rank(c, 0, 2);
         check_rank(c, 1, 2);
         return {c.builder()("matrix_product", c[0], c[1])};
       }});
  add({.name = "bmm",
       .args = "input: Tensor, mat2: Tensor",
       .doc = "Matrix products of a batch: [..., m, k] and [..., k, n] with equal leading axes.",
       .compose = [](const Call& c) -> Syms { return {c.builder()("matrix_product", c[0], c[1])}; }});
  add({.name = "mv",
       .args = "input: Tensor, vec: Tensor",
       .doc = "Product of a matrix [m, k] and a vector [k].",
       .compose = [](const Call& c) -> Syms {
         check_rank(c, 0, 2);
         check_rank(c, 1, 1);
         return {c.builder()("matmul", c[0], c[1])};
       }});
  add({.name = "dot",
       .args = "input: Tensor, other: Tensor",
       .doc = "Sum of the products of two vectors.",
       .compose = [](const Call& c) -> Syms {
         check_rank(c, 0, 1);
         check_rank(c, 1, 1);
         return {c.builder()("matmul", c[0], c[1])};
       }});
  add({.name = "outer",
       .args = "input: Tensor, vec2: Tensor",
       .doc = "Products of every pair of elements of two vectors.",
       .compose = [](const Call& c) -> Syms {
         check_rank(c, 0, 1);
         check_rank(c, 1, 1);
         Builder& b = c.builder();
         return {b("mul", b("expand_dims", c[0], 1), c[1])};
       }});
  add({.name = "addmm",
       .args = "input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: number = 1, alpha: number = 1",
       .doc = "beta * input + alpha * (mat1 @ mat2).",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const Sym product = b("mm", c[1], c[2]);
         const auto scaled = [&](const Sym& x, const Sym& factor) {
           return factor.value().complex() == 1.0 ? x : b("mul", x, factor);
         };
         return {b("add", scaled(c[0], c[3]), scaled(product, c[4]))};
       }});
  add({.name = "baddbmm",
       .args = "input: Tensor, batch1: Tensor, batch2: Tensor, beta: number = 1, alpha: number = 1",
       .doc = "beta * input + alpha * (batch1 @ batch2), for a batch of matrices.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         return {b("add", b("mul", c[0], c[3]), b("mul", b("bmm", c[1], c[2]), c[4]))};
       }});
}

}  // namespace morel
