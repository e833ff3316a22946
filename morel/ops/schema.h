// Argument schema of an operator, parsed once from its text:
//   "input: Tensor, other: Tensor|number, axis: int[]? = None, *, reduction: str = 'mean'"
// Types: Tensor, Tensor[], number (a Python scalar), bool, int, float, str, dtype, int[], float[], rng (seed and
// offset, filled from the default generator), graph; alternatives with |, a trailing ? accepts None. Arguments after *
// are keyword-only. Integers that speak of axes are named by what they say (their role), so that a call can be adapted
// to operands with more axes or other sizes: axis, axes (negative: from the end), permutation (a place for every axis),
// each_axis (a number for every axis, 0: it stays as it is), shape (the sizes of the result).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "morel/tensor/value.h"

namespace morel {

enum ArgKind : uint32_t {
  kTensor = 1 << 0,
  kTensors = 1 << 1,
  kNumber = 1 << 2,
  kBool = 1 << 3,
  kInt = 1 << 4,
  kFloat = 1 << 5,
  kStr = 1 << 6,
  kDType = 1 << 7,
  kInts = 1 << 8,
  kFloats = 1 << 9,
  kRng = 1 << 10,
  kNone = 1 << 11,
  kGraph = 1 << 12,
};

enum class ArgRole : uint8_t { None, Axis, Permutation, EachAxis, Shape };

struct ArgSpec {
  std::string name;
  uint32_t kinds = 0;
  ArgRole role = ArgRole::None;
  std::string type_text;  // as users read it, without roles: for messages and stubs
  bool has_default = false;
  bool keyword_only = false;
  Value default_value;
  bool is_tensor_like() const { return kinds & (kTensor | kTensors); }
};

struct Schema {
  std::vector<ArgSpec> args;
  static Schema parse(std::string_view text);
  int find(std::string_view name) const;  // -1 when absent
  size_t size() const { return args.size(); }
  size_t required() const;  // number of leading arguments without default
};

// Splits at `separator` outside of brackets and quotes; strips spaces.
std::vector<std::string_view> split_text(std::string_view text, char separator);
// A default as written in a schema: None, True, 3, 1e-5, 'mean', (1, 2), Float32.
Value parse_default(std::string_view text, uint32_t kinds);

// Whether `value` may be passed for `spec`.
bool accepts(const ArgSpec& spec, const Value& value);

}  // namespace morel
