#include "morel/ops/axes.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "morel/ops/registry.h"

namespace morel {
namespace {

// ---- the text ----

struct AxisItem {
  enum class Kind : uint8_t { Index, Ellipsis } kind = Kind::Index;
  bool whole = false;
  std::vector<int> names;  // Index: of the axis, major first; Ellipsis: arguments that name axes which are whole
};
struct Term {
  std::vector<AxisItem> items;
  int ellipsis() const {
    for (size_t i = 0; i < items.size(); ++i)
      if (items[i].kind == AxisItem::Kind::Ellipsis) return static_cast<int>(i);
    return -1;
  }
};
struct IndexName {
  std::string name;
  bool whole = false;
  int argument = -1;
};

}  // namespace

struct AxesPattern {
  std::vector<IndexName> names;
  std::vector<Term> inputs, outputs;
};

namespace {

class PatternParser {
 public:
  explicit PatternParser(const OpDef& op) : op_(op) {}

  AxesPattern parse() {
    const size_t arrow = op_.axes.find("->");
    MOREL_CHECK(arrow != std::string_view::npos, Internal, "operator ", op_.name, ": its axes have no ->");
    pattern_.inputs = terms(op_.axes.substr(0, arrow));
    pattern_.outputs = terms(op_.axes.substr(arrow + 2));
    return std::move(pattern_);
  }

 private:
  std::vector<Term> terms(std::string_view text) {
    std::vector<Term> out;
    text_ = text;
    at_ = 0;
    do {
      Term term;
      while (skip_spaces(), at_ < text_.size() && text_[at_] != ',') term.items.push_back(item());
      out.push_back(std::move(term));
    } while (at_ < text_.size() && text_[at_++] == ',');
    return out;
  }

  AxisItem item() {
    AxisItem out;
    const char closing = take("(") ? ')' : take("[") ? ']' : '\0';
    out.whole = closing == ']';
    if (take("...")) {
      out.kind = AxisItem::Kind::Ellipsis;
      const bool is_marked = !closing && at_ < text_.size() && text_[at_] == '[';  // "... [m]" are two items
      while (is_marked && !take("]")) out.names.push_back(argument());
    } else if (closing == ')') {
      while (!take(")")) {
        const bool whole = take("[");
        out.names.push_back(index(word(), whole));
        if (whole) expect("]");
      }
      return out;
    } else {
      out.names.push_back(index(word(), out.whole));
    }
    if (closing) expect(std::string_view(&closing, 1));
    return out;
  }

  // An argument in the brackets of an ellipsis.
  int argument() {
    take("[");
    const std::string_view name = word();
    const int found = op_.schema.find(name);
    MOREL_CHECK(found >= 0, Internal, "operator ", op_.name, ": its axes name '", name, "', which is no argument");
    return found;
  }

  int index(std::string_view name, bool whole) {
    for (size_t i = 0; i < pattern_.names.size(); ++i) {
      if (pattern_.names[i].name != name) continue;
      pattern_.names[i].whole |= whole;
      return static_cast<int>(i);
    }
    pattern_.names.push_back({std::string(name), whole, op_.schema.find(name)});
    return static_cast<int>(pattern_.names.size()) - 1;
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    MOREL_CHECK(take(token), Internal, "operator ", op_.name, ": its axes lack a ", token);
  }
  std::string_view word() {
    skip_spaces();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    MOREL_CHECK(at_ > begin, Internal, "operator ", op_.name, ": its axes cannot be read: ", text_.substr(begin));
    return text_.substr(begin, at_ - begin);
  }

  const OpDef& op_;
  AxesPattern pattern_;
  std::string_view text_;
  size_t at_ = 0;
};

// Symbols of different tensors can be known to be equal.
bool same_size(Dim a, Dim b) { return a.identical(b) || (!a.identical(1) && !b.identical(1) && a == b); }

// Axes (of a tensor of `rank` axes) that an argument names; with a number for each axis, those where it is not 0.
void mark_axes(const ArgView& call, int arg, int64_t rank, std::vector<char>& marked) {
  const ArgSpec& spec = call.op().schema.args[static_cast<size_t>(arg)];
  const Value& value = call.value(static_cast<size_t>(arg));
  if (spec.role == ArgRole::EachAxis) {
    const Ints& each = value.ints();
    for (size_t i = 0; i < each.size() && i < marked.size(); ++i) marked[i] |= !(each[i].identical(0));
  } else if (value.is_none() && !marked.empty()) {
    marked.back() = 1;  // the last axis, as topk has it
  } else if (!value.is_none() && rank > 0) {
    for (const int64_t axis : normalize_axes(call.op(), spec.name, value, rank)) marked[static_cast<size_t>(axis)] = 1;
  }
}

// ---- maps ----

// Fills an AxisMap for one call from its pattern.
class PatternMap {
 public:
  PatternMap(const OpDef& op, std::span<const Value> args, std::span<const Type> outs)
      : call_(op, args), pattern_(*op.axes_pattern), outs_(outs) {}

