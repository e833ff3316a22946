// Convolutions and pooling over images: input [N, C, H, W].
#include "morel/ops/quant.h"
#include "morel/ops/registry.h"

namespace morel {
namespace {

// One spatial size of the output.
Dim window_count(Dim size, Dim kernel, Dim stride, Dim before, Dim after, Dim dilation, bool ceil_mode) {
  const Dim span = size + before + after - dilation * (kernel - 1) - 1;
  if (span < 0) return 0;
  Dim count = (ceil_mode ? span + stride - 1 : span) / stride + 1;
  // The last window must start inside of the input or the padding before it.
  if (ceil_mode && (count - 1) * stride >= size + before) --count;
  return count;
}

Types convolution_infer(const ArgView& c) {
  const OpDef& op = c.op();
  const Shape &x = c.shape(0), &w = c.shape(1);
  const Ints &stride = c.ints("stride"), &padding = c.ints("padding"), &dilation = c.ints("dilation");
  const int64_t groups = c.integer("groups");
  MOREL_CHECK(x.size() == 4 && w.size() == 4, Value, "For '", display_name(op),
              "', input and weight must have 4 dimensions, but got ", to_string(type_of(c.value(0))), " and ",
              to_string(type_of(c.value(1))));
  MOREL_CHECK(groups > 0 && x[1] == w[1] * groups && w[0] % groups == 0, Value, "For '", display_name(op),
              "', axis C differs: input ", to_string(type_of(c.value(0))), " has ", x[1], " channels, weight ",
              to_string(type_of(c.value(1))), " takes ", w[1], " x ", groups, " groups");
  if (c.has("bias"))
    MOREL_CHECK(c.shape(2) == Shape{w[0]}, Value, "For '", display_name(op), "', bias must have shape [", w[0],
                "], but got ", to_string(c.shape(2)));
  Shape out{x[0], w[0]};
  for (size_t i = 0; i < 2; ++i) {
    MOREL_CHECK(stride[i] > 0 && dilation[i] > 0, Value, "For '", display_name(op),
                "', stride and dilation must be positive");
    out.push_back(window_count(x[2 + i], w[2 + i], stride[i], padding[2 * i], padding[2 * i + 1], dilation[i], false));
    MOREL_CHECK(out.back() > 0, Value, "For '", display_name(op), "', the kernel ", to_string(w),
                " does not fit into the padded input ", to_string(x));
  }
  return {Type{common_dtype(c), out}};
}

void register_convolution(Family& add) {
  constexpr std::string_view window = "stride: int[], padding: int[], dilation: int[], groups: int";
  static const std::string forward_args = cat("input: Tensor, weight: Tensor, bias: Tensor?, ", window);
  static const std::string grad_args = cat("dout: Tensor, other: Tensor, size: shape, ", window);
  add({.name = "convolution",
       .args = forward_args,
       .doc = "2-D convolution (cross-correlation); padding is (top, bottom, left, right).",
       .axes = "n (groups c) [...], (groups o) c [...], (groups o) -> n (groups o) [...]",
       .infer = convolution_infer,
       .kernel = true,
       .strides = prefer_channels_last,
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         const Ints x_size(g.shape(0)), w_size(g.shape(1));
         return {g.needs(0) ? b("convolution_input_grad", g.dout(), g[1], x_size, g[3], g[4], g[5], g[6]) : Sym(),
                 g.needs(1) ? b("convolution_weight_grad", g.dout(), g[0], w_size, g[3], g[4], g[5], g[6]) : Sym(),
                 g.needs(2) ? b("sum", g.dout(), Ints{0, 2, 3}) : Sym()};
       },
       .saves = {bits({0, 1}), 0, true},
       .flags = kHidden | kEpilogue,
       .int8 = "int8_convolution",
       .onnx = {{"Conv", 1,
                 "input, weight, bias; stride:window <- strides, padding:pads <- pads, dilation:window <- dilations, "
                 "groups <- group "
                 "= 1, _ <- kernel_shape, _ <- auto_pad, rank(input) == 4"}}});
  static const std::string int8_args = cat(forward_args, int8_results);
  add({.name = "int8_convolution",
       .args = int8_args,
       .doc = "Convolution of int8 (ops/quant.cc): weight is quantised for each output channel, padding is input_zero.",
       .axes = "n [c] [...], [o] [d] [...], [o], [o], [o] -> n [o] [...]",
       .infer = [](const ArgView& c) -> Types {
         return {Type{DType::Int8, convolution_infer(c)[0].shape}};
       },
       .kernel = true,
       .flags = kHidden | kNoGrad});
  const auto sized = [](const ArgView& c) -> Types { return {Type{common_dtype(c), Shape(c.ints("size"))}}; };
  add({.name = "convolution_input_grad",
       .args = grad_args,
       .doc = "Gradient of a convolution at its input: dout, weight and the input's size.",
       .axes = "n (groups o) [...], (groups o) c [...] -> n (groups c) [...]",
       .infer = sized,
       .kernel = true,
       .strides = prefer_channels_last,
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         return {g.needs(0) ? b("convolution", g.dout(), g[1], nullptr, g[3], g[4], g[5], g[6]) : Sym(),
                 g.needs(1) ? b("convolution_weight_grad", g[0], g.dout(), Ints(g.shape(1)), g[3], g[4], g[5], g[6])
                            : Sym()};
       },
       .saves = {bits({0, 1}), 0, true},
       .flags = kHidden | kEpilogue});
  add({.name = "convolution_weight_grad",
       .args = grad_args,
       .doc = "Gradient of a convolution at its weight: dout, input and the weight's size.",
       .axes = "n (groups o) [...], n (groups c) [...] -> (groups o) c [...]",
       .infer = sized,
       .kernel = true,
       .grad = [](const GradCall& g) -> Syms {
         Builder& b = g.builder();
         return {g.needs(0) ? b("convolution", g[1], g.dout(), nullptr, g[3], g[4], g[5], g[6]) : Sym(),
                 g.needs(1) ? b("convolution_input_grad", g[0], g.dout(), Ints(g.shape(1)), g[3], g[4], g[5], g[6])
                            : Sym()};
       },
       .saves = {bits({0, 1}), 0, true},
       .flags = kHidden});
}

