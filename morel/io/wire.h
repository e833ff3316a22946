// The wire format of Protocol Buffers, as far as checkpoints and ONNX need it:
// https://protobuf.dev/programming-guides/encoding. Our own because libprotobuf's coded streams count in 32-bit ints
// and so end at 2 GiB, keep no file offsets for messages of errors, and copy each tensor; and it is one page.
#pragma once

#include <cstdint>
#include <string>

#include "morel/base/file.h"

namespace morel::wire {

enum class WireType : uint8_t { Varint = 0, Fixed64 = 1, Length = 2, StartGroup = 3, EndGroup = 4, Fixed32 = 5 };

struct Tag {
  uint32_t field;
  WireType type;
  uint64_t offset;  // of the tag in the file
};

// Walks over the bytes [begin, end) of a file. Nothing is read beyond `end`; what does not fit raises with its offset.
class Reader {
 public:
  Reader(const MappedFile& file, uint64_t begin, uint64_t end) : file_(&file), position_(begin), end_(end) {}

  bool done() const { return position_ == end_; }
  uint64_t position() const { return position_; }

  uint64_t varint() {
    const uint64_t start = position_;
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (position_ == end_) raise_bad_file(file_->path(), start, "the file or message ends inside a number");
      const uint64_t byte = static_cast<uint8_t>(file_->bytes()[position_++]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    raise_bad_file(file_->path(), start, "a number is longer than 10 bytes");
  }

  Tag tag() {
    const uint64_t start = position_;
    const uint64_t value = varint();
    const uint64_t field = value >> 3;
    if (field == 0 || field > 0x1fffffff || (value & 7) > 5)
      raise_bad_file(file_->path(), start, "not a field of a message (tag ", value, ")");
    return {static_cast<uint32_t>(field), static_cast<WireType>(value & 7), start};
  }

  // The bytes of a field with a length; `what` is named in the error when they reach over the end.
  Reader message(const char* what) {
    const uint64_t start = position_;
    const uint64_t size = varint();
    if (size > end_ - position_)
      raise_bad_file(file_->path(), start, what, " has ", size, " bytes, but only ", end_ - position_, " follow");
    const uint64_t begin = position_;
    position_ += size;
    return Reader(*file_, begin, position_);
  }
  Bytes rest() const { return file_->bytes().subspan(position_, end_ - position_); }
  void advance(uint64_t bytes) { position_ += bytes; }  // over bytes of rest()

  // Fields of a later version of the format are passed over.
  void skip(const Tag& tag) {
    switch (tag.type) {
      case WireType::Varint: varint(); return;
      case WireType::Length: message("a field"); return;
      case WireType::Fixed64:
      case WireType::Fixed32: {
        const uint64_t size = tag.type == WireType::Fixed64 ? 8 : 4;
        if (size > end_ - position_)
          raise_bad_file(file_->path(), tag.offset, "the file or message ends inside a field");
        position_ += size;
        return;
      }
      default:
        raise_bad_file(file_->path(), tag.offset, "field ", tag.field, " is a group, which this format does not have");
    }
  }

 private:
  const MappedFile* file_;
  uint64_t position_;
  uint64_t end_;
};

inline void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
inline void put_tag(std::string& out, uint32_t field, WireType type) {
  put_varint(out, uint64_t{field} << 3 | static_cast<uint64_t>(type));
}
inline void put_text(std::string& out, uint32_t field, std::string_view text) {
  put_tag(out, field, WireType::Length);
  put_varint(out, text.size());
  out.append(text);
}
inline size_t varint_size(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

}  // namespace morel::wire
