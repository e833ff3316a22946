// Reading ONNX files: nothing in them is believed, each error names the byte.
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "morel/io/named_tensor.h"
#include "morel/io/onnx/model.h"
#include "morel/io/wire.h"

namespace morel::onnx {
namespace {

using wire::Reader;
using wire::Tag;
using wire::WireType;

constexpr int max_depth = 50;  // of graphs within graphs

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    const int more = lead < 0x80 ? 0 : lead >> 5 == 6 ? 1 : lead >> 4 == 14 ? 2 : lead >> 3 == 30 ? 3 : -1;
    if (more < 0) return false;
    for (int k = 0; k < more; ++k, ++i)
      if (i == text.size() || static_cast<unsigned char>(text[i]) >> 6 != 2) return false;
    const bool is_overlong = (more == 1 && lead < 0xc2) ||
                             (more == 2 && lead == 0xe0 && static_cast<unsigned char>(text[i - 2]) < 0xa0) ||
                             (more == 3 && lead == 0xf0 && static_cast<unsigned char>(text[i - 3]) < 0x90);
    const bool is_surrogate = more == 2 && lead == 0xed && static_cast<unsigned char>(text[i - 2]) >= 0xa0;
    const bool is_beyond =
        more == 3 && (lead > 0xf4 || (lead == 0xf4 && static_cast<unsigned char>(text[i - 3]) >= 0x90));
    if (is_overlong || is_surrogate || is_beyond) return false;
  }
  return true;
}

class ModelReader {
 public:
  explicit ModelReader(Model& model) : model_(model), file_(model.file) {}

  void read() {
    Reader in(file_, 0, file_.bytes().size());
    bool has_graph = false;
    while (!in.done()) {
      const Tag tag = in.tag();
      switch (tag.field) {
        case 1: model_.ir_version = integer(in, tag); break;
        case 2: model_.producer = text(in, tag); break;
        case 7:
          model_.graph = graph(in, tag);
          has_graph = true;
          break;
        case 8: read_opset(in, tag); break;
        default: in.skip(tag);
      }
    }
    if (!has_graph) raise_bad_file(file_.path(), 0, "this is no ONNX model: it has no graph");
  }

 private:
  [[noreturn]] void wrong_type(const Tag& tag) {
    raise_bad_file(file_.path(), tag.offset, "field ", tag.field, " has wire type ", static_cast<int>(tag.type),
                   ", which does not fit");
  }
  int64_t integer(Reader& in, const Tag& tag) {
    if (tag.type != WireType::Varint) wrong_type(tag);
    return static_cast<int64_t>(in.varint());
  }
  Reader message(Reader& in, const Tag& tag, const char* what) {
    if (tag.type != WireType::Length) wrong_type(tag);
    return in.message(what);
  }
  std::string text(Reader& in, const Tag& tag) {
    const std::string_view out = as_text(message(in, tag, "a text").rest());
    if (!is_utf8(out)) raise_bad_file(file_.path(), tag.offset, "a text is not UTF-8");
    return std::string(out);
  }
  template <class T>
  T fixed(Reader& in) {
    const Bytes bytes = in.rest();
    if (bytes.size() < sizeof(T))
      raise_bad_file(file_.path(), in.position(), "the file or message ends inside a number");
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    in.advance(sizeof(T));
    return value;
  }
  float number(Reader& in, const Tag& tag) {
    if (tag.type != WireType::Fixed32) wrong_type(tag);
    return fixed<float>(in);
  }
  // A repeated number: packed, or one of several.
  template <class F>
  void repeated(Reader& in, const Tag& tag, WireType single, F&& read_one) {
    if (tag.type == single) return read_one(in);
    Reader all = message(in, tag, "a list of numbers");
    while (!all.done()) read_one(all);
  }
  void integers(Reader& in, const Tag& tag, std::vector<int64_t>& out) {
    repeated(in, tag, WireType::Varint, [&](Reader& from) { out.push_back(static_cast<int64_t>(from.varint())); });
  }
  // Elements that are numbers of the message, as bytes of type T.
  template <class T, class Wire>
  void elements(Reader& in, const Tag& tag, TensorData& out) {
    constexpr WireType single = std::is_same_v<Wire, uint64_t> ? WireType::Varint
                                : sizeof(Wire) == 4            ? WireType::Fixed32
                                                               : WireType::Fixed64;
    if (!out.packed) out.packed = std::make_shared<std::string>();
    repeated(in, tag, single, [&](Reader& from) {
      T value;
      if constexpr (single == WireType::Varint) value = static_cast<T>(from.varint());
      else value = fixed<Wire>(from);
      out.packed->append(reinterpret_cast<const char*>(&value), sizeof(T));
    });
  }
  // int32_data holds all types of at most 32 bits but float.
  void small_elements(Reader& in, const Tag& tag, TensorData& out) {
    const std::optional<DType> dtype = dtype_of_code(out.type);
    const int64_t size = dtype ? size_of(*dtype) : 4;
    if (size == 1) return elements<uint8_t, uint64_t>(in, tag, out);
    if (size == 2) return elements<uint16_t, uint64_t>(in, tag, out);
    elements<uint32_t, uint64_t>(in, tag, out);
  }

