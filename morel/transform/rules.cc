// The local rules. Every rule keeps all bits of the results for every dtype that it accepts; what looks like an
// identity but is none is left out:
//   x + 0, 0 + x   for floats: -0.0 + 0.0 is 0.0 (with -0.0 for the zero it is an identity)
//   0 - x -> -x    0.0 - 0.0 is 0.0
//   x * 0 -> 0     NaN and infinity give NaN, negative numbers -0.0
//   x * 1, x / 1   for complex numbers: inf * 0 makes NaN of the other part
//   x * 1 with another result dtype or shape: promotion and broadcasting are part of the operator
//   sum over axes of one element: 0.0 + -0.0 is 0.0
//   x / c -> x * (1 / c), (x + a) + b -> x + (a + b): rounded differently
// A rule that gives an existing tensor instead of a new one asks Sharing whether that can be noticed.
#include <cmath>
#include <cstring>

#include "morel/ops/call.h"
#include "morel/tensor/scalar.h"
#include "morel/transform/rewrite.h"

namespace morel {
namespace {

const Value& arg(const Match& m, size_t i) { return m.node.args[i]; }

// ---- numbers ----

// A number that is the same whatever sizes the graph is called with.
bool is_constant(const Value& value) { return value.is_number() && value.tag() != Value::Tag::Size; }

// The number as an element of dtype holds it; None where the dtype cannot hold it, or this process cannot tell.
Value rounded(const Value& number, DType dtype) {
  constexpr double exact_integers = 9007199254740992.0;  // 2^53
  const bool is_integer_dtype = is_integral(dtype);
  if (number.tag() != Value::Tag::Complex && is_integer_dtype && !(std::abs(number.number()) < exact_integers))
    return {};
  if (number.tag() == Value::Tag::Complex && !is_complex(dtype)) return {};
  alignas(16) std::byte element[16];
  store_scalar(number, dtype, element);
  Value out;
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T value;
    std::memcpy(&value, element, sizeof value);
    if constexpr (std::is_same_v<T, bool>) out = value;
    else if constexpr (std::is_integral_v<T>) out = static_cast<int64_t>(value);
    else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) out = double(to_float(value));
    else if constexpr (std::is_floating_point_v<T>) out = static_cast<double>(value);
    else out = std::complex<double>(value);
  });
  const bool fits = !is_integer_dtype || out.integer() == static_cast<int64_t>(number.number());
  return fits ? out : Value();
}

// The number that all elements of a value are equal to; None where that is not known.
Value number_of(const Value& value, const Sharing& sharing) {
  if (is_constant(value)) return value;
  const Node* root = root_of(value);
  if (!root || !root->op || sharing.is_written(root)) return {};
  if (root->name == "zeros") return rounded(int64_t{0}, root->types[0].dtype);
  if (root->name == "ones") return rounded(int64_t{1}, root->types[0].dtype);
  if (root->name == "full" && is_constant(root->args[1])) return rounded(root->args[1], root->types[0].dtype);
  return {};
}

bool is_real_number(const Value& value) { return is_constant(value) && value.tag() != Value::Tag::Complex; }
bool is_one(const Value& value) { return is_real_number(value) && value.number() == 1; }
bool is_zero(const Value& value, bool negative) {
  return is_real_number(value) && value.number() == 0 && std::signbit(value.number()) == negative;
}

Sym filled(const Match& m, const Type& type, const Value& number) {
  return m.builder("full", Ints(type.shape), number, type.dtype);
}

// ---- what stands for the node ----

// An existing tensor, where it has the type of the result and sharing it is not noticed.
Values existing(const Match& m, const Value& value) {
  if (!node_of(value) || type_of(value) != m.node.types[0] || !m.sharing.may_stand_for(m.node, value)) return {};
  return {value};
}

