// Sizes of a plan as numbers.
#pragma once

#include <span>

#include "morel/lite/plan.h"
#include "morel/tensor/tensor.h"

namespace morel::lite {

class SizeValues {
 public:
  SizeValues() = default;
  // ValueError where a number gets too large.
  SizeValues(const Plan& plan, std::span<const int64_t> symbols);
  int64_t operator()(const Size& size) const {
    return size.expr < 0 ? size.number : exprs_[static_cast<size_t>(size.expr)];
  }

 private:
  int64_t value_of(const SizeAtom& atom, std::span<const int64_t> symbols) const;
  std::vector<int64_t> exprs_;
};

// The values of the symbols for which the plan was made.
std::vector<int64_t> planned_symbols(const Plan& plan);
// Whether the plan serves these values of its symbols; where not, `why` says which condition fails.
bool serves(const Plan& plan, const SizeValues& sizes, std::span<const int64_t> symbols, std::string& why);

// Layout of a value. ValueError unless it is one: sizes are not negative and all elements lie within `bytes`.
Layout layout_of(const Value& value, const SizeValues& sizes, int64_t bytes);

}  // namespace morel::lite
