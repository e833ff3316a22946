// OpDef::onnx, parsed: how an operator and a node of ONNX say the same. The exporter and the importer read the same
// tables. Beside what ops/opdef.h shows, a map may say:
//   weight!                      ONNX always has this input, though the operator does without
//   other...                     further inputs are combined by the operator, one after another
//   padding:pads <- pads         converted (conversions.cc)
//   before + after <- pads@11    two lists of integers, one after the other
//   'tanh' <- approximate = ''   the attribute has to be this; it is not written where that is ONNX's default
//   _ <- auto_pad                is read over, or by a conversion
//   rank(input) == 4, input is integer, input is no bool
#pragma once

#include <optional>
#include <vector>

#include "morel/io/onnx/model.h"
#include "morel/ops/registry.h"

namespace morel::onnx {

struct Conversion;

// The side of the operator: an argument (or two lists of integers, one after the other), or what must hold.
struct Source {
  SmallVector<int, 2> args;  // none: `literal`, or anything where `is_ignored`
  Value literal;
  bool is_ignored = false;
  const Conversion* conversion = nullptr;
};
struct InputRule {
  Source source;
  std::string_view attribute;  // its name before opset `since`
  int since = 0;
  bool is_required = false;  // though the operator does without
  bool is_repeated = false;  // further inputs are combined by the operator one after another
};
struct AttributeRule {
  Source source;
  std::string_view name;
  std::optional<Value> fallback;  // what ONNX takes it for where it is missing
};
struct Condition {
  enum class Kind : uint8_t { Equals, Is, IsNo, Rank } kind;
  int arg = 0;
  Value literal;  // Equals
  DTypeSet types = 0;
  int64_t rank = 0;
};
// The type of a result in ONNX: that of an argument, one of its own, or that of the operator's result.
struct ResultRule {
  int like = -1;
  std::optional<DType> dtype;
};

struct Mapping {
  const OpDef* op = nullptr;
  std::string_view name;
  int since = 1;
  std::vector<InputRule> inputs;
  std::vector<AttributeRule> attributes;
  std::vector<Condition> conditions;
  std::vector<ResultRule> results;  // may be fewer than the operator has
};

// Those of one operator, in the order of its entry.
const std::vector<Mapping>& mappings_of(const OpDef& op);
// Those of a name of ONNX; public operators come first.
const std::vector<const Mapping*>& mappings_named(std::string_view name);
// Whether a condition holds for arguments whose types are known; `is_read`: for a node of ONNX, whose operands have the
// types that they have, while a call is written with them converted to those in which it computes.
bool holds(const Condition& condition, const ArgView& call, bool is_read);
bool same_value(const Value& a, const Value& b);

// -- conversions --
// A call that is exported.
struct WrittenCall {
  const OpDef& op;
  std::span<const Value> args;
  const Types& results;
  int opset;
};
// A node that is imported. `types` are those of its inputs that are tensors.
struct ReadNode {
  const NodeData& node;
  Types types;
  int opset;
  Ints ints(std::string_view attribute, Ints fallback) const;
};
struct Conversion {
  std::string_view name;
  // Nothing: this call, or node, cannot be said so. `value` is None where the attribute or input is missing.
  std::optional<Value> (*to_onnx)(const WrittenCall& call, const Value& value);
  std::optional<Value> (*from_onnx)(const ReadNode& read, const Value& value);
};
const Conversion* find_conversion(std::string_view name);
// (before, after) of each axis for windows over an image, from `pads` or `auto_pad`.
std::optional<Ints> pads_of(const ReadNode& read, const Shape& image, const Ints& kernel);

}  // namespace morel::onnx
