// Import rules: attention, and what comes with it in models of language.
#include <cmath>

#include "morel/io/onnx/import_rules.h"

namespace morel::onnx {
namespace {

constexpr double lowest = -std::numeric_limits<double>::infinity();

// [B, S, heads * D] as [B, heads, S, D], and back.
Sym split_heads(const Sym& x, Dim heads) {
  Builder& b = x.builder();
  MOREL_CHECK(heads >= 1 && x.rank() == 3, Value, "an operand of ", x.rank(), " axes has no ", to_string(heads),
              " heads");
  return b("transpose", b("reshape", x, Ints{x.dim(0), x.dim(1), heads, x.dim(2) / heads}), Ints{0, 2, 1, 3});
}
Sym join_heads(const Sym& x) {
  Builder& b = x.builder();
  return b("reshape", b("transpose", x, Ints{0, 2, 1, 3}), Ints{x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

// What keys a query sees: bool, or numbers that are added to the scores; null: all of them.
class Mask {
 public:
  Mask(const NodeCall& c, Dim queries, Dim keys, Dim past) : c_(c), b_(c.b), queries_(queries), keys_(keys) {
    if (c.has(3)) mask_ = padded(c[3]);
    const bool is_causal = c.attribute("is_causal", 0);
    const int64_t left = c.attribute("left_window_size", -1), right = c.attribute("right_window_size", -1);
    if (is_causal || left >= 0 || right >= 0) {
      const Sym passed = distance(past);
      if (is_causal) see(b_("greater_equal", passed, 0));
      if (left >= 0) see(b_("less_equal", passed, left));
      if (right >= 0) see(b_("greater_equal", passed, -right));
    }
    if (c.has(6)) see(b_("less", places(b_, keys, {keys}), b_("reshape", c[6], Ints{-1, 1, 1, 1})));
  }
  const Sym& value() const { return mask_; }
  // Scores of keys that are not seen become -inf.
  Sym applied(const Sym& scores) const {
    if (!mask_) return scores;
    return mask_.dtype() == DType::Bool ? b_("where", mask_, scores, lowest) : scores + mask_;
  }
  // 0 in rows without any key.
  Sym guarded(const Sym& rows) const {
    if (!mask_) return rows;
    const Sym seen = mask_.dtype() == DType::Bool ? mask_ : b_("greater", mask_, lowest);
    return b_("where", b_("any", seen, Ints{-1}, true), rows, 0.0);
  }

 private:
  // A mask for fewer keys hides the others.
  Sym padded(const Sym& mask) const {
    const Dim missing = keys_ - mask.dim(-1);
    if (missing.identical(0)) return mask;
    Ints before(static_cast<size_t>(mask.rank()), 0), after = before;
    after.back() = missing;
    return b_("pad_axes", mask, before, after, "constant", mask.dtype() == DType::Bool ? Value(0) : Value(lowest));
  }
  // How many places before its query a key is [S, T], or [B, 1, S, T] where lengths differ.
  Sym distance(Dim past) const {
    Sym queries = places(b_, queries_, {queries_, 1});
    queries = c_.has(6) ? queries + (b_("reshape", c_[6], Ints{-1, 1, 1, 1}) - queries_) : queries + past;
    return queries - places(b_, keys_, {keys_});
  }
  void see(const Sym& seen) {
    if (!mask_) mask_ = seen;
    else if (mask_.dtype() == DType::Bool) mask_ = b_("logical_and", mask_, seen);
    else mask_ = b_("where", seen, mask_, lowest);
  }

  const NodeCall& c_;
  Builder& b_;
  Dim queries_, keys_;
  Sym mask_;
};

// Keys, or values, once for every head of the queries.
Sym shared_heads(const Sym& x, Dim heads) {
  if (x.dim(1).identical(heads)) return x;
  Builder& b = x.builder();
  const Ints wide{x.dim(0), x.dim(1), heads / x.dim(1), x.dim(2), x.dim(3)};
  return b("reshape", b("broadcast_to", b("expand_dims", x, 2), wide), Ints{x.dim(0), heads, x.dim(2), x.dim(3)});
}

struct Attended {
  Sym out, scores;
};
// With the scores as a result, or limited: step by step.
std::optional<Attended> attend_in_steps(const NodeCall& c, const Sym& q, const Sym& k, const Sym& v, const Mask& mask,
                                        double scale) {
  Builder& b = c.b;
  const double root = std::sqrt(scale), softcap = c.real("softcap", 0.0);
  const std::optional<DType> precision =
      c.attribute("softmax_precision", 0) ? dtype_of_code(c.attribute("softmax_precision", 0)) : q.dtype();
  if (!precision) return {};
  const Sym raw = b("matmul", q * root, b("transpose", shared_heads(k, q.dim(1)) * root, Ints{0, 1, 3, 2}));
  const Sym capped = softcap == 0 ? raw : b("tanh", raw / softcap) * softcap;
  const Sym masked = mask.applied(capped);
  const Sym p = b("cast", mask.guarded(b("softmax", b("cast", masked, *precision), -1)), q.dtype());
  const Sym stages[] = {raw, capped, masked, p};
  const int64_t stage = c.attribute("qk_matmul_output_mode", 0);
  if (stage < 0 || stage > 3) return {};
  return Attended{b("matmul", p, shared_heads(v, q.dim(1))), stages[stage]};
}

Result attention(const NodeCall& c) {
  Builder& b = c.b;
  const bool is_flat = c[0].rank() == 3;
  for (const size_t idx : {0, 1, 2})
    if (c[idx].rank() != (is_flat ? 3 : 4)) return {};
  const auto operand = [&](size_t idx, const char* heads) {
    return is_flat ? split_heads(c[idx], c.attribute(heads, 1)) : c[idx];
  };
  const Sym q = operand(0, "q_num_heads");
  Sym k = operand(1, "kv_num_heads"), v = operand(2, "kv_num_heads");
  if (c.has(4) && c[4].rank() != 4) return {};
  const Dim past = c.has(4) ? c[4].dim(2) : Dim(0);
  if (c.has(4)) k = b("concat", Syms{c[4], k}, 2);
  if (c.has(5)) v = b("concat", Syms{c[5], v}, 2);
  const double given = c.real("scale", 0.0);
  const double scale = given != 0 ? given : 1.0 / std::sqrt(static_cast<double>(q.dim(3)));
  Attended result;
  if (c.has_output(3) || c.real("softcap", 0.0) != 0 || q.dtype() == DType::Float64 ||
      c.attribute("softmax_precision", 0) == type_code(DType::Float64)) {
    const std::optional<Attended> steps = attend_in_steps(c, q, k, v, Mask(c, q.dim(2), k.dim(2), past), scale);
    if (!steps) return {};
    result = *steps;
  } else {
    const bool is_plain_causal = c.attribute("is_causal", 0) && !c.has(3) && !c.has(4) && !c.has(6) &&
                                 c.attribute("left_window_size", -1) < 0 && c.attribute("right_window_size", -1) < 0;
    if (is_plain_causal) {
      result.out = b("attention", q, k, v, Sym(), scale, true).item(0);
    } else {
      const Mask mask(c, q.dim(2), k.dim(2), past);
      result.out = mask.guarded(b("attention", q, k, v, mask.value(), scale, false).item(0));
    }
  }
  if (is_flat) result.out = join_heads(result.out);
  return results_of(result.out, k, v, result.scores);
}

Result rotary_embedding(const NodeCall& c) {
  Builder& b = c.b;
  const bool is_flat = c[0].rank() == 3;
  if (is_flat ? !c.node().find("num_heads") : c[0].rank() != 4) return {};
  const Sym x = is_flat ? split_heads(c[0], c.attribute("num_heads", 1)) : c[0];
  const int64_t all = x.dim(3),
                turned = c.attribute("rotary_embedding_dim", 0) ? c.attribute("rotary_embedding_dim", 0) : all;
  const int64_t half = turned / 2;
  const bool is_interleaved = c.attribute("interleaved", 0);
  const auto table = [&](size_t idx) {
    return b("expand_dims", c.has(3) ? b("take_axis", c[idx], c[3], 0) : c[idx], 1);
  };
  const auto part = [&](int64_t which) {
    if (!is_interleaved) return b("narrow", x, 3, which * half, half);
    return b("slice_axes", x, Ints{which}, Ints{turned}, Ints{3}, Ints{2});
  };
  const Sym cos = table(1), sin = table(2), first = part(0), second = part(1);
  const Sym real = cos * first - sin * second, imaginary = sin * first + cos * second;
  Ints shape(x.shape());
  shape.back() = turned;
  Sym out = is_interleaved ? b("reshape", b("stack", Syms{real, imaginary}, -1), shape)
                           : b("concat", Syms{real, imaginary}, 3);
  if (turned < all) out = b("concat", Syms{out, b("narrow", x, 3, turned, all - turned)}, 3);
  return results_of(is_flat ? join_heads(out) : out);
}

// A cache with new entries from a place on that each example has.
Result tensor_scatter(const NodeCall& c) {
  Builder& b = c.b;
  const Sym cache = c[0], update = c[1];
  if (update.rank() != cache.rank()) return {};
  const int64_t axis = axis_of(c.attribute("axis", -2), cache.rank());
  Ints line(static_cast<size_t>(cache.rank()), 1), column = line;
  line[static_cast<size_t>(axis)] = update.dim(axis);
  column[0] = cache.dim(0);
  Sym at = places(b, update.dim(axis), line);
  if (c.has(2)) at = at + b("reshape", c[2], column);
  if (c.text("mode", "linear") == "circular") at = b("floor_mod", at, cache.dim(axis));
  return results_of(b("scatter_elements", cache, axis, b("broadcast_to", at, Ints(update.shape())), update));
}

// A state [B, G, K, V] that each position reads after it has written to it.
Result linear_attention(const NodeCall& c) {
  Builder& b = c.b;
  const Dim heads = c.attribute("q_num_heads", 1), groups = c.attribute("kv_num_heads", 1);
  const std::string rule = c.text("update_rule", "gated_delta");
  const bool is_gated = rule.starts_with("gated"), is_delta = rule.ends_with("delta");
  if (c[0].rank() != 3) return {};
  const int64_t turns = c[0].dim(1);
  if (turns > most_turns || turns == 0) return {};
  if ((is_gated && !c.has(4)) || (is_delta && !c.has(5))) return {};
  const auto wide = [&](size_t idx, Dim count) { return split_heads(b("cast", c[idx], DType::Float32), count); };
  const Sym q = wide(0, heads), k = wide(1, groups), v = wide(2, groups);
  const Sym decay = is_gated ? b("exp", wide(4, groups)) : Sym();
  const Sym rate = is_delta ? wide(5, c[5].dim(2)) : Sym();
  Sym state = c.has(3) ? b("cast", c[3], DType::Float32)
                       : b("zeros", Ints{q.dim(0), groups, k.dim(3), v.dim(3)}, DType::Float32);
  const double given = c.real("scale", 0.0);
  const double scale = given != 0 ? given : 1.0 / std::sqrt(static_cast<double>(q.dim(3)));
  Syms rows;
  for (int64_t turn = 0; turn < turns; ++turn) {
    const auto now = [&](const Sym& x) { return b("narrow", x, 2, turn, 1); };
    const Sym key = now(k), column = b("transpose", key, Ints{0, 1, 3, 2});
    Sym value = now(v);
    if (is_gated) state = state * b("transpose", now(decay), Ints{0, 1, 3, 2});
    if (is_delta) value = now(rate) * (value - b("matmul", key, state));
    state = state + column * value;
    const Sym query = b("reshape", now(q), Ints{q.dim(0), groups, heads / groups, q.dim(3)});
    rows.push_back(b("reshape", b("matmul", query, state), Ints{q.dim(0), heads, 1, v.dim(3)}) * scale);
  }
  return results_of(b("cast", join_heads(b("concat", rows, 2)), c[0].dtype()),
                    b("cast", state, (c.has(3) ? c[3] : c[0]).dtype()));
}

constexpr ImportEntry entries[] = {{"Attention", attention, 3},
                                   {"RotaryEmbedding", rotary_embedding, 3},
                                   {"TensorScatter", tensor_scatter, 2},
                                   {"LinearAttention", linear_attention, 3}};

}  // namespace

std::span<const ImportEntry> attention_rules() { return entries; }

}  // namespace morel::onnx
