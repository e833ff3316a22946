#include "morel/io/safetensors.h"

#include <algorithm>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "morel/tensor/tensor.h"

namespace morel {

namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t length_bytes = 8;
constexpr uint64_t largest_header = 100'000'000;  // the format's own limit
constexpr std::string_view metadata_key = "__metadata__";

struct TypeName {
  std::string_view name;
  DType dtype;
};
constexpr TypeName type_names[] = {{"BOOL", DType::Bool},   {"I8", DType::Int8},       {"I16", DType::Int16},
                                   {"I32", DType::Int32},   {"I64", DType::Int64},     {"U8", DType::UInt8},
                                   {"U16", DType::UInt16},  {"U32", DType::UInt32},    {"U64", DType::UInt64},
                                   {"F16", DType::Float16}, {"BF16", DType::BFloat16}, {"F32", DType::Float32},
                                   {"F64", DType::Float64}, {"C64", DType::Complex64}};

std::string supported_types() {
  std::string out;
  for (const TypeName& row : type_names) out.append(out.empty() ? "" : ", ").append(row.name);
  return out;
}

class HeaderReader {
 public:
  explicit HeaderReader(TensorFile& out) : out_(out) {}

  void read() {
    const Bytes bytes = out_.file.bytes();
    if (bytes.size() < length_bytes) bad(0, "not a safetensors file: only ", bytes.size(), " bytes");
    uint64_t size;
    std::memcpy(&size, bytes.data(), length_bytes);
    if (size > largest_header) bad(0, "not a safetensors file: its header would have ", size, " bytes");
    if (size > bytes.size() - length_bytes)
      bad(0, "the header has ", size, " bytes, but only ", bytes.size() - length_bytes, " follow");
    data_begin_ = length_bytes + size;
    const Json header = parse_json(as_text(bytes.subspan(length_bytes, size)));
    if (!header.is_object()) bad(length_bytes, "the header is no JSON object");
    for (const auto& [name, value] : header.items()) {
      if (name == metadata_key) add_metadata(value);
      else add_tensor(name, value);
    }
    check_coverage();
  }

 private:
  template <class... Args>
  [[noreturn]] void bad(uint64_t offset, const Args&... text) {
    raise_bad_file(out_.file.path(), offset, text...);
  }

  Json parse_json(std::string_view text) {
    std::set<std::string> names;
    std::string twice;
    const auto watch_names = [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (event == Json::parse_event_t::key && depth == 1 && !names.insert(parsed.get<std::string>()).second)
        twice = parsed.get<std::string>();
      return true;
    };
    try {
      Json header = Json::parse(text.begin(), text.end(), watch_names);
      if (!twice.empty()) bad(length_bytes, "the header names '", twice, "' twice");
      return header;
    } catch (const Json::parse_error& error) {
      bad(length_bytes + (error.byte > 0 ? error.byte - 1 : 0), "the header is no valid JSON");
    } catch (const Json::exception&) {
      bad(length_bytes, "the header is no valid JSON");
    }
  }

  void add_metadata(const Json& value) {
    if (!value.is_object()) bad(length_bytes, "'__metadata__' in the header is no JSON object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string())
        bad(length_bytes, "'__metadata__' in the header holds something else than text at '", key, "'");
      out_.metadata[key] = text.get<std::string>();
    }
  }

