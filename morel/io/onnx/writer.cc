// Writing ONNX files.
#include <bit>
#include <filesystem>

#include "morel/io/onnx/model.h"
#include "morel/io/wire.h"

namespace morel::onnx {
namespace {

using wire::put_tag;
using wire::put_text;
using wire::put_varint;
using wire::WireType;

void put_int(std::string& out, uint32_t field, int64_t value) {
  put_tag(out, field, WireType::Varint);
  put_varint(out, static_cast<uint64_t>(value));
}
void put_float(std::string& out, uint32_t field, float value) {
  put_tag(out, field, WireType::Fixed32);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
void put_ints(std::string& out, uint32_t field, const std::vector<int64_t>& values) {
  std::string packed;
  for (const int64_t value : values) put_varint(packed, static_cast<uint64_t>(value));
  put_text(out, field, packed);
}
void put_entry(std::string& out, std::string_view key, std::string_view value) {
  std::string entry;
  put_text(entry, 1, key);
  put_text(entry, 2, value);
  put_text(out, 13, entry);
}

class ModelWriter {
 public:
  // data: the file for tensors that do not go into the message; null: all do.
  ModelWriter(AtomicFile* data, std::string data_name) : data_(data), data_name_(std::move(data_name)) {}

  std::string model(const Model& model) {
    std::string out;
    put_int(out, 1, model.ir_version);
    put_text(out, 2, model.producer);
    put_text(out, 7, graph(model.graph));
    for (const auto& [domain, version] : model.opsets) {
      std::string set;
      put_text(set, 1, domain);
      put_int(set, 2, version);
      put_text(out, 8, set);
    }
    return out;
  }

 private:
  std::string graph(const GraphData& graph) {
    std::string out;
    for (const NodeData& entry : graph.nodes) put_text(out, 1, node(entry));
    put_text(out, 2, graph.name);
    for (const TensorData& entry : graph.initializers) put_text(out, 5, tensor(entry));
    for (const ValueInfo& entry : graph.inputs) put_text(out, 11, value_info(entry));
    for (const ValueInfo& entry : graph.outputs) put_text(out, 12, value_info(entry));
    return out;
  }
  std::string node(const NodeData& node) {
    std::string out;
    for (const std::string& input : node.inputs) put_text(out, 1, input);
    for (const std::string& output : node.outputs) put_text(out, 2, output);
    put_text(out, 3, node.name);
    put_text(out, 4, node.type);
    for (const Attribute& entry : node.attributes) put_text(out, 5, attribute(entry));
    return out;
  }
  std::string attribute(const Attribute& attribute) {
    using Kind = Attribute::Kind;
    std::string out;
    put_text(out, 1, attribute.name);
    switch (static_cast<Kind>(attribute.kind)) {
      case Kind::Float: put_float(out, 2, static_cast<float>(attribute.number)); break;
      case Kind::Int: put_int(out, 3, attribute.integer); break;
      case Kind::String: put_text(out, 4, attribute.text); break;
      case Kind::Tensor: put_text(out, 5, tensor(attribute.tensor)); break;
      case Kind::Graph: put_text(out, 6, graph(*attribute.graph)); break;
      case Kind::Floats:
        for (const double value : attribute.numbers) put_float(out, 7, static_cast<float>(value));
        break;
      case Kind::Ints: put_ints(out, 8, attribute.integers); break;
      case Kind::Strings:
        for (const std::string& text : attribute.texts) put_text(out, 9, text);
        break;
      case Kind::None: break;
    }
    put_int(out, 20, attribute.kind);
    return out;
  }
  std::string tensor(const TensorData& tensor) {
    std::string out;
    put_ints(out, 1, tensor.dims);
    put_int(out, 2, tensor.type);
    put_text(out, 8, tensor.name);
    if (!data_ || tensor.bytes.size() < 1024) {
      put_text(out, 9, as_text(tensor.bytes));
      return out;
    }
    static const std::string zeros(4096, '\0');  // data begins at pages, so that it can be mapped
    const uint64_t gap = (zeros.size() - written_ % zeros.size()) % zeros.size();
    data_->write(as_bytes(std::string_view(zeros).substr(0, gap)));
    data_->write(tensor.bytes);
    put_entry(out, "location", data_name_);
    put_entry(out, "offset", std::to_string(written_ + gap));
    put_entry(out, "length", std::to_string(tensor.bytes.size()));
    put_int(out, 14, 1);
    written_ += gap + tensor.bytes.size();
    return out;
  }
  std::string value_info(const ValueInfo& value) {
    std::string shape, type, proto, out;
    for (const ValueInfo::Axis& axis : value.shape) {
      std::string dim;
      if (axis.size >= 0) put_int(dim, 1, axis.size);
      else if (!axis.name.empty()) put_text(dim, 2, axis.name);
      put_text(shape, 1, dim);
    }
    put_int(type, 1, value.type);
    if (value.has_shape) put_text(type, 2, shape);
    put_text(proto, 1, type);
    put_text(out, 1, value.name);
    put_text(out, 2, proto);
    return out;
  }

  AtomicFile* data_;
  std::string data_name_;
  uint64_t written_ = 0;
};

}  // namespace

void write_model(const std::string& path, const Model& model, uint64_t data_limit) {
  uint64_t bytes = 0;
  for (const TensorData& tensor : model.graph.initializers) bytes += tensor.bytes.size();
  std::optional<AtomicFile> data;
  if (bytes > data_limit) data.emplace(path + ".data");
  const std::string name = std::filesystem::path(path).filename().string() + ".data";
  const std::string message = ModelWriter(data ? &*data : nullptr, name).model(model);
  AtomicFile file(path);
  file.write(as_bytes(message));
  if (data) data->commit();
  file.commit();
}

}  // namespace morel::onnx