  AxisMap make() {
    collect();
    bind_names();
    for (size_t i = 0; i < shapes_.size(); ++i) map_.inputs.push_back(factors(*terms_[i], shapes_[i], true));
    for (size_t i = 0; i < outs_.size(); ++i) map_.outputs.push_back(factors(output_term(i), outs_[i].shape, false));
    for (Factor& factor : map_.factors)
      if (factor.kind == FactorKind::Map) factor.kind = FactorKind::Reduce;
    for (const TensorFactors& output : map_.outputs)
      for (const AxisFactors& axis : output)
        for (const int idx : axis)
          if (Factor& factor = map_.factors[static_cast<size_t>(idx)]; factor.kind == FactorKind::Reduce)
            factor.kind = FactorKind::Map;
    return std::move(map_);
  }

 private:
  const Term& output_term(size_t idx) const { return pattern_.outputs[std::min(idx, pattern_.outputs.size() - 1)]; }

  // The tensors and their terms; how long the longest ellipsis is.
  void collect() {
    size_t term = 0;
    for (size_t arg = 0; arg < call_.args().size(); ++arg) {
      if (!call_.op().schema.args[arg].is_tensor_like()) continue;
      MOREL_CHECK(term < pattern_.inputs.size(), Internal, "operator ", call_.op().name, " has too few axes");
      const Term& at = pattern_.inputs[term++];
      const auto add = [&](const Value& value) {
        if (!is_tensor_value(value)) return;
        shapes_.push_back(shape_of(value));
        terms_.push_back(&at);
      };
      if (call_.value(arg).is_list()) {
        for (const Value& item : call_.value(arg).list()) add(item);
      } else {
        add(call_.value(arg));
      }
    }
    for (size_t i = 0; i < shapes_.size(); ++i) measure(*terms_[i], shapes_[i]);
    for (size_t i = 0; i < outs_.size(); ++i) measure(output_term(i), outs_[i].shape);
  }
  void measure(const Term& term, const Shape& shape) {
    if (term.ellipsis() < 0) return;
    const size_t length = shape.size() + 1 - term.items.size();
    if (length > spread_.size()) spread_.resize(length, -1);
  }

  // Sizes of the indices: of axes that are one index, and of int arguments; then what is left of axes of two.
  void bind_names() {
    factor_of_.assign(pattern_.names.size(), -1);
    sizes_.assign(pattern_.names.size(), Dim(-1));
    for (size_t i = 0; i < pattern_.names.size(); ++i)
      if (pattern_.names[i].argument >= 0)
        sizes_[i] = call_.value(static_cast<size_t>(pattern_.names[i].argument)).dim();
    for (const bool composed : {false, true}) {
      for (size_t i = 0; i < shapes_.size(); ++i) bind_term(*terms_[i], shapes_[i], composed);
      for (size_t i = 0; i < outs_.size(); ++i) bind_term(output_term(i), outs_[i].shape, composed);
    }
  }
  void bind_term(const Term& term, const Shape& shape, bool composed) {
    for_each_axis(term, shape, [&](const AxisItem& item, size_t axis, int) {
      if (item.kind != AxisItem::Kind::Index || (item.names.size() > 1) != composed) return;
      int open = -1;
      Dim known = 1;
      for (const int name : item.names) {
        if (sizes_[static_cast<size_t>(name)].identical(-1)) {
          open = name;
        } else {
          known = known * sizes_[static_cast<size_t>(name)];
        }
      }
      if (open >= 0) sizes_[static_cast<size_t>(open)] = composed ? shape[axis] / known : shape[axis];
    });
  }

  // Calls fn(item, axis, place from the right in an ellipsis).
  template <class F>
  static void for_each_axis(const Term& term, const Shape& shape, F&& fn) {
    size_t axis = 0;
    for (const AxisItem& item : term.items) {
      if (item.kind == AxisItem::Kind::Index) {
        if (axis < shape.size()) fn(item, axis, 0);
        ++axis;
        continue;
      }
      const size_t length = shape.size() + 1 - std::min(term.items.size(), shape.size() + 1);
      for (size_t i = 0; i < length; ++i) fn(item, axis++, static_cast<int>(length - 1 - i));
    }
  }

