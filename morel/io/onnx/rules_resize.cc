// Import rules: values between elements - resizing, and sampling at places that a tensor names. Along an axis such a
// value is a sum of a few elements ("taps"), each with a weight.
#include <cmath>

#include "morel/io/onnx/import_rules.h"

namespace morel::onnx {
namespace {

// -- resizing: places and weights are known, axis by axis --

double cubic_weight(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}
double linear_weight(double distance, double) { return std::max(0.0, 1 - std::abs(distance)); }

// What a resize is along one axis; `size` is 0 where that stays as it is.
struct Axis {
  int64_t size = 0, wanted = 0;
  double scale = 1, first = 0, last = 1;  // `first`, `last`: the part of the input, for 'tf_crop_and_resize'
};
class Resize {
 public:
  explicit Resize(const NodeCall& c)
      : c_(c),
        is_old_(c.node().type == "Upsample" || c.opset() < 11),
        mode_(c.text("mode", "nearest")),
        where_(c.text("coordinate_transformation_mode", is_old_ ? "asymmetric" : "half_pixel")),
        nearest_(c.text("nearest_mode", is_old_ ? "floor" : "round_prefer_floor")),
        a_(c.real("cubic_coeff_a", -0.75)) {}

  Result run() {
    if (const Result plain = repeated()) return plain;
    Ints all;
    for (int64_t i = 0; i < c_[0].rank(); ++i) all.push_back(i);
    const Ints named = c_.list("axes", all);
    const std::optional<std::vector<Axis>> axes = axes_of(named);
    if (!axes || (mode_ != "nearest" && mode_ != "linear" && mode_ != "cubic")) return {};
    const DType dtype = c_[0].dtype();
    Sym x = mode_ == "nearest" || is_float(dtype) ? c_[0] : c_.b("cast", c_[0], DType::Float32);
    for (size_t i = 0; i < named.size(); ++i) {
      const Axis& axis = (*axes)[i];
      if (axis.size == 0) continue;
      x = along(x, axis_of(named[i], x.rank()), axis);
    }
    return results_of(c_.b("cast", x, dtype));
  }

 private:
  size_t scales_at() const { return is_old_ ? 1 : 2; }
  bool has_scales() const { return c_.has(scales_at()) && !c_[scales_at()].dim(0).identical(0); }
  std::optional<std::vector<double>> numbers(size_t idx) const {
    if (!c_.has(idx) || c_.item(idx).known) return {};
    const Value& value = c_.item(idx).value;
    if (!value.is_tensor() || value.tensor_impl()->is_symbolic() || !is_float(value.tensor_impl()->dtype)) return {};
    const Tensor wide = c_.target().now("cast", Sym(c_.target().now, value), DType::Float64).value().tensor();
    return std::vector<double>(wide.as<double>(), wide.as<double>() + wide.size());
  }
  std::optional<std::vector<double>> scales() const {
    if (!is_old_ || c_.has(1)) return numbers(scales_at());
    const Attribute* found = c_.node().find("scales");  // an attribute before opset 9
    return found ? std::optional(std::vector<double>(found->numbers.begin(), found->numbers.end())) : std::nullopt;
  }

  // The nearest element, where sizes grow by whole numbers: sizes may be open.
  Result repeated() const {
    const bool is_plain =
        (where_ == "asymmetric" && nearest_ == "floor") || (where_ == "half_pixel" && nearest_.starts_with("round"));
    if (mode_ != "nearest" || !is_plain || c_.node().find("axes") || c_.node().find("keep_aspect_ratio_policy"))
      return {};
    const Sym x = c_[0];
    const size_t rank = static_cast<size_t>(x.rank());
    Ints factors;
    if (const auto given = scales(); given && given->size() == rank) {
      for (const double factor : *given) {
        if (factor < 1 || factor != std::floor(factor)) return {};
        factors.push_back(static_cast<int64_t>(factor));
      }
    } else if (!has_scales() && c_.has(3)) {
      const Ints sizes = c_.ints(3);
      for (size_t i = 0; i < rank; ++i) {
        if (x.shape()[i].identical(0) || sizes[i] % x.shape()[i] != 0) return {};
        factors.push_back(sizes[i] / x.shape()[i]);
      }
    } else {
      return {};
    }
    Ints split, wide, joined;
    for (size_t i = 0; i < rank; ++i) {
      const Dim size = x.shape()[i];
      split.push_back(size), split.push_back(1);
      wide.push_back(size), wide.push_back(factors[i]);
      joined.push_back(size * factors[i]);
    }
    return results_of(c_.b("reshape", c_.b("broadcast_to", c_.b("reshape", x, split), wide), joined));
  }

