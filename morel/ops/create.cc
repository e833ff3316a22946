// New tensors from sizes and numbers.
#include <cmath>

#include "morel/ops/registry.h"

namespace morel {
namespace {

Shape size_of(const ArgView& call, std::string_view name) {
  const Value& size = call.value(name);
  const Ints dims = size.is_integer() ? Ints{size.dim()} : size.ints();
  for (const Dim dim : dims)
    MOREL_CHECK(dim >= 0, Value, "For '", display_name(call.op()), "', '", name, "' must not contain ", dim);
  return Shape(dims.begin(), dims.end());
}

// dtype of a new tensor that holds a Python number.
DType dtype_of_number(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::Bool: return DType::Bool;
    case Value::Tag::Int:
    case Value::Tag::Size: return DType::Int64;
    case Value::Tag::Complex: return DType::Complex64;
    default: return DType::Float32;
  }
}

void register_constants(Family& add) {
  const InferRule infer_sized = [](const ArgView& call) -> Types {
    return {Type{call.dtype_or("dtype", DType::Float32), size_of(call, "size")}};
  };
  // A number in a shape that is not known yet.
  static constexpr auto spread = [](const Call& c, const Value& number) {
    Builder& b = c.builder();
    const DType dtype = c.dtype_or("dtype", c.op().name == "full" ? dtype_of_number(number) : DType::Float32);
    return b("broadcast_to", b("full", Ints{}, number, dtype), Ints(size_of(c, "size")));
  };
  add({.name = "empty",
       .args = "size: int|shape, dtype: dtype? = Float32",
       .doc = "A new tensor whose elements are not set.",
       .infer = infer_sized,
       .kernel = true,
       .flags = kNoGrad,
       .onnx_compose = [](const Call& c) -> Syms { return {spread(c, Value(0))}; }});
  add({.name = "zeros",
       .args = "size: int|shape, dtype: dtype? = Float32",
       .doc = "A new tensor of zeros.",
       .infer = infer_sized,
       .kernel = true,
       .flags = kNoGrad,
       .onnx_compose = [](const Call& c) -> Syms { return {spread(c, Value(0))}; }});
  add({.name = "ones",
       .args = "size: int|shape, dtype: dtype? = Float32",
       .doc = "A new tensor of ones.",
       .infer = infer_sized,
       .kernel = true,
       .flags = kNoGrad,
       .onnx_compose = [](const Call& c) -> Syms { return {spread(c, Value(1))}; }});
  add({.name = "full",
       .args = "size: int|shape, fill_value: number, dtype: dtype? = None",
       .doc = "A new tensor filled with fill_value.",
       .infer = [](const ArgView& call) -> Types {
         return {Type{call.dtype_or("dtype", dtype_of_number(call.value("fill_value"))), size_of(call, "size")}};
       },
       .kernel = true,
       .flags = kNoGrad,
       .onnx_compose = [](const Call& c) -> Syms { return {spread(c, c.value("fill_value"))}; }});
  add({.name = "zeros_like",
       .args = "input: Tensor, *, dtype: dtype? = None",
       .doc = "Zeros of the shape of input.",
       .compose = [](const Call& c) -> Syms {
         return {c.builder()("zeros", Ints(c.shape(0)), c.dtype_or("dtype", c.tensor_dtype(0)))};
       },
       .flags = kNoGrad});
  add({.name = "ones_like",
       .args = "input: Tensor, *, dtype: dtype? = None",
       .doc = "Ones of the shape of input.",
       .compose = [](const Call& c) -> Syms {
         return {c.builder()("ones", Ints(c.shape(0)), c.dtype_or("dtype", c.tensor_dtype(0)))};
       },
       .flags = kNoGrad});
  add({.name = "empty_like",
       .args = "input: Tensor, *, dtype: dtype? = None",
       .doc = "A new tensor of the shape of input whose elements are not set.",
       .compose = [](const Call& c) -> Syms {
         return {c.builder()("empty", Ints(c.shape(0)), c.dtype_or("dtype", c.tensor_dtype(0)))};
       },
       .flags = kNoGrad});
  add({.name = "full_like",
       .args = "input: Tensor, fill_value: number, *, dtype: dtype? = None",
       .doc = "A new tensor of the shape of input filled with fill_value.",
       .compose = [](const Call& c) -> Syms {
         return {c.builder()("full", Ints(c.shape(0)), c["fill_value"], c.dtype_or("dtype", c.tensor_dtype(0)))};
       },
       .flags = kNoGrad});
}

// ---- ranges ----

Dim arange_count(Dim start, Dim end, Dim step) {
  return step > 0 ? (end - start + step - 1) / step : (start - end - step - 1) / -step;
}
int64_t arange_count(double start, double end, double step) {
  MOREL_CHECK(std::isfinite(end - start) && std::isfinite(step), Value,
              "For 'Arange', the arguments must be finite, but got ", start, ", ", end, " and ", step);
  return static_cast<int64_t>(std::ceil((end - start) / step));
}

Types infer_arange(const ArgView& call) {
  const Value &start = call.value(0), &end = call.value(1), &step = call.value(2);
  const auto count = [&](auto from, auto to, auto by) -> Dim {
    MOREL_CHECK(by != 0, Value, "For 'Arange', 'step' must not be 0");
    MOREL_CHECK(from == to || (from < to) == (by > 0), Value, "For 'Arange', a 'step' of ", to_string(step),
                " does not lead from ", to_string(start), " to ", to_string(end));
    return arange_count(from, to, by);
  };
  const auto is_float = [](const Value& value) { return value.tag() == Value::Tag::Float; };
  const bool whole = !is_float(start) && !is_float(end) && !is_float(step);
  const Dim size =
      whole ? count(start.dim(), end.dim(), step.dim()) : count(start.number(), end.number(), step.number());
  return {Type{call.dtype_or("dtype", whole ? DType::Int64 : DType::Float32), Shape{size}}};
}

void register_ranges(Family& add) {
  add({.name = "arange_from",
       .args = "start: number, end: number, step: number, dtype: dtype? = None",
       .doc = "start, start + step, ... up to but without end.",
       .infer = infer_arange,
       .kernel = true,
       .flags = kNoGrad | kHidden,
       .onnx = {{"Range", 11, "start, end, step"}}});
  add({.name = "arange",
       .args = "start: number = 0, end: number? = None, step: number = 1, dtype: dtype? = None",
       .doc = "start, start + step, ... up to but without end; with a single number from 0 up to it. int64 of "
              "integers, else float32.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         if (!c.has("end")) return {b("arange_from", 0, c["start"], c["step"], c["dtype"])};
         return {b("arange_from", c["start"], c["end"], c["step"], c["dtype"])};
       },
       .flags = kNoGrad});
  add({.name = "linspace",
       .args = "start: number, end: number, steps: int, dtype: dtype? = None",
       .doc = "`steps` evenly spaced numbers from start to end, both included.",
       .infer = [](const ArgView& call) -> Types {
         MOREL_CHECK(call.integer("steps") >= 0, Value, "For 'Linspace', 'steps' must not be negative, but got ",
                     call.integer("steps"));
         return {Type{call.dtype_or("dtype", DType::Float32), Shape{call.integer("steps")}}};
       },
       .kernel = true,
       .flags = kNoGrad});
  add({.name = "logspace",
       .args = "start: number, end: number, steps: int, base: number = 10, *, dtype: dtype? = Float32",
       .doc = "base to the power of `steps` evenly spaced exponents from start to end, both included.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         const DType dtype = c.dtype_or("dtype", DType::Float32);
         const Sym exponents = b("linspace", c["start"], c["end"], c["steps"], DType::Float64);
         return {b("cast", b("pow", c["base"], exponents), dtype)};
       },
       .flags = kNoGrad});
  add({.name = "eye",
       .args = "n: int, m: int? = None, dtype: dtype? = None",
       .doc = "A matrix of n rows and m columns (n without m) with ones on the main diagonal.",
       .infer = [](const ArgView& call) -> Types {
         const Dim rows = call.dim("n"), columns = call.has("m") ? call.dim("m") : rows;
         MOREL_CHECK(rows >= 0 && columns >= 0, Value, "For 'Eye', 'n' and 'm' must not be negative, but got ", rows,
                     " and ", columns);
         return {Type{call.dtype_or("dtype", DType::Float32), Shape{rows, columns}}};
       },
       .kernel = true,
       .flags = kNoGrad});
}

