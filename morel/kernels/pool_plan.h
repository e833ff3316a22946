// Between pool.cc, which lays out the windows, and pool_simd.inc, which computes.
#pragma once

#include "morel/kernels/pool.h"

namespace morel {

// One window along one axis.
struct PoolWindow {
  int64_t begin;   // first position inside the input
  int64_t taps;    // positions inside the input, `step` apart
  int64_t padded;  // positions inside the padded input: what count_include_pad counts
};

// The windows [begin, end) that may contain a position of the input.
struct PoolCover {
  int64_t begin, end;
};

// Neighbouring windows of a row with the same number of taps, inside the input and padded, `stride` (1 or 2) apart.
struct PoolRun {
  int64_t begin = 0, end = 0, stride = 1, taps = 0;
};

struct PoolPlan {
  const PoolWindow* windows[2];  // per output row, per output column
  const PoolCover* covers[2];    // per input row, per input column; gradients only
  int64_t step[2];               // dilation
  PoolRun run;                   // the longest one along output columns
  View4 input, output, indices;  // or their gradients
  bool disjoint;                 // no position lies in two windows, and windows have no holes; gradients only
  bool count_include_pad;
  int64_t divisor_override;

  double divisor(int64_t y, int64_t x) const {
    if (divisor_override) return static_cast<double>(divisor_override);
    const PoolWindow &row = windows[0][y], &column = windows[1][x];
    return static_cast<double>(count_include_pad ? row.padded * column.padded : row.taps * column.taps);
  }
  // For the windows of a cover. Without holes they all contain its position.
  bool covers_position(int axis, int64_t window, int64_t position) const {
    if (step[axis] == 1) return true;
    const PoolWindow& w = windows[axis][window];
    const int64_t distance = position - w.begin;
    return distance >= 0 && distance % step[axis] == 0 && distance / step[axis] < w.taps;
  }
};

// Channels last (input, output and indices): one row of the output or of the input gradient, of image n.
using PoolRowFn = void (*)(const PoolPlan& plan, int64_t n, int64_t row);
// Any strides: one channel of one image.
using PoolPlaneFn = void (*)(const PoolPlan& plan, int64_t n, int64_t channel);

// Of one kind of pooling and one dtype.
struct PoolFunctions {
  PoolRowFn row;
  PoolPlaneFn plane;
};

}  // namespace morel