  std::optional<std::vector<Axis>> axes_of(const Ints& named) const {
    const std::optional<std::vector<double>> factors = scales(), roi = numbers(1);
    const bool is_crop = where_ == "tf_crop_and_resize";
    if ((has_scales() && !factors) || (is_crop && (!roi || roi->size() != 2 * named.size()))) return {};
    const bool by_factor = factors && factors->size() == named.size();
    const Ints sizes = by_factor ? Ints() : c_.ints(3);
    if (!by_factor && sizes.size() != named.size()) return {};
    const std::string policy = c_.text("keep_aspect_ratio_policy", "stretch");
    std::vector<Axis> out(named.size());
    for (size_t i = 0; i < named.size(); ++i) {
      const Dim size = c_[0].dim(axis_of(named[i], c_[0].rank()));
      const bool is_same = by_factor ? (*factors)[i] == 1 : sizes[i].identical(size) && policy == "stretch";
      if (is_same && (!is_crop || ((*roi)[i] == 0 && (*roi)[named.size() + i] == 1))) continue;
      Axis& axis = out[i];
      axis.size = size;
      axis.scale = by_factor ? (*factors)[i]
                             : static_cast<double>(static_cast<int64_t>(sizes[i])) / static_cast<double>(axis.size);
      axis.wanted = by_factor ? static_cast<int64_t>(axis.scale * static_cast<double>(axis.size))
                              : static_cast<int64_t>(sizes[i]);
      if (axis.size == 0 || axis.wanted < 0) return {};
      if (is_crop) axis.first = (*roi)[i], axis.last = (*roi)[named.size() + i];
    }
    if (by_factor || policy == "stretch" || out.empty()) return out;
    const auto less = [](const Axis& a, const Axis& b) { return a.scale < b.scale; };
    const double common = policy == "not_larger" ? std::ranges::min_element(out, less)->scale
                                                 : std::ranges::max_element(out, less)->scale;
    for (Axis& axis : out) {
      axis.scale = common;
      axis.wanted = static_cast<int64_t>(common * static_cast<double>(axis.size) + 0.5);
    }
    return out;
  }

  // Where an element of the result is in the input.
  double place(int64_t idx, const Axis& axis) const {
    const double at = static_cast<double>(idx), size = static_cast<double>(axis.size), wanted = axis.scale * size;
    if (where_ == "asymmetric") return at / axis.scale;
    if (where_ == "align_corners") return wanted == 1 ? 0 : at * (size - 1) / (wanted - 1);
    if (where_ == "pytorch_half_pixel" && wanted == 1) return -0.5;
    if (where_ == "tf_crop_and_resize") {
      const double part = (axis.last - axis.first) * (size - 1);
      return axis.first * (size - 1) + (wanted == 1 ? part / 2 : at * part / (wanted - 1));
    }
    const double centred = (at + 0.5) / axis.scale - 0.5;
    if (where_ != "half_pixel_symmetric") return centred;
    return size / 2 * (1 - static_cast<double>(axis.wanted) / wanted) + centred;
  }
  double nearest(double place) const {
    if (nearest_ == "floor") return std::floor(place);
    if (nearest_ == "ceil") return std::ceil(place);
    return nearest_ == "round_prefer_ceil" ? std::floor(place + 0.5) : std::ceil(place - 0.5);
  }