  TensorFactors factors(const Term& term, const Shape& shape, bool is_input) {
    TensorFactors out(shape.size());
    std::vector<char> marked(shape.size());
    for (const AxisItem& item : term.items)
      if (item.kind == AxisItem::Kind::Ellipsis)
        for (const int arg : item.names) mark_axes(call_, arg, static_cast<int64_t>(shape.size()), marked);
    for_each_axis(term, shape, [&](const AxisItem& item, size_t axis, int place) {
      if (item.kind == AxisItem::Kind::Index) {
        for (const int name : item.names) add_name(out[axis], name, shape[axis], item.names.size() == 1);
      } else if (item.whole || marked[axis]) {
        out[axis].push_back(map_.add(FactorKind::Whole, shape[axis]));
      } else {
        add_spread(out[axis], static_cast<size_t>(place), shape[axis], is_input);
      }
    });
    return out;
  }
  void add_name(AxisFactors& axis, int name, Dim size, bool alone) {
    const size_t idx = static_cast<size_t>(name);
    if (alone && !same_size(size, sizes_[idx])) {  // an axis of 1 that broadcasts, heads that several queries share
      if (!size.identical(1)) axis.push_back(map_.add(FactorKind::Whole, size));
      return;
    }
    if (factor_of_[idx] < 0) {
      factor_of_[idx] = map_.add(pattern_.names[idx].whole ? FactorKind::Whole : FactorKind::Map, sizes_[idx]);
      map_.factors.back().argument = pattern_.names[idx].argument;
    }
    axis.push_back(factor_of_[idx]);
  }
  // An axis of an ellipsis: all that have its size share a factor, one of 1 broadcasts.
  void add_spread(AxisFactors& axis, size_t place, Dim size, bool is_input) {
    Dim full = size;
    for (size_t i = 0; i < outs_.size(); ++i) {
      const Term& term = output_term(i);
      for_each_axis(term, outs_[i].shape, [&](const AxisItem& item, size_t at, int other) {
        if (item.kind == AxisItem::Kind::Ellipsis && static_cast<size_t>(other) == place) full = outs_[i].shape[at];
      });
    }
    if (!same_size(size, full)) {
      if (!is_input || !size.identical(1)) axis.push_back(map_.add(FactorKind::Whole, size));
      return;
    }
    if (spread_[place] < 0) spread_[place] = map_.add(FactorKind::Map, full);
    axis.push_back(spread_[place]);
  }