// ---- from tensors ----

Syms one_hot(const Call& c) {
  Builder& b = c.builder();
  const DType indices = c.tensor_dtype(0);
  MOREL_CHECK(is_integral(indices), Type, "For 'OneHot', 'indices' must be integers, but got ", info(indices).name);
  const Dim depth = c.dim("depth");
  const int64_t rank = c.rank(0) + 1;
  MOREL_CHECK(depth >= 0, Value, "For 'OneHot', 'depth' must not be negative, but got ", depth);
  const int64_t axis = c.axis("axis", rank);
  Ints classes_shape(static_cast<size_t>(rank), 1);
  classes_shape[static_cast<size_t>(axis)] = depth;
  const Sym classes = b("reshape", b("arange", 0, depth, 1, indices), classes_shape);
  return {b("where", b("equal", b("expand_dims", c[0], axis), classes), c["on_value"], c["off_value"])};
}

// Matrices with the last axis of input on their diagonal.
Syms diag_embed(const Call& c) {
  Builder& b = c.builder();
  const Shape& shape = c.shape(0);
  MOREL_CHECK(!shape.empty(), Value, "For 'DiagEmbed', the input must have an axis");
  const int64_t rank = static_cast<int64_t>(shape.size()) + 1, offset = c.integer("offset");
  const int64_t row = c.axis("dim1", rank), column = c.axis("dim2", rank);
  MOREL_CHECK(row != column, Value, "For 'DiagEmbed', 'dim1' and 'dim2' must differ, but got ", row, " twice");
  const Dim side = shape[shape.size() - 1] + std::abs(offset);
  Shape out;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i) out.push_back(i == row || i == column ? side : shape[next++]);
  const Strides strides = contiguous_strides(out);
  Ints picked;
  for (int64_t i = 0; i < rank; ++i)
    if (i != row && i != column) picked.push_back(strides[static_cast<size_t>(i)]);
  const Dim down = strides[static_cast<size_t>(row)], right = strides[static_cast<size_t>(column)];
  picked.push_back(down + right);
  return {b("as_strided_grad", c[0], Ints(out), Ints(shape), picked, offset >= 0 ? offset * right : -offset * down)};
}

