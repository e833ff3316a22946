// Shape and dtype inference shared by the families.
#include <cctype>

#include "morel/ops/axes.h"
#include "morel/ops/registry.h"

namespace morel {

std::string to_string(const Type& type) { return describe(type.dtype, type.shape); }

DType dtype_of_value(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::Tensor: return value.tensor_impl()->dtype;
    case Value::Tag::Node: return static_cast<const TypedNode*>(value.node())->type(value.output()).dtype;
    case Value::Tag::Bool: return DType::Bool;
    case Value::Tag::Int:
    case Value::Tag::Size: return DType::Int64;
    case Value::Tag::Complex: return DType::Complex64;
    default: MOREL_ASSERT(value.tag() == Value::Tag::Float); return DType::Float32;
  }
}

const Shape& shape_of(const Value& value) {
  static const Shape scalar;
  if (value.is_tensor()) return value.tensor_impl()->layout.shape;
  if (value.tag() == Value::Tag::Node) return static_cast<const TypedNode*>(value.node())->type(value.output()).shape;
  MOREL_ASSERT(value.is_number());
  return scalar;
}

Type type_of(const Value& value) { return {dtype_of_value(value), shape_of(value)}; }

size_t ArgView::index(std::string_view name) const {
  const int idx = op_.schema.find(name);
  MOREL_CHECK(idx >= 0, Internal, "operator ", op_.name, " has no argument ", name);
  return static_cast<size_t>(idx);
}

int64_t ArgView::axis(std::string_view name, int64_t rank) const {
  return normalize_axis(op_, name, integer(name), rank);
}

Sym GradCall::dout(size_t idx) const {
  if (!cotangents_[idx].is_none()) return Sym(builder(), cotangents_[idx]);
  const Type& type = out_types_[idx];
  return builder()("zeros", Ints(type.shape), type.dtype);
}

Shape broadcast_shapes(const OpDef& op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  const size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const Dim x = longer[i + shift], y = shorter[i];
    if (x == y || y == 1) continue;
    MOREL_CHECK(x == 1, Value, "For '", display_name(op), "', the shapes ", to_string(a), " and ", to_string(b),
                " cannot be broadcast: axis ", i + shift, " has ", x, " and ", y);
    out[i + shift] = y;
  }
  return out;
}

int64_t normalize_axis(const OpDef& op, std::string_view argument, int64_t axis, int64_t rank) {
  const int64_t limit = rank > 0 ? rank : 1;
  MOREL_CHECK(axis >= -limit && axis < limit, Value, "For '", display_name(op), "', '", argument, "' must be in [",
              -limit, ", ", limit, ") for a tensor of ", rank, " dimensions, but got ", axis);
  return axis < 0 ? axis + limit : axis;
}

Ints normalize_axes(const OpDef& op, std::string_view argument, const Value& axes, int64_t rank) {
  Ints out;
  bool seen[64] = {};
  const auto add = [&](int64_t axis) {
    axis = normalize_axis(op, argument, axis, rank);
    MOREL_CHECK(!seen[axis], Value, "For '", display_name(op), "', '", argument, "' names axis ", axis, " twice");
    seen[axis] = true;
    if (rank > 0) out.push_back(axis);
  };
  if (axes.is_integer()) {
    add(axes.integer());
  } else if (!axes.is_none()) {
    for (const int64_t axis : axes.ints()) add(axis);
  }
  if (axes.is_none() || (axes.tag() == Value::Tag::Ints && axes.ints().empty()))
    for (int64_t axis = 0; axis < rank; ++axis) out.push_back(axis);
  std::sort(out.begin(), out.end());
  return out;
}

Shape reduced_shape(const Shape& shape, const Ints& axes, bool keep_dims) {
  Shape out;
  size_t next = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = next < axes.size() && axes[next] == static_cast<int64_t>(i);
    if (reduced) ++next;
    if (!reduced || keep_dims) out.push_back(reduced ? Dim(1) : shape[i]);
  }
  return out;
}

