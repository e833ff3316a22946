#include "morel/io/onnx/mapping.h"

#include <unordered_map>

namespace morel::onnx {
namespace {

std::string_view strip(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// Cuts `text` at `mark`; false where it does not occur.
bool cut(std::string_view text, std::string_view mark, std::string_view& left, std::string_view& right) {
  const size_t at = text.find(mark);
  left = strip(text.substr(0, at));
  if (at == std::string_view::npos) return false;
  right = strip(text.substr(at + mark.size()));
  return true;
}

class Parser {
 public:
  explicit Parser(const OpDef& op) : op_(op) {}

  Mapping parse(const OnnxMap& map) {
    Mapping out{.op = &op_,
                .name = map.name,
                .since = map.since,
                .inputs = {},
                .attributes = {},
                .conditions = {},
                .results = {}};
    std::string_view left, results, inputs, attributes;
    if (cut(map.map, " -> ", left, results))
      for (const std::string_view part : split_text(results, ',')) out.results.push_back(result(part));
    if (cut(left, ";", inputs, attributes))
      for (const std::string_view part : split_text(attributes, ',')) attribute(part, out);
    for (const std::string_view part : split_text(inputs, ','))
      if (!part.empty()) out.inputs.push_back(input(part));
    if (out.inputs.empty())
      for (size_t i = 0; i < op_.schema.size(); ++i)
        if (op_.schema.args[i].is_tensor_like())
          out.inputs.push_back({.source = {.args = {static_cast<int>(i)}, .literal = {}}, .attribute = {}});
    return out;
  }

 private:
  int argument(std::string_view name) const {
    const int found = op_.schema.find(name);
    MOREL_CHECK(found >= 0, Internal, "operator ", op_.name, " has no argument '", name, "', which its ONNX map names");
    return found;
  }

  Source source(std::string_view text) const {
    Source out;
    if (text == "_") {
      out.is_ignored = true;
      return out;
    }
    std::string_view name, conversion;
    if (text.front() != '\'' && cut(text, ":", name, conversion)) {
      out.conversion = find_conversion(conversion);
      MOREL_CHECK(out.conversion, Internal, "operator ", op_.name, ": there is no conversion '", conversion, "'");
      text = name;
    }
    std::string_view first, second;
    if (cut(text, " + ", first, second)) {
      out.args = {argument(first), argument(second)};
    } else if (const int found = op_.schema.find(text); found >= 0) {
      out.args = {found};
    } else {
      MOREL_CHECK(text.front() == '\'' || text.front() == '(' || text.front() == '-' || std::isdigit(text.front()),
                  Internal, "operator ", op_.name, " has no argument '", text, "', which its ONNX map names");
      out.literal = parse_default(text, 0);
    }
    return out;
  }

  InputRule input(std::string_view text) const {
    InputRule out;
    std::string_view left, right;
    if (cut(text, "<-", left, right)) {
      std::string_view name, since;
      MOREL_CHECK(cut(right, "@", name, since), Internal, "operator ", op_.name, ": '", text, "' lacks an opset");
      out.attribute = name;
      out.since = std::stoi(std::string(since));
    }
    if (left.ends_with("...")) {
      out.is_repeated = true;
      left.remove_suffix(3);
    }
    if (left.ends_with('!')) {
      out.is_required = true;
      left.remove_suffix(1);
    }
    out.source = source(left);
    return out;
  }

  void attribute(std::string_view text, Mapping& out) const {
    std::string_view left, right, name, fallback;
    if (cut(text, "<-", left, right)) {
      AttributeRule rule{.source = source(left), .name = {}, .fallback = {}};
      if (cut(right, "=", name, fallback)) rule.fallback = parse_default(fallback, 0);
      rule.name = name;
      out.attributes.push_back(std::move(rule));
      return;
    }
    Condition condition{};
    if (cut(text, "==", left, right)) {
      condition.kind = left.starts_with("rank(") ? Condition::Kind::Rank : Condition::Kind::Equals;
      if (condition.kind == Condition::Kind::Rank) {
        left = left.substr(5, left.size() - 6);
        condition.rank = std::stoi(std::string(right));
      } else {
        condition.literal = parse_default(right, 0);
      }
    } else {
      MOREL_CHECK(cut(text, " is ", left, right), Internal, "operator ", op_.name, ": '", text,
                  "' in its ONNX map means nothing");
      condition.kind = right.starts_with("no ") ? Condition::Kind::IsNo : Condition::Kind::Is;
      if (condition.kind == Condition::Kind::IsNo) right.remove_prefix(3);
      condition.types = right == "integer"    ? integers
                        : right == "unsigned" ? unsigned_ints
                        : right == "bool"     ? bools
                                              : 0;
      MOREL_CHECK(condition.types, Internal, "operator ", op_.name, ": '", right, "' is no kind of type");
    }
    condition.arg = argument(left);
    out.conditions.push_back(std::move(condition));
  }

  ResultRule result(std::string_view text) const {
    if (const int found = op_.schema.find(text); found >= 0) return {.like = found, .dtype = {}};
    return {.like = -1, .dtype = parse_default(text, 0).dtype()};
  }

  const OpDef& op_;
};

struct Tables {
  std::vector<std::vector<Mapping>> by_op;
  std::unordered_map<std::string_view, std::vector<const Mapping*>> by_name;
  Tables() {
    by_op.resize(registry().ops().size());
    for (const OpDef& op : registry().ops())
      for (const OnnxMap& map : op.onnx) by_op[static_cast<size_t>(op.id)].push_back(Parser(op).parse(map));
    for (const bool hidden : {false, true})
      for (const std::vector<Mapping>& mappings : by_op)
        for (const Mapping& mapping : mappings)
          if (mapping.op->has(kHidden) == hidden) by_name[mapping.name].push_back(&mapping);
  }
  static const Tables& get() {
    static const Tables tables;
    return tables;
  }
};

}  // namespace

const std::vector<Mapping>& mappings_of(const OpDef& op) { return Tables::get().by_op[static_cast<size_t>(op.id)]; }

const std::vector<const Mapping*>& mappings_named(std::string_view name) {
  static const std::vector<const Mapping*> none;
  const auto found = Tables::get().by_name.find(name);
  return found == Tables::get().by_name.end() ? none : found->second;
}

bool same_value(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return static_cast<float>(a.number()) == static_cast<float>(b.number());
  if (a.tag() == Value::Tag::Ints && b.is_integer()) return a.ints().size() == 1 && a.ints()[0] == b.dim();
  if (b.tag() == Value::Tag::Ints && a.is_integer()) return same_value(b, a);
  return a.tag() == b.tag() && to_string(a) == to_string(b);
}

bool holds(const Condition& condition, const ArgView& call, bool is_read) {
  const Value& value = call.value(static_cast<size_t>(condition.arg));
  if (condition.kind == Condition::Kind::Equals) return same_value(value, condition.literal);
  if (value.is_none()) return true;
  if (condition.kind == Condition::Kind::Rank) return static_cast<int64_t>(shape_of(value).size()) == condition.rank;
  const bool is =
      contains(condition.types,
               call.op().loop && !is_read ? elementwise_compute_dtype(call.op(), call.args()) : dtype_of_value(value));
  return is == (condition.kind == Condition::Kind::Is);
}

}  // namespace morel::onnx
