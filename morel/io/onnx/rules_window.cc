// Import rules: convolution and pooling of other than images, transposed convolution, resizing.
#include "morel/io/onnx/import_rules.h"

namespace morel::onnx {
namespace {

using Result = std::optional<Items>;

Result one(const Sym& value) { return Items{item_of(value.value())}; }

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
  return one(c[0].rank() == 3 ? c.b("squeeze", out, Ints{2}) : out);
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
Result global_average(const NodeCall& c) { return one(c.b("mean", c[0], spatial(c), true)); }
Result global_max(const NodeCall& c) { return one(c.b("reduce_max", c[0], spatial(c), true)); }

// The nearest element, where sizes grow by whole numbers.
Result resize(const NodeCall& c) {
  if (c.text("mode", "nearest") != "nearest" || c.node().find("axes")) return {};
  const bool is_old = c.node().type == "Upsample" || c.opset() < 11;
  const Sym x = c[0];
  const size_t scales_at = is_old ? 1 : 2, rank = static_cast<size_t>(x.rank());
  const std::string where = c.text("coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel"),
                    nearest = c.text("nearest_mode", is_old ? "floor" : "round_prefer_floor");
  const bool is_plain =
      (where == "asymmetric" && nearest == "floor") || (where == "half_pixel" && nearest.starts_with("round"));
  if (!is_plain) return {};
  Ints factors;
  if (c.has(scales_at) && c[scales_at].dim(0) != 0) {
    const Value scales = c[scales_at].value();
    if (!scales.is_tensor() || scales.tensor_impl()->is_symbolic() || scales.tensor_impl()->dtype != DType::Float32)
      return {};
    for (size_t i = 0; i < rank; ++i) {
      const float factor = scales.tensor().as<float>()[i];
      if (factor < 1 || factor != static_cast<float>(static_cast<int64_t>(factor))) return {};
      factors.push_back(static_cast<int64_t>(factor));
    }
  } else {
    const Ints sizes = c.ints(3);
    for (size_t i = 0; i < rank; ++i) {
      if (sizes[i] % x.shape()[i] != 0) return {};
      factors.push_back(sizes[i] / x.shape()[i]);
    }
  }
  Ints split, wide, joined;
  for (size_t i = 0; i < rank; ++i) {
    const Dim size = x.shape()[i];
    split.push_back(size), split.push_back(1);
    wide.push_back(size), wide.push_back(factors[i]);
    joined.push_back(size * factors[i]);
  }
  return one(c.b("reshape", c.b("broadcast_to", c.b("reshape", x, split), wide), joined));
}

constexpr ImportEntry entries[] = {{"Conv", conv, 2},
                                   {"ConvTranspose", conv_transpose, 2},
                                   {"MaxPool", max_pool},
                                   {"AveragePool", average_pool},
                                   {"GlobalAveragePool", global_average},
                                   {"GlobalMaxPool", global_max},
                                   {"Resize", resize},
                                   {"Upsample", resize}};

}  // namespace

std::span<const ImportEntry> window_rules() { return entries; }

}  // namespace morel::onnx
