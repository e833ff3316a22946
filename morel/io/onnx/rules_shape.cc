// Import rules: constants, shapes, and what moves elements.
#include "morel/io/onnx/import_rules.h"

namespace morel::onnx {
namespace {

// -- constants --

Result constant(const NodeCall& c) {
  if (const Attribute* value = c.node().find("value")) return Items{item_of(Value(tensor_of(value->tensor)))};
  if (const Attribute* value = c.node().find("value_int"))
    return results_of(c.b("full", Ints{}, value->integer, DType::Int64));
  if (const Attribute* value = c.node().find("value_float"))
    return results_of(c.b("full", Ints{}, value->number, DType::Float32));
  if (const Attribute* value = c.node().find("value_ints")) {
    const Tensor out = Tensor::empty({static_cast<int64_t>(value->integers.size())}, DType::Int64);
    std::copy(value->integers.begin(), value->integers.end(), out.as<int64_t>());
    return Items{item_of(Value(out))};
  }
  if (const Attribute* value = c.node().find("value_floats")) {
    const Tensor out = Tensor::empty({static_cast<int64_t>(value->numbers.size())}, DType::Float32);
    std::copy(value->numbers.begin(), value->numbers.end(), out.as<float>());
    return Items{item_of(Value(out))};
  }
  return {};
}

Result constant_of_shape(const NodeCall& c) {
  const Attribute* value = c.node().find("value");
  const Sym fill = value ? Sym(c.b, tensor_of(value->tensor)) : c.b("full", Ints{}, 0.0, DType::Float32);
  return results_of(c.b("broadcast_to", c.b("reshape", fill, Ints{}), c.ints(0)));
}

Result shape(const NodeCall& c) {
  const Ints dims(c[0].shape());
  const int64_t rank = static_cast<int64_t>(dims.size());
  const auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t first = place(c.attribute("start", 0)), last = std::max(first, place(c.attribute("end", rank)));
  return Items{item_of(Ints(dims.begin() + first, dims.begin() + last))};
}

Result size(const NodeCall& c) { return Items{item_of(num_elements(c[0].shape()))}; }

Result range(const NodeCall& c) {
  const DType dtype = c[0].dtype();
  const auto value = [&](size_t idx) -> Value {
    if (c.item(idx).known) return (*c.item(idx).known)[0];
    return is_float(dtype) ? Value(c.number(idx)) : Value(static_cast<int64_t>(c.number(idx)));
  };
  return results_of(c.b("cast", c.b("arange_from", value(0), value(1), value(2), dtype), dtype));
}

Result eye_like(const NodeCall& c) {
  const std::optional<DType> dtype = c.node().find("dtype") ? dtype_of_code(c.attribute("dtype", 0)) : c[0].dtype();
  if (!dtype || c[0].rank() != 2) return {};
  const Dim rows = c[0].dim(0), columns = c[0].dim(1);
  const Sym diagonal = places(c.b, rows, {rows, 1}) + Dim(c.attribute("k", 0));
  return results_of(c.b("cast", c.b("equal", diagonal, places(c.b, columns, {1, columns})), *dtype));
}

Result one_hot(const NodeCall& c) {
  const Dim depth = c.item(1).known ? (*c.item(1).known)[0] : Dim(static_cast<int64_t>(c.number(1)));
  const Sym idx = c.b("cast", c[0], DType::Int64);
  const int64_t axis = c.attribute("axis", -1), rank = idx.rank() + 1;
  const int64_t at = axis_of(axis, rank);
  Ints line(static_cast<size_t>(rank), 1), wide(idx.shape());
  line[static_cast<size_t>(at)] = depth;
  wide.insert(wide.begin() + at, 1);
  const Sym from = c.b("where", c.b("less", idx, 0), idx + depth, idx);
  const Sym hit = c.b("equal", c.b("reshape", from, wide), places(c.b, depth, line));
  return results_of(c.b("where", hit, c.b("select", c[2], 0, 1), c.b("select", c[2], 0, 0)));
}

// -- the same elements in another shape --

Result reshape(const NodeCall& c) {
  if (c.attribute("allowzero", 0) == 0) return {};
  return results_of(c.b("reshape", c[0], c.ints(1)));
}

Result flatten(const NodeCall& c) {
  const Shape& shape = c[0].shape();
  const int64_t rank = static_cast<int64_t>(shape.size()), given = c.attribute("axis", 1);
  const int64_t axis = given < 0 ? given + rank : given;
  Dim left = 1, right = 1;
  for (int64_t i = 0; i < rank; ++i) (i < axis ? left : right) *= shape[static_cast<size_t>(i)];
  return results_of(c.b("reshape", c[0], Ints{left, right}));
}

Result unsqueeze(const NodeCall& c) {
  const std::optional<Ints> axes = c.list_or_input("axes", 1, 13);
  if (!axes) return {};
  const int64_t rank = c[0].rank() + static_cast<int64_t>(axes->size());
  std::vector<char> is_new(static_cast<size_t>(rank));
  for (const Dim axis : *axes) is_new[static_cast<size_t>(axis_of(axis, rank))] = 1;
  Ints out;
  size_t next = 0;
  for (const char made : is_new) out.push_back(made ? Dim(1) : c[0].shape()[next++]);
  return results_of(c.b("reshape", c[0], out));
}

Result transpose(const NodeCall& c) {
  if (c.node().find("perm")) return {};
  Ints axes;
  for (int64_t i = c[0].rank(); i-- > 0;) axes.push_back(i);
  return results_of(c.b("transpose", c[0], axes));
}

Result identity(const NodeCall& c) { return Items{c.item(0)}; }

Result dropout(const NodeCall& c) {
  if (c.has(2) && c.number(2) != 0 && (!c.has(1) || c.number(1) != 0)) return {};
  if (!c.has_output(1)) return Items{c.item(0)};
  return results_of(c[0], c.b("full", Ints(c[0].shape()), true, DType::Bool));
}

Result cast_like(const NodeCall& c) { return results_of(c.b("cast", c[0], c[1].dtype())); }

// -- pieces --

Result slice(const NodeCall& c) {
  const std::optional<Ints> starts = c.list_or_input("starts", 1, 10), ends = c.list_or_input("ends", 2, 10);
  if (!starts || !ends) return {};
  const std::optional<Ints> given = c.list_or_input("axes", 3, 10);
  const Ints steps = c.opset() >= 10 ? c.ints_or(4, Ints(starts->size(), 1)) : Ints(starts->size(), 1);
  Ints axes;
  for (size_t i = 0; i < starts->size(); ++i) axes.push_back(given ? (*given)[i] : Dim(static_cast<int64_t>(i)));
  return results_of(c.b("slice_axes", c[0], *starts, *ends, axes, steps));
}

// Pads for some axes alone.
Result pad(const NodeCall& c) {
  if (!c.has(3)) return {};
  const Ints axes = c.ints(3), pads = c.ints(1);
  const size_t rank = static_cast<size_t>(c[0].rank());
  Ints before(rank, 0), after(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(axis_of(axes[i], c[0].rank()));
    before[axis] = pads[i];
    after[axis] = pads[axes.size() + i];
  }
  const auto mode = find_conversion("pad_mode")->from_onnx(c.read(), Value(c.text("mode", "constant")));
  if (!mode) return {};
  return results_of(c.b("pad_axes", c[0], before, after, *mode, c.has(2) ? Value(c.number(2)) : Value(0.0)));
}

// The rows that index tuples (the last axis) name: of the axes before, the first `batch` agree.
struct Tuples {
  Sym data, flat;  // [batch, places, rest], [batch, tuples]
  Ints leading, rest;
  Dim places = 1;
};
Tuples tuples_of(const NodeCall& c, const Sym& data, const Sym& indices, int64_t batch) {
  Builder& b = c.b;
  const int64_t depth = indices.dim(-1);
  Tuples out;
  Dim batches = 1, rest = 1;
  for (int64_t i = 0; i < batch; ++i) batches *= data.dim(i);
  for (int64_t i = batch + depth; i < data.rank(); ++i) out.rest.push_back(data.dim(i)), rest *= data.dim(i);
  for (int64_t i = 0; i + 1 < indices.rank(); ++i) out.leading.push_back(indices.dim(i));
  const Sym wide = b("cast", indices, DType::Int64);
  Sym flat;
  for (int64_t i = 0; i < depth; ++i) {
    const Dim size = data.dim(batch + i);
    Sym at = b("select", wide, -1, i);
    at = b("where", b("less", at, 0), at + size, at);
    flat = flat ? flat * size + at : at;
    out.places *= size;
  }
  out.flat = b("reshape", flat, Ints{batches, -1});
  out.data = b("reshape", data, Ints{batches, out.places, rest});
  return out;
}

Result gather_nd(const NodeCall& c) {
  Builder& b = c.b;
  const int64_t batch = c.attribute("batch_dims", 0);
  if (c[1].dim(-1) == 0) return {};
  const Tuples t = tuples_of(c, c[0], c[1], batch);
  const Dim count = t.flat.dim(1), rest = t.data.dim(2);
  const Sym at =
      b("broadcast_to", b("reshape", t.flat, Ints{t.flat.dim(0), count, 1}), Ints{t.flat.dim(0), count, rest});
  Ints shape = t.leading;
  shape.append(t.rest.begin(), t.rest.end());
  return results_of(b("reshape", b("gather_elements", t.data, 1, at), shape));
}

Result scatter_nd(const NodeCall& c) {
  Builder& b = c.b;
  const std::string how = c.text("reduction", "none");
  if ((how != "none" && how != "add") || c[1].dim(-1) == 0) return {};
  const Tuples t = tuples_of(c, c[0], c[1], 0);
  const Dim count = t.flat.dim(1), rest = t.data.dim(2);
  const Sym at = b("broadcast_to", b("reshape", t.flat, Ints{1, count, 1}), Ints{1, count, rest});
  const Sym updates = b("reshape", c[2], Ints{1, count, rest});
  const Sym out =
      how == "add" ? b("scatter_add_elements", t.data, 1, at, updates) : b("scatter_elements", t.data, 1, at, updates);
  return results_of(b("reshape", out, Ints(c[0].shape())));
}

// Before opset 11 the name of ScatterElements.
Result scatter(const NodeCall& c) {
  return results_of(c.b("scatter_elements", c[0], c.attribute("axis", 0), c[1], c[2]));
}

Result nonzero(const NodeCall& c) { return results_of(c.b("transpose", c.b("nonzero", c[0]), Ints{1, 0})); }

Result compress(const NodeCall& c) {
  const Sym chosen = c.b("reshape", c.b("nonzero", c[1]), Ints{-1});
  if (!c.node().find("axis")) return results_of(c.b("take_axis", c.b("reshape", c[0], Ints{-1}), chosen, 0));
  return results_of(c.b("take_axis", c[0], chosen, axis_of(c.attribute("axis", 0), c[0].rank())));
}

// The first elements of an axis, as many as each example has, in reverse order.
Result reverse_sequence(const NodeCall& c) {
  Builder& b = c.b;
  const Sym x = c[0];
  const int64_t time = axis_of(c.attribute("time_axis", 0), x.rank()),
                batch = axis_of(c.attribute("batch_axis", 1), x.rank());
  Ints along(static_cast<size_t>(x.rank()), 1), across = along;
  along[static_cast<size_t>(time)] = x.dim(time);
  across[static_cast<size_t>(batch)] = x.dim(batch);
  const Sym at = places(b, x.dim(time), along), count = b("reshape", b("cast", c[1], DType::Int64), across);
  const Sym from = b("where", b("less", at, count), (count - Dim(1)) - at, at);
  return results_of(b("gather_elements", x, time, b("broadcast_to", from, Ints(x.shape()))));
}

// The middle of each axis, or 0 around it.
Result center_crop_pad(const NodeCall& c) {
  Builder& b = c.b;
  Sym out = c[0];
  const Ints sizes = c.ints(1);
  const size_t rank = static_cast<size_t>(out.rank());
  Ints all;
  for (size_t i = 0; i < rank; ++i) all.push_back(static_cast<int64_t>(i));
  const Ints axes = c.list("axes", all);
  if (sizes.size() != axes.size()) return {};
  Ints before(rank, 0), after = before;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axis_of(axes[i], out.rank()), had = out.dim(axis), wanted = sizes[i];
    if (wanted < had) out = b("narrow", out, axis, (had - wanted) / 2, wanted);
    const int64_t missing = std::max<int64_t>(0, wanted - had);
    before[static_cast<size_t>(axis)] = missing / 2;
    after[static_cast<size_t>(axis)] = missing - missing / 2;
  }
  return results_of(b("pad_axes", out, before, after));
}

Result depth_to_space(const NodeCall& c) {
  const Shape& s = c[0].shape();
  const Dim n = c.attribute("blocksize", 1);
  if (s.size() != 4) return {};
  const Dim depth = s[1] / (n * n);
  const bool is_dcr = c.text("mode", "DCR") == "DCR";
  const Sym blocks =
      c.b("reshape", c[0], is_dcr ? Ints{s[0], n, n, depth, s[2], s[3]} : Ints{s[0], depth, n, n, s[2], s[3]});
  const Sym moved = c.b("transpose", blocks, is_dcr ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3});
  return results_of(c.b("reshape", moved, Ints{s[0], depth, s[2] * n, s[3] * n}));
}

