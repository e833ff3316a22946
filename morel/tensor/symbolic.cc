#include "morel/tensor/symbolic.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <mutex>
#include <tuple>

#include "morel/base/error.h"

namespace morel {
namespace {

thread_local SymbolicSizes* current_sizes = nullptr;

using Terms = std::vector<SizeTerm>;

void check_size(bool fits) { MOREL_CHECK(fits, Value, "the size of a tensor is too large"); }

int64_t floor_divided(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// Products of more atoms first, then by the order of atoms (graded lexicographic, so division finds exact quotients).
int compare(const SizeTerm& x, const SizeTerm& y) {
  if (x.atoms.size() != y.atoms.size()) return x.atoms.size() > y.atoms.size() ? -1 : 1;
  for (size_t i = 0; i < x.atoms.size(); ++i)
    if (x.atoms[i] != y.atoms[i]) return x.atoms[i]->order < y.atoms[i]->order ? -1 : 1;
  return 0;
}

// What stands once in memory. Never destroyed: sizes are used until the process ends.
struct Interned {
  std::mutex mutex;
  std::map<std::vector<int64_t>, SizeExpr*> exprs;
  std::map<std::tuple<int64_t, int64_t, int64_t>, SizeAtom*> atoms;
};
Interned& interned() {
  static Interned& all = *new Interned;
  return all;
}

const SizeAtom* atom_of(int64_t symbol, Dim a, Dim b) {
  Interned& all = interned();
  const std::lock_guard lock(all.mutex);
  SizeAtom*& atom = all.atoms[{symbol, a.code(), b.code()}];
  if (!atom) {
    const int64_t order = symbol >= 0 ? symbol : (int64_t{1} << 40) + static_cast<int64_t>(all.atoms.size());
    atom = new SizeAtom{symbol, a, b, order};
  }
  return atom;
}

// The size with these terms; equal products are added up.
Dim dim_of(Terms terms) {
  std::sort(terms.begin(), terms.end(), [](const SizeTerm& x, const SizeTerm& y) { return compare(x, y) < 0; });
  Terms normal;
  for (SizeTerm& term : terms) {
    if (!normal.empty() && compare(normal.back(), term) == 0) {
      check_size(!__builtin_add_overflow(normal.back().factor, term.factor, &normal.back().factor));
    } else {
      normal.push_back(std::move(term));
    }
    if (normal.back().factor == 0) normal.pop_back();
  }
  if (normal.empty()) return 0;
  if (normal.size() == 1 && normal[0].atoms.empty()) return normal[0].factor;
  std::vector<int64_t> key;
  for (const SizeTerm& term : normal) {
    key.push_back(term.factor);
    key.push_back(static_cast<int64_t>(term.atoms.size()));
    for (const SizeAtom* atom : term.atoms) key.push_back(atom->order);
  }
  Interned& all = interned();
  const std::lock_guard lock(all.mutex);
  SizeExpr*& expr = all.exprs[key];
  if (!expr) expr = new SizeExpr(std::move(normal));
  return Dim(expr);
}

Terms terms_of(Dim dim) {
  if (dim.is_symbolic()) return dim.expr().terms();
  Terms terms;
  if (dim.code() != 0) terms.push_back({dim.code(), {}});
  return terms;
}

enum class Operation : int64_t { None, Sum, Product, Quotient };

// Graphs do the same few calculations again and again: the last ones are remembered.
template <class F>
Dim remembered(Operation operation, Dim a, Dim b, F&& compute) {
  struct Entry {
    Operation operation = Operation::None;
    Dim a, b, result;
  };
  thread_local std::array<Entry, 1024> entries;
  const uint64_t hash =
      static_cast<uint64_t>(a.code()) * 3 + static_cast<uint64_t>(b.code()) * 7 + static_cast<uint64_t>(operation);
  Entry& entry = entries[(hash * 0x9e3779b97f4a7c15u) >> 54];
  if (entry.operation != operation || !entry.a.identical(a) || !entry.b.identical(b))
    entry = {operation, a, b, compute()};
  return entry.result;
}

Dim normal(Dim dim) { return current_sizes && dim.is_symbolic() ? current_sizes->normal(dim) : dim; }

SizeTerm times(const SizeTerm& x, const SizeTerm& y) {
  SizeTerm out;
  check_size(!__builtin_mul_overflow(x.factor, y.factor, &out.factor));
  std::merge(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(), std::back_inserter(out.atoms),
             [](const SizeAtom* a, const SizeAtom* b) { return a->order < b->order; });
  return out;
}

// x / y where that is a product again.
bool divides(const SizeTerm& y, const SizeTerm& x, SizeTerm& out) {
  if (x.factor % y.factor != 0) return false;
  out = {x.factor / y.factor, {}};
  size_t next = 0;
  for (const SizeAtom* atom : x.atoms) {
    if (next < y.atoms.size() && y.atoms[next] == atom) ++next;
    else out.atoms.push_back(atom);
  }
  return next == y.atoms.size();
}

struct Bound {
  bool known = true;
  int64_t value = 0;
};

Bound lower_bound(const Terms& terms, int64_t sign);

int64_t least(const SizeAtom& atom) {
  if (atom.symbol >= 0) return SymbolicSizes::least;
  const Bound bound = lower_bound(terms_of(atom.a), 1);
  return bound.known && bound.value > 0 && !atom.b.is_symbolic() ? bound.value / atom.b.code() : 0;
}

// What an expression is at least, from its symbols being so; of one with negative terms nothing is known.
Bound lower_bound(const Terms& terms, int64_t sign) {
  Bound out;
  for (const SizeTerm& term : terms) {
    int64_t product = term.factor * sign;
    if (product < 0 && !term.atoms.empty()) return {false, 0};
    for (const SizeAtom* atom : term.atoms) product *= least(*atom);
    out.value += product;
  }
  return out;
}

bool truth(SizeGuard::Kind kind, int64_t value) {
  switch (kind) {
    case SizeGuard::Kind::Zero: return value == 0;
    case SizeGuard::Kind::NotZero: return value != 0;
    case SizeGuard::Kind::NotNegative: return value >= 0;
  }
  return false;
}

// 1 or 0 where the answer does not depend on the symbols, else -1.
int known_truth(SizeGuard::Kind kind, Dim size) {
  if (!size.is_symbolic()) return truth(kind, size.code());
  const Bound low = lower_bound(size.expr().terms(), 1), high = lower_bound(size.expr().terms(), -1);
  const bool positive = low.known && low.value > 0, negative = high.known && high.value > 0;
  switch (kind) {
    case SizeGuard::Kind::Zero: return positive || negative ? 0 : -1;
    case SizeGuard::Kind::NotZero: return positive || negative ? 1 : -1;
    case SizeGuard::Kind::NotNegative: return low.known && low.value >= 0 ? 1 : negative ? 0 : -1;
  }
  return -1;
}

bool contains(const SizeExpr& expr, const SizeAtom* wanted);
bool contains(Dim dim, const SizeAtom* wanted) { return dim.is_symbolic() && contains(dim.expr(), wanted); }
bool contains(const SizeExpr& expr, const SizeAtom* wanted) {
  for (const SizeTerm& term : expr.terms())
    for (const SizeAtom* atom : term.atoms)
      if (atom == wanted || (atom->symbol < 0 && (contains(atom->a, wanted) || contains(atom->b, wanted)))) return true;
  return false;
}

[[noreturn]] void outside() {
  raise(ErrorKind::Runtime,
        "a tensor, or a size of one, of a compiled graph was kept (in a list, dict, set, slice or array) and is used "
        "outside of it, where it has no value; return it alone or in a tuple or list, or convert a size by range(n) or "
        "n + 0.0");
}

}  // namespace

// ---- arithmetic ----

Dim symbol(int64_t index) { return dim_of({{1, {atom_of(index, 0, 0)}}}); }

// floor(a / b): the exact quotient of as many leading terms as there are, and an atom for the rest.
Dim floor_quotient(Dim a, Dim b) {
  const Terms divisor = terms_of(b);
  Terms found, rest_terms;
  Dim left = a;
  SizeTerm ratio;
  while (!left.identical(0)) {
    const Terms terms = terms_of(left);
    if (divides(divisor[0], terms[0], ratio)) {
      found.push_back(ratio);
      left = left - dim_of({ratio}) * b;
    } else if (b.is_symbolic()) {
      break;
    } else {  // a number: divide term by term
      rest_terms.push_back(terms[0]);
      left = left - dim_of({terms[0]});
    }
  }
  Dim rest = left + dim_of(std::move(rest_terms));
  if (!b.is_symbolic() && rest.is_symbolic()) {
    // The number in the rest is between 0 and b.
    const SizeTerm& last = rest.expr().terms().back();
    const int64_t by = b.code(), whole = last.atoms.empty() ? floor_divided(last.factor, by) : 0;
    if (whole != 0) {
      found.push_back({whole, {}});
      rest = rest - whole * by;
    }
  }
  const Dim quotient = dim_of(std::move(found));
  if (rest.identical(0)) return quotient;
  if (!rest.is_symbolic() && !b.is_symbolic()) return quotient + floor_divided(rest.code(), b.code());
  // Nothing is split off where the divisor is an expression: floor(a / b) is found again as such.
  if (b.is_symbolic()) return dim_of({{1, {atom_of(-1, a, b)}}});
  return quotient + dim_of({{1, {atom_of(-1, rest, b)}}});
}

Dim Dim::sum(Dim a, Dim b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.code_ + b.code_;
  a = normal(a), b = normal(b);
  return remembered(Operation::Sum, a, b, [&] {
    Terms terms = terms_of(a);
    const Terms more = terms_of(b);
    terms.insert(terms.end(), more.begin(), more.end());
    return dim_of(std::move(terms));
  });
}

Dim Dim::difference(Dim a, Dim b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.code_ - b.code_;
  return sum(a, product(b, -1));
}

Dim Dim::product(Dim a, Dim b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.code_ * b.code_;
  a = normal(a), b = normal(b);
  return remembered(Operation::Product, a, b, [&] {
    Terms terms;
    const Terms second = terms_of(b);
    for (const SizeTerm& x : terms_of(a))
      for (const SizeTerm& y : second) terms.push_back(times(x, y));
    return dim_of(std::move(terms));
  });
}

Dim Dim::quotient(Dim a, Dim b) {
  a = normal(a), b = normal(b);
  if (!a.is_symbolic() && !b.is_symbolic()) return a.code_ / b.code_;
  // Rounding to zero and down are the same there; elsewhere numbers decide.
  if (a < 0 || b < 1) return static_cast<int64_t>(a) / static_cast<int64_t>(b);
  a = normal(a), b = normal(b);  // now that they are known not to be negative
  return remembered(Operation::Quotient, a, b, [&] { return floor_quotient(a, b); });
}

Dim Dim::remainder(Dim a, Dim b) { return a - b * quotient(a, b); }

bool Dim::equal(Dim a, Dim b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.code_ == b.code_;
  const Dim zero = a - b;
  if (current_sizes) return current_sizes->decide(SizeGuard::Kind::Zero, zero);
  return known_truth(SizeGuard::Kind::Zero, zero) == 1;  // sizes not known to be equal are taken as different
}

bool Dim::less(Dim a, Dim b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.code_ < b.code_;
  const Dim difference = b - a - 1;
  if (current_sizes) return current_sizes->decide(SizeGuard::Kind::NotNegative, difference);
  const int known = known_truth(SizeGuard::Kind::NotNegative, difference);
  if (known < 0) outside();
  return known;
}

int64_t Dim::specialised() const {
  if (!is_symbolic()) return code_;
  if (!current_sizes) outside();
  const Dim now = current_sizes->normal(*this);
  if (!now.is_symbolic()) return now.code_;
  const int64_t number = evaluate(now, current_sizes->examples());
  current_sizes->decide(SizeGuard::Kind::Zero, now - number);
  return number;
}

namespace {

int64_t evaluate(const SizeAtom& atom, SymbolValues values) {
  if (atom.symbol < 0) {
    const int64_t a = morel::evaluate(atom.a, values), b = morel::evaluate(atom.b, values);
    return b == 0 ? 0 : floor_divided(a, b);
  }
  if (static_cast<size_t>(atom.symbol) >= values.size()) outside();
  return values[static_cast<size_t>(atom.symbol)];
}

}  // namespace

int64_t evaluate(Dim dim, SymbolValues values) {
  if (!dim.is_symbolic()) return dim.code();
  int64_t out = 0;
  for (const SizeTerm& term : dim.expr().terms()) {
    int64_t product = term.factor;
    for (const SizeAtom* atom : term.atoms)
      check_size(!__builtin_mul_overflow(product, evaluate(*atom, values), &product));
    check_size(!__builtin_add_overflow(out, product, &out));
  }
  return out;
}

Ints evaluate(const Ints& dims, SymbolValues values) {
  Ints out;
  for (const Dim dim : dims) out.push_back(evaluate(dim, values));
  return out;
}

std::string to_string(Dim dim) {
  if (!dim.is_symbolic()) return std::to_string(dim.code());
  std::string out;
  for (const SizeTerm& term : dim.expr().terms()) {
    if (term.factor < 0) out += '-';
    else if (!out.empty()) out += '+';
    const int64_t factor = term.factor < 0 ? -term.factor : term.factor;
    std::string product = factor == 1 && !term.atoms.empty() ? "" : std::to_string(factor);
    for (const SizeAtom* atom : term.atoms) {
      if (!product.empty()) product += '*';
      product += atom->symbol >= 0 ? "s" + std::to_string(atom->symbol)
                                   : "floor(" + to_string(atom->a) + ", " + to_string(atom->b) + ")";
    }
    out += product;
  }
  return out;
}

// ---- assumptions ----

std::string to_string(const SizeGuard& guard) {
  return cat(to_string(guard.size), " ", guard_relations[static_cast<int>(guard.kind)], " 0");
}

SymbolicSizes::Use::Use(SymbolicSizes* sizes) : outer_(current_sizes) { current_sizes = sizes; }
SymbolicSizes::Use::~Use() { current_sizes = outer_; }
SymbolicSizes* SymbolicSizes::current() { return current_sizes; }

Dim SymbolicSizes::add(int64_t example) {
  MOREL_ASSERT(example >= least);
  examples_.push_back(example);
  return symbol(static_cast<int64_t>(examples_.size()) - 1);
}

std::string SymbolicSizes::legend(std::string_view text) const {
  const auto is_word = [&](size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
  };
  std::string out;
  for (size_t i = 0; i < examples_.size(); ++i) {
    const std::string name = "s" + std::to_string(i);
    for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
      if ((at > 0 && is_word(at - 1)) || is_word(at + name.size())) continue;
      out += cat(out.empty() ? "" : ", ", name, "=", examples_[i]);
      break;
    }
  }
  return out;
}

bool SymbolicSizes::hold(SymbolValues values) const {
  return std::all_of(guards_.begin(), guards_.end(),
                     [&](const SizeGuard& guard) { return truth(guard.kind, evaluate(guard.size, values)); });
}

Dim SymbolicSizes::normal(Dim dim) {
  if (!dim.is_symbolic() || solved_.empty()) return dim;
  const auto known = normal_.find(&dim.expr());
  if (known != normal_.end()) return known->second;
  const Dim out = rebuilt(dim.expr());
  normal_.emplace(&dim.expr(), out);
  return out;
}

Dim SymbolicSizes::rebuilt(const SizeExpr& expr) {
  const Use plain(nullptr);
  Dim out = 0;
  for (const SizeTerm& term : expr.terms()) {
    Dim product = term.factor;
    for (const SizeAtom* atom : term.atoms) {
      const auto solved = solved_.find(atom);
      if (solved != solved_.end()) product *= normal(solved->second);
      else if (atom->symbol >= 0) product *= dim_of({{1, {atom}}});
      else product *= floor_quotient(normal(atom->a), normal(atom->b));
    }
    out += product;
  }
  return out;
}

bool SymbolicSizes::decide(SizeGuard::Kind kind, Dim size) {
  size = normal(size);
  const int known = known_truth(kind, size);
  if (known >= 0) return known;
  const bool now = truth(kind, evaluate(size, examples_));
  using Kind = SizeGuard::Kind;
  if (now) assume({kind, size});
  else if (kind == Kind::NotNegative) assume({kind, -size - 1});
  else assume({kind == Kind::Zero ? Kind::NotZero : Kind::Zero, size});
  return now;
}

void SymbolicSizes::assume(SizeGuard guard) {
  for (const SizeGuard& known : guards_)
    if (known.kind == guard.kind && known.size.identical(guard.size)) return;
  guards_.push_back(guard);
  if (guard.kind == SizeGuard::Kind::Zero) solve(guard.size.expr());
}

// Finds a symbol that follows from the others: of a*s + rest = 0 the value of s, where a divides the rest.
void SymbolicSizes::solve(const SizeExpr& zero) {
  for (const SizeTerm& term : zero.terms()) {
    if (term.atoms.size() != 1 || term.atoms[0]->symbol < 0) continue;
    Terms rest;
    for (const SizeTerm& other : zero.terms()) {
      if (&other == &term) continue;
      if (other.factor % term.factor != 0) break;
      rest.push_back({-other.factor / term.factor, other.atoms});
    }
    if (rest.size() + 1 != zero.terms().size()) continue;
    const Dim value = dim_of(std::move(rest));
    if (contains(value, term.atoms[0])) continue;
    solved_[term.atoms[0]] = value;
    normal_.clear();
    return;
  }
}

}  // namespace morel