  void read_opset(Reader& in, const Tag& outer) {
    Reader set = message(in, outer, "an opset");
    std::string domain;
    int64_t version = 1;
    while (!set.done()) {
      const Tag tag = set.tag();
      if (tag.field == 1) domain = text(set, tag);
      else if (tag.field == 2) version = integer(set, tag);
      else set.skip(tag);
    }
    model_.opsets[domain == "ai.onnx" ? "" : domain] = version;
  }

  GraphData graph(Reader& in, const Tag& outer) {
    if (++depth_ > max_depth)
      raise_bad_file(file_.path(), outer.offset, "graphs are nested more than ", max_depth, " deep");
    Reader from = message(in, outer, "a graph");
    GraphData out;
    while (!from.done()) {
      const Tag tag = from.tag();
      switch (tag.field) {
        case 1: out.nodes.push_back(node(from, tag)); break;
        case 2: out.name = text(from, tag); break;
        case 5: out.initializers.push_back(tensor(from, tag)); break;
        case 11: out.inputs.push_back(value_info(from, tag)); break;
        case 12: out.outputs.push_back(value_info(from, tag)); break;
        case 15: raise_bad_file(file_.path(), tag.offset, "sparse initializers are not supported");
        default: from.skip(tag);
      }
    }
    --depth_;
    return out;
  }

  NodeData node(Reader& in, const Tag& outer) {
    Reader from = message(in, outer, "a node");
    NodeData out;
    out.place = outer.offset;
    while (!from.done()) {
      const Tag tag = from.tag();
      switch (tag.field) {
        case 1: out.inputs.push_back(text(from, tag)); break;
        case 2: out.outputs.push_back(text(from, tag)); break;
        case 3: out.name = text(from, tag); break;
        case 4: out.type = text(from, tag); break;
        case 5: out.attributes.push_back(attribute(from, tag)); break;
        case 7: out.domain = text(from, tag); break;
        default: from.skip(tag);
      }
    }
    if (out.domain == "ai.onnx") out.domain.clear();
    return out;
  }

  Attribute attribute(Reader& in, const Tag& outer) {
    Reader from = message(in, outer, "an attribute");
    Attribute out;
    while (!from.done()) {
      const Tag tag = from.tag();
      switch (tag.field) {
        case 1: out.name = text(from, tag); break;
        case 2: out.number = number(from, tag); break;
        case 3: out.integer = integer(from, tag); break;
        case 4: out.text = text(from, tag); break;
        case 5: out.tensor = tensor(from, tag); break;
        case 6: out.graph = std::make_shared<GraphData>(graph(from, tag)); break;
        case 7:
          repeated(from, tag, WireType::Fixed32, [&](Reader& one) { out.numbers.push_back(fixed<float>(one)); });
          break;
        case 8: integers(from, tag, out.integers); break;
        case 9: out.texts.push_back(text(from, tag)); break;
        case 20: out.kind = integer(from, tag); break;
        default: from.skip(tag);
      }
    }
    if (out.is(Attribute::Kind::Graph) && !out.graph)
      raise_bad_file(file_.path(), outer.offset, "the attribute '", out.name, "' should hold a graph");
    return out;
  }

