#include "morel/tensor/value.h"

namespace morel {
namespace {

constexpr std::string_view tag_names[] = {"None",  "bool",    "int",  "float",  "dtype", "complex", "str",
                                          "int[]", "float[]", "list", "Tensor", "node",  "graph"};

template <class Range, class Fn>
std::string joined(const Range& range, Fn text) {
  std::string out = "(";
  for (size_t i = 0; i < range.size(); ++i) out += (i ? ", " : "") + text(range[i]);
  return out + ")";
}

}  // namespace

void Value::wrong_tag(Tag wanted) const {
  raise(ErrorKind::Internal, "internal error: an argument is ", tag_names[static_cast<int>(tag_)],
        " where the rule reads ", tag_names[static_cast<int>(wanted)], "; please report it");
}

std::string to_string(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::None: return "None";
    case Value::Tag::Bool: return value.boolean() ? "True" : "False";
    case Value::Tag::Int: return std::to_string(value.integer());
    case Value::Tag::Float: return cat(value.number());
    case Value::Tag::DType: return std::string(info(value.dtype()).name);
    case Value::Tag::Complex: return cat(value.complex());
    case Value::Tag::Str: return "'" + value.str() + "'";
    case Value::Tag::Ints: return joined(value.ints(), [](int64_t v) { return std::to_string(v); });
    case Value::Tag::Floats: return joined(value.floats(), [](double v) { return cat(v); });
    case Value::Tag::List: return joined(value.list(), [](const Value& v) { return to_string(v); });
    case Value::Tag::Tensor: {
      const TensorImpl* impl = value.tensor_impl();
      return describe(impl->dtype, impl->layout.shape) +
             (impl->storage ? "@" + to_string(impl->storage->device()) : "");
    }
    case Value::Tag::Node: return "node";
    case Value::Tag::Graph: return "graph";
  }
  return "?";
}

}  // namespace morel
