// An ONNX file in memory: the messages of onnx.proto as far as Morel reads and writes them
// (https://onnx.ai/onnx/repo-docs/IR.html).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "morel/base/file.h"
#include "morel/tensor/tensor.h"

namespace morel::onnx {

// The number of a dtype in TensorProto.DataType; nothing for a type that Morel does not have (strings, 4 and 8 bits).
int type_code(DType dtype);
std::optional<DType> dtype_of_code(int64_t code);
std::string name_of_code(int64_t code);

struct TensorData {
  std::string name;
  int64_t type = 0;  // TensorProto.DataType
  std::vector<int64_t> dims;
  Bytes bytes;                          // little-endian; views of the file, of `packed` or of the caller's memory
  std::shared_ptr<std::string> packed;  // elements that the file has one by one
  std::vector<std::string> strings;     // of type STRING
  std::map<std::string, std::string> external;  // location, offset, length of data in another file
  uint64_t place = 0;                           // of the message in the file
};

struct GraphData;

struct Attribute {
  enum class Kind : uint8_t {
    None = 0,
    Float = 1,
    Int = 2,
    String = 3,
    Tensor = 4,
    Graph = 5,
    Floats = 6,
    Ints = 7,
    Strings = 8
  };
  std::string name;
  int64_t kind = 0;  // AttributeProto.AttributeType; others than the above are known by their number alone
  double number = 0;
  int64_t integer = 0;
  std::string text;
  TensorData tensor;
  std::shared_ptr<GraphData> graph;
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
  bool is(Kind wanted) const { return kind == static_cast<int64_t>(wanted); }
};

struct NodeData {
  std::string name, type, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;
  uint64_t place = 0;
  const Attribute* find(std::string_view attribute) const;
};

// A graph's input or output: what it is declared to be.
struct ValueInfo {
  std::string name;
  int64_t type = 0;  // 0: no tensor
  bool has_shape = false;
  struct Axis {
    int64_t size = -1;  // -1: unknown, perhaps with a name
    std::string name;
  };
  std::vector<Axis> shape;
};

struct GraphData {
  std::string name;
  std::vector<NodeData> nodes;
  std::vector<TensorData> initializers;
  std::vector<ValueInfo> inputs, outputs;
};

struct Model {
  MappedFile file;                               // that was read
  std::map<std::string, MappedFile> data_files;  // with tensors of it
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;  // by domain; "" is ONNX's own
  std::string producer;
  GraphData graph;
};

// Errors name file and byte. Data of other files lies in the folder of `path` or below it, nowhere else.
Model read_model(const std::string& path);

// Bytes beyond which tensors go to `path`.data, since a message cannot be larger than 2 GiB.
inline constexpr uint64_t default_data_limit = uint64_t{1900} << 20;
// Writes both files, each replacing an older one only when it is complete.
void write_model(const std::string& path, const Model& model, uint64_t data_limit = default_data_limit);

}  // namespace morel::onnx
