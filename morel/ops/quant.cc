// Numbers as int8: x = scale * (q - zero_point). Products of int8 are summed in int32; operators named as `int8` of
// others (int8_dense, int8_convolution, int8_add) turn the sums into int8 without floating point:
//
//   result = clamp(output_zero + scaled(bias + sum of (input - input_zero) * weight))
//   scaled(v) = v * multiplier / 2^31 * 2^shift, for each output channel
//
// v * multiplier / 2^31, with a multiplier of at least 2^30, is rounded to the nearest integer, ties up, then, where
// shift is negative, the division by 2^-shift once more, ties away from zero: bit for bit what TensorFlow Lite's
// reference kernels compute (Jacob et al., "Quantization and Training of Neural Networks for Efficient
// Integer-Arithmetic-Only Inference", 2018, section 2.2).
#include "morel/ops/quant.h"

#include "morel/ops/registry.h"

namespace morel {

using loops::Expr;

void register_quant(Registry& registry) {
  Family add(registry, "quant");
  add({.name = "quantize_linear",
       .args = "input: Tensor, scale: float, zero_point: int",
       .doc = "input as int8: input / scale rounded to the nearest integer, ties to the even one, plus zero_point, "
              "limited to [-128, 127].",
       .loop = [](const Expr& x, const Expr& scale,
                  const Expr& zero) { return cast(min(max(round(x / scale) + zero, -128.0), 127.0), DType::Int8); },
       .flags = kHidden | kNoGrad,
       .promotion = Promotion::Int8,
       .dtypes = set_of({DType::Float32})});
  add({.name = "dequantize_linear",
       .args = "input: Tensor, scale: float, zero_point: int",
       .doc = "What int8 numbers stand for, as float32: (input - zero_point) * scale.",
       .loop = [](const Expr& x, const Expr& scale, const Expr& zero) { return (x - zero) * scale; },
       .flags = kHidden | kNoGrad,
       .promotion = Promotion::Float,
       .dtypes = set_of({DType::Float32})});
  add({.name = "int8_add",
       .args = "input: Tensor, other: Tensor, input_factor: int, other_factor: int, input_zero: int, other_zero: int, "
               "multiplier: int, shift: int, output_zero: int",
       .doc = "Sum of int8 numbers of two scales and one shape: input_factor * (input - input_zero) + other_factor * "
              "(other - other_zero), scaled, plus output_zero. The factors are at most 2^20.",
       .axes = "..., ... -> ...",
       .infer = [](const ArgView& call) -> Types {
         for (const size_t i : {0, 1})
           MOREL_CHECK(call.tensor_dtype(i) == DType::Int8 && call.shape(i) == call.shape(0), Value,
                       "For 'int8_add', input and other must be int8 of one shape, but got ",
                       to_string(type_of(call.value(0))), " and ", to_string(type_of(call.value(1))));
         return {Type{DType::Int8, call.shape(0)}};
       },
       .kernel = true,
       .flags = kHidden | kNoGrad});
}

}  // namespace morel