  ValueInfo value_info(Reader& in, const Tag& outer) {
    Reader from = message(in, outer, "a value");
    ValueInfo out;
    while (!from.done()) {
      const Tag tag = from.tag();
      if (tag.field == 1) {
        out.name = text(from, tag);
      } else if (tag.field == 2) {
        Reader type = message(from, tag, "a type");
        while (!type.done()) {
          const Tag kind = type.tag();
          if (kind.field == 1) tensor_type(type, kind, out);
          else type.skip(kind);
        }
      } else {
        from.skip(tag);
      }
    }
    return out;
  }
  void tensor_type(Reader& in, const Tag& outer, ValueInfo& out) {
    Reader from = message(in, outer, "a type");
    while (!from.done()) {
      const Tag tag = from.tag();
      if (tag.field == 1) {
        out.type = integer(from, tag);
      } else if (tag.field == 2) {
        out.has_shape = true;
        Reader shape = message(from, tag, "a shape");
        while (!shape.done()) {
          const Tag axis = shape.tag();
          if (axis.field != 1) {
            shape.skip(axis);
            continue;
          }
          ValueInfo::Axis& size = out.shape.emplace_back();
          Reader dim = message(shape, axis, "a size");
          while (!dim.done()) {
            const Tag part = dim.tag();
            if (part.field == 1) size.size = integer(dim, part);
            else if (part.field == 2) size.name = text(dim, part);
            else dim.skip(part);
          }
        }
      } else {
        from.skip(tag);
      }
    }
  }

  TensorData tensor(Reader& in, const Tag& outer) {
    Reader from = message(in, outer, "a tensor");
    TensorData out;
    out.place = outer.offset;
    for (Reader first = from; !first.done();) {  // int32_data may come before the type that says what it is
      const Tag tag = first.tag();
      if (tag.field == 2) out.type = integer(first, tag);
      else first.skip(tag);
    }
    bool is_external = false;
    while (!from.done()) {
      const Tag tag = from.tag();
      switch (tag.field) {
        case 1: integers(from, tag, out.dims); break;
        case 4: elements<float, float>(from, tag, out); break;
        case 5: small_elements(from, tag, out); break;
        case 6: out.strings.push_back(text(from, tag)); break;
        case 7: elements<int64_t, uint64_t>(from, tag, out); break;
        case 8: out.name = text(from, tag); break;
        case 9: out.bytes = message(from, tag, "the data of a tensor").rest(); break;
        case 10: elements<double, double>(from, tag, out); break;
        case 11:
          if (out.type == type_code(DType::UInt32)) elements<uint32_t, uint64_t>(from, tag, out);
          else elements<uint64_t, uint64_t>(from, tag, out);
          break;
        case 13: external_entry(from, tag, out); break;
        case 14: is_external = integer(from, tag) == 1; break;
        default: from.skip(tag);
      }
    }
    if (out.packed) out.bytes = as_bytes(*out.packed);
    if (is_external) out.bytes = external_data(out);
    check_size(out);
    return out;
  }

  void external_entry(Reader& in, const Tag& outer, TensorData& out) {
    Reader from = message(in, outer, "an entry of external data");
    std::string key, value;
    while (!from.done()) {
      const Tag tag = from.tag();
      if (tag.field == 1) key = text(from, tag);
      else if (tag.field == 2) value = text(from, tag);
      else from.skip(tag);
    }
    out.external[key] = value;
  }

