// Scaled dot-product attention.
#include <cmath>

#include "morel/ops/registry.h"

namespace morel {
namespace {

// query [B, H, S, D], key [B, G, T, D], value [B, G, T, E]; H is a multiple of G.
void check_attention(const ArgView& c) {
  const Shape &q = c.shape(0), &k = c.shape(1), &v = c.shape(2);
  const bool fits = q.size() == 4 && k.size() == 4 && v.size() == 4 && q[0] == k[0] && k[0] == v[0] && k[1] == v[1] &&
                    k[2] == v[2] && q[3] == k[3] && k[1] > 0 && q[1] % k[1] == 0;
  MOREL_CHECK(fits, Value, "For '", display_name(c.op()),
              "', query [B, H, S, D], key [B, G, T, D] and value [B, G, T, E] do not fit: ", to_string(q), ", ",
              to_string(k), ", ", to_string(v));
  for (size_t i = 1; i < 3; ++i)
    MOREL_CHECK(c.tensor_dtype(i) == c.tensor_dtype(0), Type, "For '", display_name(c.op()),
                "', query, key and value must have one dtype, but got ", to_string(type_of(c.value(0))), ", ",
                to_string(type_of(c.value(1))), ", ", to_string(type_of(c.value(2))));
  const Value& mask = c.value("attn_mask");
  if (!mask.is_none()) broadcast_shapes(c.op(), {q[0], q[1], q[2], k[2]}, shape_of(mask));
}

// Keys and values once for every query head.
Sym expand_heads(const Sym& x, Dim heads) {
  const Dim groups = x.dim(1);
  if (groups == heads) return x;
  Builder& b = x.builder();
  const Ints wide{x.dim(0), groups, heads / groups, x.dim(2), x.dim(3)};
  return b("reshape", b("broadcast_to", b("expand_dims", x, 2), wide), Ints{x.dim(0), heads, x.dim(2), x.dim(3)});
}
Sym sum_heads(const Sym& x, Dim groups) {
  if (x.dim(1) == groups) return x;
  Builder& b = x.builder();
  return b("sum", b("reshape", x, Ints{x.dim(0), groups, x.dim(1) / groups, x.dim(2), x.dim(3)}), Ints{2});
}

Sym swap_last(const Sym& x) { return x.builder()("swapaxes", x, -1, -2); }

// Probabilities [B, H, S, T].
Sym probabilities(const Call& c, const Sym& key) {
  Builder& b = c.builder();
  Sym scores = b("matrix_product", c["query"], swap_last(key)) * c.number("scale");
  const double lowest = -std::numeric_limits<double>::infinity();
  if (c.has("attn_mask")) {
    const Sym mask = c["attn_mask"];
    scores = mask.dtype() == DType::Bool ? b("where", mask, scores, lowest) : scores + mask;
  }
  if (c.flag("is_causal")) {
    const Sym allowed = b("tril", b("ones", Ints{scores.dim(-2), scores.dim(-1)}, DType::Bool), 0);
    scores = b("where", allowed, scores, lowest);
  }
  return b("softmax", scores, -1);
}

Syms attention_grad_compose(const Call& c) {
  Builder& b = c.builder();
  const Dim heads = c.shape(0)[1], groups = c.shape(1)[1];
  const Sym key = expand_heads(c["key"], heads), value = expand_heads(c["value"], heads), dout = c["dout"];
  const Sym p = probabilities(c, key);
  const Sym dp = b("matrix_product", dout, swap_last(value));
  const Sym ds = p * (dp - b("sum", dp * p, Ints{-1}, true)) * c.number("scale");
  return {b("matrix_product", ds, key), sum_heads(b("matrix_product", swap_last(ds), c["query"]), groups),
          sum_heads(b("matrix_product", swap_last(p), dout), groups)};
}

}  // namespace

void register_attention(Registry& registry) {
  Family add(registry, "attention");
  add({.name = "attention",
       .args = "query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor?, scale: float, is_causal: bool",
       .doc = "softmax(query @ key^T * scale + mask) @ value and the logsumexp of each row of scores (float32).",
       .axes = "b h [l] [d], b h [s] [d], b h [s] [e], b h [l] [s] -> b h [l] [e], b h [l]",
       .infer = [](const ArgView& c) -> Types {
         check_attention(c);
         const Shape& q = c.shape(0);
         return {Type{c.tensor_dtype(0), {q[0], q[1], q[2], c.shape(2)[3]}}, Type{DType::Float32, {q[0], q[1], q[2]}}};
       },
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         const Sym grads =
             g.builder()("attention_grad", g[0], g[1], g[2], g[3], g[4], g[5], g.out(0), g.out(1), g.dout());
         return {grads.item(0), grads.item(1), grads.item(2)};
       },
       .saves = {bits({0, 1, 2, 3}), bits({0, 1})},
       .flags = kHidden,
       .dtypes = floats,
       .onnx_compose = [](const Call& c) -> Syms {
         const Dim heads = c.shape(0)[1];
         const Sym p = probabilities(c, expand_heads(c["key"], heads));
         return {c.builder()("matrix_product", p, expand_heads(c["value"], heads)), Sym()};
       }});
  add({.name = "attention_grad",
       .args = "query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor?, scale: float, is_causal: bool, out: "
               "Tensor, logsumexp: Tensor, "
               "dout: Tensor",
       .doc = "Gradients of attention at query, key and value.",
       .axes = "b h [l] [d], b h [s] [d], b h [s] [e], b h [l] [s], b h [l] [e], b h [l], b h [l] [e] -> b h [l] [d], "
               "b h [s] [d], b h [s] [e]",
       .infer = [](const ArgView& c) -> Types {
         return {type_of(c.value(0)), type_of(c.value(1)), type_of(c.value(2))};
       },
       .compose = attention_grad_compose,
       .kernel = true,
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "scaled_dot_product_attention",
       .args = "query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor? = None, dropout_p: float = 0.0, "
               "is_causal: bool = False, *, "
               "scale: float? = None, enable_gqa: bool = False, rng: rng",
       .doc = "softmax(query @ key^T * scale + attn_mask) @ value. query [..., H, S, D], key [..., G, T, D], value "
              "[..., G, T, E]; attn_mask "
              "is boolean (True: seen) or added to the scores; scale is 1 / sqrt(D) by default.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         Sym q = c[0], k = c[1], v = c[2], mask = c[3];
         MOREL_CHECK(q.rank() >= 2 && k.rank() == q.rank() && v.rank() == q.rank(), Value,
                     "For 'ScaledDotProductAttention', query, key and value must have the same number (at least 2) of "
                     "dimensions");
         MOREL_CHECK(!mask || !c.flag("is_causal"), Value,
                     "For 'ScaledDotProductAttention', 'attn_mask' and 'is_causal' exclude each other");
         const Shape lead(q.shape().begin(), q.shape().end() - 2);
         const auto as_four = [&](const Sym& x) {
           if (x.rank() == 4) return x;
           const bool heads = x.rank() > 2;
           return b("reshape", x, Ints{-1, heads ? x.dim(-3) : Dim(1), x.dim(-2), x.dim(-1)});
         };
         const int64_t rank = q.rank();
         q = as_four(q), k = as_four(k), v = as_four(v);
         MOREL_CHECK(c.flag("enable_gqa") || q.dim(1) == k.dim(1), Value, "For 'ScaledDotProductAttention', query has ",
                     q.dim(1), " heads and key ", k.dim(1), "; set enable_gqa to share key heads among query heads");
         const double scale = c.has("scale") ? c.number("scale") : 1.0 / std::sqrt(static_cast<double>(q.dim(-1)));
         Sym out;
         // The fused kernel computes in float32 and drops nothing.
         if (c.number("dropout_p") > 0 || q.dtype() == DType::Float64) {
           const Value args[] = {q.value(), k.value(), v.value(), mask.value(), scale, c.value("is_causal")};
           Sym p = probabilities(Call(b, find_op("attention"), args), expand_heads(k, q.dim(1)));
           if (c.number("dropout_p") > 0) p = b("dropout", p, c["dropout_p"], true, c["rng"]);
           out = b("matrix_product", p, expand_heads(v, q.dim(1)));
         } else {
           out = b("attention", q, k, v, mask, scale, c["is_causal"]).item(0);
         }
         if (rank == 4) return {out};
         Ints shape(lead);
         shape.push_back(out.dim(-2));
         shape.push_back(out.dim(-1));
         return {b("reshape", out, shape)};
       },
       .flags = kRandom});
}

}  // namespace morel
