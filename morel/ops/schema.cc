#include "morel/ops/schema.h"

#include <algorithm>
#include <cstdlib>

namespace morel {
namespace {

struct KindName {
  std::string_view name;
  uint32_t kinds;
  ArgRole role = ArgRole::None;
  std::string_view shown = {};  // where users read another name
};
constexpr KindName kind_names[] = {
    {"Tensor", kTensor},
    {"Tensor[]", kTensors},
    {"number", kNumber},
    {"bool", kBool},
    {"int", kInt},
    {"float", kFloat},
    {"str", kStr},
    {"dtype", kDType},
    {"int[]", kInts},
    {"float[]", kFloats},
    {"rng", kRng},
    {"graph", kGraph},
    {"axis", kInt, ArgRole::Axis, "int"},
    {"axes", kInts, ArgRole::Axis, "int[]"},
    {"permutation", kInts, ArgRole::Permutation, "int[]"},
    {"each_axis", kInts, ArgRole::EachAxis, "int[]"},
    {"shape", kInts, ArgRole::Shape, "int[]"},
};

std::string_view strip(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

void parse_type(ArgSpec& spec, std::string_view text) {
  const bool optional = !text.empty() && text.back() == '?';
  if (optional) {
    spec.kinds |= kNone;
    text.remove_suffix(1);
  }
  for (const std::string_view part : split_text(text, '|')) {
    const auto* found = std::find_if(std::begin(kind_names), std::end(kind_names),
                                     [&](const KindName& kind) { return kind.name == part; });
    MOREL_CHECK(found != std::end(kind_names), Internal, "schema: unknown type '", part, "'");
    spec.kinds |= found->kinds;
    if (found->role != ArgRole::None) spec.role = found->role;
    spec.type_text += (spec.type_text.empty() ? "" : "|") + std::string(found->shown.empty() ? part : found->shown);
  }
  if (optional) spec.type_text += '?';
}

}  // namespace

std::vector<std::string_view> split_text(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\'') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == separator && depth == 0) {
      parts.push_back(strip(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (begin < text.size()) parts.push_back(strip(text.substr(begin)));
  return parts;
}

Value parse_default(std::string_view text, uint32_t kinds) {
  if (text == "None") return {};
  if (text == "True") return true;
  if (text == "False") return false;
  if (text.front() == '\'') return Value(text.substr(1, text.size() - 2));
  if (text.front() == '(') {
    Ints ints;
    Value::Floats floats;
    for (const std::string_view part : split_text(text.substr(1, text.size() - 2), ',')) {
      if (part.empty()) continue;
      floats.push_back(std::strtod(std::string(part).c_str(), nullptr));
      ints.push_back(static_cast<int64_t>(floats.back()));
    }
    return kinds & kFloats ? Value(floats) : Value(ints);
  }
  const bool is_integer = text.find_first_not_of("-0123456789") == std::string_view::npos;
  if (is_integer && (kinds & kInts) && !(kinds & (kInt | kNumber)))
    return Value(Ints{std::strtoll(std::string(text).c_str(), nullptr, 10)});
  if (is_integer && !(kinds & kFloat))
    return Value(static_cast<int64_t>(std::strtoll(std::string(text).c_str(), nullptr, 10)));
  for (int i = 0; i < num_dtypes; ++i)
    if (dtype_table[i].name == text) return Value(static_cast<DType>(i));
  return Value(std::strtod(std::string(text).c_str(), nullptr));
}

Schema Schema::parse(std::string_view text) {
  Schema schema;
  bool keyword_only = false;
  for (const std::string_view part : split_text(text, ',')) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    ArgSpec spec;
    spec.keyword_only = keyword_only;
    const size_t colon = part.find(':'), equals = part.find('=');
    MOREL_CHECK(colon != std::string_view::npos, Internal, "schema: no type in '", part, "'");
    spec.name = strip(part.substr(0, colon));
    const std::string_view type =
        strip(part.substr(colon + 1, equals == std::string_view::npos ? equals : equals - colon - 1));
    parse_type(spec, type);
    if (equals != std::string_view::npos) {
      spec.has_default = true;
      spec.default_value = parse_default(strip(part.substr(equals + 1)), spec.kinds);
    } else if (spec.kinds & kRng) {
      spec.has_default = true;
    }
    schema.args.push_back(std::move(spec));
  }
  return schema;
}

int Schema::find(std::string_view name) const {
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].name == name) return static_cast<int>(i);
  return -1;
}

size_t Schema::required() const {
  size_t count = 0;
  for (const ArgSpec& spec : args)
    if (!spec.has_default) ++count;
  return count;
}

bool accepts(const ArgSpec& spec, const Value& value) {
  switch (value.tag()) {
    case Value::Tag::None: return (spec.kinds & (kNone | kRng)) != 0;
    case Value::Tag::Bool: return (spec.kinds & (kNumber | kBool)) != 0;
    case Value::Tag::Int:
    case Value::Tag::Size: return (spec.kinds & (kNumber | kInt | kFloat)) != 0;
    case Value::Tag::Float: return (spec.kinds & (kNumber | kFloat)) != 0;
    case Value::Tag::Complex: return (spec.kinds & kNumber) != 0;
    case Value::Tag::Str: return (spec.kinds & kStr) != 0;
    case Value::Tag::DType: return (spec.kinds & kDType) != 0;
    case Value::Tag::Ints: return (spec.kinds & (kInts | kRng)) != 0;
    case Value::Tag::Floats: return (spec.kinds & kFloats) != 0;
    case Value::Tag::List: return (spec.kinds & kTensors) != 0;
    case Value::Tag::Tensor: return (spec.kinds & kTensor) != 0;
    case Value::Tag::Node: return (spec.kinds & (kTensor | kRng | kNumber | kInt | kFloat | kBool)) != 0;
    case Value::Tag::Graph: return (spec.kinds & kGraph) != 0;
  }
  return false;
}

}  // namespace morel
