#include "morel/tensor/value.h"

#include <charconv>

namespace morel {
namespace {

constexpr std::string_view tag_names[] = {"None", "bool",  "int",     "size", "float",  "dtype", "complex",
                                          "str",  "int[]", "float[]", "list", "Tensor", "node",  "graph"};

template <class Range, class Fn>
std::string joined(const Range& range, Fn text) {
  std::string out = "(";
  for (size_t i = 0; i < range.size(); ++i) out += (i ? ", " : "") + text(range[i]);
  return out + ")";
}

// The shortest text that reads back as the same number, and never as an integer.
std::string text_of(double number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  std::string out(text, end);
  return out.find_first_of(".en") == std::string::npos ? out + ".0" : out;
}

std::string quoted(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + "'";
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
    case Value::Tag::Size: return to_string(value.dim());
    case Value::Tag::Float: return text_of(value.number());
    case Value::Tag::DType: return std::string(info(value.dtype()).name);
    case Value::Tag::Complex:
      return "complex(" + text_of(value.complex().real()) + ", " + text_of(value.complex().imag()) + ")";
    case Value::Tag::Str: return quoted(value.str());
    case Value::Tag::Ints: return joined(value.ints(), [](Dim v) { return to_string(v); });
    case Value::Tag::Floats: return joined(value.floats(), text_of);
    case Value::Tag::List: return joined(value.list(), [](const Value& v) { return to_string(v); });
    case Value::Tag::Tensor: {
      const TensorImpl* impl = value.tensor_impl();
      return describe(impl->dtype, impl->layout.shape) +
             (impl->storage ? "@" + to_string(impl->storage->device()) : "");
    }
    case Value::Tag::Node: return static_cast<const ValueNode*>(value.node())->describe(value.output());
    case Value::Tag::Graph: return "graph";
  }
  return "?";
}

}  // namespace morel
