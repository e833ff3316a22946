// Post-training quantisation: operators whose entries name an operator on int8 (OpDef::int8) become it, with constant
// weights as int8 for each output channel and activations as int8 tensors of one scale; so do sums of two activations
// of which one is int8 anyway. Values stay int8 through
// operators whose results have elements of their argument (views, kSelects, maxima and minima); an operator whose whole
// effect is the limits of an int8 range (a relu after a convolution) is dropped. Everything else computes in float32
// between dequantize_linear and quantize_linear.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "morel/transform/rewrite.h"

namespace morel {

// x = scale * (q - zero_point)
struct Int8Type {
  float scale = 1;
  int32_t zero_point = 0;
};
struct Range {
  double low = 0, high = 0;
};

struct QuantiseOptions {
  bool per_channel = true;  // of weights; else one scale for each weight
  // Parameters and results that operators on int8 read and make are int8 themselves.
  bool int8_inputs = false, int8_outputs = false;
  std::set<std::string, std::less<>> skip;  // operators by name, or nodes by the user's line, that stay float32
};

struct QuantiseReport {
  int64_t num_int8 = 0;                                  // nodes that became int8
  std::map<std::string, int64_t> in_float;               // the others that compute, by operator
  std::vector<std::optional<Int8Type>> inputs, outputs;  // of int8 parameters and results
};

// The values whose ranges quantise() wants: activations that may become int8.
Values values_to_observe(Graph& graph, const QuantiseOptions& options);
// `ranges`: one for each of values_to_observe().
QuantiseReport quantise(Graph& graph, std::span<const Range> ranges, const QuantiseOptions& options,
                        Evaluator evaluate);

// The int8 type that holds a range, and zero exactly.
Int8Type int8_type_of(Range range);
int8_t quantised(double x, Int8Type type);
// A positive number as multiplier / 2^31 * 2^shift with a multiplier of at least 2^30 (ops/quant.cc).
struct FixedPoint {
  int32_t multiplier, shift;
};
FixedPoint fixed_point_of(double number);

}  // namespace morel
