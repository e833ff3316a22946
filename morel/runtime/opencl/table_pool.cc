// Pooling of images of any strides: a work-item computes one result.
#include "morel/runtime/opencl/support.h"

namespace morel::opencl {
namespace {

constexpr const char* source = R"C(
typedef struct {
  int64_t n, c, h, w, oh, ow, kh, kw, sy, sx, top, bottom, left, right, dy, dx, x[4], y[4], i[4];
} window;
/* The position of the first maximum of each window; NaN counts as largest. */
KERNEL max_forward(TENSOR(const T, x), TENSOR(T, y), TENSOR(int32_t, indices), const window p) {
  int64_t rest = get_global_id(0);
  if (rest >= p.n * p.c * p.oh * p.ow) return;
  PEEL(ox, p.ow) PEEL(oy, p.oh) PEEL(c, p.c)
  x += x_at + rest * p.x[0] + c * p.x[1];
  int64_t best = -1, from = 0;
  A largest = 0;
  for (int64_t j = 0; j < p.kh; ++j)
    for (int64_t i = 0; i < p.kw; ++i) {
      const int64_t iy = oy * p.sy - p.top + j * p.dy, ix = ox * p.sx - p.left + i * p.dx;
      if (iy < 0 || iy >= p.h || ix < 0 || ix >= p.w) continue;
      const A value = LOAD(x + iy * p.x[2] + ix * p.x[3]);
      if (best >= 0 && !(value > largest || (value != value && largest == largest))) continue;
      largest = value, best = iy * p.w + ix, from = iy * p.x[2] + ix * p.x[3];
    }
  y[y_at + rest * p.y[0] + c * p.y[1] + oy * p.y[2] + ox * p.y[3]] = x[from];
  indices[indices_at + rest * p.i[0] + c * p.i[1] + oy * p.i[2] + ox * p.i[3]] = (int32_t)best;
}
/* Windows that can hold position `at` of an axis: those from (at + pad - reach) / stride on. */
#define FIRST_WINDOW(at, pad, reach, stride) max((int64_t)0, ((at) + (pad) - (reach) + (stride) - 1) / (stride))
#define LAST_WINDOW(at, pad, stride, count) min((count) - 1, ((at) + (pad)) / (stride))
KERNEL max_backward(TENSOR(const T, y), TENSOR(const int32_t, indices), TENSOR(T, x), const window p) {
  int64_t rest = get_global_id(0);
  if (rest >= p.n * p.c * p.h * p.w) return;
  PEEL(ix, p.w) PEEL(iy, p.h) PEEL(c, p.c)
  y += y_at + rest * p.y[0] + c * p.y[1], indices += indices_at + rest * p.i[0] + c * p.i[1];
  A sum = 0;
  for (int64_t oy = FIRST_WINDOW(iy, p.top, (p.kh - 1) * p.dy, p.sy); oy <= LAST_WINDOW(iy, p.top, p.sy, p.oh); ++oy)
    for (int64_t ox = FIRST_WINDOW(ix, p.left, (p.kw - 1) * p.dx, p.sx); ox <= LAST_WINDOW(ix, p.left, p.sx, p.ow); ++ox)
      if (indices[oy * p.i[2] + ox * p.i[3]] == iy * p.w + ix) sum += LOAD(y + oy * p.y[2] + ox * p.y[3]);
  STORE(x + x_at + rest * p.x[0] + c * p.x[1] + iy * p.x[2] + ix * p.x[3], sum);
}
/* How many of `taps` positions from `first` on, `step` apart, are in [0, size). */
MOREL_INLINE int64_t inside(int64_t first, int64_t taps, int64_t step, int64_t size) {
  const int64_t before = first < 0 ? (-first + step - 1) / step : 0;
  const int64_t end = first >= size ? 0 : (size - first + step - 1) / step;
  return max((int64_t)0, min(taps, end) - before);
}
/* What the sum of window (oy, ox) is divided by. */
MOREL_INLINE A divisor_of(const window p, int64_t include_pad, int64_t divisor, int64_t oy, int64_t ox) {
  if (divisor) return divisor;
  const int64_t y = oy * p.sy - p.top, x = ox * p.sx - p.left;
  if (!include_pad) return inside(y, p.kh, p.dy, p.h) * inside(x, p.kw, p.dx, p.w);
  return inside(y + p.top, p.kh, p.dy, p.h + p.top + p.bottom) * inside(x + p.left, p.kw, p.dx, p.w + p.left + p.right);
}
KERNEL average_forward(TENSOR(const T, x), TENSOR(T, y), const window p, const int64_t include_pad,
                       const int64_t divisor) {
  int64_t rest = get_global_id(0);
  if (rest >= p.n * p.c * p.oh * p.ow) return;
  PEEL(ox, p.ow) PEEL(oy, p.oh) PEEL(c, p.c)
  A sum = 0;
  for (int64_t j = 0; j < p.kh; ++j)
    for (int64_t i = 0; i < p.kw; ++i) {
      const int64_t iy = oy * p.sy - p.top + j * p.dy, ix = ox * p.sx - p.left + i * p.dx;
      if (iy < 0 || iy >= p.h || ix < 0 || ix >= p.w) continue;
      sum += LOAD(x + x_at + rest * p.x[0] + c * p.x[1] + iy * p.x[2] + ix * p.x[3]);
    }
  STORE(y + y_at + rest * p.y[0] + c * p.y[1] + oy * p.y[2] + ox * p.y[3],
        sum / divisor_of(p, include_pad, divisor, oy, ox));
}
KERNEL average_backward(TENSOR(const T, y), TENSOR(T, x), const window p, const int64_t include_pad,
                        const int64_t divisor) {
  int64_t rest = get_global_id(0);
  if (rest >= p.n * p.c * p.h * p.w) return;
  PEEL(ix, p.w) PEEL(iy, p.h) PEEL(c, p.c)
  A sum = 0;
  for (int64_t oy = FIRST_WINDOW(iy, p.top, (p.kh - 1) * p.dy, p.sy); oy <= LAST_WINDOW(iy, p.top, p.sy, p.oh); ++oy)
    for (int64_t ox = FIRST_WINDOW(ix, p.left, (p.kw - 1) * p.dx, p.sx); ox <= LAST_WINDOW(ix, p.left, p.sx, p.ow); ++ox) {
      if ((iy + p.top - oy * p.sy) % p.dy || (ix + p.left - ox * p.sx) % p.dx) continue;
      sum += LOAD(y + y_at + rest * p.y[0] + c * p.y[1] + oy * p.y[2] + ox * p.y[3]) /
             divisor_of(p, include_pad, divisor, oy, ox);
    }
  STORE(x + x_at + rest * p.x[0] + c * p.x[1] + iy * p.x[2] + ix * p.x[3], sum);
}
)C";

struct Window {
  int64_t n, c, h, w, oh, ow, kh, kw, sy, sx, top, bottom, left, right, dy, dx, x[4], y[4], i[4];
};

// kernel_size, stride, padding (top, bottom, left, right), dilation from argument `first` on.
Window window_at(const KernelCall& call, size_t first, const Tensor& x, const Tensor& y, const Tensor& indices) {
  const Ints &kernel = call.ints(first), &stride = call.ints(first + 1), &padding = call.ints(first + 2),
             &dilation = call.ints(first + 3);
  Window p{x.dim(0),    x.dim(1),    x.dim(2),  x.dim(3),   y.dim(2),   y.dim(3),   kernel[0],
           kernel[1],   stride[0],   stride[1], padding[0], padding[1], padding[2], padding[3],
           dilation[0], dilation[1], {},        {},         {}};
  for (size_t k = 0; k < 4; ++k) p.x[k] = x.strides()[k], p.y[k] = y.strides()[k], p.i[k] = indices.strides()[k];
  return p;
}

// args: input, kernel_size, stride, padding, dilation, ceil_mode; outs: values, indices.
void max_pool2d_with_indices(const KernelCall& call) {
  const Tensor input = call.tensor(0);
  const Tensor &out = call.outs[0], &indices = call.outs[1];
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, input.dtype(), "max_forward"), out.size(), input, out, indices,
                window_at(call, 1, input, out, indices));
}