// The node that made argument i by one of these operators and that may be looked through.
const Node* made_by(const Match& m, size_t i, std::initializer_list<std::string_view> ops) {
  const Node* node = node_of(arg(m, i));
  if (!node || !node->op || node->stops_gradient || m.sharing.is_written(node)) return nullptr;
  if (std::ranges::find(ops, node->name) == ops.end() || !m.sharing.reads_the_same(m.node, *node)) return nullptr;
  return node;
}

// ---- arithmetic ----

// The other operand of the neutral one.
template <class F>
Values other_operand(const Match& m, bool either_side, F&& is_neutral) {
  if (is_complex(m.node.types[0].dtype)) return {};
  if (is_neutral(number_of(arg(m, 1), m.sharing))) return existing(m, arg(m, 0));
  if (either_side && is_neutral(number_of(arg(m, 0), m.sharing))) return existing(m, arg(m, 1));
  return {};
}

Values times_one(const Match& m) { return other_operand(m, true, is_one); }
Values divided_by_one(const Match& m) { return other_operand(m, false, is_one); }
Values minus_zero(const Match& m) {
  return other_operand(m, false, [](const Value& number) { return is_zero(number, false); });
}
Values plus_zero(const Match& m) {
  const bool negative = is_float(m.node.types[0].dtype);
  return other_operand(m, true, [&](const Value& number) { return is_zero(number, negative); });
}
Values to_the_first(const Match& m) { return other_operand(m, false, is_one); }

// neg(neg(x)), logical_not(logical_not(x)): functions that undo themselves.
Values twice(const Match& m) {
  const Node* inner = made_by(m, 0, {m.node.name});
  return inner ? existing(m, inner->args[0]) : Values();
}

Values where_same(const Match& m) {
  const Value &a = arg(m, 1), &b = arg(m, 2);
  const bool same = node_of(a) && node_of(a) == node_of(b) && a.output() == b.output();
  return same ? existing(m, a) : Values();
}

Values where_known(const Match& m) {
  const Value condition = number_of(arg(m, 0), m.sharing);
  if (!is_real_number(condition)) return {};
  const Value& chosen = arg(m, condition.number() != 0 ? 1 : 2);
  if (node_of(chosen)) return existing(m, chosen);
  return {filled(m, m.node.types[0], chosen).value()};
}

// ---- constants ----

// An operand that is one number everywhere is passed as the number, where the result stays what it is: nothing is
// filled, and loops need not read it.
Values number_operand(const Match& m) {
  const OpDef& op = *m.node.op;
  Args args = m.node.args;
  bool changed = false, any_tensor = false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!node_of(args[i])) continue;
    const Value number = op.schema.args[i].kinds & kNumber ? number_of(args[i], m.sharing) : Value();
    if (is_real_number(number)) args[i] = number;
    changed |= is_real_number(number);
    any_tensor |= !is_real_number(number) && op.schema.args[i].is_tensor_like();
  }
  if (!changed || !any_tensor) return {};
  const std::span<const Value> all(args.data(), args.size());
  const DType before = elementwise_compute_dtype(op, {m.node.args.data(), m.node.args.size()});
  if (infer_types(op, all) != m.node.types || elementwise_compute_dtype(op, all) != before) return {};
  return m.builder.emit(op, all);
}

// A function of numbers is computed now and its result filled.
Values elementwise_of_numbers(const Match& m) {
  if (!m.evaluate || m.node.types.size() != 1) return {};
  Args args = m.node.args;
  bool any = false;
  for (Value& value : args) {
    if (!node_of(value)) continue;
    const Value number = number_of(value, m.sharing);
    if (!is_real_number(number)) return {};
    any = true;
    if (!m.node.op->schema.args[static_cast<size_t>(&value - args.begin())].is_tensor_like()) {
      value = number;
      continue;
    }
    const Tensor element = Tensor::empty({}, dtype_of_value(value));
    store_scalar(number, element.dtype(), element->storage->data());
    value = element;
  }
  if (!any) return {};
  const Tensor result = m.evaluate(*m.node.op, {args.data(), args.size()})[0].tensor();
  if (is_complex(result.dtype())) return {};
  Value number;
  visit_dtype(result.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T value = *result.as<T>();
    if constexpr (std::is_same_v<T, bool>) number = value;
    else if constexpr (std::is_integral_v<T>) number = rounded(static_cast<int64_t>(value), result.dtype());
    else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) number = double(to_float(value));
    else if constexpr (std::is_floating_point_v<T>) number = static_cast<double>(value);
  });
  if (number.is_none()) return {};
  return {filled(m, m.node.types[0], number).value()};
}

