// Builder: the one interface through which every rule (gradient, composite, vmap, ...) makes operators happen.
// EagerBuilder (runtime/eager.h) runs them now, a graph builder adds nodes; so a rule is written once for both modes.
//
// Sym is a Value with its Builder and overloaded operators, so that rules read like formulas.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "morel/tensor/value.h"

namespace morel {

struct OpDef;

// What is known about a value before it is computed.
struct Type {
  DType dtype = DType::Float32;
  Shape shape;
  bool operator==(const Type&) const = default;
};
using Types = SmallVector<Type, 2>;
std::string to_string(const Type& type);

// Something that is not computed yet but has a type.
class TypedNode : public ValueNode {
 public:
  virtual const Type& type(uint32_t output) const = 0;
  std::string describe(uint32_t output) const override { return to_string(type(output)); }
};
// Type of a tensor, a number (a 0-d array of its default dtype) or a node; internal error for others.
Type type_of(const Value& value);
DType dtype_of_value(const Value& value);
const Shape& shape_of(const Value& value);

// A name hashed at compile time: `b("matmul", x, y)` looks the operator up without touching the text.
struct OpName {
  uint64_t hash;
  std::string_view text;
  template <size_t N>
  consteval OpName(const char (&name)[N]) : hash(hash_of({name, N - 1})), text(name, N - 1) {}  // NOLINT
  static constexpr uint64_t hash_of(std::string_view text) {
    uint64_t hash = 14695981039346656037ull;  // FNV-1a
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    return hash;
  }
};
const OpDef& find_op(OpName name);  // internal error when absent (ops/registry.cc)

class Builder;

class Sym {
 public:
  Sym() = default;
  Sym(std::nullptr_t) {}  // "no gradient", "no argument"
  Sym(Builder& builder, Value value) : builder_(&builder), value_(std::move(value)) {}
  const Value& value() const { return value_; }
  Builder& builder() const { return *builder_; }
  explicit operator bool() const { return !value_.is_none(); }
  Type type() const { return type_of(value_); }
  DType dtype() const { return dtype_of_value(value_); }
  const Shape& shape() const { return shape_of(value_); }
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  Dim dim(int64_t axis) const { return shape()[static_cast<size_t>(axis < 0 ? axis + rank() : axis)]; }
  Sym item(size_t idx) const { return Sym(*builder_, value_.list()[idx]); }

 private:
  Builder* builder_ = nullptr;
  Value value_;
};
using Syms = SmallVector<Sym, 4>;

class Builder {
 public:
  virtual ~Builder() = default;
  // `args` may lack trailing arguments that have defaults.
  virtual Values emit(const OpDef& op, std::span<const Value> args) = 0;

  template <class... A>
  Sym operator()(OpName name, const A&... args) {
    const Value values[] = {to_value(args)...};
    Values out = emit(find_op(name), values);
    return Sym(*this, out.size() == 1 ? std::move(out[0]) : Value(Value::List(out.begin(), out.end())));
  }

 private:
  static const Value& to_value(const Sym& sym) { return sym.value(); }
  static Value to_value(const Syms& syms) {
    Value::List list;
    for (const Sym& sym : syms) list.push_back(sym.value());
    return Value(std::move(list));
  }
  template <class T>
  static Value to_value(const T& value) {
    return Value(value);
  }
};

#define MOREL_SYM_OPERATOR(symbol, name)                                                                               \
  inline Sym operator symbol(const Sym& x, const Sym& y) { return x.builder()(name, x, y); }                           \
  inline Sym operator symbol(const Sym& x, double y) { return x.builder()(name, x, y); }                               \
  inline Sym operator symbol(double x, const Sym& y) { return y.builder()(name, x, y); }                               \
  inline Sym operator symbol(const Sym& x, Dim y) { return x.builder()(name, x, y); }                                  \
  inline Sym operator symbol(Dim x, const Sym& y) { return y.builder()(name, x, y); }
MOREL_SYM_OPERATOR(+, "add")
MOREL_SYM_OPERATOR(-, "sub")
MOREL_SYM_OPERATOR(*, "mul")
MOREL_SYM_OPERATOR(/, "true_divide")
#undef MOREL_SYM_OPERATOR
inline Sym operator-(const Sym& x) { return x.builder()("neg", x); }

}  // namespace morel
