#include "morel/lite/sizes.h"

#include <algorithm>

namespace morel::lite {
namespace {

// Far above every real size, far below where products of two overflow.
constexpr int64_t largest = int64_t{1} << 48;

int64_t checked(int64_t number, bool overflow) {
  MOREL_CHECK(!overflow && number <= largest && number >= -largest, Value, "a size of the model is too large");
  return number;
}
int64_t product(int64_t a, int64_t b) {
  int64_t out;
  const bool overflow = __builtin_mul_overflow(a, b, &out);
  return checked(out, overflow);
}
int64_t sum(int64_t a, int64_t b) {
  int64_t out;
  const bool overflow = __builtin_add_overflow(a, b, &out);
  return checked(out, overflow);
}

}  // namespace

SizeValues::SizeValues(const Plan& plan, std::span<const int64_t> symbols) {
  for (const SizeExpr& expr : plan.exprs) {
    int64_t total = 0;
    for (const SizeTerm& term : expr.terms) {
      int64_t value = term.factor;
      for (const SizeAtom& atom : term.atoms) value = product(value, value_of(atom, symbols));
      total = sum(total, value);
    }
    exprs_.push_back(total);
  }
}

int64_t SizeValues::value_of(const SizeAtom& atom, std::span<const int64_t> symbols) const {
  if (atom.symbol >= 0) return checked(symbols[static_cast<size_t>(atom.symbol)], false);
  const int64_t a = (*this)(atom.a), b = (*this)(atom.b);
  MOREL_CHECK(b > 0, Value, "a size of the model is divided by ", b);
  return a / b - (a % b < 0);
}

std::vector<int64_t> planned_symbols(const Plan& plan) {
  std::vector<int64_t> out;
  for (const Symbol& symbol : plan.symbols) out.push_back(symbol.value);
  return out;
}

bool serves(const Plan& plan, const SizeValues& sizes, std::span<const int64_t> symbols, std::string& why) {
  // Sizes of 0 and 1 mean something to operators, so a plan with symbols was not made for them.
  constexpr int64_t least = 2;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i] >= least) continue;
    why = cat("size ", plan.symbols[i].axis, " of input ", plan.symbols[i].input, " must be at least ", least);
    return false;
  }
  for (const Guard& guard : plan.guards) {
    const int64_t value = sizes(guard.size);
    const bool holds = guard.kind == Guard::Kind::Zero      ? value == 0
                       : guard.kind == Guard::Kind::NotZero ? value != 0
                                                            : value >= 0;
    if (holds) continue;
    why = "the model was converted for sizes in another relation to each other";
    return false;
  }
  return true;
}

Layout layout_of(const Value& value, const SizeValues& sizes, int64_t bytes) {
  Layout out;
  int64_t count = 1, low = sizes(value.offset), high = low;
  for (size_t i = 0; i < value.shape.size(); ++i) {
    const int64_t size = sizes(value.shape[i]), stride = sizes(value.strides[i]);
    MOREL_CHECK(size >= 0, Value, "a size of '", value.name, "' is ", size);
    out.shape.push_back(size);
    out.strides.push_back(stride);
    count = product(count, size);
    if (size == 0) continue;
    int64_t& end = stride < 0 ? low : high;
    end = sum(end, product(size - 1, stride));
  }
  out.offset = sizes(value.offset);
  MOREL_CHECK(count == 0 || (low >= 0 && high < bytes / size_of(value.dtype)), Value, "the value '", value.name,
              "' of shape ", to_string(out.shape), " does not lie within its ", bytes, " bytes");
  if (count == 0) out.offset = 0;
  return out;
}

}  // namespace morel::lite