// ---- conversions ----

// Whether every value of `from` is one of `to`.
bool holds(DType to, DType from) {
  const auto digits = [](DType dtype) -> int64_t {  // bits of a significand
    switch (real_dtype(dtype)) {
      case DType::Float16: return 11;
      case DType::BFloat16: return 8;
      case DType::Float32: return 24;
      case DType::Float64: return 53;
      default: return size_of(dtype) * 8 - (is_signed_int(dtype) ? 1 : 0);
    }
  };
  if (to == from || from == DType::Bool) return true;
  if (to == DType::Bool || (is_complex(from) && !is_complex(to))) return false;
  const DType a = real_dtype(to), b = real_dtype(from);
  if (is_integral(a)) return is_integral(b) && digits(a) >= digits(b) && (is_signed_int(a) || !is_signed_int(b));
  if (is_integral(b)) return digits(a) >= digits(b);
  return digits(a) >= digits(b) && !(b == DType::BFloat16 && a == DType::Float16);
}

// cast(cast(x)), where the first one loses nothing.
Values cast_of_cast(const Match& m) {
  const Node* inner = made_by(m, 0, {"convert_dtype"});
  if (!inner || !holds(inner->types[0].dtype, dtype_of_value(inner->args[0]))) return {};
  if (dtype_of_value(inner->args[0]) == m.node.types[0].dtype) return existing(m, inner->args[0]);
  const Value args[] = {inner->args[0], arg(m, 1)};
  return m.builder.emit(*m.node.op, args);
}

// A conversion to the type at hand gives its input itself, in every mode.
Values conversion_to_same(const Match& m) {
  if (!m.node.op->has(kConversion) || !node_of(arg(m, 0)) || type_of(arg(m, 0)) != m.node.types[0]) return {};
  return {arg(m, 0)};
}

// ---- views ----

// Those of `contiguous`, `view_after` and `custom_gradient` are asked for as such.
bool is_plain_view(const Node& node) {
  return node.op && node.op->view && node.name != "contiguous" && node.name != "view_after" &&
         node.name != "custom_gradient" && node_of(node.args[0]);
}

std::optional<Layout> layout_of(const Node& view, const Layout& input) {
  return view.op->view(ArgView(*view.op, {view.args.data(), view.args.size()}), input);
}

Layout row_major(const Shape& shape) { return {shape, contiguous_strides(shape), 0}; }

bool is_row_major(const Layout& layout) {
  if (layout.offset != 0) return false;
  const Strides strides = contiguous_strides(layout.shape);
  for (size_t i = 0; i < strides.size(); ++i)
    if (layout.shape[i] != 1 && layout.strides[i] != strides[i]) return false;
  return true;
}

// A slice of everything, axes in their order: all elements where they were.
Values view_of_all(const Match& m) {
  if (!is_plain_view(m.node) || type_of(arg(m, 0)) != m.node.types[0]) return {};
  const std::optional<Layout> layout = layout_of(m.node, row_major(shape_of(arg(m, 0))));
  return layout && is_row_major(*layout) ? existing(m, arg(m, 0)) : Values();
}