  // A member that must be a list of non-negative integers.
  Shape numbers(const std::string& name, const Json& value, const char* key) {
    Shape out;
    const auto found = value.find(key);
    if (found == value.end() || !found->is_array())
      bad(length_bytes, "'", name, "' in the header has no list '", key, "'");
    for (const Json& number : *found) {
      if (!number.is_number_unsigned() ||
          number.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        bad(length_bytes, "'", key, "' of '", name, "' in the header holds something else than natural numbers");
      out.push_back(static_cast<int64_t>(number.get<uint64_t>()));
    }
    return out;
  }

  DType dtype(const std::string& name, const Json& value) {
    const auto found = value.find("dtype");
    if (found == value.end() || !found->is_string()) bad(length_bytes, "'", name, "' in the header has no 'dtype'");
    const std::string text = found->get<std::string>();
    for (const TypeName& row : type_names)
      if (row.name == text) return row.dtype;
    raise(ErrorKind::NotImplemented, out_.file.path(), ": '", name, "' is of type '", text, "'; supported are ",
          supported_types());
  }

  void add_tensor(const std::string& name, const Json& value) {
    if (!value.is_object()) bad(length_bytes, "'", name, "' in the header is no JSON object");
    NamedTensor entry;
    entry.name = name;
    entry.dtype = dtype(name, value);
    entry.shape = numbers(name, value, "shape");
    const Shape offsets = numbers(name, value, "data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1])
      bad(length_bytes, "'data_offsets' of '", name, "' in the header is no pair [begin, end]");
    const Bytes data = out_.file.bytes().subspan(data_begin_);
    const auto begin = static_cast<uint64_t>(offsets[0]), end = static_cast<uint64_t>(offsets[1]);
    if (end > data.size())
      bad(data_begin_ + data.size(), "the file ends before the data of '", name, "' (bytes ", begin, " to ", end,
          " of ", data.size(), ")");
    const auto size = tensor_bytes(entry.dtype, entry.shape);
    if (!size || *size != end - begin)
      bad(data_begin_ + begin, "'", name, "' of type ", describe(entry.dtype, entry.shape), " has ", end - begin,
          " bytes");
    entry.pieces.push_back(data.subspan(begin, end - begin));
    ranges_.emplace_back(begin, end);
    out_.entries.push_back(std::move(entry));
  }

  // Overlaps and gaps are forbidden: bytes could be hidden in them.
  void check_coverage() {
    std::sort(ranges_.begin(), ranges_.end());
    uint64_t position = 0;
    for (const auto& [begin, end] : ranges_) {
      if (begin != position) bad(data_begin_ + position, "the data of two tensors overlaps or has a gap");
      position = end;
    }
    const uint64_t size = out_.file.bytes().size() - data_begin_;
    if (position != size) bad(data_begin_ + position, size - position, " bytes after the data of the last tensor");
  }

  TensorFile& out_;
  uint64_t data_begin_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
};

std::string_view type_name(const NamedTensor& entry) {
  MOREL_CHECK(!entry.text, NotImplemented, "'", entry.name, "' is text, which the safetensors format cannot hold");
  for (const TypeName& row : type_names)
    if (row.dtype == entry.dtype) return row.name;
  raise(ErrorKind::NotImplemented, "'", entry.name, "' is of type ", info(entry.dtype).name,
        ", which the safetensors format cannot hold; it can hold ", supported_types());
}

}  // namespace

TensorFile read_safetensors(const std::string& path) {
  TensorFile out;
  out.file = MappedFile(path);
  HeaderReader(out).read();
  return out;
}

void write_safetensors(const std::string& path, std::span<const NamedTensor> entries,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<size_t> order(entries.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return size_of(entries[a].dtype) > size_of(entries[b].dtype); });
  Json header = Json::object();
  if (!metadata.empty()) header[std::string(metadata_key)] = metadata;
  uint64_t position = 0;
  for (const size_t i : order) {
    const NamedTensor& entry = entries[i];
    const std::string_view type = type_name(entry);
    MOREL_CHECK(tensor_bytes(entry.dtype, entry.shape) == entry.bytes(), Value, "the tensor '", entry.name,
                "' of type ", describe(entry.dtype, entry.shape), " comes with ", entry.bytes(), " bytes");
    MOREL_CHECK(entry.name != metadata_key && !header.contains(entry.name), Value, "the name '", entry.name,
                "' cannot be saved", entry.name == metadata_key ? "" : " twice");
    header[entry.name] = {{"dtype", type},
                          {"shape", std::vector<int64_t>(entry.shape.begin(), entry.shape.end())},
                          {"data_offsets", {position, position + entry.bytes()}}};
    position += entry.bytes();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    raise(ErrorKind::Value, "a name or metadata is not valid UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  MOREL_CHECK(text.size() <= largest_header, Value, "the header would have ", text.size(), " bytes; the format allows ",
              largest_header);
  const uint64_t size = text.size();
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&size, 1)));
  file.write(as_bytes(text));
  for (const size_t i : order)
    for (const Bytes piece : entries[i].pieces) file.write(piece);
  file.commit();
}

}  // namespace morel