// `value` as one number per spatial axis.
Ints per_axis(const Call& c, std::string_view name, size_t count) {
  const Ints& given = c.ints(name);
  if (given.size() == 1) return Ints(count, given[0]);
  MOREL_CHECK(given.size() == count, Value, "For '", display_name(c.op()), "', '", name, "' must be an int or ", count,
              " ints, but got ", to_string(c.value(name)));
  return given;
}

// (before, after) per spatial axis from pad_mode and padding; `padding` has 1, `axes` or 2 * `axes` numbers.
Ints resolve_padding(const Call& c, const Ints& sizes, const Ints& kernel, const Ints& stride, const Ints& dilation) {
  const std::string& mode = c.str("pad_mode");
  const Ints& given = c.ints("padding");
  const size_t axes = sizes.size();
  Ints out;
  if (mode == "same") {
    for (size_t i = 0; i < axes; ++i) {
      const Dim count = (sizes[i] + stride[i] - 1) / stride[i];
      const Dim total = std::max<Dim>(0, (count - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 - sizes[i]);
      out.push_back(total / 2);
      out.push_back(total - total / 2);
    }
    return out;
  }
  MOREL_CHECK(mode == "valid" || mode == "pad", Value, "For '", display_name(c.op()),
              "', 'pad_mode' must be 'same', 'valid' or 'pad', but got '", mode, "'");
  for (const int64_t pad : given) {
    MOREL_CHECK(mode == "pad" || pad == 0, Value, "For '", display_name(c.op()),
                "', 'padding' must be zero when 'pad_mode' is '", mode, "', but got ", to_string(c.value("padding")));
    MOREL_CHECK(pad >= 0, Value, "For '", display_name(c.op()), "', 'padding' must not be negative, but got ",
                to_string(c.value("padding")));
  }
  for (size_t i = 0; i < axes; ++i) {
    const bool pairs = given.size() == 2 * axes;
    MOREL_CHECK(pairs || given.size() == axes || given.size() == 1, Value, "For '", display_name(c.op()),
                "', 'padding' must have 1, ", axes, " or ", 2 * axes, " numbers, but got ",
                to_string(c.value("padding")));
    out.push_back(pairs ? given[2 * i] : given[given.size() == 1 ? 0 : i]);
    out.push_back(pairs ? given[2 * i + 1] : given[given.size() == 1 ? 0 : i]);
  }
  return out;
}

Syms conv2d_compose(const Call& c) {
  Builder& b = c.builder();
  Sym x = c[0];
  const Sym w = c[1];
  const bool single = x.rank() == 3;  // one image without a batch axis
  if (single) x = b("expand_dims", x, 0);
  MOREL_CHECK(x.rank() == 4 && w.rank() == 4, Value,
              "For 'Conv2d', input must have 3 or 4 dimensions and weight 4, but got ", to_string(c[0].type()), " and ",
              to_string(w.type()));
  const Ints stride = per_axis(c, "stride", 2), dilation = per_axis(c, "dilation", 2);
  const Ints padding = resolve_padding(c, {x.dim(2), x.dim(3)}, {w.dim(2), w.dim(3)}, stride, dilation);
  Sym out = b("convolution", x, w, c[2], stride, padding, dilation, c["groups"]);
  return {single ? b("squeeze", out, Ints{0}) : out};
}

Syms conv1d_compose(const Call& c) {
  Builder& b = c.builder();
  Sym x = c[0];
  const Sym w = c[1];
  const bool single = x.rank() == 2;
  if (single) x = b("expand_dims", x, 0);
  MOREL_CHECK(x.rank() == 3 && w.rank() == 3, Value,
              "For 'Conv1d', input must have 2 or 3 dimensions and weight 3, but got ", to_string(c[0].type()), " and ",
              to_string(w.type()));
  const Ints stride = per_axis(c, "stride", 1), dilation = per_axis(c, "dilation", 1);
  const Ints padding = resolve_padding(c, {x.dim(2)}, {w.dim(2)}, stride, dilation);
  const Sym out = b("convolution", b("expand_dims", x, 2), b("expand_dims", w, 2), c[2], Ints{1, stride[0]},
                    Ints{0, 0, padding[0], padding[1]}, Ints{1, dilation[0]}, c["groups"]);
  return {b("squeeze", out, single ? Ints{0, 2} : Ints{2})};
}

// -- pooling --

Types pool_infer(const ArgView& c) {
  const OpDef& op = c.op();
  const Shape& x = c.shape(0);
  MOREL_CHECK(x.size() == 4, Value, "For '", display_name(op), "', input must have 4 dimensions, but got ",
              to_string(type_of(c.value(0))));
  const Ints &kernel = c.ints("kernel_size"), &stride = c.ints("stride"), &padding = c.ints("padding"),
             &dilation = c.ints("dilation");
  Shape out{x[0], x[1]};
  for (size_t i = 0; i < 2; ++i) {
    MOREL_CHECK(kernel[i] > 0 && stride[i] > 0 && dilation[i] > 0, Value, "For '", display_name(op),
                "', kernel_size, stride and dilation must be positive");
    out.push_back(window_count(x[2 + i], kernel[i], stride[i], padding[2 * i], padding[2 * i + 1], dilation[i],
                               c.flag("ceil_mode")));
    MOREL_CHECK(out.back() > 0, Value, "For '", display_name(op), "', the window ", to_string(c.value("kernel_size")),
                " does not fit into the padded input ", to_string(x));
  }
  return {Type{c.tensor_dtype(0), out}};
}

// Cotangents read at the positions that the forward pass chose.
Syms read_at_indices(const GradCall& g) {
  Builder& b = g.builder();
  const Shape& out = g.shape(0);
  const Sym flat = b("reshape", g.dout(), Ints{out[0], out[1], -1});
  const Sym positions = b("reshape", b("cast", g[1], DType::Int64), Ints{out[0], out[1], -1});
  return {b("reshape", b("gather_elements", flat, 2, positions), Ints(out))};
}

// Positions lie as the values do, so that channels-last images are pooled over whole vectors of channels.
std::optional<Strides> positions_beside_values(const ArgView& call, size_t, const Shape& shape) {
  return strides_like<0>(call, 0, shape);
}

void register_pooling(Family& add) {
  constexpr std::string_view max_window =
      "kernel_size: int[], stride: int[], padding: int[], dilation: int[], ceil_mode: bool";
  static const std::string max_args = cat("input: Tensor, ", max_window);
  add({.name = "max_pool2d_with_indices",
       .args = max_args,
       .doc = "Largest element of each window and its flat position in the image (H * W); padding is (top, bottom, "
              "left, right).",
       .axes = "n c [...] -> n c [...], n c [...]",
       .infer = [](const ArgView& c) -> Types {
         Types out = pool_infer(c);
         out.push_back({DType::Int32, out[0].shape});
         return out;
       },
       .kernel = true,
       .strides = positions_beside_values,
       .grad = [](const GradCall& g) -> Syms {
         return {g.builder()("max_pool2d_grad", g.dout(), g.out(1), Ints(g.shape(0)), g[1], g[2], g[3], g[4])};
       },
       .saves = {0, bits({1})},
       .flags = kHidden | kSelects,
       .dtypes = floats | set_of({DType::Int8}),
       .onnx = {{"MaxPool", 1,
                 "input; kernel_size <- kernel_shape, stride:window <- strides, padding:pads <- pads, dilation:window "
                 "<- dilations, "
                 "ceil_mode <- ceil_mode = 0, _ <- auto_pad, 0 <- storage_order = 0, rank(input) == 4 -> input"}}});
  static const std::string max_grad_args =
      "dout: Tensor, indices: Tensor, size: shape, kernel_size: int[], stride: int[], padding: int[], dilation: int[]";
  add({.name = "max_pool2d_grad",
       .args = max_grad_args,
       .doc = "Adds each cotangent at the position from which the forward pass took its maximum.",
       .axes = "n c [...], n c [...] -> n c [...]",
       .infer = [](const ArgView& c) -> Types {
         return {Type{c.tensor_dtype(0), Shape(c.ints("size"))}};
       },
       .kernel = true,
       .strides = strides_like<0>,
       .grad = read_at_indices,
       .saves = {bits({1}), 0},
       .flags = kHidden,
       .dtypes = floats});
  static const std::string avg_window =
      "kernel_size: int[], stride: int[], padding: int[], dilation: int[], ceil_mode: bool, count_include_pad: bool, "
      "divisor_override: int";
  static const std::string avg_args = "input: Tensor, " + avg_window;
  static const std::string avg_grad_args = "dout: Tensor, size: shape, " + avg_window;
  add({.name = "average_pool2d",
       .args = avg_args,
       .doc = "Mean of each window; divisor_override 0 divides by the number of elements.",
       .axes = "n c [...] -> n c [...]",
       .infer = pool_infer,
       .kernel = true,
       .strides = strides_like<0>,
       .grad = [](const GradCall& g) -> Syms {
         return {
             g.builder()("average_pool2d_grad", g.dout(), Ints(g.shape(0)), g[1], g[2], g[3], g[4], g[5], g[6], g[7])};
       },
       .flags = kHidden,
       .dtypes = floats,
       .onnx = {{"AveragePool", 7,
                 "input; kernel_size <- kernel_shape, stride:window <- strides, padding:pads <- pads, ceil_mode <- "
                 "ceil_mode "
                 "= 0, _ <- auto_pad, count_include_pad <- count_include_pad = 0, dilation:window <- dilations = (1, "
                 "1), divisor_override == 0, "
                 "rank(input) == 4"}}});
  add({.name = "average_pool2d_grad",
       .args = avg_grad_args,
       .doc = "Spreads each cotangent over its window.",
       .axes = "n c [...] -> n c [...]",
       .infer = [](const ArgView& c) -> Types {
         return {Type{c.tensor_dtype(0), Shape(c.ints("size"))}};
       },
       .kernel = true,
       .strides = strides_like<0>,
       .grad = [](const GradCall& g) -> Syms {
         return {g.builder()("average_pool2d", g.dout(), g[2], g[3], g[4], g[5], g[6], g[7], g[8])};
       },
       .flags = kHidden,
       .dtypes = floats});
}

// -- adaptive pooling: the windows follow from the sizes --

Types adaptive_infer(const ArgView& c) {
  const Shape& x = c.shape(0);
  MOREL_CHECK(x.size() == 4, Value, "For '", display_name(c.op()), "', input must have 4 dimensions, but got ",
              to_string(type_of(c.value(0))));
  const Ints& size = c.ints("output_size");
  return {Type{c.tensor_dtype(0), {x[0], x[1], size[0], size[1]}}};
}

void register_adaptive(Family& add) {
  const auto sized = [](const ArgView& c) -> Types { return {Type{c.tensor_dtype(0), Shape(c.ints("size"))}}; };
  add({.name = "adaptive_max_pool2d_with_indices",
       .args = "input: Tensor, output_size: int[]",
       .doc = "Largest element of each of output_size windows that cover the image, and its flat position.",
       .axes = "n c [...] -> n c [...], n c [...]",
       .infer = [](const ArgView& c) -> Types {
         Types out = adaptive_infer(c);
         out.push_back({DType::Int32, out[0].shape});
         return out;
       },
       .kernel = true,
       .strides = positions_beside_values,
       .grad = [](const GradCall& g) -> Syms {
         return {g.builder()("adaptive_max_pool2d_grad", g.dout(), g.out(1), Ints(g.shape(0)))};
       },
       .saves = {0, bits({1})},
       .flags = kHidden,
       .dtypes = floats,
       .onnx = {{"GlobalMaxPool", 1, "input; output_size == (1, 1), rank(input) == 4 -> input"}}});
  add({.name = "adaptive_max_pool2d_grad",
       .args = "dout: Tensor, indices: Tensor, size: shape",
       .doc = "Adds each cotangent at the position from which the forward pass took its maximum.",
       .axes = "n c [...], n c [...] -> n c [...]",
       .infer = sized,
       .kernel = true,
       .strides = strides_like<0>,
       .grad = read_at_indices,
       .saves = {bits({1}), 0},
       .flags = kHidden,
       .dtypes = floats});
  add({.name = "adaptive_average_pool2d",
       .args = "input: Tensor, output_size: int[]",
       .doc = "Mean of each of output_size windows that cover the image.",
       .axes = "n c [...] -> n c [...]",
       .infer = adaptive_infer,
       .kernel = true,
       .strides = strides_like<0>,
       .grad = [](const GradCall& g) -> Syms {
         return {g.builder()("adaptive_average_pool2d_grad", g.dout(), Ints(g.shape(0)))};
       },
       .flags = kHidden,
       .dtypes = floats,
       .onnx = {{"GlobalAveragePool", 1, "input; output_size == (1, 1), rank(input) == 4"}}});
  add({.name = "adaptive_average_pool2d_grad",
       .args = "dout: Tensor, size: shape",
       .doc = "Spreads each cotangent over its window.",
       .axes = "n c [...] -> n c [...]",
       .infer = sized,
       .kernel = true,
       .strides = strides_like<0>,
       .grad = [](const GradCall& g) -> Syms {
         const Shape& out = g.shape(0);
         return {g.builder()("adaptive_average_pool2d", g.dout(), Ints{out[2], out[3]})};
       },
       .flags = kHidden,
       .dtypes = floats});
}

// Public adaptive pooling: output_size is one number or (H, W); images may come without a batch axis.
Syms adaptive_compose(const Call& c, OpName primitive) {
  Builder& b = c.builder();
  const Ints& given = c.ints("output_size");
  MOREL_CHECK(given.size() == 1 || given.size() == 2, Value, "For '", display_name(c.op()),
              "', 'output_size' must be an int or 2 ints, but got ", to_string(c.value("output_size")));
  const Ints size{given[0], given.back()};
  MOREL_CHECK(size[0] > 0 && size[1] > 0, Value, "For '", display_name(c.op()),
              "', 'output_size' must be positive, but got ", to_string(c.value("output_size")));
  const bool single = c.rank(0) == 3;
  const Sym out = b(primitive, single ? b("expand_dims", c[0], 0) : c[0], size);
  Syms results;
  if (out.value().is_list()) {
    results = {out.item(0), out.item(1)};
  } else {
    results = {out};
  }
  if (single)
    for (Sym& result : results) result = b("squeeze", result, Ints{0});
  return results;
}

struct Window {
  Sym x;
  Ints kernel, stride, padding, dilation;
  bool single;
};

// Reads the arguments that the public pooling functions share: kernel_size, stride, padding.
Window window_of(const Call& c) {
  Window out{c[0], per_axis(c, "kernel_size", 2), {}, {}, {1, 1}, c[0].rank() == 3};
  out.stride = c.has("stride") && !c.ints("stride").empty() ? per_axis(c, "stride", 2) : out.kernel;
  if (c.op().schema.find("dilation") >= 0) out.dilation = per_axis(c, "dilation", 2);
  const Ints pads = c.ints("padding").size() == 4 ? c.ints("padding") : per_axis(c, "padding", 2);
  out.padding = pads.size() == 4 ? pads : Ints{pads[0], pads[0], pads[1], pads[1]};
  for (size_t i = 0; i < 4; ++i)
    MOREL_CHECK(pads.size() == 4 || (out.padding[i] >= 0 && 2 * out.padding[i] <= out.kernel[i / 2]), Value, "For '",
                display_name(c.op()), "', 'padding' must be in [0, kernel_size / 2], but got ",
                to_string(c.value("padding")), " for kernel_size ", to_string(c.value("kernel_size")));
  if (out.single) out.x = c.builder()("expand_dims", out.x, 0);
  return out;
}

}  // namespace