// A view of a view that has all elements in order: the input of the first one, or one reshape of it.
Values view_of_view(const Match& m) {
  constexpr size_t most = 6;  // views that are looked through
  SmallVector<const Node*, most> views;
  for (const Node* node = &m.node; views.size() < most && is_plain_view(*node) && !node->stops_gradient;) {
    if (m.sharing.is_written(node)) break;
    views.push_back(node);
    node = node_of(node->args[0]);
  }
  for (size_t count = views.size(); count > 1; --count) {
    const Value& source = views[count - 1]->args[0];
    std::optional<Layout> layout = row_major(shape_of(source));
    for (size_t i = count; i-- > 0 && layout;) layout = layout_of(*views[i], *layout);
    if (!layout || !is_row_major(*layout) || num_elements(layout->shape) != num_elements(shape_of(source))) continue;
    if (!m.sharing.may_stand_for(m.node, source)) continue;
    if (layout->shape == shape_of(source)) return {source};
    return {m.builder("reshape", Sym(m.builder, source), Ints(layout->shape)).value()};
  }
  return {};
}

// The order in which a node takes the axes of its input.
Ints order_of(const Node& node) {
  const auto rank = static_cast<int64_t>(node.types[0].shape.size());
  Ints out;
  if (node.name == "swapaxes") {
    for (int64_t i = 0; i < rank; ++i) out.push_back(i);
    const auto place = [&](size_t i) { return static_cast<size_t>((node.args[i].integer() + rank) % rank); };
    if (rank > 0) std::swap(out[place(1)], out[place(2)]);
  } else {
    for (const int64_t axis : numbers_of(node.args[1].ints())) out.push_back(axis < 0 ? axis + rank : axis);
  }
  return out;
}

Values transpose_of_transpose(const Match& m) {
  const Node* inner = made_by(m, 0, {"transpose", "permute", "swapaxes"});
  if (!inner) return {};
  const Ints first = order_of(*inner), second = order_of(m.node);
  Ints both;
  bool in_order = true;
  for (const int64_t axis : numbers_of(second)) {
    both.push_back(first[static_cast<size_t>(axis)]);
    in_order = in_order && both.back() == static_cast<int64_t>(both.size()) - 1;
  }
  if (!in_order) return {m.builder("transpose", Sym(m.builder, inner->args[0]), both).value()};
  return existing(m, inner->args[0]);
}

// Elementwise operators broadcast by themselves.
Values broadcast_operand(const Match& m) {
  Args args = m.node.args;
  bool changed = false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!m.node.op->schema.args[i].is_tensor_like()) continue;
    const Node* view = made_by(m, i, {"broadcast_to", "expand"});
    if (!view) continue;
    const Value wide = args[i];
    args[i] = view->args[0];
    if (infer_types(*m.node.op, {args.data(), args.size()}) == m.node.types) changed = true;
    else args[i] = wide;
  }
  return changed ? m.builder.emit(*m.node.op, {args.data(), args.size()}) : Values();
}

// ---- copies ----

Values clone_of_temporary(const Match& m) { return existing(m, arg(m, 0)); }

Values concat_of_one(const Match& m) {
  const Value::List& parts = arg(m, 0).list();
  return parts.size() == 1 ? existing(m, parts[0]) : Values();
}

// Gradients of parts that lie side by side, each put into zeros, and these added: one concatenation. Zeros were added
// to every element, so -0.0 became 0.0; the sum with 0.0 does that.
struct Block {
  Value source;
  size_t axis;
  Dim start, length;
};

// Where an as_strided_grad node puts its source: a range of one axis, all of the others.
std::optional<Block> block_of(const Node& node) {
  const Shape& shape = node.types[0].shape;
  const Strides strides = contiguous_strides(shape);
  const Ints &size = node.args[2].ints(), &stride = node.args[3].ints();
  const Dim offset = node.args[4].dim();
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (strides[axis] < 1 || !(offset % strides[axis] == 0)) continue;
    const bool keeps_axis = size.size() == shape.size();
    if (!keeps_axis && size.size() + 1 != shape.size()) return {};
    const Dim start = offset / strides[axis], length = keeps_axis ? size[axis] : Dim(1);
    bool fits = length > 0 && length < shape[axis] && start >= 0 && start + length <= shape[axis];
    for (size_t i = 0; fits && i < shape.size(); ++i) {
      if (!keeps_axis && i == axis) continue;
      const size_t at = keeps_axis || i < axis ? i : i - 1;
      fits = (i == axis || size[at] == shape[i]) && (size[at] == 1 || stride[at] == strides[i]);
    }
    if (fits) return Block{node.args[0], axis, start, length};
  }
  return {};
}

