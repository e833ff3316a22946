// Dim: one size, stride or index: a number, or in a graph that serves many shapes an expression over the sizes of its
// parameters (tensor/symbolic.h). Rules of operators compute with it as with an int64_t. Where one needs the number
// itself or a truth that depends on it, the graph is specialised: it gets the number that it was built with, and the
// graph serves only calls in which that comes out the same.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "morel/base/small_vector.h"

namespace morel {

class SizeExpr;

class Dim {
 public:
  constexpr Dim() = default;
  template <std::integral T>
  constexpr Dim(T number) : code_(static_cast<int64_t>(number)) {  // NOLINT
    // No size is as small as this: all such numbers are the same to operators.
    if (code_ < lowest) [[unlikely]]
      code_ = std::numeric_limits<int64_t>::min();
  }
  explicit Dim(const SizeExpr* expr) : code_(std::numeric_limits<int64_t>::min() + reinterpret_cast<intptr_t>(expr)) {}

  operator int64_t() const {  // NOLINT
    if (code_ < lowest) [[unlikely]]
      return specialised();
    return code_;
  }
  constexpr bool is_symbolic() const { return code_ < lowest && code_ != std::numeric_limits<int64_t>::min(); }
  const SizeExpr& expr() const {
    return *reinterpret_cast<const SizeExpr*>(static_cast<intptr_t>(code_ - std::numeric_limits<int64_t>::min()));
  }
  // Equal where the same number or the same expression: nothing is assumed.
  constexpr bool identical(Dim other) const { return code_ == other.code_; }
  // The representation, for hashing and storing.
  constexpr int64_t code() const { return code_; }
  static constexpr Dim of_code(int64_t code) {
    Dim out;
    out.code_ = code;
    return out;
  }

  friend bool operator==(Dim a, Dim b) {
    if (a.code_ == b.code_) return true;
    return std::min(a.code_, b.code_) < lowest && equal(a, b);
  }
  friend bool operator<(Dim a, Dim b) {
    if (std::min(a.code_, b.code_) < lowest) [[unlikely]]
      return less(a, b);
    return a.code_ < b.code_;
  }
  friend bool operator>(Dim a, Dim b) { return b < a; }
  friend bool operator<=(Dim a, Dim b) { return !(b < a); }
  friend bool operator>=(Dim a, Dim b) { return !(a < b); }

#define MOREL_DIM_OPERATOR(symbol, slow)                                                                               \
  friend Dim operator symbol(Dim a, Dim b) {                                                                           \
    if (std::min(a.code_, b.code_) < lowest) [[unlikely]]                                                              \
      return slow(a, b);                                                                                               \
    return Dim(a.code_ symbol b.code_);                                                                                \
  }                                                                                                                    \
  Dim& operator symbol##=(Dim b) { return *this = *this symbol b; }
  MOREL_DIM_OPERATOR(+, sum)
  MOREL_DIM_OPERATOR(-, difference)
  MOREL_DIM_OPERATOR(*, product)
  MOREL_DIM_OPERATOR(/, quotient)
  MOREL_DIM_OPERATOR(%, remainder)
#undef MOREL_DIM_OPERATOR
  Dim operator-() const { return Dim(0) - *this; }
  Dim& operator++() { return *this += 1; }
  Dim operator++(int) {
    const Dim old = *this;
    ++*this;
    return old;
  }
  Dim& operator--() { return *this -= 1; }

#define MOREL_DIM_MIXED(result, symbol)                                                                                \
  template <std::integral T>                                                                                           \
  friend result operator symbol(Dim a, T b) {                                                                          \
    return a symbol Dim(b);                                                                                            \
  }                                                                                                                    \
  template <std::integral T>                                                                                           \
  friend result operator symbol(T a, Dim b) {                                                                          \
    return Dim(a) symbol b;                                                                                            \
  }
  MOREL_DIM_MIXED(Dim, +)
  MOREL_DIM_MIXED(Dim, -)
  MOREL_DIM_MIXED(Dim, *)
  MOREL_DIM_MIXED(Dim, /)
  MOREL_DIM_MIXED(Dim, %)
  MOREL_DIM_MIXED(bool, ==)
  MOREL_DIM_MIXED(bool, <)
  MOREL_DIM_MIXED(bool, >)
  MOREL_DIM_MIXED(bool, <=)
  MOREL_DIM_MIXED(bool, >=)
#undef MOREL_DIM_MIXED

 private:
  int64_t specialised() const;
  static bool equal(Dim a, Dim b);
  static bool less(Dim a, Dim b);
  static Dim sum(Dim a, Dim b);
  static Dim difference(Dim a, Dim b);
  static Dim product(Dim a, Dim b);
  static Dim quotient(Dim a, Dim b);  // of sizes: both are at least 0
  static Dim remainder(Dim a, Dim b);

  static constexpr int64_t lowest = -(int64_t{1} << 62);
  int64_t code_ = 0;  // below `lowest`: the address of an expression
};
static_assert(sizeof(Dim) == sizeof(int64_t));

using Shape = SmallVector<Dim, 6>;
using Strides = SmallVector<Dim, 6>;
using Ints = SmallVector<Dim, 6>;

// The same as numbers, which they must be.
inline std::span<const int64_t> numbers_of(const Ints& dims) {
  for (const Dim dim : dims) static_cast<void>(static_cast<int64_t>(dim));
  return {reinterpret_cast<const int64_t*>(dims.data()), dims.size()};
}

// "12"; of an expression "s0*2+1".
std::string to_string(Dim dim);

}  // namespace morel
