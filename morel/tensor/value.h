// Value: one argument or result of an operator: nothing, a number, text, a list of integers, a tensor, a list of
// values, or a reference to something of an upper layer (a node of a graph). Every operator call, eager or in a graph,
// is a list of Values in the order of the operator's schema.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "morel/base/ref.h"
#include "morel/tensor/dim.h"
#include "morel/tensor/tensor.h"

namespace morel {

template <class T>
struct Boxed final : RefCounted {
  explicit Boxed(T v) : value(std::move(v)) {}
  T value;
};

// What a Value of tag Node refers to: something of an upper layer (ir/builder.h).
class ValueNode : public RefCounted {
 public:
  virtual std::string describe(uint32_t output) const = 0;
};

class Value {
 public:
  enum class Tag : uint8_t {
    None,
    Bool,
    Int,
    Size,
    Float,
    DType,
    Complex,
    Str,
    Ints,
    Floats,
    List,
    Tensor,
    Node,
    Graph
  };
  using List = SmallVector<Value, 4>;
  using Floats = SmallVector<double, 4>;

  Value() noexcept : tag_(Tag::None) { payload_.i = 0; }
  Value(std::nullptr_t) noexcept : Value() {}
  Value(bool v) noexcept : tag_(Tag::Bool) { payload_.i = v; }
  Value(int v) noexcept : Value(static_cast<int64_t>(v)) {}
  Value(int64_t v) noexcept : tag_(Tag::Int) { payload_.i = v; }
  // A size that is not a number yet is of the tag Size; it can stand wherever an integer can.
  Value(Dim v) noexcept : tag_(v.is_symbolic() ? Tag::Size : Tag::Int) { payload_.i = v.code(); }
  Value(double v) noexcept : tag_(Tag::Float) { payload_.f = v; }
  Value(DType v) noexcept : tag_(Tag::DType) { payload_.i = static_cast<int64_t>(v); }
  Value(std::complex<double> v) : Value(Tag::Complex, new Boxed<std::complex<double>>(v)) {}
  Value(std::string v) : Value(Tag::Str, new Boxed<std::string>(std::move(v))) {}
  Value(std::string_view v) : Value(std::string(v)) {}
  Value(const char* v) : Value(std::string(v)) {}
  Value(Ints v) : Value(Tag::Ints, new Boxed<Ints>(std::move(v))) {}
  Value(Floats v) : Value(Tag::Floats, new Boxed<Floats>(std::move(v))) {}
  inline Value(List v);
  Value(const Tensor& v) noexcept : tag_(v ? Tag::Tensor : Tag::None) {
    payload_.ref = v.get();
    if (payload_.ref) payload_.ref->retain();
  }
  Value(Tensor&& v) noexcept : Value(static_cast<const Tensor&>(v)) {}
  // Output `output` of a graph node.
  Value(Ref<RefCounted> node, uint32_t output) noexcept : tag_(Tag::Node), output_(output) {
    payload_.ref = node.detach();
  }

  static Value of_graph(Ref<RefCounted> graph) noexcept { return Value(Tag::Graph, graph.get()); }

  Value(const Value& other) noexcept : tag_(other.tag_), output_(other.output_), payload_(other.payload_) {
    if (is_counted() && payload_.ref) payload_.ref->retain();
  }
  Value(Value&& other) noexcept : tag_(other.tag_), output_(other.output_), payload_(other.payload_) {
    other.tag_ = Tag::None;
  }
  Value& operator=(Value other) noexcept {
    std::swap(tag_, other.tag_);
    std::swap(output_, other.output_);
    std::swap(payload_, other.payload_);
    return *this;
  }
  ~Value() {
    if (is_counted() && payload_.ref) payload_.ref->release();
  }

  Tag tag() const { return tag_; }
  bool is_none() const { return tag_ == Tag::None; }
  bool is_tensor() const { return tag_ == Tag::Tensor; }
  bool is_integer() const { return tag_ == Tag::Int || tag_ == Tag::Size; }
  bool is_number() const { return is_integer() || tag_ == Tag::Bool || tag_ == Tag::Float || tag_ == Tag::Complex; }
  bool is_list() const { return tag_ == Tag::List; }
  explicit operator bool() const { return tag_ != Tag::None; }

  // Accessors; the tag must fit (checked, an internal error otherwise).
  bool boolean() const { return expect(Tag::Bool), payload_.i != 0; }
  int64_t integer() const {
    if (tag_ == Tag::Bool) return payload_.i;
    if (tag_ == Tag::Size) return dim();
    return expect(Tag::Int), payload_.i;
  }
  Dim dim() const { return tag_ == Tag::Size ? Dim::of_code(payload_.i) : Dim(integer()); }
  double number() const {  // Bool, Int or Float
    if (tag_ == Tag::Float) return payload_.f;
    return static_cast<double>(integer());
  }
  std::complex<double> complex() const {
    if (tag_ == Tag::Complex) return boxed<std::complex<double>>();
    return number();
  }
  DType dtype() const { return expect(Tag::DType), static_cast<DType>(payload_.i); }
  const std::string& str() const { return expect(Tag::Str), boxed<std::string>(); }
  const Ints& ints() const { return expect(Tag::Ints), boxed<Ints>(); }
  const Floats& floats() const { return expect(Tag::Floats), boxed<Floats>(); }
  const List& list() const { return expect(Tag::List), boxed<List>(); }
  TensorImpl* tensor_impl() const { return expect(Tag::Tensor), static_cast<TensorImpl*>(payload_.ref); }
  Tensor tensor() const { return Tensor(Ref<TensorImpl>(tensor_impl())); }
  RefCounted* node() const { return expect(Tag::Node), payload_.ref; }
  uint32_t output() const { return output_; }
  RefCounted* graph() const { return expect(Tag::Graph), payload_.ref; }

 private:
  Value(Tag tag, RefCounted* ref) noexcept : tag_(tag) {
    payload_.ref = ref;
    ref->retain();
  }
  bool is_counted() const { return tag_ >= Tag::Complex; }
  void expect(Tag tag) const {
    if (tag_ != tag) [[unlikely]]
      wrong_tag(tag);
  }
  [[noreturn]] void wrong_tag(Tag wanted) const;
  template <class T>
  const T& boxed() const {
    return static_cast<const Boxed<T>*>(payload_.ref)->value;
  }

  Tag tag_;
  uint32_t output_ = 0;
  union {
    int64_t i;
    double f;
    RefCounted* ref;
  } payload_;
};

inline Value::Value(List v) : Value(Tag::List, new Boxed<List>(std::move(v))) {}

using Values = SmallVector<Value, 2>;
using Args = SmallVector<Value, 8>;

// "3", "0.1", "'same'", "(1, 2)", "None", exactly: other bits are another text. Tensors and nodes as their type:
// "f32[2,3]".
std::string to_string(const Value& value);

}  // namespace morel