bool collect_blocks(const Match& m, const Value& value, std::vector<Block>& out) {
  constexpr size_t most = 64;
  const Node* node = node_of(value);
  if (!node || !node->op || node->stops_gradient || out.size() >= most) return false;
  if (node->name == "add") return collect_blocks(m, node->args[0], out) && collect_blocks(m, node->args[1], out);
  if (node->name != "as_strided_grad" || !m.sharing.reads_the_same(m.node, *node)) return false;
  const std::optional<Block> block = block_of(*node);
  if (block) out.push_back(*block);
  return block.has_value();
}

Values gradients_of_parts(const Match& m) {
  const Type& type = m.node.types[0];
  std::vector<Block> blocks;
  for (const Value& value : m.node.args)
    if (!node_of(value) || type_of(value) != type || !collect_blocks(m, value, blocks)) return {};
  std::ranges::sort(blocks, {}, &Block::start);
  Dim end = 0;
  for (const Block& block : blocks) {
    if (block.axis != blocks[0].axis || block.start != end) return {};
    end += block.length;
  }
  const size_t axis = blocks[0].axis;
  if (end != type.shape[axis]) return {};
  Syms parts;
  for (const Block& block : blocks) {
    Ints shape(type.shape);
    shape[axis] = block.length;
    const Sym source(m.builder, block.source);
    parts.push_back(source.shape() == shape ? source : m.builder("reshape", source, shape));
  }
  const Sym all = m.builder("concat", parts, static_cast<int64_t>(axis));
  return {is_integral(type.dtype) ? all.value() : (all + 0.0).value()};
}

// ---- control flow ----

Values if_known(const Match& m) {
  const Value condition = number_of(arg(m, 0), m.sharing);
  if (!is_real_number(condition) || m.node.types.empty()) return {};
  const Graph& branch = *static_cast<const Graph*>(arg(m, condition.number() != 0 ? 1 : 2).graph());
  const Value::List& operands = arg(m, 3).list();
  return append_copy(m.builder.graph(), branch, {operands.data(), operands.size()});
}

Values while_never(const Match& m) {
  const Graph& condition = *static_cast<const Graph*>(arg(m, 0).graph());
  const Value::List& state = arg(m, 2).list();
  const Value known = number_of(condition.results[0], Sharing(condition));
  if (!is_real_number(known) || known.number() != 0 || m.node.types.size() != state.size()) return {};
  return Values(state.begin(), state.end());
}

constexpr Rule table[] = {
    {"conversion_to_same", "@view", conversion_to_same},
    {"view_of_all", "@view", view_of_all},
    {"view_of_view", "@view", view_of_view},
    {"transpose_of_transpose", "transpose permute swapaxes", transpose_of_transpose},
    {"elementwise_of_numbers", "@elementwise convert_dtype", elementwise_of_numbers},
    {"times_one", "mul", times_one},
    {"divided_by_one", "true_divide", divided_by_one},
    {"minus_zero", "sub", minus_zero},
    {"plus_zero", "add", plus_zero},
    {"to_the_first", "pow", to_the_first},
    {"twice", "neg logical_not bitwise_not conj", twice},
    {"where_same", "where", where_same},
    {"where_known", "where", where_known},
    {"number_operand", "@elementwise", number_operand},
    {"broadcast_operand", "@elementwise", broadcast_operand},
    {"cast_of_cast", "convert_dtype", cast_of_cast},
    {"clone_of_temporary", "clone", clone_of_temporary},
    {"concat_of_one", "concat", concat_of_one},
    {"gradients_of_parts", "add", gradients_of_parts},
    {"if_known", "if", if_known},
    {"while_never", "while", while_never},
};

}  // namespace

std::span<const Rule> rules() { return table; }

}  // namespace morel
