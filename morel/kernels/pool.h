// Max and average pooling over images [N, C, H, W] of floating dtypes, windows given or adaptive, with their gradients.
// Input and output may have any strides; channels-last images run vectorised over channels, channels-first ones over
// rows where that pays (2x2 windows, global averages).
#pragma once

#include "morel/kernels/view4.h"
#include "morel/tensor/dtype.h"

namespace morel {

struct Pool2d {
  DType dtype = DType::Float32;
  // Windows of given size; ignored when adaptive. The number of windows is the size of the output (so the caller
  // decides about ceil_mode); windows are cut off at the padded input's end.
  std::array<int64_t, 2> kernel{1, 1};
  std::array<int64_t, 2> stride{1, 1};
  std::array<int64_t, 4> padding{};  // top, bottom, left, right
  std::array<int64_t, 2> dilation{1, 1};
  // Window i of `out` covers floor(i * in / out) up to ceil((i + 1) * in / out).
  bool adaptive = false;
  // Averages: what the sum is divided by.
  bool count_include_pad = true;
  int64_t divisor_override = 0;  // 0: none
};

// indices (Int32; data may be null): position y * W + x of the first maximum of each window in its image; NaN counts as
// largest. Padding is never chosen. Every window must contain a position of the input.
void max_pool2d_forward(const Pool2d& pool, const View4& input, const View4& output, const View4& indices);
// Adds each output gradient where its maximum came from.
void max_pool2d_backward(const Pool2d& pool, const View4& output_grad, const View4& indices, const View4& input_grad);
void average_pool2d_forward(const Pool2d& pool, const View4& input, const View4& output);
void average_pool2d_backward(const Pool2d& pool, const View4& output_grad, const View4& input_grad);

}  // namespace morel
