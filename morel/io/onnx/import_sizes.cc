// Integers that are computed from sizes, as models do it to reshape: known numbers and expressions, not tensors.
#include "morel/io/onnx/import_rules.h"

namespace morel::onnx {
namespace {

std::optional<Ints> known_of(const NodeCall& c, size_t idx) {
  if (!c.has(idx)) return {};
  if (c.item(idx).known) return c.item(idx).known;
  return integers_of(c.item(idx).value);
}
bool is_scalar(const NodeCall& c, size_t idx) {
  const Item& item = c.item(idx);
  return item.known ? item.is_scalar : shape_of(item.value).empty();
}

Dim quotient(Dim a, Dim b) {
  if (a.is_symbolic() || b.is_symbolic()) return a / b;
  return b == 0 ? Dim(0) : Dim(static_cast<int64_t>(a) / static_cast<int64_t>(b));
}

using Combine = Dim (*)(Dim, Dim);
struct Arithmetic {
  std::string_view name;
  Combine combine;
  bool is_truth = false;
};
// A truth about sizes holds for all for which it comes out the same: the graph is one for these.
const Arithmetic arithmetic[] = {{"Add", [](Dim a, Dim b) { return a + b; }},
                                 {"Sub", [](Dim a, Dim b) { return a - b; }},
                                 {"Mul", [](Dim a, Dim b) { return a * b; }},
                                 {"Div", quotient},
                                 {"Equal", [](Dim a, Dim b) { return Dim(a == b); }, true},
                                 {"Less", [](Dim a, Dim b) { return Dim(a < b); }, true},
                                 {"LessOrEqual", [](Dim a, Dim b) { return Dim(a <= b); }, true},
                                 {"Greater", [](Dim a, Dim b) { return Dim(a > b); }, true},
                                 {"GreaterOrEqual", [](Dim a, Dim b) { return Dim(a >= b); }, true},
                                 {"And", [](Dim a, Dim b) { return Dim(a != 0 && b != 0); }, true},
                                 {"Or", [](Dim a, Dim b) { return Dim(a != 0 || b != 0); }, true}};

std::optional<Item> combine(const NodeCall& c, Combine fn) {
  const auto a = known_of(c, 0), b = known_of(c, 1);
  if (!a || !b) return {};
  const size_t count = std::max(a->size(), b->size());
  if ((a->size() != count && a->size() != 1) || (b->size() != count && b->size() != 1)) return {};
  Item out = item_of(Ints{});
  for (size_t i = 0; i < count; ++i)
    out.known->push_back(fn((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]));
  out.is_scalar = is_scalar(c, 0) && is_scalar(c, 1);
  return out;
}

std::optional<Item> choose(const NodeCall& c) {
  const auto which = known_of(c, 0), a = known_of(c, 1), b = known_of(c, 2);
  if (!which || !a || !b) return {};
  const size_t count = std::max({which->size(), a->size(), b->size()});
  for (const auto* list : {&*which, &*a, &*b})
    if (list->size() != count && list->size() != 1) return {};
  const auto at = [](const Ints& list, size_t i) { return list[list.size() == 1 ? 0 : i]; };
  Item out = item_of(Ints{});
  for (size_t i = 0; i < count; ++i) out.known->push_back(at(*which, i) != 0 ? at(*a, i) : at(*b, i));
  out.is_scalar = is_scalar(c, 0) && is_scalar(c, 1) && is_scalar(c, 2);
  return out;
}

std::optional<Item> gather(const NodeCall& c) {
  const auto from = known_of(c, 0), at = known_of(c, 1);
  if (!from || !at) return {};
  Item out = item_of(Ints{});
  for (Dim idx : *at) {
    if (idx < 0) idx += from->size();
    if (idx < 0 || idx >= static_cast<int64_t>(from->size())) return {};
    out.known->push_back((*from)[static_cast<size_t>(static_cast<int64_t>(idx))]);
  }
  out.is_scalar = is_scalar(c, 1);
  return out;
}

std::optional<Item> concat(const NodeCall& c) {
  Item out = item_of(Ints{});
  for (size_t i = 0; i < c.size(); ++i) {
    const auto part = known_of(c, i);
    if (!part || is_scalar(c, i)) return {};
    out.known->append(part->begin(), part->end());
  }
  return out;
}

std::optional<Item> slice(const NodeCall& c) {
  const auto from = known_of(c, 0);
  if (!from || is_scalar(c, 0)) return {};
  const auto starts = c.list_or_input("starts", 1, 10), ends = c.list_or_input("ends", 2, 10);
  const Ints steps = c.ints_or(4, {1});
  if (!starts || !ends || starts->size() != 1 || steps[0] != 1) return {};
  const int64_t count = static_cast<int64_t>(from->size());
  const auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count); };
  const int64_t first = place((*starts)[0]), last = std::max(first, place((*ends)[0]));
  return item_of(Ints(from->begin() + first, from->begin() + last));
}

// The same numbers, as a list or a scalar.
std::optional<Item> same_numbers(const NodeCall& c, bool scalar) {
  auto from = known_of(c, 0);
  if (!from || (scalar && from->size() != 1)) return {};
  Item out = item_of(*from);
  out.is_scalar = scalar;
  return out;
}

}  // namespace

std::optional<Item> compute_sizes(const NodeCall& c) {
  std::optional<DType> dtype;
  for (size_t i = 0; i < c.size(); ++i)
    if (c.item(i).known) dtype = c.item(i).dtype;
  if (!dtype) return {};
  std::optional<Item> out;
  const std::string& type = c.node().type;
  for (const Arithmetic& entry : arithmetic) {
    if (entry.name != type) continue;
    out = combine(c, entry.combine);
    if (entry.is_truth) dtype = DType::Bool;
  }
  if (type == "Not" && (out = same_numbers(c, c.item(0).is_scalar)))
    for (Dim& number : *out->known) number = number == 0;
  if (type == "Where" && c.size() == 3 && (out = choose(c)))
    dtype = c.item(1).known ? c.item(1).dtype : dtype_of_value(c.item(1).value);
  if (type == "Gather") out = gather(c);
  if (type == "Concat") out = concat(c);
  if (type == "Slice") out = slice(c);
  if (type == "Identity") out = same_numbers(c, c.item(0).is_scalar);
  if (type == "Cast") {
    dtype = dtype_of_code(c.attribute("to", 0));
    if (dtype == DType::Int64 || dtype == DType::Int32) out = same_numbers(c, c.item(0).is_scalar);
  }
  if (type == "Unsqueeze" && c.has(0) && is_scalar(c, 0)) out = same_numbers(c, false);
  if (type == "Squeeze") out = same_numbers(c, true);
  if (type == "Reshape") {
    const Ints shape = c.ints(1);
    if (shape.size() < 2) out = same_numbers(c, shape.empty());
  }
  if (out) out->dtype = *dtype;
  return out;
}

}  // namespace morel::onnx
