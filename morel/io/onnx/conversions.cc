// Arguments that ONNX writes another way: OpDef::onnx names these ("padding:pads <- pads").
#include "morel/io/onnx/mapping.h"

namespace morel::onnx {
namespace {

using Result = std::optional<Value>;

Ints as_ints(const Value& value) { return value.is_integer() ? Ints{value.dim()} : value.ints(); }
int64_t rank_of_input(const WrittenCall& call) { return static_cast<int64_t>(shape_of(call.args[0]).size()); }

// One integer as a list.
Result to_list(const WrittenCall&, const Value& value) { return Value(as_ints(value)); }
Result from_list(const ReadNode&, const Value& value) {
  if (value.is_none() || as_ints(value).size() != 1) return {};
  return Value(as_ints(value)[0]);
}

// Axes, which must not be negative.
Result to_axes(const WrittenCall& call, const Value& value) {
  Ints axes = as_ints(value);
  for (Dim& axis : axes)
    if (axis < 0) axis += rank_of_input(call);
  return Value(axes);
}
Result from_axes(const ReadNode&, const Value& value) {
  if (value.is_none()) return {};
  return value;
}

// One number for each axis of a window; 1 where they are missing.
Result same(const WrittenCall&, const Value& value) { return value; }
Result from_window(const ReadNode&, const Value& value) { return value.is_none() ? Value(Ints{1, 1}) : value; }

// (top, bottom, left, right) as (top, left, bottom, right).
Result to_pads(const WrittenCall&, const Value& value) {
  const Ints& pads = value.ints();
  Ints out;
  for (const size_t side : {0, 1})
    for (size_t axis = 0; axis < pads.size() / 2; ++axis) out.push_back(pads[2 * axis + side]);
  return Value(out);
}
Result from_pads(const ReadNode& read, const Value&) {
  if (read.types.empty() || read.types[0].shape.size() < 3) return {};
  const Shape& image = read.types[0].shape;
  Ints kernel = read.ints("kernel_shape", {});
  if (kernel.empty() && read.types.size() > 1)
    kernel = Ints(read.types[1].shape.begin() + 2, read.types[1].shape.end());
  const std::optional<Ints> pads = pads_of(read, Shape(image.begin() + 2, image.end()), kernel);
  if (!pads) return {};
  return Value(*pads);
}

// Sizes of a shape: 0 is that of the input, -1 what is left.
Result to_reshape(const WrittenCall& call, const Value&) {
  const Shape &from = shape_of(call.args[0]), &to = call.results[0].shape;
  Ints out(to);
  bool is_free = true;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].is_symbolic()) continue;
    if (i < from.size() && from[i].identical(out[i])) out[i] = 0;
    else if (is_free) out[i] = -1, is_free = false;
  }
  for (size_t i = 0; i < to.size(); ++i)
    if (!to[i].is_symbolic() && to[i] == 0 && !(i < from.size() && from[i].identical(to[i]))) return {};
  return Value(out);
}
Result from_reshape(const ReadNode& read, const Value& value) {
  if (value.is_none() || read.types.empty()) return {};
  Ints shape = as_ints(value);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_symbolic() || shape[i] != 0) continue;
    if (i >= read.types[0].shape.size()) return {};
    shape[i] = read.types[0].shape[i];
  }
  return Value(shape);
}

Result to_result_shape(const WrittenCall& call, const Value&) { return Value(Ints(call.results[0].shape)); }
// Both broadcast against each other.
Result from_broadcast(const ReadNode& read, const Value& value) {
  if (value.is_none() || read.types.empty()) return {};
  Ints shape = as_ints(value);
  const Shape& input = read.types[0].shape;
  while (shape.size() < input.size()) shape.insert(shape.begin(), 1);
  const size_t shift = shape.size() - input.size();
  for (size_t i = 0; i < input.size(); ++i)
    if (!shape[shift + i].is_symbolic() && shape[shift + i] == 1) shape[shift + i] = input[i];
  return Value(shape);
}

// A number for every axis, no fewer.
Result to_per_axis(const WrittenCall& call, const Value& value) {
  if (static_cast<int64_t>(value.ints().size()) != rank_of_input(call)) return {};
  return value;
}