  const ArgView call_;
  const AxesPattern& pattern_;
  std::span<const Type> outs_;
  AxisMap map_;
  std::vector<Shape> shapes_;
  std::vector<const Term*> terms_;
  std::vector<int> factor_of_;  // of the names
  std::vector<Dim> sizes_;
  std::vector<int> spread_;  // factors of the axes of the ellipsis, from the right
};

// Operands that broadcast to one space, of which some axes are whole: elementwise operators and rows.
AxisMap broadcast_map(const OpDef& op, std::span<const Value> args, std::span<const Type> outs, int64_t whole_axis) {
  AxisMap map;
  Shape space = outs[0].shape;
  const Values tensors = tensors_of(op, args);
  for (const Value& tensor : tensors) {
    const Shape& shape = shape_of(tensor);
    for (size_t i = 0; i < shape.size() && i < space.size(); ++i) {
      Dim& size = space[space.size() - 1 - i];
      if (size.identical(1)) size = shape[shape.size() - 1 - i];
    }
  }
  for (size_t i = 0; i < space.size(); ++i)
    map.add(static_cast<int64_t>(i) == whole_axis ? FactorKind::Whole : FactorKind::Map, space[i]);
  const auto fit = [&](const Shape& shape) {
    TensorFactors out(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) {
      const size_t at = i + space.size() - shape.size();
      if (same_size(shape[i], space[at])) out[i].push_back(static_cast<int>(at));
    }
    return out;
  };
  for (const Value& tensor : tensors) map.inputs.push_back(fit(shape_of(tensor)));
  for (const Type& out : outs) map.outputs.push_back(fit(out.shape));
  return map;
}

AxisMap rows_map(const OpDef& op, std::span<const Value> args, std::span<const Type> outs) {
  const int64_t rank = static_cast<int64_t>(outs[0].shape.size());
  const int axis_at = op.schema.find("axis");
  const int64_t axis =
      axis_at < 0 ? rank - 1 : normalize_axis(op, "axis", args[static_cast<size_t>(axis_at)].integer(), rank);
  const size_t rows = rows_signature(op, outs[0].dtype).outputs.size();
  AxisMap map = broadcast_map(op, args, outs.subspan(0, std::min(rows, outs.size())), axis);
  for (size_t i = rows; i < outs.size(); ++i) {  // sums over all rows
    map.outputs.emplace_back();
    for (const Dim size : outs[i].shape) map.outputs.back().push_back({map.add(FactorKind::Whole, size)});
  }
  return map;
}

AxisMap reduce_map(const OpDef& op, std::span<const Value> args, std::span<const Type> outs) {
  using loops::ReduceOp;
  const Shape& shape = shape_of(args[0]);
  const Ints axes = normalize_axes(op, "axis", args[1], static_cast<int64_t>(shape.size()));
  const bool cut = *op.reduce != ReduceOp::ArgMin && *op.reduce != ReduceOp::ArgMax;
  AxisMap map;
  TensorFactors in(shape.size()), out;
  size_t next = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = next < axes.size() && axes[next] == static_cast<int64_t>(i);
    if (reduced) ++next;
    in[i].push_back(map.add(!reduced ? FactorKind::Map : cut ? FactorKind::Reduce : FactorKind::Whole, shape[i]));
    if (reduced) map.factors.back().combine = *op.reduce;
    if (!reduced) out.push_back(in[i]);
    if (reduced && args[2].boolean()) out.emplace_back();
  }
  map.inputs.push_back(std::move(in));
  out.resize(outs[0].shape.size());
  map.outputs.push_back(std::move(out));
  return map;
}

// ---- views: the strides that the view gives a contiguous input tell which axis is which ----

// Two shapes of the same elements in the same order, as axes of common factors.
void split_shapes(AxisMap& map, const Shape& a, const Shape& b, TensorFactors& of_a, TensorFactors& of_b) {
  of_a.resize(a.size());
  of_b.resize(b.size());
  size_t i = a.size(), j = b.size();
  Dim left_a = 1, left_b = 1;  // what is not split yet of the axes at hand, minor first
  const auto prepend = [](AxisFactors& axis, int factor) { axis.insert(axis.begin(), factor); };
  while (true) {
    while (left_a.identical(1) && i > 0) left_a = a[--i];
    while (left_b.identical(1) && j > 0) left_b = b[--j];
    if (left_a.identical(1) || left_b.identical(1)) break;
    const bool same = same_size(left_a, left_b);
    const bool numbers = !left_a.is_symbolic() && !left_b.is_symbolic();
    const bool a_divides = numbers && left_a > 0 && left_b % left_a == 0,
               b_divides = numbers && left_b > 0 && left_a % left_b == 0;
    if (!same && !a_divides && !b_divides) break;
    const Dim common = same || a_divides ? left_a : left_b;
    const int factor = map.add(FactorKind::Map, common);
    prepend(of_a[i], factor);
    prepend(of_b[j], factor);
    left_a = same || common.identical(left_a) ? Dim(1) : left_a / common;
    left_b = same || common.identical(left_b) ? Dim(1) : left_b / common;
  }
  // The rest has no common factor.
  const auto finish = [&](const Shape& shape, TensorFactors& axes, size_t at, Dim left) {
    if (!left.identical(1)) prepend(axes[at], map.add(FactorKind::Whole, left));
    while (at > 0)
      if (Dim size = shape[--at]; !size.identical(1)) prepend(axes[at], map.add(FactorKind::Whole, size));
  };
  finish(a, of_a, i, left_a);
  finish(b, of_b, j, left_b);
}

// An output axis that steps through the whole of an input axis is that axis.
TensorFactors match_strides(AxisMap& map, const Layout& input, const TensorFactors& of_input, const Layout& output,
                            std::vector<char>& found) {
  TensorFactors out(output.shape.size());
  for (size_t i = 0; i < output.shape.size(); ++i) {
    if (output.shape[i].identical(1)) continue;
    if (output.strides[i].identical(0)) {  // broadcast
      out[i].push_back(map.add(FactorKind::Map, output.shape[i]));
      continue;
    }
    size_t axis = 0;
    while (axis < input.shape.size() &&
           !(input.strides[axis].identical(output.strides[i]) && input.shape[axis].identical(output.shape[i])))
      ++axis;
    if (axis < input.shape.size()) {
      out[i] = of_input[axis];
      found[axis] = 1;
    } else {
      out[i].push_back(map.add(FactorKind::Whole, output.shape[i]));
    }
  }
  return out;
}

AxisMap view_map(const OpDef& op, std::span<const Value> args, std::span<const Type> outs) {
  const Shape& shape = shape_of(args[0]);
  const Layout input{shape, contiguous_strides(shape), 0};
  const ArgView call(op, args);
  const std::optional<Layout> single = op.view ? op.view(call, input) : std::nullopt;
  AxisMap map;
  map.inputs.emplace_back();
  if (op.view && (!single || (single->strides == contiguous_strides(single->shape) && single->offset.identical(0) &&
                              num_elements(single->shape).identical(num_elements(shape))))) {
    map.outputs.emplace_back();
    split_shapes(map, shape, outs[0].shape, map.inputs[0], map.outputs[0]);
  } else {
    const std::vector<Layout> layouts = single ? std::vector<Layout>{*single} : op.views(call, input);
    std::vector<char> found(shape.size());
    for (const Dim size : shape) map.inputs[0].push_back({map.add(FactorKind::Map, size)});
    for (const Layout& layout : layouts) map.outputs.push_back(match_strides(map, input, map.inputs[0], layout, found));
    for (size_t i = 0; i < shape.size(); ++i)
      if (!found[i]) map.factors[static_cast<size_t>(map.inputs[0][i][0])].kind = FactorKind::Whole;
  }
  const Values tensors = tensors_of(op, args);
  for (size_t i = 1; i < tensors.size(); ++i) map.add_whole(map.inputs, shape_of(tensors[i]));
  return map;
}

}  // namespace

