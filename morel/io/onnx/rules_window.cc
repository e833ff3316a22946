// Import rules: convolution and pooling of other than images, transposed convolution.
#include "morel/io/onnx/import_rules.h"

namespace morel::onnx {
namespace {

// What a window over one axis, or two, is; over one as over two, the first of size 1.
struct Window {
  Ints kernel, stride, dilation, pads;
};
std::optional<Window> window_of(const NodeCall& c, const Ints& kernel) {
  const size_t axes = static_cast<size_t>(c[0].rank()) - 2;
  if (axes < 1 || axes > 2 || kernel.size() != axes) return {};
  const Shape& shape = c[0].shape();
  const std::optional<Ints> pads = pads_of(c.read(), Shape(shape.begin() + 2, shape.end()), kernel);
  if (!pads) return {};
  Window out{kernel, c.list("strides", Ints(axes, 1)), c.list("dilations", Ints(axes, 1)), *pads};
  if (axes == 1) {
    for (Ints* list : {&out.kernel, &out.stride, &out.dilation}) list->insert(list->begin(), 1);
    out.pads = {0, 0, out.pads[0], out.pads[1]};
  }
  return out;
}
Sym as_image(const NodeCall& c, const Sym& x) { return x && x.rank() == 3 ? c.b("expand_dims", x, 2) : x; }
Result from_image(const NodeCall& c, const Sym& out) {
  return results_of(c[0].rank() == 3 ? c.b("squeeze", out, Ints{2}) : out);
}
Ints trailing(const Shape& shape) { return Ints(shape.begin() + 2, shape.end()); }

Result conv(const NodeCall& c) {
  if (c[0].rank() != 3) return {};
  const auto w = window_of(c, trailing(c[1].shape()));
  if (!w) return {};
  return from_image(c, c.b("convolution", as_image(c, c[0]), as_image(c, c[1]), c[2], w->stride, w->pads, w->dilation,
                           c.attribute("group", 1)));
}

// The gradient of a convolution at its input.
Result conv_transpose(const NodeCall& c) {
  const Sym x = c[0], weight = c[1];
  const size_t axes = static_cast<size_t>(x.rank()) - 2;
  if (axes < 1 || axes > 2) return {};
  const Ints kernel = trailing(weight.shape()), stride = c.list("strides", Ints(axes, 1)),
             dilation = c.list("dilations", Ints(axes, 1));
  const Ints extra = c.list("output_padding", Ints(axes, 0)), wanted = c.list("output_shape", {});
  const Ints given = c.list("pads", Ints(2 * axes, 0));
  const std::string mode = c.text("auto_pad", "NOTSET");
  const int64_t groups = c.attribute("group", 1);
  Ints size{x.dim(0), weight.dim(1) * groups}, pads;
  for (size_t i = 0; i < axes; ++i) {
    const Dim full = (x.shape()[2 + i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 + extra[i];
    Dim out = full - given[i] - given[axes + i], before = given[i], after = given[axes + i];
    if (!wanted.empty() || mode.starts_with("SAME")) {
      out = wanted.empty() ? x.shape()[2 + i] * stride[i] : wanted[wanted.size() - axes + i];
      const Dim total = std::max<Dim>(0, full - out), less = total / 2;
      before = mode == "SAME_UPPER" ? less : total - less;
      after = total - before;
    }
    size.push_back(out);
    pads.push_back(before);
    pads.push_back(after);
  }
  Ints steps = stride, gaps = dilation;
  if (axes == 1) {
    size.insert(size.begin() + 2, 1);
    pads.insert(pads.begin(), 0);
    pads.insert(pads.begin(), 0);
    steps.insert(steps.begin(), 1);
    gaps.insert(gaps.begin(), 1);
  }
  Sym out = c.b("convolution_input_grad", as_image(c, x), as_image(c, weight), size, steps, pads, gaps, groups);
  if (c.has(2)) out = out + c.b("reshape", c[2], Ints{1, c[2].dim(0), 1, 1});
  return from_image(c, out);
}

Result max_pool(const NodeCall& c) {
  if (c[0].rank() != 3 || c.has_output(1)) return {};
  const auto w = window_of(c, c.list("kernel_shape", {}));
  if (!w) return {};
  const Sym all = c.b("max_pool2d_with_indices", as_image(c, c[0]), w->kernel, w->stride, w->pads, w->dilation,
                      c.attribute("ceil_mode", 0) != 0);
  return from_image(c, all.item(0));
}

Result average_pool(const NodeCall& c) {
  if (c[0].rank() != 3) return {};
  const auto w = window_of(c, c.list("kernel_shape", {}));
  if (!w) return {};
  return from_image(c, c.b("average_pool2d", as_image(c, c[0]), w->kernel, w->stride, w->pads, w->dilation,
                           c.attribute("ceil_mode", 0) != 0, c.attribute("count_include_pad", 0) != 0, 0));
}

Ints spatial(const NodeCall& c) {
  Ints axes;
  for (int64_t axis = 2; axis < c[0].rank(); ++axis) axes.push_back(axis);
  return axes;
}
Result global_average(const NodeCall& c) { return results_of(c.b("mean", c[0], spatial(c), true)); }
Result global_max(const NodeCall& c) { return results_of(c.b("reduce_max", c[0], spatial(c), true)); }

// (sum of |x|^p)^(1/p)
Result lp_pool(const NodeCall& c) {
  const double p = c.attribute("p", 2);
  const auto w = window_of(c, c.list("kernel_shape", {}));
  if (!w) return {};
  const Sym x = as_image(c, c[0]);
  const Sym powers = p == 2 ? x * x : c.b("pow", c.b("abs", x), p);
  const Sym sums = c.b("average_pool2d", powers, w->kernel, w->stride, w->pads, w->dilation,
                       c.attribute("ceil_mode", 0) != 0, true, 1);
  return from_image(c, p == 2 ? c.b("sqrt", sums) : c.b("pow", sums, 1 / p));
}
Result global_lp_pool(const NodeCall& c) {
  const double p = c.attribute("p", 2);
  return results_of(c.b("pow", c.b("sum", c.b("pow", c.b("abs", c[0]), p), spatial(c), true), 1 / p));
}

// Each channel by itself, after what came before.
Result causal_conv_with_state(const NodeCall& c) {
  Builder& b = c.b;
  const Sym x = c[0], weight = c[1];
  if (x.rank() != 3 || weight.rank() != 3) return {};
  const Dim before = weight.dim(2) - 1;
  const Sym past = c.has(3) ? c[3] : b("zeros", Ints{x.dim(0), x.dim(1), before}, x.dtype());
  const Sym all = b("concat", Syms{past, x}, 2);
  Sym out = b("convolution", as_image(c, all), as_image(c, weight), c[2], Ints{1, 1}, Ints{0, 0, 0, 0}, Ints{1, 1},
              weight.dim(0));
  if (c.text("activation", "none") != "none") out = b("silu", out);
  return results_of(b("squeeze", out, Ints{2}), b("narrow", all, 2, all.dim(2) - before, before));
}

// The sum of overlapping blocks.
Result col_to_im(const NodeCall& c) {
  const Ints size = c.ints(1), block = c.ints(2), pads = c.list("pads", {0, 0, 0, 0});
  if (size.size() != 2 || pads.size() != 4 || pads[0] != pads[2] || pads[1] != pads[3]) return {};
  return results_of(
      c.b("fold", c[0], size, block, c.list("dilations", {1, 1}), Ints{pads[0], pads[1]}, c.list("strides", {1, 1})));
}

constexpr ImportEntry entries[] = {{"Conv", conv, 2},
                                   {"ConvTranspose", conv_transpose, 2},
                                   {"MaxPool", max_pool},
                                   {"AveragePool", average_pool},
                                   {"GlobalAveragePool", global_average},
                                   {"GlobalMaxPool", global_max},
                                   {"LpPool", lp_pool},
                                   {"GlobalLpPool", global_lp_pool},
                                   {"CausalConvWithState", causal_conv_with_state, 2},
                                   {"Col2Im", col_to_im, 3}};

}  // namespace

std::span<const ImportEntry> window_rules() { return entries; }

}  // namespace morel::onnx