// Sizes of the pieces of a split.
Result to_sections(const WrittenCall& call, const Value&) {
  const ArgView view(call.op, call.args);
  const int64_t axis = view.axis("axis", rank_of_input(call));
  Ints out;
  for (const Type& piece : call.results) out.push_back(piece.shape[static_cast<size_t>(axis)]);
  return Value(out);
}
Result from_sections(const ReadNode& read, const Value& value) {
  if (!value.is_none()) return Value(as_ints(value));
  if (read.types.empty()) return {};
  const Attribute* named = read.node.find("axis");
  const int64_t rank = static_cast<int64_t>(read.types[0].shape.size()), axis = named ? named->integer : 0;
  if (axis < -rank || axis >= rank) return {};
  const Dim size = read.types[0].shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
  const int64_t pieces = static_cast<int64_t>(read.node.outputs.size());
  const Dim each = (size + pieces - 1) / pieces;
  Ints out(static_cast<size_t>(pieces), each);
  out.back() = size - each * (pieces - 1);
  return Value(out);
}

// The sizes of the last axes, as the first of these.
Result to_trailing(const WrittenCall&, const Value& value) {
  return Value(-static_cast<int64_t>(as_ints(value).size()));
}
Result from_trailing(const ReadNode& read, const Value& value) {
  if (read.types.empty() || value.is_none()) return {};
  const Shape& shape = read.types[0].shape;
  const int64_t rank = static_cast<int64_t>(shape.size()),
                axis = value.integer() < 0 ? value.integer() + rank : value.integer();
  if (axis < 0 || axis >= rank) return {};
  return Value(Ints(shape.begin() + axis, shape.end()));
}

struct PadMode {
  std::string_view ours, onnx;
  int since;
};
constexpr PadMode pad_modes[] = {
    {"constant", "constant", 1}, {"reflect", "reflect", 1}, {"replicate", "edge", 1}, {"circular", "wrap", 19}};
Result to_pad_mode(const WrittenCall& call, const Value& value) {
  for (const PadMode& mode : pad_modes)
    if (mode.ours == value.str() && mode.since <= call.opset) return Value(mode.onnx);
  return {};
}
Result from_pad_mode(const ReadNode&, const Value& value) {
  for (const PadMode& mode : pad_modes)
    if (mode.onnx == value.str()) return Value(mode.ours);
  return {};
}

constexpr Conversion conversions[] = {
    {"list", to_list, from_list},
    {"axes", to_axes, from_axes},
    {"window", same, from_window},
    {"pads", to_pads, from_pads},
    {"reshape", to_reshape, from_reshape},
    {"broadcast", to_result_shape, from_broadcast},
    {"per_axis", to_per_axis, from_axes},
    {"sections", to_sections, from_sections},
    {"trailing", to_trailing, from_trailing},
    {"pad_mode", to_pad_mode, from_pad_mode},
};

}  // namespace

const Conversion* find_conversion(std::string_view name) {
  for (const Conversion& entry : conversions)
    if (entry.name == name) return &entry;
  return nullptr;
}

Ints ReadNode::ints(std::string_view attribute, Ints fallback) const {
  const Attribute* found = node.find(attribute);
  return found ? Ints(found->integers.begin(), found->integers.end()) : fallback;
}

std::optional<Ints> pads_of(const ReadNode& read, const Shape& image, const Ints& kernel) {
  const size_t axes = image.size();
  const Ints strides = read.ints("strides", Ints(axes, 1)), dilations = read.ints("dilations", Ints(axes, 1));
  const Attribute* automatic = read.node.find("auto_pad");
  const std::string mode = automatic ? automatic->text : "NOTSET";
  Ints out;
  if (mode == "NOTSET" || mode == "VALID") {
    const Ints given = mode == "VALID" ? Ints(2 * axes, 0) : read.ints("pads", Ints(2 * axes, 0));
    if (given.size() != 2 * axes) return {};
    for (size_t i = 0; i < axes; ++i) out.push_back(given[i]), out.push_back(given[axes + i]);
    return out;
  }
  if (kernel.size() != axes || strides.size() != axes || dilations.size() != axes) return {};
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") return {};
  for (size_t i = 0; i < axes; ++i) {
    const Dim count = (image[i] + strides[i] - 1) / strides[i];
    const Dim total = std::max<Dim>(0, (count - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1 - image[i]);
    const Dim less = total / 2, more = total - less;
    out.push_back(mode == "SAME_UPPER" ? less : more);
    out.push_back(mode == "SAME_UPPER" ? more : less);
  }
  return out;
}

}  // namespace morel::onnx