void register_conv(Registry& registry) {
  Family add(registry, "conv");
  register_convolution(add);
  register_pooling(add);
  register_adaptive(add);
  add({.name = "conv2d",
       .args = "input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[] = 1, pad_mode: str = 'valid', "
               "padding: int[] = 0, "
               "dilation: int[] = 1, groups: int = 1",
       .doc = "2-D convolution of input [N, C, H, W] (or [C, H, W]) with weight [O, C / groups, kH, kW]; pad_mode "
              "'same' keeps H / stride, "
              "'valid' does not pad, 'pad' pads by `padding`: one number, (H, W) or (top, bottom, left, right).",
       .compose = conv2d_compose});
  add({.name = "conv1d",
       .args = "input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[] = 1, pad_mode: str = 'valid', "
               "padding: int[] = 0, "
               "dilation: int[] = 1, groups: int = 1",
       .doc = "1-D convolution of input [N, C, L] (or [C, L]) with weight [O, C / groups, k].",
       .compose = conv1d_compose});
  add({.name = "max_pool2d",
       .args = "x: Tensor, kernel_size: int[], stride: int[]? = None, padding: int[] = 0, dilation: int[] = 1, "
               "return_indices: bool = False, "
               "ceil_mode: bool = False",
       .doc = "Largest element of each window of x [N, C, H, W]; with return_indices also its flat position in the "
              "image (int64).",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const Window w = window_of(c);
         const Sym pooled =
             b("max_pool2d_with_indices", w.x, w.kernel, w.stride, w.padding, w.dilation, c["ceil_mode"]);
         Syms out{pooled.item(0)};
         if (c.flag("return_indices")) out.push_back(b("cast", pooled.item(1), DType::Int64));
         if (w.single)
           for (Sym& item : out) item = b("squeeze", item, Ints{0});
         return out;
       }});
  add({.name = "avg_pool2d",
       .args = "input: Tensor, kernel_size: int[], stride: int[]? = None, padding: int[] = 0, ceil_mode: bool = False, "
               "count_include_pad: bool = True, divisor_override: int = 0",
       .doc = "Mean of each window of input [N, C, H, W].",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const Window w = window_of(c);
         const Sym out = b("average_pool2d", w.x, w.kernel, w.stride, w.padding, w.dilation, c["ceil_mode"],
                           c["count_include_pad"], c["divisor_override"]);
         return {w.single ? b("squeeze", out, Ints{0}) : out};
       }});
  add({.name = "adaptive_avg_pool2d",
       .args = "input: Tensor, output_size: int[]",
       .doc = "Mean of each of output_size windows that cover input [N, C, H, W].",
       .compose = [](const Call& c) -> Syms { return adaptive_compose(c, "adaptive_average_pool2d"); }});
  add({.name = "adaptive_max_pool2d",
       .args = "input: Tensor, output_size: int[], return_indices: bool = False",
       .doc = "Largest element of each of output_size windows that cover input [N, C, H, W]; with return_indices also "
              "its flat position (int64).",
       .compose = [](const Call& c) -> Syms {
         Syms out = adaptive_compose(c, "adaptive_max_pool2d_with_indices");
         if (c.flag("return_indices")) return {out[0], c.builder()("cast", out[1], DType::Int64)};
         return {out[0]};
       }});
}

}  // namespace morel
