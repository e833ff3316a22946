// Sizes that are not numbers: polynomials with integer coefficients over the sizes of a graph's parameters and over
// quotients of such polynomials. Each stands once in memory, in normal form, so that equal ones are the same pointer;
// they are never freed.
#pragma once

#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "morel/base/ref.h"
#include "morel/tensor/dim.h"

namespace morel {

// What a product in a polynomial is made of: a symbol, or floor(a / b).
struct SizeAtom {
  int64_t symbol = -1;  // negative: a quotient
  Dim a, b;
  int64_t order = 0;  // in which products name their atoms
};

struct SizeTerm {
  int64_t factor = 0;
  SmallVector<const SizeAtom*, 3> atoms;  // in order; none: a number
};

class SizeExpr {
 public:
  explicit SizeExpr(std::vector<SizeTerm> terms) : terms_(std::move(terms)) {}
  const std::vector<SizeTerm>& terms() const { return terms_; }

 private:
  std::vector<SizeTerm> terms_;
};

Dim symbol(int64_t index);  // s0, s1, ...
Dim floor_quotient(Dim a, Dim b);
using SymbolValues = std::span<const int64_t>;
int64_t evaluate(Dim dim, SymbolValues values);
Ints evaluate(const Ints& dims, SymbolValues values);

// What is assumed of an expression.
struct SizeGuard {
  enum class Kind : uint8_t { Zero, NotZero, NotNegative };
  Kind kind;
  Dim size;
};
inline constexpr std::string_view guard_relations[] = {"==", "!=", ">="};
std::string to_string(const SizeGuard& guard);  // "s0-784 == 0"

// The symbols of one graph: the numbers that it is built with, and what was assumed of them on the way. Symbols are at
// least 2, for sizes of 0 and 1 mean something to operators.
class SymbolicSizes final : public RefCounted {
 public:
  static constexpr int64_t least = 2;
  Dim add(int64_t example);
  size_t count() const { return examples_.size(); }
  SymbolValues examples() const { return examples_; }
  const std::vector<SizeGuard>& guards() const { return guards_; }
  // "s0=32, s2=784": what stands for the symbols that a text mentions.
  std::string legend(std::string_view text) const;
  // Whether a graph that was built with these serves other values.
  bool hold(SymbolValues values) const;

  // Makes them those of this thread.
  class Use {
   public:
    explicit Use(SymbolicSizes* sizes);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    SymbolicSizes* outer_;
  };
  static SymbolicSizes* current();

  // With what was found out so far put in.
  Dim normal(Dim dim);
  // Whether the condition holds; assumes it (or its contrary) where that is not known.
  bool decide(SizeGuard::Kind kind, Dim size);

 private:
  void assume(SizeGuard guard);
  void solve(const SizeExpr& zero);
  Dim rebuilt(const SizeExpr& expr);

  std::vector<int64_t> examples_;
  std::vector<SizeGuard> guards_;
  std::unordered_map<const SizeAtom*, Dim> solved_;
  std::unordered_map<const SizeExpr*, Dim> normal_;  // of expressions, with solved_ as it is now
};

}  // namespace morel
