// For graphs that outlive their network (files for devices, quantisation): captured tensors are constants. What depends
// on them alone is computed, and the scale and shift of channels behind a dense layer or convolution (a batch norm
// outside of training) go into its weight and bias, which rounds otherwise.
#pragma once

#include <vector>

#include "morel/transform/rewrite.h"

namespace morel {

void freeze(Graph& graph, Evaluator evaluate);

// Elements of a float32 tensor of any strides, in order.
std::vector<float> elements_of(const Tensor& tensor);

}  // namespace morel