  Sym along(const Sym& x, int64_t axis, const Axis& given) const {
    Builder& b = c_.b;
    const bool is_nearest = mode_ == "nearest", is_outside_out = c_.attribute("exclude_outside", 0);
    const double stretch = c_.attribute("antialias", 0) ? std::min(given.scale, 1.0) : 1.0;
    const double reach = (mode_ == "cubic" ? 2 : 1) / stretch;
    const int64_t taps = is_nearest ? 1 : 2 * static_cast<int64_t>(std::ceil(reach));
    std::vector<Tensor> at, weights;
    for (int64_t tap = 0; tap < taps; ++tap) {
      at.push_back(Tensor::empty({given.wanted}, DType::Int64));
      weights.push_back(Tensor::empty({given.wanted}, DType::Float32));
    }
    const Tensor outside = Tensor::empty({given.wanted}, DType::Bool);
    for (int64_t i = 0; i < given.wanted; ++i) {
      const double where = place(i, given), first = is_nearest ? nearest(where) : std::floor(where) - (taps / 2 - 1);
      outside.as<bool>()[i] = where < 0 || where > static_cast<double>(given.size - 1);
      std::vector<double> row(static_cast<size_t>(taps), 1.0);
      double total = 0;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const double from = first + static_cast<double>(tap);
        double& weight = row[static_cast<size_t>(tap)];
        if (!is_nearest) weight = (mode_ == "cubic" ? cubic_weight : linear_weight)((from - where) * stretch, a_);
        if (is_outside_out && (from < 0 || from >= static_cast<double>(given.size))) weight = 0;
        total += weight;
        at[static_cast<size_t>(tap)].as<int64_t>()[i] =
            std::clamp<int64_t>(static_cast<int64_t>(from), 0, given.size - 1);
      }
      for (int64_t tap = 0; tap < taps; ++tap)
        weights[static_cast<size_t>(tap)].as<float>()[i] = static_cast<float>(row[static_cast<size_t>(tap)] / total);
    }
    Ints line(static_cast<size_t>(x.rank()), 1);
    line[static_cast<size_t>(axis)] = given.wanted;
    Sym out;
    for (size_t tap = 0; tap < at.size(); ++tap) {
      Sym part = b("take_axis", x, Sym(b, at[tap]), axis);
      if (!is_nearest) part = part * b("cast", b("reshape", Sym(b, weights[tap]), line), x.dtype());
      out = out ? out + part : part;
    }
    if (where_ != "tf_crop_and_resize") return out;
    return b("where", b("reshape", Sym(b, outside), line), c_.real("extrapolation_value", 0.0), out);
  }

  const NodeCall& c_;
  bool is_old_;
  std::string mode_, where_, nearest_;
  double a_;
};
Result resize(const NodeCall& c) { return Resize(c).run(); }

// -- sampling: places are values --

// Places of a grid over -1 .. 1.
Result affine_grid(const NodeCall& c) {
  Builder& b = c.b;
  const Ints size = c.ints(1);
  const bool is_aligned = c.attribute("align_corners", 0);
  const size_t axes = size.size() - 2;
  if (axes < 2 || axes > 3) return {};
  const Ints image(size.begin() + 2, size.end());
  Syms columns;
  for (size_t i = axes; i-- > 0;) {
    Ints line(axes, 1);
    line[i] = image[i];
    const Sym at = b("cast", places(b, image[i], line), c[0].dtype());
    const double count = static_cast<double>(static_cast<int64_t>(image[i]));
    const Sym where = is_aligned ? at * (2 / (count - 1)) - 1.0 : (at * 2.0 + 1.0) / count - 1.0;
    columns.push_back(b("reshape", b("broadcast_to", where, image), Ints{-1}));
  }
  columns.push_back(b("ones_like", columns[0]));
  Ints shape{size[0]};
  shape.append(image.begin(), image.end());
  shape.push_back(static_cast<int64_t>(axes));
  const Sym out = b("matmul", b("stack", columns, 1), b("transpose", c[0], Ints{0, 2, 1}));
  return results_of(b("reshape", out, shape));
}

class GridSample {
 public:
  explicit GridSample(const NodeCall& c)
      : c_(c),
        b_(c.b),
        mode_(c.text("mode", "linear")),
        padding_(c.text("padding_mode", "zeros")),
        is_aligned_(c.attribute("align_corners", 0)) {
    if (mode_.starts_with("bi")) mode_ = mode_.substr(2);  // before opset 20
  }

  Result run() {
    const Sym x = c_[0], grid = c_[1];
    const int64_t axes = x.rank() - 2;
    if (axes < 1 || grid.rank() != x.rank() || grid.dim(-1) != axes) return {};
    if (mode_ != "nearest" && mode_ != "linear" && mode_ != "cubic") return {};
    Ints out_shape{x.dim(0), x.dim(1)};
    Dim elements = 1;
    std::vector<Taps> taps;
    for (int64_t i = 0; i < axes; ++i) {
      out_shape.push_back(grid.dim(1 + i));
      elements *= x.dim(2 + i);
      taps.push_back(taps_of(b_("select", grid, -1, axes - 1 - i), x.dim(2 + i)));
    }
    flat_ = b_("reshape", x, Ints{x.dim(0), x.dim(1), elements});
    return results_of(b_("reshape", total(taps, 0, {}, {}), out_shape));
  }