int AxisMap::add(FactorKind kind, Dim size) {
  factors.push_back({kind, loops::ReduceOp::Sum, size});
  return static_cast<int>(factors.size()) - 1;
}

void AxisMap::add_whole(std::vector<TensorFactors>& tensors, const Shape& shape) {
  tensors.emplace_back();
  for (const Dim size : shape) tensors.back().push_back({add(FactorKind::Whole, size)});
}

std::string to_string(const AxisMap& map) {
  const auto name = [&](int factor) {
    const std::string letter = factor < 26 ? std::string(1, static_cast<char>('a' + factor)) : cat("f", factor);
    return map.factors[static_cast<size_t>(factor)].kind == FactorKind::Whole ? cat("[", letter, "]") : letter;
  };
  const auto tensors = [&](const std::vector<TensorFactors>& all) {
    std::string out;
    for (const TensorFactors& tensor : all) {
      if (&tensor != all.data()) out += ", ";
      for (size_t i = 0; i < tensor.size(); ++i) {
        std::string axis;
        for (const int factor : tensor[i]) axis += (axis.empty() ? "" : " ") + name(factor);
        out += (i ? " " : "") + (axis.empty() ? "1" : tensor[i].size() > 1 ? cat("(", axis, ")") : axis);
      }
    }
    return out;
  };
  return cat(tensors(map.inputs), " -> ", tensors(map.outputs));
}

const AxesPattern* parse_axes(const OpDef& op) {
  return op.axes.empty() ? nullptr : new AxesPattern(PatternParser(op).parse());
}

Values tensors_of(const OpDef& op, std::span<const Value> args) {
  Values out;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!op.schema.args[i].is_tensor_like()) continue;
    const Value& arg = args[i];
    if (is_tensor_value(arg)) out.push_back(arg);
    if (arg.is_list())
      for (const Value& item : arg.list())
        if (is_tensor_value(item)) out.push_back(item);
  }
  return out;
}

AxisMap whole_axes(const OpDef& op, std::span<const Value> args, std::span<const Type> outs) {
  AxisMap map;
  for (const Value& tensor : tensors_of(op, args)) map.add_whole(map.inputs, shape_of(tensor));
  for (const Type& out : outs) map.add_whole(map.outputs, out.shape);
  return map;
}

bool has_axes(const OpDef& op) {
  return op.axis_rule || !op.axes.empty() || op.loop || op.rows || op.reduce || op.view || op.views;
}

