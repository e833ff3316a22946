#include "morel/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "morel/base/file.h"

namespace morel {

namespace {

// The content in order, whether compressed or not.
class Source {
 public:
  virtual ~Source() = default;
  // Fills up to `size` bytes; fewer only at the end.
  virtual size_t read(std::byte* target, size_t size) = 0;
  // A bound for what can still follow: no allocation may trust the dimensions of a damaged file.
  virtual uint64_t most_remaining() const = 0;
};

class PlainSource final : public Source {
 public:
  explicit PlainSource(Bytes bytes) : bytes_(bytes) {}
  size_t read(std::byte* target, size_t size) override {
    size = std::min(size, bytes_.size());
    if (size > 0) std::memcpy(target, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
    return size;
  }
  uint64_t most_remaining() const override { return bytes_.size(); }

 private:
  Bytes bytes_;
};

class GzipSource final : public Source {
 public:
  explicit GzipSource(const MappedFile& file) : file_(file), rest_(file.bytes()) {
    constexpr int gzip_only = 16;
    MOREL_CHECK(::inflateInit2(&stream_, MAX_WBITS + gzip_only) == Z_OK, Memory, file.path(),
                ": no memory to decompress");
  }
  ~GzipSource() override { ::inflateEnd(&stream_); }

  size_t read(std::byte* target, size_t size) override {
    size_t done = 0;
    while (done < size && !ended_) {
      constexpr size_t most = size_t{1} << 30;  // zlib counts in 32 bits
      const size_t room = std::min(most, size - done), have = std::min(most, rest_.size());
      stream_.next_in = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(rest_.data()));
      stream_.avail_in = static_cast<unsigned>(have);
      stream_.next_out = reinterpret_cast<unsigned char*>(target + done);
      stream_.avail_out = static_cast<unsigned>(room);
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      rest_ = rest_.subspan(have - stream_.avail_in);
      done += room - stream_.avail_out;
      if (code == Z_STREAM_END) {
        next_member();
      } else if (code != Z_OK) {
        const uint64_t offset = file_.bytes().size() - rest_.size();
        raise_bad_file(file_.path(), offset,
                       code == Z_BUF_ERROR ? "the compressed data ends early" : "the compressed data is damaged");
      }
    }
    return done;
  }
  // Deflate expands at most 1032-fold (zlib's technical notes).
  uint64_t most_remaining() const override { return (uint64_t{rest_.size()} + 64) * 1032 + 65536; }

 private:
  void next_member() {
    ended_ = rest_.empty();
    if (!ended_) ::inflateReset(&stream_);
  }

  const MappedFile& file_;
  Bytes rest_;
  z_stream stream_{};
  bool ended_ = false;
};

struct IdxType {
  uint8_t code;
  DType dtype;
};
constexpr IdxType idx_types[] = {{0x08, DType::UInt8}, {0x09, DType::Int8},    {0x0b, DType::Int16},
                                 {0x0c, DType::Int32}, {0x0d, DType::Float32}, {0x0e, DType::Float64}};

template <class T>
void swap_bytes(void* data, int64_t count) {
  T* values = static_cast<T*>(data);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (sizeof(T) == 2) values[i] = __builtin_bswap16(values[i]);
    if constexpr (sizeof(T) == 4) values[i] = __builtin_bswap32(values[i]);
    if constexpr (sizeof(T) == 8) values[i] = __builtin_bswap64(values[i]);
  }
}

void from_big_endian(void* data, int64_t count, int64_t size) {
  if constexpr (std::endian::native == std::endian::big) return;
  if (size == 2) swap_bytes<uint16_t>(data, count);
  if (size == 4) swap_bytes<uint32_t>(data, count);
  if (size == 8) swap_bytes<uint64_t>(data, count);
}

Shape read_dimensions(Source& source, const std::string& path, size_t count) {
  Shape shape;
  for (size_t i = 0; i < count; ++i) {
    uint8_t bytes[4];
    if (source.read(reinterpret_cast<std::byte*>(bytes), 4) != 4)
      raise_bad_file(path, 4 + 4 * i, "the file ends inside the ", count, " dimensions");
    shape.push_back(int64_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3]);
  }
  return shape;
}

Tensor read_content(Source& source, const std::string& path) {
  uint8_t head[4];
  if (source.read(reinterpret_cast<std::byte*>(head), 4) != 4)
    raise_bad_file(path, 0, "not an IDX file: shorter than 4 bytes");
  const auto type =
      std::find_if(std::begin(idx_types), std::end(idx_types), [&](IdxType row) { return row.code == head[2]; });
  if (head[0] != 0 || head[1] != 0 || type == std::end(idx_types))
    raise_bad_file(path, 0, "not an IDX file: it starts with the bytes ", int{head[0]}, ", ", int{head[1]}, ", ",
                   int{head[2]}, " instead of 0, 0 and a type (8, 9, 11, 12, 13, 14)");
  const Shape shape = read_dimensions(source, path, head[3]);
  const uint64_t data_begin = 4 + 4 * uint64_t{head[3]};
  // As if no dimension were 0: strides are computed of the others even then.
  uint64_t size = static_cast<uint64_t>(size_of(type->dtype));
  for (const int64_t dim : shape)
    if (__builtin_mul_overflow(size, static_cast<uint64_t>(std::max<int64_t>(dim, 1)), &size) || size > uint64_t{1}
                                                                                                            << 62)
      raise_bad_file(path, 4, "an array of shape ", to_string(shape), " is too large");
  if (num_elements(shape) == 0) size = 0;
  if (size > source.most_remaining())
    raise_bad_file(path, data_begin, "an array of shape ", to_string(shape), " needs ", size,
                   " bytes, more than the file holds");
  const Tensor out = Tensor::empty(shape, type->dtype);
  const size_t have = source.read(out.as<std::byte>(), size);
  if (have != size)
    raise_bad_file(path, data_begin + have, "the file ends after ", have, " of ", size, " bytes of elements");
  std::byte extra;
  if (source.read(&extra, 1) != 0) raise_bad_file(path, data_begin + size, "the file goes on behind its last element");
  from_big_endian(out.data(), out.size(), size_of(type->dtype));
  return out;
}

}  // namespace

Tensor read_idx(const std::string& path) {
  const MappedFile file(path);
  const std::string_view start = as_text(file.bytes());
  if (start.starts_with("\x1f\x8b")) {
    GzipSource source(file);
    return read_content(source, path);
  }
  PlainSource source(file.bytes());
  return read_content(source, path);
}

}  // namespace morel