void check_dtype(const OpDef& op, DType dtype) {
  if (contains(op.dtypes, dtype)) return;
  std::string supported;
  for (int i = 0; i < num_dtypes; ++i)
    if (contains(op.dtypes, static_cast<DType>(i)))
      supported += (supported.empty() ? "" : ", ") + std::string(dtype_table[i].name);
  raise(ErrorKind::Type, "For '", display_name(op), "', the dtype ", info(dtype).name,
        " is not supported; supported are ", supported);
}

namespace {

// Folds the weak type of a Python scalar into a dtype: a float makes integers float32, a complex makes reals complex.
DType promote_scalar(DType dtype, const Value& scalar) {
  switch (scalar.tag()) {
    case Value::Tag::Int:
    case Value::Tag::Size: return dtype == DType::Bool ? DType::Int64 : dtype;
    case Value::Tag::Float: return is_float(dtype) || is_complex(dtype) ? dtype : DType::Float32;
    case Value::Tag::Complex:
      return is_complex(dtype) ? dtype : dtype == DType::Float64 ? DType::Complex128 : DType::Complex64;
    default: return dtype;
  }
}

DType common_dtype_of(std::span<const Value> args, uint32_t skip) {
  bool have_tensor = false;
  DType out = DType::Bool;
  for (size_t i = 0; i < args.size(); ++i) {
    if (skip >> i & 1 || !is_tensor_value(args[i])) continue;
    const DType dtype = dtype_of_value(args[i]);
    out = have_tensor ? promote(out, dtype) : dtype;
    have_tensor = true;
  }
  for (size_t i = 0; i < args.size(); ++i)
    if (!(skip >> i & 1) && args[i].is_number()) out = promote_scalar(out, args[i]);
  return out;
}

// Arguments that become loop parameters do not take part in promotion.
uint32_t parameter_mask(const OpDef& op) {
  uint32_t mask = op.bool_args;
  for (size_t i = 0; i < op.schema.size(); ++i)
    if (!op.schema.args[i].is_tensor_like() && !(op.schema.args[i].kinds & kNumber)) mask |= 1u << i;
  return mask;
}

}  // namespace

DType common_dtype(const ArgView& call) { return common_dtype_of(call.args(), 0); }

DType elementwise_compute_dtype(const OpDef& op, std::span<const Value> args) {
  DType dtype = common_dtype_of(args, parameter_mask(op));
  if (op.promotion == Promotion::Logic) return DType::Bool;
  if (op.promotion == Promotion::Float && !is_differentiable(dtype)) dtype = DType::Float32;
  check_dtype(op, dtype);
  return dtype;
}

DType elementwise_result_dtype(const OpDef& op, DType compute) {
  switch (op.promotion) {
    case Promotion::Compare:
    case Promotion::Logic: return DType::Bool;
    case Promotion::Real: return real_dtype(compute);
    case Promotion::Int8: return DType::Int8;
    case Promotion::Complex: return compute == DType::Float64 ? DType::Complex128 : DType::Complex64;
    default: return compute;
  }
}

Types infer_elementwise(const ArgView& call) {
  const OpDef& op = call.op();
  Types out(1);
  bool first = true;
  for (size_t i = 0; i < call.args().size(); ++i) {
    if (!op.schema.args[i].is_tensor_like() || call.value(i).is_none()) continue;
    const Shape& shape = call.shape(i);
    out[0].shape = first ? shape : broadcast_shapes(op, out[0].shape, shape);
    first = false;
  }
  out[0].dtype = elementwise_result_dtype(op, elementwise_compute_dtype(op, call.args()));
  return out;
}