AxisMap axis_map(const OpDef& op, std::span<const Value> args, std::span<const Type> outs) {
  if (op.axis_rule) return op.axis_rule(ArgView(op, args), outs);
  if (!op.axes.empty()) return PatternMap(op, args, outs).make();
  if (op.loop) return broadcast_map(op, args, outs, -1);
  if (op.rows) return rows_map(op, args, outs);
  if (op.reduce) return reduce_map(op, args, outs);
  if (op.view || op.views) return view_map(op, args, outs);
  return whole_axes(op, args, outs);
}

static const Term& term_of(const OpDef& op, size_t arg) {
  size_t term = 0;
  for (size_t i = 0; i < arg; ++i) term += op.schema.args[i].is_tensor_like();
  return op.axes_pattern->inputs[term];
}

bool takes_leading_axes(const OpDef& op, size_t idx) {
  if (op.axis_rule) return false;
  if (op.axes.empty()) return op.loop || (op.rows && !op.columns) || op.reduce || op.view || op.views;
  const auto leads = [](const Term& term) { return term.ellipsis() == 0 && !term.items[0].whole; };
  const std::vector<Term>& outputs = op.axes_pattern->outputs;
  return leads(term_of(op, idx)) && std::all_of(outputs.begin(), outputs.end(), leads);
}

int64_t named_axes(const OpDef& op, size_t idx) {
  if (op.axes.empty()) return 0;
  const Term& term = term_of(op, idx);
  return static_cast<int64_t>(term.items.size()) - (term.ellipsis() >= 0 ? 1 : 0);
}

// ---- inference ----
namespace {

void bind_input(const ArgView& call, const Term& term, const AxesPattern& pattern, size_t idx, std::span<Dim> bound,
                std::span<int> owner, Shape& batch) {
  const OpDef& op = call.op();
  const std::string& name = op.schema.args[idx].name;
  const Shape& shape = call.shape(idx);
  const bool spread = term.ellipsis() >= 0;
  const size_t named = term.items.size() - (spread ? 1 : 0);
  MOREL_CHECK(shape.size() >= named && (spread || shape.size() == named), Value, "For '", display_name(op), "', '",
              name, "' must have ", spread ? "at least " : "", named, " dimensions, but got ",
              to_string(call.value(idx)));
  const size_t lead = shape.size() - named;
  for (size_t i = 0; i < named; ++i) {
    const AxisItem& item = term.items[i + (spread ? 1 : 0)];
    const size_t at = static_cast<size_t>(item.names[0]);
    const Dim dim = shape[lead + i];
    MOREL_CHECK(bound[at] < 0 || bound[at] == dim, Value, "For '", display_name(op), "', axis ", pattern.names[at].name,
                " differs: '", op.schema.args[static_cast<size_t>(owner[at])].name, "' ",
                to_string(call.value(static_cast<size_t>(owner[at]))), " has ", bound[at], ", '", name, "' ",
                to_string(call.value(idx)), " has ", dim);
    bound[at] = dim;
    owner[at] = static_cast<int>(idx);
  }
  batch = broadcast_shapes(op, batch, Shape(shape.begin(), shape.begin() + lead));
}

}  // namespace

Types infer_from_axes(const ArgView& call) {
  const AxesPattern& pattern = *call.op().axes_pattern;
  SmallVector<Dim, 8> bound(pattern.names.size(), Dim(-1));
  SmallVector<int, 8> owner(pattern.names.size(), -1);
  Shape batch;
  size_t arg = 0;
  for (const Term& term : pattern.inputs) {
    while (!call.op().schema.args[arg].is_tensor_like()) ++arg;
    const size_t idx = arg++;
    if (!call.value(idx).is_none())
      bind_input(call, term, pattern, idx, {bound.data(), bound.size()}, {owner.data(), owner.size()}, batch);
  }
  Types out;
  const DType dtype = common_dtype(call);
  for (const Term& term : pattern.outputs) {
    Type type{dtype, {}};
    for (const AxisItem& item : term.items) {
      if (item.kind == AxisItem::Kind::Ellipsis) {
        type.shape.append(batch.begin(), batch.end());
      } else {
        type.shape.push_back(bound[static_cast<size_t>(item.names[0])]);
      }
    }
    out.push_back(std::move(type));
  }
  return out;
}

// ---- batches ----

Ints with_batch(const VmapCall& call, const Ints& sizes) {
  Ints out = sizes;
  out.insert(out.begin(), call.batch());
  return out;
}

Sym in_batch(const VmapCall& call, size_t idx) {
  return call.batched(idx) ? call[idx]
                           : call.builder()("broadcast_to", call[idx], with_batch(call, Ints(call.shape(idx))));
}

}  // namespace morel