  uint64_t external_number(const TensorData& tensor, const char* key, uint64_t fallback) {
    const auto found = tensor.external.find(key);
    if (found == tensor.external.end()) return fallback;
    uint64_t value = 0;
    const char* end = found->second.data() + found->second.size();
    const auto [at, error] = std::from_chars(found->second.data(), end, value);
    if (error != std::errc() || at != end)
      raise_bad_file(file_.path(), tensor.place, "the external data of '", tensor.name, "' has ", key, " '",
                     found->second, "'");
    return value;
  }
  Bytes external_data(const TensorData& tensor) {
    namespace fs = std::filesystem;
    const auto location = tensor.external.find("location");
    const fs::path name =
        location == tensor.external.end() ? fs::path() : fs::path(location->second).lexically_normal();
    const bool inside = !name.empty() && name.is_relative() && *name.begin() != "..";
    if (!inside)
      raise_bad_file(file_.path(), tensor.place, "the data of '", tensor.name, "' should be in the file '",
                     name.string(), "', which is not in the folder of the model");
    auto at = model_.data_files.find(name.string());
    if (at == model_.data_files.end())
      at = model_.data_files.emplace(name.string(), MappedFile((fs::path(file_.path()).parent_path() / name).string()))
               .first;
    const Bytes all = at->second.bytes();
    const uint64_t offset = external_number(tensor, "offset", 0);
    if (offset > all.size())
      raise_bad_file(file_.path(), tensor.place, "the data of '", tensor.name, "' begins at byte ", offset, " of ",
                     at->second.path(), ", which has ", all.size());
    const uint64_t length = external_number(tensor, "length", all.size() - offset);
    if (length > all.size() - offset)
      raise_bad_file(file_.path(), tensor.place, "the data of '", tensor.name, "' has ", length, " bytes from byte ",
                     offset, " of ", at->second.path(), " on, which has ", all.size());
    return all.subspan(offset, length);
  }

  void check_size(const TensorData& tensor) {
    const std::optional<DType> dtype = dtype_of_code(tensor.type);
    if (!dtype) return;  // whoever uses it says that it is not supported
    Shape shape;
    for (const int64_t dim : tensor.dims) {
      if (dim < 0 || dim > int64_t{1} << 48)
        raise_bad_file(file_.path(), tensor.place, "the tensor '", tensor.name, "' has a size of ", dim);
      shape.push_back(dim);
    }
    const std::optional<uint64_t> expected = tensor_bytes(*dtype, shape);
    if (!expected || *expected != tensor.bytes.size())
      raise_bad_file(file_.path(), tensor.place, "the tensor '", tensor.name, "', ", describe(*dtype, shape), ", has ",
                     tensor.bytes.size(), " bytes of data");
  }

  Model& model_;
  const MappedFile& file_;
  int depth_ = 0;
};

struct TypeCode {
  DType dtype;
  int code;
};
constexpr TypeCode type_codes[] = {
    {DType::Float32, 1}, {DType::UInt8, 2},   {DType::Int8, 3},       {DType::UInt16, 4},      {DType::Int16, 5},
    {DType::Int32, 6},   {DType::Int64, 7},   {DType::Bool, 9},       {DType::Float16, 10},    {DType::Float64, 11},
    {DType::UInt32, 12}, {DType::UInt64, 13}, {DType::Complex64, 14}, {DType::Complex128, 15}, {DType::BFloat16, 16}};

}  // namespace

int type_code(DType dtype) {
  for (const TypeCode& entry : type_codes)
    if (entry.dtype == dtype) return entry.code;
  return 0;
}
std::optional<DType> dtype_of_code(int64_t code) {
  for (const TypeCode& entry : type_codes)
    if (entry.code == code) return entry.dtype;
  return {};
}
std::string name_of_code(int64_t code) {
  if (const std::optional<DType> dtype = dtype_of_code(code)) return std::string(info(*dtype).name);
  return code == 8 ? "String" : cat("type ", code);
}

const Attribute* NodeData::find(std::string_view attribute) const {
  for (const Attribute& entry : attributes)
    if (entry.name == attribute) return &entry;
  return nullptr;
}

Model read_model(const std::string& path) {
  static_assert(std::endian::native == std::endian::little);
  Model model;
  model.file = MappedFile(path);
  ModelReader(model).read();
  return model;
}

}  // namespace morel::onnx