Result space_to_depth(const NodeCall& c) {
  const Shape& s = c[0].shape();
  const Dim n = c.attribute("blocksize", 1);
  if (s.size() != 4) return {};
  const Sym blocks = c.b("reshape", c[0], Ints{s[0], s[1], s[2] / n, n, s[3] / n, n});
  const Ints order = c.text("mode", "DCR") == "DCR" ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4};
  return results_of(c.b("reshape", c.b("transpose", blocks, order), Ints{s[0], s[1] * n * n, s[2] / n, s[3] / n}));
}

constexpr ImportEntry entries[] = {{"Constant", constant, 0},
                                   {"ConstantOfShape", constant_of_shape},
                                   {"Shape", shape},
                                   {"Size", size},
                                   {"Range", range, 3},
                                   {"EyeLike", eye_like},
                                   {"OneHot", one_hot, 3},
                                   {"Reshape", reshape},
                                   {"Flatten", flatten},
                                   {"Unsqueeze", unsqueeze},
                                   {"Transpose", transpose},
                                   {"Identity", identity},
                                   {"Dropout", dropout},
                                   {"CastLike", cast_like, 2},
                                   {"Slice", slice},
                                   {"Pad", pad},
                                   {"GatherND", gather_nd, 2},
                                   {"ScatterND", scatter_nd, 3},
                                   {"Scatter", scatter, 3},
                                   {"NonZero", nonzero},
                                   {"Compress", compress, 2},
                                   {"ReverseSequence", reverse_sequence, 2},
                                   {"CenterCropPad", center_crop_pad, 2},
                                   {"DepthToSpace", depth_to_space},
                                   {"SpaceToDepth", space_to_depth}};

}  // namespace

std::span<const ImportEntry> shape_rules() { return entries; }

}  // namespace morel::onnx
