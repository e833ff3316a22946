#include "morel/kernels/pool.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/gemm_block.h"
#include "morel/kernels/pool_plan.h"

#define MOREL_SIMD_FILE "morel/kernels/pool_simd.inc"
#include "morel/kernels/simd.h"

namespace morel {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

PoolWindow window_at(const Pool2d& pool, int axis, int64_t idx, int64_t in, int64_t out) {
  if (pool.adaptive) {
    const int64_t begin = idx * in / out, end = ceil_div((idx + 1) * in, out);
    return {begin, end - begin, end - begin};
  }
  const int64_t step = pool.dilation[axis], start = idx * pool.stride[axis] - pool.padding[2 * axis];
  const int64_t padded_end = in + pool.padding[2 * axis + 1];
  const int64_t padded = std::clamp<int64_t>(ceil_div(padded_end - start, step), 0, pool.kernel[axis]);
  const int64_t skipped = start < 0 ? ceil_div(-start, step) : 0;
  const int64_t begin = start + skipped * step;
  const int64_t taps = std::clamp<int64_t>(ceil_div(std::max<int64_t>(in - begin, 0), step), 0,
                                           std::max<int64_t>(pool.kernel[axis] - skipped, 0));
  return {taps > 0 ? begin : 0, taps, padded};
}

// A plan with the tables that it points into.
class Layout {
 public:
  Layout(const Pool2d& pool, const View4& input, const View4& output, bool backward) {
    MOREL_CHECK(is_float(pool.dtype) || pool.dtype == DType::Int8, NotImplemented,
                "pooling takes floating dtypes, and the largest of int8, not ", info(pool.dtype).name, ".");
    MOREL_ASSERT(input.size[0] == output.size[0] && input.size[1] == output.size[1]);
    MOREL_ASSERT(pool.adaptive ||
                 (pool.dilation[0] > 0 && pool.dilation[1] > 0 && pool.kernel[0] > 0 && pool.kernel[1] > 0));
    plan_.input = input;
    plan_.output = output;
    plan_.count_include_pad = pool.count_include_pad;
    plan_.divisor_override = pool.divisor_override;
    plan_.disjoint = true;
    for (int axis : {0, 1}) {
      const int64_t in = input.size[2 + axis], out = output.size[2 + axis];
      plan_.step[axis] = pool.adaptive ? 1 : pool.dilation[axis];
      for (int64_t idx = 0; idx < out; ++idx) windows_[axis].push_back(window_at(pool, axis, idx, in, out));
      plan_.windows[axis] = windows_[axis].data();
      if (backward) cover(axis, in);
      plan_.covers[axis] = covers_[axis].data();
    }
    find_run();
  }
  Layout(const Layout&) = delete;

  PoolPlan& plan() { return plan_; }
  void need_taps() const {
    for (int axis : {0, 1}) {
      for (const PoolWindow& window : windows_[axis]) {
        MOREL_CHECK(window.taps > 0, Value, "a window of a max pooling lies in the padding alone.");
      }
    }
  }

 private:
  void find_run() {
    const auto& windows = windows_[1];
    PoolRun run;
    for (size_t idx = 0; idx < windows.size(); ++idx) {
      const auto& here = windows[idx];
      const int64_t place = static_cast<int64_t>(idx), stride = idx ? here.begin - windows[idx - 1].begin : 0;
      const bool same = idx && here.taps == windows[idx - 1].taps && here.padded == windows[idx - 1].padded;
      const bool fits = same && (stride == 1 || stride == 2) && (run.end - run.begin == 1 || stride == run.stride);
      if (fits) {
        run.stride = stride;
        run.end = place + 1;
      } else {
        run = {place, place + 1, 1, here.taps};
      }
      if (here.taps > 0 && run.end - run.begin > plan_.run.end - plan_.run.begin) plan_.run = run;
    }
  }

  // Windows come in order of their begin and end, so those with a position between both are neighbours.
  void cover(int axis, int64_t in) {
    const auto& windows = windows_[axis];
    const int64_t step = plan_.step[axis], count = static_cast<int64_t>(windows.size());
    covers_[axis].assign(in, {count, 0});
    for (int64_t idx = 1; idx < count; ++idx) {
      plan_.disjoint &= windows[idx].begin >= windows[idx - 1].begin + windows[idx - 1].taps;
    }
    plan_.disjoint &= step == 1;
    for (int64_t idx = 0; idx < count; ++idx) {
      const PoolWindow& window = windows[idx];
      for (int64_t tap = 0; tap < window.taps; ++tap) {
        PoolCover& covered = covers_[axis][window.begin + tap * step];
        covered.begin = std::min(covered.begin, idx);
        covered.end = std::max(covered.end, idx + 1);
      }
    }
  }

