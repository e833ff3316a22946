// Import rules: numbers as integers, x = (q - zero) * scale, and what computes with such.
#include "morel/io/onnx/import_rules.h"

namespace morel::onnx {
namespace {

// A scale or zero point as it meets x: one number, one for each place on an axis, or one for each block of places.
Sym spread(const NodeCall& c, const Sym& value, const Sym& x, int64_t axis, int64_t block) {
  Builder& b = c.b;
  if (block == 0 && (value.rank() != 1 || value.dim(0).identical(1))) return b("reshape", value, Ints{});
  const size_t at = static_cast<size_t>(axis_of(axis, x.rank()));
  if (block > 0) {
    MOREL_CHECK(value.rank() == x.rank(), Value, "a scale of blocks has ", value.rank(), " axes instead of ", x.rank());
    Ints split(value.shape()), wide;
    split.insert(split.begin() + static_cast<int64_t>(at) + 1, 1);
    wide = split;
    wide[at + 1] = block;
    Ints joined(value.shape());
    joined[at] *= block;
    const Sym all = b("reshape", b("broadcast_to", b("reshape", value, split), wide), joined);
    return b("narrow", all, static_cast<int64_t>(at), 0, x.shape()[at]);
  }
  Ints line(static_cast<size_t>(x.rank()), 1);
  line[at] = value.dim(0);
  return b("reshape", value, line);
}

// Rounded, in the range of the type.
std::optional<Sym> as_integers(const Sym& x, const Sym& zero, DType dtype) {
  Builder& b = x.builder();
  if (dtype != DType::Int8 && dtype != DType::UInt8 && dtype != DType::Int16 && dtype != DType::UInt16) return {};
  const int64_t steps = int64_t{1} << (8 * size_of(dtype)), least = is_signed_int(dtype) ? -steps / 2 : 0;
  Sym whole = b("round_even", b("cast", x, DType::Float32));
  if (zero) whole = whole + b("cast", zero, DType::Float32);
  return b("cast", b("clamp", whole, least, least + steps - 1), dtype);
}
Result integers_as(const Sym& x, const Sym& zero, DType dtype) {
  const std::optional<Sym> out = as_integers(x, zero, dtype);
  return out ? results_of(*out) : Result();
}

Result quantize(const NodeCall& c) {
  Builder& b = c.b;
  Sym x = c[0];
  const int64_t axis = c.attribute("axis", 1), block = c.attribute("block_size", 0);
  Sym scale = spread(c, c[1], x, axis, block);
  if (const int64_t precision = c.attribute("precision", 0)) {
    const std::optional<DType> dtype = dtype_of_code(precision);
    if (!dtype) return {};
    x = b("cast", x, *dtype), scale = b("cast", scale, *dtype);
  }
  const int64_t named = c.attribute("output_dtype", 0);
  const std::optional<DType> dtype = named ? dtype_of_code(named) : c.has(2) ? c[2].dtype() : DType::UInt8;
  if (!dtype) return {};
  return integers_as(x / scale, c.has(2) ? spread(c, c[2], x, axis, block) : Sym(), *dtype);
}

Result dequantize(const NodeCall& c) {
  Builder& b = c.b;
  const int64_t axis = c.attribute("axis", 1), block = c.attribute("block_size", 0),
                named = c.attribute("output_dtype", 0);
  const std::optional<DType> dtype = named ? dtype_of_code(named) : c[1].dtype();
  if (!dtype) return {};
  Sym x = b("cast", c[0], DType::Float32);
  if (c.has(2)) x = x - b("cast", spread(c, c[2], x, axis, block), DType::Float32);
  return results_of(b("cast", x * b("cast", spread(c, c[1], x, axis, block), DType::Float32), *dtype));
}

// Scale and zero point for the range of x, which 0 is in.
Result dynamic_quantize(const NodeCall& c) {
  Builder& b = c.b;
  const Sym x = c[0];
  const Sym most = b("maximum", b("reduce_max", x), 0.0), least = b("minimum", b("reduce_min", x), 0.0);
  const Sym range = most - least, scale = b("where", b("equal", range, 0.0), 1.0, range) / 255.0;
  const Sym zero = b("round_even", b("clamp", -(least / scale), 0, 255));
  return results_of(*as_integers(x / scale, zero, DType::UInt8), scale, b("cast", zero, DType::UInt8));
}

// Integers without their zero point; `line`: how one for each channel meets them.
Sym centred(const NodeCall& c, size_t idx, size_t zero, DType dtype, const Ints& line) {
  const Sym x = c.b("cast", c[idx], dtype);
  if (!c.has(zero)) return x;
  const Sym offset = c.b("cast", c[zero], dtype);
  return x - (offset.rank() == 1 && !offset.dim(0).identical(1) ? c.b("reshape", offset, line)
                                                                : c.b("reshape", offset, Ints{}));
}
// A product of 2-D matrices has zero points and scales for rows of the first one and columns of the second.
Sym integer_product(const NodeCall& c, size_t a, size_t a_zero, size_t second, size_t second_zero) {
  return c.b("matmul", centred(c, a, a_zero, DType::Int32, {-1, 1}),
             centred(c, second, second_zero, DType::Int32, {-1}));
}
Result matmul_integer(const NodeCall& c) { return results_of(integer_product(c, 0, 2, 1, 3)); }

Sym as_factor(const NodeCall& c, size_t idx, const Ints& line) {
  const Sym scale = c.b("cast", c[idx], DType::Float32);
  return scale.rank() == 1 && !scale.dim(0).identical(1) ? c.b("reshape", scale, line) : c.b("reshape", scale, Ints{});
}
Result qlinear_matmul(const NodeCall& c) {
  const Sym product = c.b("cast", integer_product(c, 0, 2, 3, 5), DType::Float32);
  const Sym factor = as_factor(c, 1, {-1, 1}) * as_factor(c, 4, {-1}) / as_factor(c, 6, {-1});
  return integers_as(product * factor, c[7], c[7].dtype());
}

// In float64, whose sums of products of 8 bits are exact.
std::optional<Sym> integer_convolution(const NodeCall& c, size_t weight, size_t x_zero, size_t weight_zero) {
  if (c[0].rank() != 4 || c[weight].rank() != 4) return {};
  const Sym x = centred(c, 0, x_zero, DType::Float64, {});
  const Sym w = centred(c, weight, weight_zero, DType::Float64, {-1, 1, 1, 1});
  const Shape &image = x.shape(), &kernel = w.shape();
  const auto pads = pads_of(c.read(), Shape(image.begin() + 2, image.end()), Ints(kernel.begin() + 2, kernel.end()));
  if (!pads) return {};
  return c.b("convolution", x, w, Sym(), c.list("strides", {1, 1}), *pads, c.list("dilations", {1, 1}),
             c.attribute("group", 1));
}
Result conv_integer(const NodeCall& c) {
  const auto out = integer_convolution(c, 1, 2, 3);
  return out ? results_of(c.b("cast", *out, DType::Int32)) : Result();
}
Result qlinear_conv(const NodeCall& c) {
  auto sum = integer_convolution(c, 3, 2, 5);
  if (!sum) return {};
  const Ints channels{1, -1, 1, 1};
  if (c.has(8)) sum = *sum + c.b("reshape", c.b("cast", c[8], DType::Float64), channels);
  const Sym factor = as_factor(c, 1, {}) * as_factor(c, 4, channels) / as_factor(c, 6, {});
  return integers_as(c.b("cast", *sum, DType::Float32) * factor, c[7], c[7].dtype());
}

constexpr ImportEntry entries[] = {{"QuantizeLinear", quantize, 2},
                                   {"DequantizeLinear", dequantize, 2},
                                   {"DynamicQuantizeLinear", dynamic_quantize},
                                   {"MatMulInteger", matmul_integer, 2},
                                   {"QLinearMatMul", qlinear_matmul, 8},
                                   {"ConvInteger", conv_integer, 2},
                                   {"QLinearConv", qlinear_conv, 8}};

}  // namespace

std::span<const ImportEntry> quant_rules() { return entries; }

}  // namespace morel::onnx
