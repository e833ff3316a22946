#include "morel/io/ckpt.h"

#include <zlib.h>

#include <bit>
#include <limits>
#include <unordered_map>

#include "morel/io/wire.h"
#include "morel/tensor/tensor.h"

namespace morel {

namespace {

static_assert(std::endian::native == std::endian::little, "tensor contents are written as they lie in memory");

constexpr std::string_view footer_mark = "crc_num";
constexpr size_t footer_bytes = footer_mark.size() + 10;
constexpr std::string_view text_type = "str";

uint32_t crc_of(uint32_t crc, Bytes bytes) {
  if (bytes.empty()) return crc;  // zlib takes a null pointer as the wish to start again
  return static_cast<uint32_t>(::crc32_z(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

std::optional<DType> dtype_named(std::string_view name) {
  for (int i = 0; i < num_dtypes; ++i)
    if (dtype_table[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

std::string supported_types() {
  std::string out;
  for (const DTypeInfo& row : dtype_table) out.append(row.name).append(", ");
  return out + std::string(text_type);
}

// --- strings: UTF-8 in memory, UTF-32 in the file
// -----------------------------------------------------------------------

bool is_code_point(uint32_t code) { return code < 0xd800 || (code > 0xdfff && code < 0x110000); }

void put_utf8(std::string& out, uint32_t code) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

// Next code point of `text` from `position`, or nothing where the text is not UTF-8.
std::optional<uint32_t> next_code_point(std::string_view text, size_t& position) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const uint32_t lead = byte(position++);
  const int more = lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf5 ? 3 : -1;
  if (more < 0 || text.size() - position < static_cast<size_t>(more)) return std::nullopt;
  uint32_t code = more == 0 ? lead : lead & (0x3f >> more);
  for (int i = 0; i < more; ++i) {
    if ((byte(position) & 0xc0) != 0x80) return std::nullopt;
    code = code << 6 | (byte(position++) & 0x3f);
  }
  return is_code_point(code) ? std::optional(code) : std::nullopt;
}

std::string to_utf32(const NamedTensor& entry) {
  std::string out;
  for (size_t position = 0; position < entry.text->size();) {
    const auto code = next_code_point(*entry.text, position);
    MOREL_CHECK(code, Value, "the text saved as '", entry.name, "' is not valid UTF-8");
    out.append(reinterpret_cast<const char*>(&*code), 4);
  }
  return out;
}

// --- reading
// ------------------------------------------------------------------------------------------------------------

struct TensorMessage {
  Shape dims;
  std::string_view type;
  Bytes content;
  uint64_t content_offset = 0;
};

class CkptParser {
 public:
  explicit CkptParser(TensorFile& out) : out_(out) {}

  void parse(uint64_t end) {
    wire::Reader file(out_.file, 0, end);
    while (!file.done()) {
      const wire::Tag tag = file.tag();
      if (tag.field == 1 && tag.type == wire::WireType::Length) {
        parse_value(file.message("a value"));
      } else if (tag.offset == 0) {
        bad(0, "not a checkpoint: it should start with a value (field 1), but has field ", tag.field, foreign_hint());
      } else {
        file.skip(tag);
      }
    }
    finish_slices();
  }

 private:
  template <class... Args>
  [[noreturn]] void bad(uint64_t offset, const Args&... text) {
    raise_bad_file(out_.file.path(), offset, text...);
  }

  std::string_view foreign_hint() {
    const std::string_view start = as_text(out_.file.bytes());
    if (start.starts_with("PK")) return " (a zip archive, such as PyTorch's?)";
    if (start.size() > 8 && start[8] == '{') return " (a safetensors file? then use format='safetensors')";
    return "";
  }

  void expect(const wire::Tag& tag, wire::WireType type) {
    if (tag.type != type)
      bad(tag.offset, "field ", tag.field, " has wire type ", int(tag.type), " instead of ", int(type));
  }

  void parse_value(wire::Reader value) {
    const uint64_t start = value.position();
    std::optional<std::string> name;
    std::optional<TensorMessage> tensor;
    bool is_map = false;
    while (!value.done()) {
      const wire::Tag tag = value.tag();
      if (tag.field > 3) {
        value.skip(tag);
        continue;
      }
      expect(tag, wire::WireType::Length);
      wire::Reader field = value.message(tag.field == 1 ? "a name" : "a tensor");
      if (tag.field == 1) {
        name = as_text(field.rest());
      } else {
        is_map = tag.field == 3;
        if (!is_map) tensor = parse_tensor(field);
      }
    }
    if (!name) bad(start, "a value has no tag (name)");
    MOREL_CHECK(!is_map, NotImplemented, out_.file.path(), ": '", *name, "' is a MapParameter, which is not supported");
    if (!tensor) bad(start, "the value '", *name, "' holds no tensor");
    add(std::move(*name), *tensor);
  }

  TensorMessage parse_tensor(wire::Reader message) {
    const uint64_t start = message.position();
    TensorMessage out;
    bool has_type = false, has_content = false;
    while (!message.done()) {
      const wire::Tag tag = message.tag();
      if (tag.field == 1 && tag.type == wire::WireType::Length) {  // packed, as proto3 writers do
        for (wire::Reader dims = message.message("the list of dimensions"); !dims.done();)
          add_dim(out, dims.varint(), tag.offset);
      } else if (tag.field == 1) {
        expect(tag, wire::WireType::Varint);
        add_dim(out, message.varint(), tag.offset);
      } else if (tag.field == 2) {
        expect(tag, wire::WireType::Length);
        out.type = as_text(message.message("the tensor type").rest());
        has_type = true;
      } else if (tag.field == 3) {
        expect(tag, wire::WireType::Length);
        const wire::Reader content = message.message("the tensor content");
        out.content_offset = content.position();
        out.content = content.rest();
        has_content = true;
      } else {
        message.skip(tag);
      }
    }
    if (!has_type || !has_content) bad(start, "a tensor has no ", has_type ? "content" : "type");
    return out;
  }

  void add_dim(TensorMessage& tensor, uint64_t dim, uint64_t offset) {
    constexpr size_t most_dims = 64;
    if (dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      bad(offset, "a dimension is negative (", static_cast<int64_t>(dim), ")");
    if (tensor.dims.size() == most_dims) bad(offset, "a tensor has more than ", most_dims, " dimensions");
    tensor.dims.push_back(static_cast<int64_t>(dim));
  }

  void add(std::string name, TensorMessage& tensor) {
    if (!open_slices_ || out_.entries.back().name != name) {
      finish_slices();
      add_entry(std::move(name), tensor);
    } else if (out_.entries.back().shape != tensor.dims || info(out_.entries.back().dtype).name != tensor.type) {
      bad(tensor.content_offset, "the pieces of '", name, "' differ in shape or type");
    }
    NamedTensor& entry = out_.entries.back();
    if (entry.text) return;
    entry.pieces.push_back(tensor.content);
    const uint64_t have = entry.bytes(), want = *tensor_bytes(entry.dtype, entry.shape);
    if (have > want)
      bad(tensor.content_offset, "'", entry.name, "' of type ", describe(entry.dtype, entry.shape), " should have ",
          want, " bytes, but has ", have);
    open_slices_ = have < want;
    if (open_slices_) last_offset_ = tensor.content_offset;
  }

  void add_entry(std::string name, TensorMessage& tensor) {
    NamedTensor& entry = out_.entries.emplace_back();
    entry.name = std::move(name);
    if (tensor.type == text_type) {
      entry.text = parse_text(entry.name, tensor);
      return;
    }
    const std::optional<DType> dtype = dtype_named(tensor.type);
    MOREL_CHECK(dtype, NotImplemented, out_.file.path(), ": byte ", tensor.content_offset, ": '", entry.name,
                "' is of type '", printable(tensor.type), "'; supported are ", supported_types());
    entry.dtype = *dtype;
    if (tensor.dims.size() == 1 && tensor.dims[0] == 0 && tensor.content.size() == info(*dtype).size)
      tensor.dims.clear();
    entry.shape = tensor.dims;
    if (!tensor_bytes(entry.dtype, entry.shape))
      bad(tensor.content_offset, "'", entry.name, "' of shape ", to_string(entry.shape), " is too large");
  }

  static std::string printable(std::string_view text) {
    std::string out(text.substr(0, 40));
    for (char& c : out)
      if (c < ' ' || c > '~') c = '?';
    return out;
  }

  std::string parse_text(const std::string& name, const TensorMessage& tensor) {
    if (tensor.content.size() % 4 != 0)
      bad(tensor.content_offset, "the text '", name, "' has ", tensor.content.size(), " bytes, no multiple of 4");
    std::string out;
    for (size_t i = 0; i < tensor.content.size(); i += 4) {
      uint32_t code;
      std::memcpy(&code, tensor.content.data() + i, 4);
      if (!is_code_point(code))
        bad(tensor.content_offset + i, "the text '", name, "' holds ", code, ", no Unicode character");
      put_utf8(out, code);
    }
    while (!out.empty() && out.back() == '\0') out.pop_back();
    return out;
  }

  void finish_slices() {
    if (!open_slices_) return;
    const NamedTensor& entry = out_.entries.back();
    bad(last_offset_, "'", entry.name, "' of type ", describe(entry.dtype, entry.shape), " should have ",
        *tensor_bytes(entry.dtype, entry.shape), " bytes, but only ", entry.bytes(), " are there");
  }

  TensorFile& out_;
  bool open_slices_ = false;  // the last entry still lacks bytes
  uint64_t last_offset_ = 0;
};

void keep_last_of_each_name(std::vector<NamedTensor>& entries) {
  std::unordered_map<std::string_view, size_t> last;
  for (size_t i = 0; i < entries.size(); ++i) last[entries[i].name] = i;
  if (last.size() == entries.size()) return;
  std::vector<NamedTensor> kept;
  for (size_t i = 0; i < entries.size(); ++i)
    if (last[entries[i].name] == i) kept.push_back(entries[i]);
  entries = std::move(kept);
}

// Length of the message in front of the footer; the footer is checked when asked for.
uint64_t strip_footer(const MappedFile& file, bool check) {
  const Bytes bytes = file.bytes();
  if (bytes.size() < footer_bytes) return bytes.size();
  const size_t end = bytes.size() - footer_bytes;
  const Bytes footer = bytes.subspan(end);
  if (as_text(footer.first(footer_mark.size())) != footer_mark) return bytes.size();
  if (!check) return end;
  uint64_t stored = 0;
  for (const std::byte byte : footer.subspan(footer_mark.size())) stored = stored << 8 | static_cast<uint64_t>(byte);
  const uint64_t crc = crc_of(0, bytes.first(end));
  if (stored != crc)
    raise_bad_file(file.path(), end, "the CRC-32 of the content is ", crc, ", but ", stored, " was saved");
  return end;
}

// --- writing
// ------------------------------------------------------------------------------------------------------------

class CkptWriter {
 public:
  CkptWriter(AtomicFile& file, const CkptWriteOptions& options) : file_(file), options_(options) {}

  void put_entry(const NamedTensor& entry) {
    if (entry.text) {
      const std::string content = to_utf32(entry);
      put_value(entry.name, {0}, text_type, Pieces{as_bytes(content)}, content.size());
      return;
    }
    MOREL_CHECK(tensor_bytes(entry.dtype, entry.shape) == entry.bytes(), Value, "the tensor '", entry.name,
                "' of type ", describe(entry.dtype, entry.shape), " comes with ", entry.bytes(), " bytes");
    Pieces slice;
    uint64_t size = 0;
    for (Bytes piece : entry.pieces) {
      while (size + piece.size() > options_.slice_bytes) {
        slice.push_back(piece.first(options_.slice_bytes - size));
        piece = piece.subspan(options_.slice_bytes - size);
        put_value(entry.name, entry.shape, info(entry.dtype).name, slice, options_.slice_bytes);
        slice.clear();
        size = 0;
      }
      slice.push_back(piece);
      size += piece.size();
    }
    if (size > 0 || entry.bytes() == 0) put_value(entry.name, entry.shape, info(entry.dtype).name, slice, size);
  }

  void put_footer() {
    std::string footer(footer_mark);
    for (int shift = 72; shift >= 0; shift -= 8) footer.push_back(static_cast<char>(shift > 56 ? 0 : crc_ >> shift));
    file_.write(as_bytes(footer));
  }

 private:
  using Pieces = SmallVector<Bytes, 1>;

  void put_value(const std::string& name, const Shape& dims, std::string_view type, const Pieces& content,
                 uint64_t size) {
    std::string tensor;
    for (const int64_t dim : dims) {
      wire::put_tag(tensor, 1, wire::WireType::Varint);
      wire::put_varint(tensor, static_cast<uint64_t>(dim));
    }
    wire::put_text(tensor, 2, type);
    wire::put_tag(tensor, 3, wire::WireType::Length);
    wire::put_varint(tensor, size);
    const uint64_t tensor_size = tensor.size() + size;
    std::string value;
    wire::put_text(value, 1, name);
    wire::put_tag(value, 2, wire::WireType::Length);
    wire::put_varint(value, tensor_size);
    std::string head;
    wire::put_tag(head, 1, wire::WireType::Length);
    wire::put_varint(head, value.size() + tensor_size);
    put(as_bytes(head + value + tensor));
    for (const Bytes piece : content) put(piece);
  }

  void put(Bytes bytes) {
    if (options_.crc) crc_ = crc_of(crc_, bytes);
    file_.write(bytes);
  }

  AtomicFile& file_;
  const CkptWriteOptions& options_;
  uint64_t crc_ = 0;
};

}  // namespace

TensorFile read_ckpt(const std::string& path, const CkptReadOptions& options) {
  TensorFile out;
  out.file = MappedFile(path);
  CkptParser(out).parse(strip_footer(out.file, options.check_crc));
  keep_last_of_each_name(out.entries);
  return out;
}

void write_ckpt(const std::string& path, std::span<const NamedTensor> entries, const CkptWriteOptions& options) {
  MOREL_CHECK(options.slice_bytes > 0, Value, "slice_bytes must be positive");
  AtomicFile file(path);
  CkptWriter writer(file, options);
  for (const NamedTensor& entry : entries) writer.put_entry(entry);
  if (options.crc) writer.put_footer();
  file.commit();
}

}  // namespace morel