void register_from_tensors(Family& add) {
  add({.name = "one_hot",
       .args =
           "indices: Tensor, depth: int, on_value: Tensor|number = 1, off_value: Tensor|number = 0, axis: axis = -1",
       .doc = "A new axis of `depth` elements: on_value at the index, off_value elsewhere; nothing is on where an "
              "index is out of range.",
       .compose = one_hot});
  add({.name = "complex",
       .args = "input: Tensor, imag: Tensor",
       .doc = "input + i * imag.",
       .loop = [](const loops::Expr& x, const loops::Expr& y) { return loops::make_complex(x, y); },
       .grad = [](const GradCall& g) -> Syms {
         return {g.builder()("real", g.dout()), g.builder()("imag", g.dout())};
       },
       .promotion = Promotion::Complex,
       .dtypes = set_of({DType::Float32, DType::Float64})});
  add({.name = "diag_embed",
       .args = "input: Tensor, offset: int = 0, dim1: axis = -2, dim2: axis = -1",
       .doc = "Matrices, along the new axes dim1 and dim2, with the last axis of input on the diagonal `offset` places "
              "right of the main one.",
       .compose = diag_embed});
  add({.name = "diag",
       .args = "input: Tensor, diagonal: int = 0",
       .doc = "The matrix that has a vector on its diagonal, or the diagonal of a matrix.",
       .compose = [](const Call& c) -> Syms {
         const int64_t rank = c.rank(0);
         MOREL_CHECK(rank == 1 || rank == 2, Value, "For 'Diag', the input must have 1 or 2 dimensions, but got ",
                     to_string(c.value(0)));
         if (rank == 1) return {c.builder()("diag_embed", c[0], c["diagonal"])};
         return {c.builder()("clone", c.builder()("diagonal", c[0], c["diagonal"]))};
       }});
}

}  // namespace

void register_create(Registry& registry) {
  Family add(registry, "create");
  register_constants(add);
  register_ranges(add);
  register_from_tensors(add);
}

}  // namespace morel
