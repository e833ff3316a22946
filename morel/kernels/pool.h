// Pooling over images [N, C, H, W] with free strides for N, C, H, W (so channels-last works as it lies), and its gradients.
#pragma once

#include <cstdint>

#include "morel/kernels/copy.h"

namespace morel::kernels {

struct PoolWindow {
  int64_t kernel[2];
  int64_t stride[2];
  int64_t before[2];  // padding above and left; behind it follows from the output's size
  int64_t dilation[2] = {1, 1};
};

// out: the largest element of each window (NaN wins), indices: its flat position in the image, h * W + w (Int32 or Int64; may have no
// data). Padding never wins. Float32, Float64 and halves.
void max_pool2d(const View& out, const View& indices, const ConstView& input, const PoolWindow& window);
// input_grad = 0, then each element of grad is added at its index, in order.
void max_pool2d_backward(const View& input_grad, const ConstView& grad, const ConstView& indices);

// out: sum of each window / divisor: `divisor` if not 0, else the number of elements, with or without the padding ones (those beyond
// the padding, where ceil_mode adds windows, never count).
struct AverageRule {
  bool counts_padding = true;
  int64_t divisor = 0;
  int64_t after[2] = {0, 0};  // padding below and right
};
void average_pool2d(const View& out, const ConstView& input, const PoolWindow& window, const AverageRule& rule);
void average_pool2d_backward(const View& input_grad, const ConstView& grad, const PoolWindow& window, const AverageRule& rule);

}  // namespace morel::kernels
