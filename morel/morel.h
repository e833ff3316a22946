// The whole C++ API in one header: tensors, operators, gradients, files.
//
//   morel::Var x = morel::Tensor::full({2, 3}, morel::DType::Float32, 1.0);
//   auto [loss, grads] = morel::value_and_grad([&] { return morel::ops("mean", x * w); }, {w});
#pragma once

#include "morel/data/idx.h"
#include "morel/io/ckpt.h"
#include "morel/io/safetensors.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/tape.h"
#include "morel/tensor/generator.h"

namespace morel {

// A tensor with arithmetic: operators run at once.
using Var = Sym;
inline Var var(const Tensor& tensor) { return Sym(EagerBuilder::instance(), tensor); }

// ops("matmul", x, y): any operator by name. An operator with several results gives a list: result.item(0).
template <class... Args>
Var ops(OpName name, const Args&... args) {
  return EagerBuilder::instance()(name, args...);
}

struct ValueAndGrad {
  Tensor value;
  std::vector<Tensor> gradients;
};

// Runs fn, which returns a Var, and differentiates the sum of its elements at `parameters`. Gradients are zeros where
// the value does not depend on a parameter.
template <class F>
ValueAndGrad value_and_grad(F&& fn, std::span<const Tensor> parameters) {
  const GradScope scope;
  const LeafScope leaves(parameters);
  const Var result = fn();
  ValueAndGrad out{result.value().tensor(), {}};
  const GradDepth outer(grad_depth() - 1);
  const Value seed;
  const Values gradients = backward({&out.value, 1}, {&seed, 1}, parameters, false);
  for (size_t i = 0; i < parameters.size(); ++i)
    out.gradients.push_back(gradients[i].is_none() ? Tensor::full(parameters[i].shape(), parameters[i].dtype(), 0)
                                                   : gradients[i].tensor());
  return out;
}

}  // namespace morel
