// Import rule: sums of products over named axes, as one batched matrix product for each further operand.
#include <algorithm>

#include "morel/io/onnx/import_rules.h"

namespace morel::onnx {
namespace {

// An operand and what its axes are called; those of an ellipsis are called '0', '1', ... from the last one on.
struct Named {
  Sym value;
  std::string axes;
};

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}
std::string expanded(std::string_view term, int64_t rank) {
  const size_t dots = term.find("...");
  if (dots == std::string_view::npos) return std::string(term);
  std::string out(term.substr(0, dots));
  for (int64_t i = rank; i-- > 0;) out += static_cast<char>('0' + i);
  return out + std::string(term.substr(dots + 3));
}
bool has(std::string_view axes, char name) { return axes.find(name) != std::string_view::npos; }

class Einsum {
 public:
  explicit Einsum(const NodeCall& c) : b_(c.b) {
    const std::string equation = without_spaces(c.text("equation", ""));
    const size_t arrow = equation.find("->");
    std::string_view left = std::string_view(equation).substr(0, arrow);
    int64_t widest = 0;
    for (size_t i = 0; i < c.size(); ++i) {
      const size_t comma = std::min(left.find(','), left.size());
      const std::string_view term = left.substr(0, comma);
      left.remove_prefix(std::min(comma + 1, left.size()));
      const bool has_dots = term.find("...") != std::string_view::npos;
      const int64_t dots = has_dots ? c[i].rank() - static_cast<int64_t>(term.size() - 3) : 0;
      widest = std::max(widest, dots);
      operands_.push_back({c[i], expanded(term, dots)});
      MOREL_CHECK(dots >= 0 && static_cast<int64_t>(operands_.back().axes.size()) == c[i].rank(), Value, "'", term,
                  "' of the equation '", equation, "' does not name the axes of ", to_string(c[i].value()));
    }
    result_ =
        arrow == std::string::npos ? implied(widest) : expanded(std::string_view(equation).substr(arrow + 2), widest);
    std::string all;
    for (const Named& operand : operands_) all += operand.axes;
    for (const char axis : result_)
      MOREL_CHECK(has(all, axis), Value, "the equation '", equation, "' does not say what the axis '", axis, "' is");
  }

  Sym run() {
    Named out = reduced(diagonal(operands_[0]), wanted_after(0));
    for (size_t i = 1; i < operands_.size(); ++i) {
      const std::string wanted = wanted_after(i);
      const Named next = diagonal(operands_[i]);
      out = product(reduced(out, wanted + next.axes), reduced(next, wanted + out.axes), wanted);
    }
    return ordered(reduced(out, result_), result_);
  }

 private:
  // Without an arrow: the axes that occur once, in the order of the alphabet.
  std::string implied(int64_t dots) const {
    std::string all, out = expanded("...", dots);
    for (const Named& operand : operands_) all += operand.axes;
    std::ranges::sort(all);
    for (const char axis : all)
      if (axis > '9' && std::ranges::count(all, axis) == 1) out += axis;
    return out;
  }
  // The axes that the result or an operand after `idx` has.
  std::string wanted_after(size_t idx) const {
    std::string out = result_;
    for (size_t i = idx + 1; i < operands_.size(); ++i) out += operands_[i].axes;
    return out;
  }

  // Each axis once.
  Named diagonal(Named x) const {
    for (size_t i = 0; i < x.axes.size(); ++i) {
      const size_t again = x.axes.find(x.axes[i], i + 1);
      if (again == std::string::npos) continue;
      x.value = b_("diagonal", x.value, 0, static_cast<int64_t>(i), static_cast<int64_t>(again));
      const char axis = x.axes[i];
      x.axes.erase(again, 1).erase(i, 1);
      x.axes += axis;
      --i;
    }
    return x;
  }
  Named reduced(const Named& x, std::string_view wanted) const {
    Ints over;
    Named out{x.value, ""};
    for (size_t i = 0; i < x.axes.size(); ++i) {
      if (has(wanted, x.axes[i])) out.axes += x.axes[i];
      else over.push_back(static_cast<int64_t>(i));
    }
    if (!over.empty()) out.value = b_("cast", b_("sum", x.value, over), x.value.dtype());
    return out;
  }
  Sym ordered(const Named& x, std::string_view axes) const {
    Ints order;
    for (const char axis : axes) order.push_back(static_cast<int64_t>(x.axes.find(axis)));
    return order.empty() ? x.value : b_("transpose", x.value, order);
  }

  // Over the axes that both have and that are not wanted any more.
  Named product(const Named& x, const Named& y, std::string_view wanted) const {
    std::string both, summed, first, second;
    for (const char axis : x.axes) (!has(y.axes, axis) ? first : has(wanted, axis) ? both : summed) += axis;
    for (const char axis : y.axes)
      if (!has(x.axes, axis)) second += axis;
    Ints batch;
    const auto size = [](const Named& of, char axis) { return of.value.dim(static_cast<int64_t>(of.axes.find(axis))); };
    for (const char axis : both) {
      const Dim mine = size(x, axis);
      batch.push_back(mine.identical(1) ? size(y, axis) : mine);
    }
    Ints shape = batch;
    for (const char axis : first) shape.push_back(size(x, axis));
    for (const char axis : second) shape.push_back(size(y, axis));
    const auto matrix = [&](const Named& of, const std::string& rows, const std::string& columns) {
      const Sym sorted = ordered(of, both + rows + columns);
      Ints wide(sorted.shape());
      std::copy(batch.begin(), batch.end(), wide.begin());
      Dim count = 1;
      for (const Dim dim : batch) count *= dim;
      Dim of_rows = 1, of_columns = 1;
      for (const char axis : rows) of_rows *= size(of, axis);
      for (const char axis : columns) of_columns *= size(of, axis);
      return b_("reshape", b_("broadcast_to", sorted, wide), Ints{count, of_rows, of_columns});
    };
    return {b_("reshape", b_("matmul", matrix(x, first, summed), matrix(y, summed, second)), shape),
            both + first + second};
  }

  Builder& b_;
  std::vector<Named> operands_;
  std::string result_;
};

Result einsum(const NodeCall& c) { return results_of(Einsum(c).run()); }

constexpr ImportEntry entries[] = {{"Einsum", einsum, every_input}};

}  // namespace

std::span<const ImportEntry> einsum_rules() { return entries; }

}  // namespace morel::onnx
