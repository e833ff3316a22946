// Optimiser updates over lists of tensors, in place: one call per parameter group.
#include "morel/ops/registry.h"

namespace morel {
namespace {

Types no_result(const ArgView&) { return {}; }

void check_lists(const ArgView& c) {
  const size_t count = c.value(0).list().size();
  for (size_t i = 1; i < c.args().size(); ++i) {
    if (!c.value(i).is_list() || c.value(i).list().empty()) continue;
    MOREL_CHECK(c.value(i).list().size() == count, Value, "For '", display_name(c.op()), "', '",
                c.op().schema.args[i].name, "' has ", c.value(i).list().size(), " tensors for ", count, " parameters");
    for (size_t k = 0; k < count; ++k)
      MOREL_CHECK(shape_of(c.value(i).list()[k]) == shape_of(c.value(0).list()[k]), Value, "For '",
                  display_name(c.op()), "', '", c.op().schema.args[i].name, "' ", k, " is ",
                  to_string(type_of(c.value(i).list()[k])), " but the parameter is ",
                  to_string(type_of(c.value(0).list()[k])));
  }
}

Types checked(const ArgView& c) {
  check_lists(c);
  return {};
}

}  // namespace

void register_optim(Registry& registry) {
  Family add(registry, "optim");
  constexpr uint32_t flags = kNoGrad | kEffect | kHidden;
  add({.name = "sgd_",
       .args = "params: Tensor[], grads: Tensor[], momenta: Tensor[], learning_rate: float, momentum: float = 0.0, "
               "dampening: float = 0.0, "
               "weight_decay: float = 0.0, nesterov: bool = False, is_first_step: bool = False, maximize: bool = False",
       .doc = "Stochastic gradient descent: v = momentum * v + (1 - dampening) * g, p -= learning_rate * v.",
       .axes = "..., ..., ... ->",
       .infer = checked,
       .kernel = true,
       .flags = flags | kItemwise,
       .dtypes = floats});
  add({.name = "adam_",
       .args =
           "params: Tensor[], grads: Tensor[], m: Tensor[], v: Tensor[], max_v: Tensor[], beta1: float, beta2: float, "
           "epsilon: float, "
           "l2: float, keep: float, step_size: float, v_scale: float, nesterov: bool = False, maximize: bool = False",
       .doc = "All forms of Adam: g = grad + l2 * p, moments m and v of g, p = keep * p - step_size * m / (sqrt(v) * "
              "v_scale + epsilon). "
              "max_v may be empty; otherwise it holds the largest v so far, which stands for v.",
       .axes = "..., ..., ..., ..., ... ->",
       .infer = checked,
       .kernel = true,
       .flags = flags | kItemwise,
       .dtypes = floats});
  add({.name = "rmsprop_",
       .args = "params: Tensor[], grads: Tensor[], mean_square: Tensor[], momenta: Tensor[], mean_grad: Tensor[], "
               "learning_rate: float, "
               "decay: float, momentum: float, epsilon: float, weight_decay: float = 0.0, centered: bool = False, "
               "epsilon_in_root: bool = False, "
               "rate_in_momentum: bool = False",
       .doc = "RMSProp; mean_grad is empty unless centered.",
       .axes = "..., ..., ..., ..., ... ->",
       .infer = checked,
       .kernel = true,
       .flags = flags | kItemwise,
       .dtypes = floats});
  add({.name = "adagrad_",
       .args = "params: Tensor[], grads: Tensor[], sums: Tensor[], learning_rate: float, epsilon: float = 0.0, "
               "weight_decay: float = 0.0, "
               "update_sum: bool = True",
       .doc = "Adagrad: s += g^2, p -= learning_rate * g / (sqrt(s) + epsilon).",
       .axes = "..., ..., ... ->",
       .infer = checked,
       .kernel = true,
       .flags = flags | kItemwise,
       .dtypes = floats});
  add({.name = "lamb_",
       .args = "params: Tensor[], grads: Tensor[], m: Tensor[], v: Tensor[], learning_rate: float, beta1: float, "
               "beta2: float, epsilon: float, "
               "weight_decay: float, step: int",
       .doc = "LAMB: Adam with a trust ratio per tensor.",
       .infer = checked,
       .kernel = true,
       .flags = flags | kItemwise,
       .dtypes = floats});
  add({.name = "sum_of_squares",
       .args = "tensors: Tensor[]",
       .doc = "Sum of the squares of all elements of all tensors: float32 scalar.",
       .infer = [](const ArgView&) -> Types {
         return {Type{DType::Float32, {}}};
       },
       .kernel = true,
       .flags = kNoGrad | kHidden,
       .dtypes = floats});
  add({.name = "scale_",
       .args = "tensors: Tensor[], factor: float",
       .doc = "Multiplies all tensors by factor, in place.",
       .axes = "... ->",
       .infer = no_result,
       .kernel = true,
       .flags = flags | kItemwise,
       .dtypes = floats});
  add({.name = "all_finite",
       .args = "tensors: Tensor[]",
       .doc = "Whether no element of any tensor is infinite or NaN: bool scalar.",
       .infer = [](const ArgView&) -> Types {
         return {Type{DType::Bool, {}}};
       },
       .kernel = true,
       .flags = kNoGrad | kHidden,
       .dtypes = floats});
}

}  // namespace morel