 private:
  struct Tap {
    Sym at, weight;  // [N, ...]; no weight: 1
  };
  using Taps = std::vector<Tap>;

  // The place as a number of elements.
  Sym denormalised(const Sym& where, Dim size) const {
    return is_aligned_ ? (where + 1.0) * 0.5 * (size - 1) : ((where + 1.0) * size - 1.0) * 0.5;
  }
  // Back into the image at its borders.
  Sym reflected(const Sym& at, Dim size) const {
    const double low = is_aligned_ ? 0 : -0.5;
    const Dim range = is_aligned_ ? size - 1 : size;
    if (range == 0) return at * 0.0;  // between the centres of one element
    const Sym folded = b_("floor_mod", b_("abs", at - low), range * 2);
    return b_("minimum", folded, range * 2 - folded) + low;
  }
  // A place beyond the borders, which are half an element around the image where corners are not aligned.
  Sym within(const Sym& at, Dim size) const {
    if (padding_ == "zeros") return at;
    if (padding_ == "reflection") return reflected(at, size);
    const double margin = is_aligned_ ? 0 : 0.5;
    const Sym is_beyond = b_("logical_or", b_("less", at, -margin), b_("greater", at - (size - 1), margin));
    return b_("where", is_beyond, b_("clamp", at, 0, size - 1), at);
  }
  Sym inside(const Sym& at, Dim size) const {
    if (padding_ == "zeros") return at;
    return b_("clamp", padding_ == "border" ? at : reflected(at, size), 0, size - 1);
  }

  Taps taps_of(const Sym& where, Dim size) const {
    Sym place = denormalised(where, size);
    place = mode_ == "nearest" ? b_("round_even", place) : within(place, size);
    const Sym first = b_("floor", place), part = place - first;
    if (mode_ == "nearest") return {tap(first, {}, size)};
    if (mode_ == "linear") return {tap(first, 1.0 - part, size), tap(first + 1.0, part, size)};
    Taps out;
    for (int64_t i = -1; i <= 2; ++i)
      out.push_back(
          tap(first + static_cast<double>(i), cubic(b_("abs", part - static_cast<double>(i)), i == 0 || i == 1), size));
    return out;
  }
  static Sym cubic(const Sym& x, bool is_near) {
    constexpr double a = -0.75;
    return is_near ? ((a + 2) * x - (a + 3)) * x * x + 1.0 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  }
  // Without an element there the weight is 0.
  Tap tap(const Sym& at, const Sym& weight, Dim size) const {
    const Sym place = b_("cast", inside(at, size), DType::Int64), valid = b_("clamp", place, 0, size - 1);
    if (padding_ != "zeros") return {valid, weight};
    const Sym there = b_("cast", b_("equal", place, valid), c_[0].dtype());
    return {valid, weight ? weight * there : there};
  }

  // The sum over all combinations of taps from axis `axis` on.
  Sym total(const std::vector<Taps>& taps, size_t axis, const Sym& at, const Sym& weight) const {
    if (axis == taps.size()) {
      const Dim count = num_elements(at.shape()) / at.dim(0);
      const Ints wide{flat_.dim(0), flat_.dim(1), count};
      const Sym idx = b_("broadcast_to", b_("reshape", at, Ints{at.dim(0), 1, count}), wide);
      const Sym found = b_("gather_elements", flat_, 2, idx);
      return weight ? found * b_("reshape", b_("cast", weight, flat_.dtype()), Ints{at.dim(0), 1, count}) : found;
    }
    Sym out;
    for (const Tap& tap : taps[axis]) {
      const Dim size = c_[0].dim(2 + static_cast<int64_t>(axis));
      const Sym part = total(taps, axis + 1, at ? at * size + tap.at : tap.at,
                             weight && tap.weight ? weight * tap.weight : tap.weight);
      out = out ? out + part : part;
    }
    return out;
  }

  const NodeCall& c_;
  Builder& b_;
  std::string mode_, padding_;
  bool is_aligned_;
  Sym flat_;  // [N, C, elements]
};
Result grid_sample(const NodeCall& c) { return GridSample(c).run(); }

constexpr ImportEntry entries[] = {
    {"Resize", resize}, {"Upsample", resize}, {"AffineGrid", affine_grid, 2}, {"GridSample", grid_sample, 2}};

}  // namespace

std::span<const ImportEntry> resize_rules() { return entries; }

}  // namespace morel::onnx