Types infer_reduce(const ArgView& call) {
  using loops::ReduceOp;
  const OpDef& op = call.op();
  const DType in = call.tensor_dtype(0);
  check_dtype(op, in);
  const Shape& shape = call.shape(0);
  const Ints axes = normalize_axes(op, "axis", call.value(1), static_cast<int64_t>(shape.size()));
  Type out{in, reduced_shape(shape, axes, call.value(2).boolean())};
  const ReduceOp reduce = *op.reduce;
  const bool adds = reduce == ReduceOp::Sum || reduce == ReduceOp::Prod;
  if (reduce == ReduceOp::ArgMin || reduce == ReduceOp::ArgMax) out.dtype = DType::Int64;
  if (reduce == ReduceOp::Any || reduce == ReduceOp::All) out.dtype = DType::Bool;
  if (adds && !is_differentiable(in)) out.dtype = DType::Int64;
  if (call.args().size() > 3 && !call.value(3).is_none()) out.dtype = call.value(3).dtype();
  if (!adds && reduce != ReduceOp::Any && reduce != ReduceOp::All && num_elements(out.shape) > 0)
    MOREL_CHECK(num_elements(shape) > 0, Value, "For '", display_name(op), "', the axes to reduce of ",
                describe(in, shape), " are empty, so there is no result");
  return {std::move(out)};
}

Types infer_rows(const ArgView& call) {
  const OpDef& op = call.op();
  const int axis_at = op.schema.find("axis");
  Shape space;
  DType dtype = DType::Float32;
  bool first = true;
  for (size_t i = 0; i < call.args().size(); ++i) {
    if (!op.schema.args[i].is_tensor_like() || call.value(i).is_number()) continue;
    if (first) dtype = call.tensor_dtype(i);
    space = first ? call.shape(i) : broadcast_shapes(op, space, call.shape(i));
    first = false;
  }
  check_dtype(op, dtype);
  const int64_t rank = static_cast<int64_t>(space.size());
  const int64_t axis =
      axis_at < 0 ? rank - 1 : normalize_axis(op, "axis", call.value(static_cast<size_t>(axis_at)).integer(), rank);
  Types out;
  for (const loops::LoopSignature::Output& output : rows_signature(op, dtype).outputs) {
    Shape shape = space;
    if (output.per_row && rank > 0) shape[static_cast<size_t>(axis)] = 1;
    out.push_back({output.dtype, std::move(shape)});
  }
  if (op.columns)
    for (const loops::LoopSignature::Output& output : columns_signature(op, dtype).outputs)
      out.push_back({output.dtype, rank > 0 ? Shape{space[static_cast<size_t>(rank - 1)]} : Shape{}});
  return out;
}

Types infer_view(const ArgView& call) {
  const OpDef& op = call.op();
  const Layout input{call.shape(0), contiguous_strides(call.shape(0)), 0};
  if (op.view) return {Type{call.tensor_dtype(0), op.view(call, input)->shape}};
  Types out;
  for (const Layout& layout : op.views(call, input)) out.push_back({call.tensor_dtype(0), layout.shape});
  return out;
}

Types infer_like_first(const ArgView& call) { return {Type{call.tensor_dtype(0), call.shape(0)}}; }

// ---- order in memory ----

Strides channels_last_strides(const Shape& shape) {
  const Dim channels = shape[1], row = shape[3] * channels;
  return {shape[2] * row, 1, row, channels};
}

bool is_channels_last(const Value& value) {
  if (!value.is_tensor()) return false;
  const TensorImpl* tensor = value.tensor_impl();
  return !tensor->contiguous && tensor->layout.shape.size() == 4 &&
         tensor->layout.strides == channels_last_strides(tensor->layout.shape);
}

std::optional<Strides> prefer_channels_last(const ArgView&, size_t, const Shape& shape) {
  // Fewer channels do not fill the vectors, and the operators around them are written for contiguous images.
  constexpr int64_t worthwhile = 32;
  if (shape[1] < worthwhile || shape[2] * shape[3] == 1) return {};
  return channels_last_strides(shape);
}

}  // namespace morel
