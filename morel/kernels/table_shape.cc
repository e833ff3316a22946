// Adapters of the kernels that move, convert and create elements.
#include <array>
#include <cmath>

#include "morel/base/error.h"
#include "morel/kernels/fill.h"
#include "morel/kernels/pad.h"
#include "morel/kernels/table.h"
#include "morel/kernels/tensor_view.h"
#include "morel/tensor/scalar.h"

namespace morel {
namespace {

using kernels::ConstView;
using kernels::View;
using kernels::view_of;

// Non-negative axes of an int or int[] argument.
Ints axes_of(const Value& value, int64_t rank) {
  Ints out;
  if (value.is_integer()) out.push_back(value.integer());
  else out = value.ints();
  for (Dim& axis : out)
    if (axis < 0) axis += rank;
  return out;
}

void clone(const KernelCall& call) { kernels::copy(view_of(call.outs[0]), view_of(call.tensor(0))); }

void convert_dtype(const KernelCall& call) {
  const Tensor input = call.tensor(0);
  const Tensor& out = call.outs[0];
  if (input.is_contiguous()) {
    kernels::convert(out.data(), out.dtype(), input.data(), input.dtype(), input.size());
  } else {
    kernels::copy(view_of(out), view_of(input));
  }
}

void concat(const KernelCall& call) {
  const Value::List& list = call.args[0].list();
  SmallVector<Tensor, 4> parts;
  SmallVector<ConstView, 4> views;
  for (const Value& part : list) parts.push_back(part.tensor());
  for (const Tensor& part : parts) views.push_back(view_of(part));
  int64_t axis = call.integer(1);
  if (axis < 0) axis += call.outs[0].rank();
  kernels::concat(view_of(call.outs[0]), {views.data(), views.size()}, axis);
}

void flip(const KernelCall& call) {
  const Tensor input = call.tensor(0);
  kernels::flip(view_of(call.outs[0]), view_of(input), numbers_of(axes_of(call.args[1], input.rank())));
}

void roll_axes(const KernelCall& call) {
  kernels::roll(view_of(call.outs[0]), view_of(call.tensor(0)), numbers_of(call.ints(1)), numbers_of(call.ints(2)));
}

template <kernels::Triangle part>
void triangle(const KernelCall& call) {
  kernels::triangle(view_of(call.outs[0]), view_of(call.tensor(0)), part, call.integer(1));
}

kernels::PadMode pad_mode(const std::string& name) {
  if (name == "reflect") return kernels::PadMode::Reflect;
  if (name == "symmetric") return kernels::PadMode::Symmetric;
  if (name == "replicate") return kernels::PadMode::Replicate;
  if (name == "circular") return kernels::PadMode::Circular;
  return kernels::PadMode::Constant;
}

void pad_axes(const KernelCall& call) {
  std::array<char, 16> value;
  store_scalar(call.args[4], call.outs[0].dtype(), value.data());
  kernels::pad(view_of(call.outs[0]), view_of(call.tensor(0)), numbers_of(call.ints(1)), pad_mode(call.str(3)),
               value.data());
}

void pad_axes_grad(const KernelCall& call) {
  kernels::pad_backward(view_of(call.outs[0]), view_of(call.tensor(0)), numbers_of(call.ints(2)),
                        pad_mode(call.str(4)));
}

// ---- strided places ----

Tensor strided(const Tensor& base, const Ints& size, const Ints& stride, int64_t offset) {
  return base.with_layout(
      {Shape(size.begin(), size.end()), Strides(stride.begin(), stride.end()), base->layout.offset + offset});
}

// target[...] += source[...], one element after the other; positions may coincide.
void add_elements(const Tensor& target, const Tensor& source) {
  visit_dtype(target.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t rank = target.rank();
    Shape at(static_cast<size_t>(rank), 0);
    const T* from = source.as<T>();
    for (int64_t i = 0; i < source.size(); ++i) {
      int64_t place = 0;
      for (int64_t k = 0; k < rank; ++k) place += at[static_cast<size_t>(k)] * target.strides()[static_cast<size_t>(k)];
      T& element = target.as<T>()[place];
      if constexpr (std::is_same_v<T, Float16>) {
        element = to_float16(to_float(element) + to_float(from[i]));
      } else if constexpr (std::is_same_v<T, BFloat16>) {
        element = to_bfloat16(to_float(element) + to_float(from[i]));
      } else if constexpr (std::is_same_v<T, bool>) {
        element = element || from[i];
      } else {
        element = static_cast<T>(element + from[i]);
      }
      for (int64_t k = rank; k-- > 0;) {
        if (++at[static_cast<size_t>(k)] < target.dim(k)) break;
        at[static_cast<size_t>(k)] = 0;
      }
    }
  });
}

void as_strided_grad(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  kernels::fill_zero(view_of(out));
  const Tensor target = strided(out, call.ints(2), call.ints(3), call.integer(4));
  if (!kernels::overlaps(call.ints(2), call.ints(3))) return kernels::copy(view_of(target), view_of(call.tensor(0)));
  if (!is_half(out.dtype())) return add_elements(target, call.contiguous(0));
  // Halves are added in float32 and rounded once.
  const Tensor wide = Tensor::full(out.shape(), DType::Float32, 0);
  add_elements(strided(wide, call.ints(2), call.ints(3), call.integer(4)), call.contiguous(0, DType::Float32));
  kernels::copy(view_of(out), view_of(wide));
}

void as_strided_scatter(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  kernels::copy(view_of(out), view_of(call.tensor(0)));
  MOREL_CHECK(!kernels::overlaps(call.ints(2), call.ints(3)), Value, "For 'AsStridedScatter', the places of 'size' ",
              to_string(call.args[2]), " and 'stride' ", to_string(call.args[3]), " overlap");
  kernels::copy(view_of(strided(out, call.ints(2), call.ints(3), call.integer(4))), view_of(call.tensor(1)));
}

// ---- in place ----

void copy_in_place(const KernelCall& call) {
  kernels::check_written("Copy_", call.tensor(0));
  kernels::copy_tensor(call.tensor(0), call.tensor(1));
}

void fill_in_place(const KernelCall& call) {
  const Tensor target = call.tensor(0);
  kernels::check_written("Fill_", target);
  std::array<char, 16> value;
  store_scalar(call.args[1], target.dtype(), value.data());
  kernels::fill(view_of(target), value.data());
}

// ---- creation ----

void empty(const KernelCall&) {}

void zeros(const KernelCall& call) { kernels::fill_zero(view_of(call.outs[0])); }

void fill_with(const Tensor& out, const Value& number) {
  std::array<char, 16> value;
  store_scalar(number, out.dtype(), value.data());
  kernels::fill(view_of(out), value.data());
}

void ones(const KernelCall& call) { fill_with(call.outs[0], 1); }
void full(const KernelCall& call) { fill_with(call.outs[0], call.args[1]); }

void arange_from(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  if (is_integral(out.dtype()) && call.args[0].tag() != Value::Tag::Float && call.args[2].tag() != Value::Tag::Float) {
    kernels::arange(out.data(), out.dtype(), out.size(), call.integer(0), call.integer(2));
  } else {
    kernels::arange(out.data(), out.dtype(), out.size(), call.number(0), call.number(2));
  }
}

void linspace(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  kernels::linspace(out.data(), out.dtype(), out.size(), call.number(0), call.number(1));
}

void eye(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  kernels::eye(out.data(), out.dtype(), 1, out.dim(0), out.dim(1), 0);
}

}  // namespace

std::span<const KernelEntry> shape_kernels() {
  static constexpr KernelEntry entries[] = {
      {"clone", clone},
      {"convert_dtype", convert_dtype},
      {"concat", concat},
      {"flip", flip},
      {"roll_axes", roll_axes},
      {"tril", triangle<kernels::Triangle::Lower>},
      {"triu", triangle<kernels::Triangle::Upper>},
      {"pad_axes", pad_axes},
      {"pad_axes_grad", pad_axes_grad},
      {"as_strided_grad", as_strided_grad},
      {"as_strided_scatter", as_strided_scatter},
      {"copy_", copy_in_place},
      {"fill_", fill_in_place},
      {"empty", empty},
      {"zeros", zeros},
      {"ones", ones},
      {"full", full},
      {"arange_from", arange_from},
      {"linspace", linspace},
      {"eye", eye},
  };
  return selected<entries>;
}

}  // namespace morel
