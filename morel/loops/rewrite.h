// Bottom-up rewriting of expressions. Equal sub-expressions come out as one shared node, so a consumer that keeps a
// table by node computes each of them once.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "morel/loops/expr.h"

namespace morel::loops {

class Rewriter {
 public:
  // The rule sees each node after its operands; what it returns is rewritten no further.
  using Rule = std::function<Expr(const Expr&)>;
  Rewriter() = default;
  explicit Rewriter(Rule rule) : rule_(std::move(rule)) {}
  Expr operator()(const Expr& x);

 private:
  Expr share(const Expr& x);  // x and its operands
  Expr intern(const Expr& x);

  Rule rule_;
  std::unordered_map<const ExprNode*, Expr> done_;
  std::unordered_map<const ExprNode*, Expr> shared_;
  std::unordered_multimap<size_t, Expr> interned_;
  std::vector<Expr> keep_;  // nodes whose addresses are keys stay alive
};

// Calls visit(node) once for each node of x, operands first; `seen` carries over between calls.
void visit(const Expr& x, std::unordered_map<const ExprNode*, bool>& seen, const std::function<void(const Expr&)>& fn);

}  // namespace morel::loops