  PoolPlan plan_{};
  std::vector<PoolWindow> windows_[2];
  std::vector<PoolCover> covers_[2];
};

constexpr int64_t task_elements = 1 << 15;  // elements read that are worth a task

// Runs over rows of channels-last images, or over planes. `rows`: how many rows the result has.
void run(const PoolPlan& plan, bool channels_last, int64_t rows, PoolFunctions functions) {
  const int64_t images = plan.input.size[0], channels = plan.input.size[1];
  // Overlapping windows read the input more often than once: count what is read.
  int64_t taps[2] = {0, 0};
  for (int axis : {0, 1}) {
    for (int64_t idx = 0; idx < plan.output.size[2 + axis]; ++idx) taps[axis] += plan.windows[axis][idx].taps;
  }
  const int64_t plane = std::max(taps[0] * taps[1], plan.input.size[2] * plan.input.size[3]);
  if (channels_last) {
    const int64_t grain = std::max<int64_t>(1, task_elements / std::max<int64_t>(1, ceil_div(plane * channels, rows)));
    return parallel_for(images * rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t idx = begin; idx < end; ++idx) functions.row(plan, idx / rows, idx % rows);
    });
  }
  const int64_t grain = std::max<int64_t>(1, task_elements / std::max<int64_t>(1, plane));
  parallel_for(images * channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t idx = begin; idx < end; ++idx) functions.plane(plan, idx / channels, idx % channels);
  });
}

// The largest of int8 by itself; quantised networks are small.
void max_plane_int8(const PoolPlan& plan, int64_t n, int64_t c) {
  const View4 &in = plan.input, &out = plan.output, &at = plan.indices;
  const int8_t* source = static_cast<const int8_t*>(in.data) + n * in.stride[0] + c * in.stride[1];
  int8_t* target = static_cast<int8_t*>(out.data) + n * out.stride[0] + c * out.stride[1];
  for (int64_t y = 0; y < out.size[2]; ++y) {
    for (int64_t x = 0; x < out.size[3]; ++x) {
      const PoolWindow &rows = plan.windows[0][y], &columns = plan.windows[1][x];
      int64_t best_row = rows.begin, best_column = columns.begin;
      int8_t best = source[best_row * in.stride[2] + best_column * in.stride[3]];
      for (int64_t i = 0; i < rows.taps; ++i) {
        for (int64_t j = 0; j < columns.taps; ++j) {
          const int64_t row = rows.begin + i * plan.step[0], column = columns.begin + j * plan.step[1];
          const int8_t value = source[row * in.stride[2] + column * in.stride[3]];
          if (value <= best) continue;
          best = value, best_row = row, best_column = column;
        }
      }
      target[y * out.stride[2] + x * out.stride[3]] = best;
      if (at.data) {
        static_cast<int32_t*>(at.data)[n * at.stride[0] + c * at.stride[1] + y * at.stride[2] + x * at.stride[3]] =
            static_cast<int32_t>(best_row * in.size[3] + best_column);
      }
    }
  }
}

bool has_channel_runs(const View4& view) { return view.stride[1] == 1 || view.size[1] == 1; }

}  // namespace

void max_pool2d_forward(const Pool2d& pool, const View4& input, const View4& output, const View4& indices) {
  if (output.count() == 0) return;
  Layout layout(pool, input, output, false);
  layout.need_taps();
  layout.plan().indices = indices;
  if constexpr (is_compiled(DType::Int8)) {
    if (pool.dtype == DType::Int8) return run(layout.plan(), false, output.size[2], {nullptr, max_plane_int8});
  }
  const bool last = input.size[1] > 1 && has_channel_runs(input) && has_channel_runs(output) &&
                    (!indices.data || has_channel_runs(indices));
  run(layout.plan(), last, output.size[2], MOREL_SIMD_CALL(max_pool_functions)(pool.dtype, indices.data != nullptr));
}

void max_pool2d_backward(const Pool2d& pool, const View4& output_grad, const View4& indices, const View4& input_grad) {
  if (input_grad.count() == 0) return;
  Layout layout(pool, input_grad, output_grad, true);
  layout.plan().indices = indices;
  MOREL_ASSERT(indices.data || output_grad.count() == 0);
  const bool last = input_grad.size[1] > 1 && has_channel_runs(input_grad) && has_channel_runs(output_grad) &&
                    has_channel_runs(indices);
  run(layout.plan(), last, input_grad.size[2], MOREL_SIMD_CALL(max_pool_backward_functions)(pool.dtype));
}

void average_pool2d_forward(const Pool2d& pool, const View4& input, const View4& output) {
  if (output.count() == 0) return;
  Layout layout(pool, input, output, false);
  const bool last = input.size[1] > 1 && has_channel_runs(input) && has_channel_runs(output);
  run(layout.plan(), last, output.size[2], MOREL_SIMD_CALL(average_pool_functions)(pool.dtype));
}

void average_pool2d_backward(const Pool2d& pool, const View4& output_grad, const View4& input_grad) {
  if (input_grad.count() == 0) return;
  Layout layout(pool, input_grad, output_grad, true);
  const bool last = input_grad.size[1] > 1 && has_channel_runs(input_grad) && has_channel_runs(output_grad);
  run(layout.plan(), last, input_grad.size[2], MOREL_SIMD_CALL(average_pool_backward_functions)(pool.dtype));
}

}  // namespace morel
