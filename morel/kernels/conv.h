// 2-D convolution (cross-correlation) and its two gradients. Images [N, C, H, W] may have any strides: channels-first
// and channels-last ones are taken as they lie, and the caller chooses the order of the result by the strides it
// passes.
//
// Channels last is the fast order: oneDNN's AVX-512 and AVX2 implementations take it directly and are within 5 % of its
// blocked layouts, while channels-first images are reordered inside (5 to 30 % more; measured on ResNet-18's layers).
// float32 runs in oneDNN, one thread per task; float16 and bfloat16 are converted to float32; all other types (and a
// build without oneDNN) go through im2col and our own matrix product. Results depend on the shapes alone.
#pragma once

#include "morel/kernels/epilogue.h"
#include "morel/kernels/view4.h"
#include "morel/tensor/dtype.h"

namespace morel {

struct Conv2d {
  DType dtype = DType::Float32;
  int64_t groups = 1;
  std::array<int64_t, 2> stride{1, 1};
  std::array<int64_t, 4> padding{};  // top, bottom, left, right
  std::array<int64_t, 2> dilation{1, 1};

  // Size of the output along spatial axis 0 (height) or 1 (width).
  int64_t output_size(int axis, int64_t input, int64_t kernel) const {
    const int64_t span = input + padding[2 * axis] + padding[2 * axis + 1] - dilation[axis] * (kernel - 1) - 1;
    return span < 0 ? 0 : span / stride[axis] + 1;
  }
};

// weight: [C_out, C_in / groups, kernel height, kernel width], any strides; bias: C_out contiguous elements or null.
// epilogue: on the result, which is dense then.
void conv2d_forward(const Conv2d& conv, const View4& input, const View4& weight, const void* bias, const View4& output,
                    const Epilogue* epilogue = nullptr);
void conv2d_backward_data(const Conv2d& conv, const View4& output_grad, const View4& weight, const View4& input_grad,
                          const Epilogue* epilogue = nullptr);
// bias_grad may be null.
void conv2d_backward_weight(const Conv2d& conv, const View4& input, const View4& output_grad, const View4& weight_grad,
                            void* bias_grad);

}  // namespace morel