// args: dout, indices, size, kernel_size, stride, padding, dilation.
void max_pool2d_grad(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor dout = typed(call.tensor(0), out.dtype());
  const Tensor indices = dense(call.tensor(1), DType::Int32);
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, out.dtype(), "max_backward"), out.size(), dout, indices, out,
                window_at(call, 3, out, dout, indices));
}

// args: input, kernel_size, stride, padding, dilation, ceil_mode, count_include_pad, divisor_override.
void average_pool2d(const KernelCall& call) {
  const Tensor input = call.tensor(0);
  const Tensor& out = call.outs[0];
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, input.dtype(), "average_forward"), out.size(), input, out,
                window_at(call, 1, input, out, out), int64_t{call.flag(6)}, call.integer(7));
}

// args: dout, size, kernel_size, ... as above.
void average_pool2d_grad(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor dout = typed(call.tensor(0), out.dtype());
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, out.dtype(), "average_backward"), out.size(), dout, out,
                window_at(call, 2, out, dout, dout), int64_t{call.flag(7)}, call.integer(8));
}

}  // namespace

std::span<const KernelEntry> pool_kernels() {
  static constexpr KernelEntry entries[] = {{"max_pool2d_with_indices", max_pool2d_with_indices},
                                            {"max_pool2d_grad", max_pool2d_grad},
                                            {"average_pool2d", average_pool2d},
                                            {"average_pool2d_grad", average_pool2d_grad}};
  return entries;
}

}  // namespace morel::opencl
