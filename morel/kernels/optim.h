// Optimiser updates of many tensors in one call: all of them are cut into tasks of the same size, so a model of many
// small tensors costs what one large tensor does. Each element's result depends on that element alone.
#pragma once

#include <cstdint>
#include <span>

#include "morel/tensor/dtype.h"

namespace morel::kernels {

// One dense parameter with its gradient and optimiser states; parameter and gradient have OptimTypes::dtype, states
// have state_dtype. Which states an update needs is said at its options.
struct OptimTensor {
  void* parameter;
  const void* grad;
  void* states[3];
  int64_t size;
};
// Supported: float32, float64 with states alike; half types with states alike or in float32. Halves compute in float32.
struct OptimTypes {
  DType dtype = DType::Float32;
  DType state_dtype = DType::Float32;
};

// g = grad + weight_decay * p; v = momentum * v + (1 - dampening) * g (v = g at the first step); then p -=
// learning_rate * v, or with nesterov p -= learning_rate * (g + momentum * v). Without momentum p -= learning_rate * g
// and no state is touched.
struct Sgd {
  double learning_rate;
  double momentum = 0;  // states[0]
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool is_first_step = false;
  bool maximize = false;  // g = -grad
};
void sgd(std::span<const OptimTensor> tensors, OptimTypes types, const Sgd& options);

// g = grad + l2 * p; m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2; with amsgrad v' = max(v', v)
// stands for v; p = keep * p - step_size * u / (sqrt(v) * v_scale + epsilon), where u = m, or beta1 * m + (1 - beta1) *
// g with nesterov.
struct Adam {
  double beta1 = 0.9;    // states[0]: m
  double beta2 = 0.999;  // states[1]: v
  double epsilon = 1e-8;
  double l2 = 0;
  double keep = 1;
  double step_size = 1e-3;
  double v_scale = 1;
  bool amsgrad = false;  // states[2]: the largest v
  bool nesterov = false;
  bool maximize = false;
};
// The factors of the three published forms; step counts from 1.
// nn.Adam of MindSpore: learning_rate * sqrt(1 - beta2^step) / (1 - beta1^step), epsilon beside the plain sqrt(v) (D.
// Kingma, J. Ba, 2015, end of section 2).
Adam adam_factored(double learning_rate, double beta1, double beta2, double epsilon, double weight_decay, int64_t step);
// torch.optim.Adam, mint.optim.Adam(W): epsilon beside the bias-corrected sqrt(v). is_decoupled: weight decay acts on
// the parameter (I. Loshchilov, F. Hutter, 2019), otherwise on the gradient.
Adam adam_corrected(double learning_rate, double beta1, double beta2, double epsilon, double weight_decay,
                    bool is_decoupled, int64_t step);
// nn.AdamWeightDecay: decoupled, without bias correction.
Adam adam_uncorrected(double learning_rate, double beta1, double beta2, double epsilon, double weight_decay);
void adam(std::span<const OptimTensor> tensors, OptimTypes types, const Adam& options);

// s = decay * s + (1 - decay) * g^2 (states[0]); centered: a = decay * a + (1 - decay) * g (states[2]) and s - a^2
// stands for s; q = g / (sqrt(s) + epsilon), or g / sqrt(s + epsilon); with momentum b = momentum * b + q (states[1])
// and p -= learning_rate * b, or b = momentum * b + learning_rate * q and p -= b.
struct RmsProp {
  double learning_rate;
  double decay = 0.9;
  double momentum = 0;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool centered = false;
  bool epsilon_in_root = false;
  bool rate_in_momentum = false;
};
void rmsprop(std::span<const OptimTensor> tensors, OptimTypes types, const RmsProp& options);

// s += g^2 (states[0]); p -= learning_rate * g / (sqrt(s) + epsilon)
struct Adagrad {
  double learning_rate;
  double epsilon = 0;
  double weight_decay = 0;
  bool update_sum = true;
};
void adagrad(std::span<const OptimTensor> tensors, OptimTypes types, const Adagrad& options);

// Adam whose step is scaled per tensor by |p| / |u|, u = m' / (sqrt(v') + epsilon) + weight_decay * p with
// bias-corrected m', v' (Y. You et al., "Large batch optimization for deep learning", 2020, algorithm 2). states: m, v,
// and room for u.
struct Lamb {
  double learning_rate;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0;
  int64_t step = 1;
};
void lamb(std::span<const OptimTensor> tensors, OptimTypes types, const Lamb& options);

// ---- over all gradients of a model --------------------------------------------------------------
struct DenseArray {
  void* data;
  DType dtype;  // a float dtype
  int64_t size;
};
// Sum of the squares of all elements: blocks in the compute type, their sums in double, in order.
double sum_of_squares(std::span<const DenseArray> arrays);
// x = x * factor
void scale_in_place(std::span<const DenseArray> arrays, double factor);
// No infinity and no NaN among them.
bool all_finite(std::span<const DenseArray> arrays);

}  // namespace morel::kernels
