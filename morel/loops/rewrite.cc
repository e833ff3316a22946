#include "morel/loops/rewrite.h"

#include <bit>

namespace morel::loops {
namespace {

size_t mix(size_t seed, size_t value) { return (seed ^ value) * 0x9e3779b97f4a7c15ull + (seed >> 29); }

size_t hash_node(const ExprNode& node) {
  size_t seed =
      mix(static_cast<size_t>(node.op) * 64 + static_cast<size_t>(node.dtype), static_cast<size_t>(node.index));
  seed = mix(seed, std::bit_cast<uint64_t>(node.value.real()));
  seed = mix(seed, std::bit_cast<uint64_t>(node.value.imag()));
  for (const Expr& arg : node.args) seed = mix(seed, reinterpret_cast<size_t>(arg.get()));
  return seed;
}

bool equal_nodes(const ExprNode& a, const ExprNode& b) {
  if (a.op != b.op || a.dtype != b.dtype || a.weak != b.weak || a.index != b.index || a.args.size() != b.args.size())
    return false;
  if (std::bit_cast<uint64_t>(a.value.real()) != std::bit_cast<uint64_t>(b.value.real())) return false;
  if (std::bit_cast<uint64_t>(a.value.imag()) != std::bit_cast<uint64_t>(b.value.imag())) return false;
  for (size_t i = 0; i < a.args.size(); ++i) {
    if (a.args[i].get() != b.args[i].get()) return false;
  }
  return true;
}

}  // namespace

Expr Rewriter::intern(const Expr& x) {
  const size_t hash = hash_node(*x.get());
  for (auto [it, end] = interned_.equal_range(hash); it != end; ++it) {
    if (equal_nodes(*it->second.get(), *x.get())) return it->second;
  }
  interned_.emplace(hash, x);
  return x;
}

Expr Rewriter::share(const Expr& x) {
  if (auto it = shared_.find(x.get()); it != shared_.end()) return it->second;
  std::vector<Expr> args;
  for (const Expr& arg : x->args) args.push_back(share(arg));
  const Expr out = intern(with_args(x, std::move(args)));
  keep_.push_back(x);
  shared_.emplace(x.get(), out);
  return out;
}

Expr Rewriter::operator()(const Expr& x) {
  if (!rule_) return share(x);
  if (auto it = done_.find(x.get()); it != done_.end()) return it->second;
  std::vector<Expr> args;
  for (const Expr& arg : x->args) args.push_back((*this)(arg));
  const Expr out = share(rule_(with_args(x, std::move(args))));
  keep_.push_back(x);
  done_.emplace(x.get(), out);
  return out;
}

void visit(const Expr& x, std::unordered_map<const ExprNode*, bool>& seen, const std::function<void(const Expr&)>& fn) {
  if (!seen.emplace(x.get(), true).second) return;
  for (const Expr& arg : x->args) visit(arg, seen, fn);
  fn(x);
}

}  // namespace morel::loops
