// Convolutions: a work-item computes one result of the convolution or of its gradient for the input; a group sums one
// element of the gradient for the weight. Images have any strides.
#include "morel/runtime/opencl/support.h"

namespace morel::opencl {
namespace {

constexpr const char* source = R"C(
typedef struct {
  int64_t n, c, h, w, k, oh, ow, ck, kk, kh, kw, sy, sx, top, left, dy, dx, x[4], f[4], y[4];
} window;
KERNEL forward(TENSOR(const T, x), TENSOR(const T, f), TENSOR(const T, bias), TENSOR(T, y), const window p) {
  int64_t rest = get_global_id(0);
  if (rest >= p.n * p.k * p.oh * p.ow) return;
  PEEL(ox, p.ow) PEEL(oy, p.oh) PEEL(k, p.k)
  const int64_t n = rest, first = k / p.kk * p.ck;
  x += x_at + n * p.x[0], f += f_at + k * p.f[0];
  A sum = 0;
  for (int64_t c = 0; c < p.ck; ++c)
    for (int64_t j = 0; j < p.kh; ++j) {
      const int64_t iy = oy * p.sy - p.top + j * p.dy;
      if (iy < 0 || iy >= p.h) continue;
      for (int64_t i = 0; i < p.kw; ++i) {
        const int64_t ix = ox * p.sx - p.left + i * p.dx;
        if (ix < 0 || ix >= p.w) continue;
        sum = MULTIPLY_ADD(LOAD(x + (first + c) * p.x[1] + iy * p.x[2] + ix * p.x[3]),
                           LOAD(f + c * p.f[1] + j * p.f[2] + i * p.f[3]), sum);
      }
    }
  if (bias) sum += LOAD(bias + bias_at + k);
  STORE(y + y_at + n * p.y[0] + k * p.y[1] + oy * p.y[2] + ox * p.y[3], sum);
}
KERNEL input_grad(TENSOR(const T, y), TENSOR(const T, f), TENSOR(T, x), const window p) {
  int64_t rest = get_global_id(0);
  if (rest >= p.n * p.c * p.h * p.w) return;
  PEEL(ix, p.w) PEEL(iy, p.h) PEEL(c, p.c)
  const int64_t n = rest, first = c / p.ck * p.kk;
  A sum = 0;
  for (int64_t k = first; k < first + p.kk; ++k)
    for (int64_t j = 0; j < p.kh; ++j) {
      const int64_t ty = iy + p.top - j * p.dy;
      if (ty < 0 || ty % p.sy || ty / p.sy >= p.oh) continue;
      for (int64_t i = 0; i < p.kw; ++i) {
        const int64_t tx = ix + p.left - i * p.dx;
        if (tx < 0 || tx % p.sx || tx / p.sx >= p.ow) continue;
        sum = MULTIPLY_ADD(LOAD(y + y_at + n * p.y[0] + k * p.y[1] + ty / p.sy * p.y[2] + tx / p.sx * p.y[3]),
                           LOAD(f + f_at + k * p.f[0] + c % p.ck * p.f[1] + j * p.f[2] + i * p.f[3]), sum);
      }
    }
  STORE(x + x_at + n * p.x[0] + c * p.x[1] + iy * p.x[2] + ix * p.x[3], sum);
}
KERNEL weight_grad(TENSOR(const T, y), TENSOR(const T, x), TENSOR(T, f), const window p) {
  __local A lanes[MOREL_LANES];
  const int lane = get_local_id(0);
  int64_t rest = get_group_id(0);
  PEEL(i, p.kw) PEEL(j, p.kh) PEEL(c, p.ck)
  const int64_t k = rest, channel = k / p.kk * p.ck + c;
  A sum = 0;
  for (int64_t at = lane; at < p.n * p.oh * p.ow; at += MOREL_LANES) {
    const int64_t ox = at % p.ow, oy = at / p.ow % p.oh, n = at / p.ow / p.oh;
    const int64_t iy = oy * p.sy - p.top + j * p.dy, ix = ox * p.sx - p.left + i * p.dx;
    if (iy < 0 || iy >= p.h || ix < 0 || ix >= p.w) continue;
    sum = MULTIPLY_ADD(LOAD(y + y_at + n * p.y[0] + k * p.y[1] + oy * p.y[2] + ox * p.y[3]),
                       LOAD(x + x_at + n * p.x[0] + channel * p.x[1] + iy * p.x[2] + ix * p.x[3]), sum);
  }
  lanes[lane] = sum;
  for (int half = MOREL_LANES / 2; half > 0; half /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < half) lanes[lane] += lanes[lane + half];
  }
  if (lane == 0) STORE(f + f_at + k * p.f[0] + c * p.f[1] + j * p.f[2] + i * p.f[3], lanes[0]);
}
)C";

struct Window {
  int64_t n, c, h, w, k, oh, ow, ck, kk, kh, kw, sy, sx, top, left, dy, dx, x[4], f[4], y[4];
};

// stride, padding (top, bottom, left, right), dilation, groups from argument 3 on.
Window window_of(const KernelCall& call, const Tensor& x, const Tensor& f, const Tensor& y) {
  check_real("Conv2d", x.dtype());
  const Ints &stride = call.ints(3), &padding = call.ints(4), &dilation = call.ints(5);
  const int64_t groups = call.integer(6);
  Window p{x.dim(0),   x.dim(1),          x.dim(2),    x.dim(3), y.dim(1),  y.dim(2),  y.dim(3),
           f.dim(1),   y.dim(1) / groups, f.dim(2),    f.dim(3), stride[0], stride[1], padding[0],
           padding[2], dilation[0],       dilation[1], {},       {},        {}};
  for (size_t i = 0; i < 4; ++i) p.x[i] = x.strides()[i], p.f[i] = f.strides()[i], p.y[i] = y.strides()[i];
  return p;
}

// args: input, weight, bias, ...
void convolution(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const DType dtype = out.dtype();
  const Tensor input = typed(call.tensor(0), dtype), weight = typed(call.tensor(1), dtype);
  const Tensor bias = call.has(2) ? dense(call.tensor(2), dtype) : Tensor();
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, dtype, "forward"), out.size(), input, weight, bias, out,
                window_of(call, input, weight, out));
}

// args: dout, weight, size, ...
void convolution_input_grad(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor dout = typed(call.tensor(0), out.dtype()), weight = typed(call.tensor(1), out.dtype());
  OpenClDevice& device = active_device();
  device.launch(device.kernel(source, out.dtype(), "input_grad"), out.size(), dout, weight, out,
                window_of(call, out, weight, dout));
}

// args: dout, input, size, ...
void convolution_weight_grad(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor dout = typed(call.tensor(0), out.dtype()), input = typed(call.tensor(1), out.dtype());
  OpenClDevice& device = active_device();
  device.launch_groups(device.kernel(source, out.dtype(), "weight_grad"), out.size(), dout, input, out,
                       window_of(call, input, out, dout));
}

}  // namespace

std::span<const KernelEntry> conv_kernels() {
  static constexpr KernelEntry entries[] = {{"convolution", convolution},
                                            {"convolution_input_grad", convolution_input_grad},
                                            {"convolution_weight_grad", convolution_weight_grad}};
  return entries;
}

}  // namespace morel::opencl
