// Import rules: windows and Fourier transforms, as products with matrices of cosines and sines.
#include <cmath>
#include <numbers>

#include "morel/io/onnx/import_rules.h"

namespace morel::onnx {
namespace {

constexpr int64_t longest_transform = 4096;
constexpr double turn = 2 * std::numbers::pi;

// w[i] = sum over j of factor[j] * cos(j * 2 pi i / length)
struct WindowShape {
  std::string_view name;
  double factors[3];
};
constexpr WindowShape windows[] = {{"HannWindow", {0.5, -0.5, 0}},
                                   {"HammingWindow", {25.0 / 46, -21.0 / 46, 0}},
                                   {"BlackmanWindow", {0.42, -0.5, 0.08}}};
Result window(const NodeCall& c) {
  const int64_t size = c.integer(0), length = c.attribute("periodic", 1) ? size : size - 1;
  const std::optional<DType> dtype = dtype_of_code(c.attribute("output_datatype", type_code(DType::Float32)));
  if (!dtype || size < 0) return {};
  const auto shape = std::ranges::find(windows, std::string_view(c.node().type), &WindowShape::name);
  const Tensor out = Tensor::empty({size}, DType::Float64);
  for (int64_t i = 0; i < size; ++i) {
    const double angle = turn * static_cast<double>(i) / static_cast<double>(length);
    out.as<double>()[i] =
        shape->factors[0] + shape->factors[1] * std::cos(angle) + shape->factors[2] * std::cos(2 * angle);
  }
  return results_of(c.b("cast", Sym(c.b, out), *dtype));
}

struct Transform {
  int64_t axis = 0, length = 0;
  bool is_inverse = false, is_onesided = false;
};
// x [..., 1 or 2]: real numbers, or their real and imaginary parts; so is the result. In float64: much cancels.
std::optional<Sym> transformed(Builder& b, const Sym& given, const Transform& t) {
  const Sym x = b("cast", given, DType::Float64);
  const int64_t half = t.length / 2 + 1;
  const int64_t rows = t.is_inverse && t.is_onesided ? half : t.length;
  const int64_t columns = !t.is_inverse && t.is_onesided ? half : t.length;
  if (t.length < 1 || t.length > longest_transform) return {};
  const Tensor cosines = Tensor::empty({rows, columns}, DType::Float64),
               sines = Tensor::empty({rows, columns}, DType::Float64);
  for (int64_t row = 0; row < rows; ++row) {
    // Of a real result the frequencies above the half are those below once more.
    const bool is_twice = rows == half && t.is_inverse && t.is_onesided && row != 0 && 2 * row != t.length;
    const double factor = (is_twice ? 2.0 : 1.0) / (t.is_inverse ? static_cast<double>(t.length) : 1.0);
    for (int64_t column = 0; column < columns; ++column) {
      const double angle = turn * static_cast<double>(row * column % t.length) / static_cast<double>(t.length);
      cosines.as<double>()[row * columns + column] = factor * std::cos(angle);
      sines.as<double>()[row * columns + column] = factor * std::sin(angle) * (t.is_inverse ? 1 : -1);
    }
  }
  const auto product = [&](int64_t part, const Tensor& matrix) {
    Sym from = b("swapaxes", b("select", x, -1, part), t.axis, -1);
    const int64_t had = from.dim(-1);
    if (had > rows) from = b("narrow", from, -1, 0, rows);
    if (had < rows) {
      Ints before(static_cast<size_t>(from.rank()), 0), after = before;
      after.back() = rows - had;
      from = b("pad_axes", from, before, after);
    }
    return b("swapaxes", b("matmul", from, Sym(b, matrix)), t.axis, -1);
  };
  const bool is_complex = x.dim(-1) == 2;
  Sym real = product(0, cosines);
  if (is_complex) real = real - product(1, sines);
  if (t.is_inverse && t.is_onesided) return b("cast", b("expand_dims", real, -1), given.dtype());
  Sym imaginary = product(0, sines);
  if (is_complex) imaginary = imaginary + product(1, cosines);
  return b("cast", b("stack", Syms{real, imaginary}, -1), given.dtype());
}

Result dft(const NodeCall& c) {
  const Sym x = c[0];
  if (x.rank() < 2) return {};
  const int64_t given = c.opset() < 20 ? c.attribute("axis", 1) : c.has(2) ? static_cast<int64_t>(c.integer(2)) : -2;
  Transform t{.axis = axis_of(given, x.rank()),
              .is_inverse = c.attribute("inverse", 0) != 0,
              .is_onesided = c.attribute("onesided", 0) != 0};
  const int64_t size = x.dim(t.axis);
  t.length = t.is_inverse && t.is_onesided ? 2 * (size - 1) : size;
  if (c.has(1)) t.length = c.integer(1);
  const std::optional<Sym> out = transformed(c.b, x, t);
  return out ? results_of(*out) : Result();
}

Result stft(const NodeCall& c) {
  Builder& b = c.b;
  const Sym x = c[0];
  if (x.rank() != 3) return {};
  const int64_t step = c.integer(1);
  const int64_t size = c.has(3) ? c.integer(3) : c.has(2) ? c[2].dim(0) : x.dim(1);
  if (step < 1) return {};
  const Dim frames = (x.dim(1) - size) / Dim(step) + 1;
  const Sym at = places(b, frames, {frames, 1}) * Dim(step) + places(b, size, {1, size});
  Sym parts = b("take_axis", x, at, 1);
  if (c.has(2)) parts = parts * b("reshape", c[2], Ints{size, 1});
  const std::optional<Sym> out =
      transformed(b, parts, {.axis = 2, .length = size, .is_onesided = c.attribute("onesided", 1) != 0});
  return out ? results_of(*out) : Result();
}

constexpr ImportEntry entries[] = {
    {"HannWindow", window}, {"HammingWindow", window}, {"BlackmanWindow", window}, {"DFT", dft}, {"STFT", stft, 2}};

}  // namespace

std::span<const ImportEntry> signal_rules() { return entries; }

}  // namespace morel::onnx
