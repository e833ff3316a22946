// Random numbers: functions of (seed, offset, element), so that a call can be repeated by repeating its `rng` argument.
#include "morel/ops/registry.h"

namespace morel {
namespace {

Types sized(const ArgView& c) {
  for (const Dim dim : c.ints("size"))
    MOREL_CHECK(dim >= 0, Value, "For '", display_name(c.op()), "', sizes must not be negative, but got ",
                to_string(c.value("size")));
  return {Type{c.dtype_or("dtype", DType::Float32), Shape(c.ints("size"))}};
}

void check_probability(const ArgView& c, double p) {
  MOREL_CHECK(p >= 0 && p <= 1, Value, "For '", display_name(c.op()), "', 'p' must be in [0, 1], but got ", p);
}

Types rng_type(const ArgView&) { return {{DType::Int64, Shape{2}}}; }

}  // namespace

void register_random(Registry& registry) {
  Family add(registry, "random");
  add({.name = "next_rng",
       .args = "",
       .doc =
           "Seed and offset of the default generator for one call, int64[2]; moves the generator on. Graphs draw their "
           "random numbers through it.",
       .infer = rng_type,
       .kernel = true,
       .flags = kNoGrad | kRandom | kEffect | kHidden,
       .dtypes = set_of({DType::Int64})});
  add({.name = "rng_state",
       .args = "",
       .doc = "Seed and offset of the default generator, int64[2].",
       .infer = rng_type,
       .kernel = true,
       .flags = kNoGrad | kRandom | kHidden,
       .dtypes = set_of({DType::Int64})});
  add({.name = "exchange_rng",
       .args = "state: Tensor",
       .doc = "Sets seed and offset of the default generator; what they were before.",
       .infer = rng_type,
       .kernel = true,
       .flags = kNoGrad | kRandom | kEffect | kHidden,
       .dtypes = set_of({DType::Int64})});
  add({.name = "random_uniform",
       .args = "size: shape, low: float = 0.0, high: float = 1.0, dtype: dtype? = None, rng: rng",
       .doc = "Uniform numbers in [low, high).",
       .infer = sized,
       .kernel = true,
       .flags = kNoGrad | kRandom | kHidden,
       .dtypes = floats});
  add({.name = "random_normal",
       .args = "size: shape, mean: float = 0.0, std: float = 1.0, dtype: dtype? = None, rng: rng",
       .doc = "Normal numbers of the given mean and standard deviation.",
       .infer = sized,
       .kernel = true,
       .flags = kNoGrad | kRandom | kHidden,
       .dtypes = floats});
  add({.name = "random_truncated_normal",
       .args = "size: shape, mean: float = 0.0, std: float = 1.0, low: float = -2.0, high: float = 2.0, dtype: dtype? "
               "= None, rng: rng",
       .doc = "Normal numbers limited to [low, high] by drawing from the part of the distribution in it.",
       .infer = sized,
       .kernel = true,
       .flags = kNoGrad | kRandom | kHidden,
       .dtypes = floats});
  add({.name = "random_integers",
       .args = "size: shape, low: int, high: int, dtype: dtype? = Int64, rng: rng",
       .doc = "Uniform integers in [low, high).",
       .infer = [](const ArgView& c) -> Types {
         MOREL_CHECK(c.integer("low") < c.integer("high"), Value,
                     "For 'Randint', 'low' must be less than 'high', but got ", c.integer("low"), " and ",
                     c.integer("high"));
         return sized(c);
       },
       .kernel = true,
       .flags = kNoGrad | kRandom | kHidden});
  add({.name = "random_permutation",
       .args = "n: int, dtype: dtype? = Int64, rng: rng",
       .doc = "A permutation of 0 ... n - 1.",
       .infer = [](const ArgView& c) -> Types {
         MOREL_CHECK(c.integer("n") >= 0, Value, "For 'Randperm', 'n' must not be negative, but got ", c.integer("n"));
         return {Type{c.dtype_or("dtype", DType::Int64), Shape{c.integer("n")}}};
       },
       .kernel = true,
       .flags = kNoGrad | kRandom | kHidden});
  add({.name = "random_bernoulli",
       .args = "p: Tensor, rng: rng",
       .doc = "1 with the probability of each element, else 0.",
       .axes = "... -> ...",
       .infer = infer_like_first,
       .kernel = true,
       .flags = kNoGrad | kRandom | kHidden,
       .dtypes = floats});
  add({.name = "dropout_mask",
       .args = "input: Tensor, p: float, rng: rng",
       .doc = "input / (1 - p) with the probability 1 - p, else 0. The same rng gives the same mask, so the gradient "
              "draws it again.",
       .axes = "... -> ...",
       .infer = infer_like_first,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms { return {g.builder()("dropout_mask", g.dout(), g[1], g[2])}; },
       .flags = kRandom | kHidden,
       .dtypes = floats});
  add({.name = "dropout",
       .args = "input: Tensor, p: float = 0.5, training: bool = True, rng: rng",
       .doc = "In training, zeroes elements with probability p and scales the others by 1 / (1 - p).",
       .compose = [](const Call& c) -> Syms {
         check_probability(c, c.number("p"));
         if (!c.flag("training") || c.number("p") == 0) return {c[0]};
         return {c.builder()("dropout_mask", c[0], c[1], c[3])};
       },
       .flags = kRandom});
}

}  // namespace morel
