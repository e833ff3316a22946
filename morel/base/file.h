// Files as the readers and writers of checkpoints and data sets need them: a whole file mapped for reading, and a file
// that replaces an older one only when it has been written completely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "morel/base/error.h"

namespace morel {

using Bytes = std::span<const std::byte>;

inline std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
inline Bytes as_bytes(std::string_view text) { return {reinterpret_cast<const std::byte*>(text.data()), text.size()}; }

// What is wrong with the content of a file, and where: "PATH: byte 17: the tensor 'w' ends after ...".
template <class... Args>
[[noreturn]] void raise_bad_file(const std::string& path, uint64_t offset, const Args&... text) {
  raise(ErrorKind::Value, path, ": byte ", offset, ": ", text...);
}

// The bytes of a regular file, mapped read-only: opening costs no reading, and pages come when they are touched.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(std::string path);
  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    MappedFile taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~MappedFile();

  const std::string& path() const { return path_; }
  Bytes bytes() const { return {data_, size_}; }

 private:
  void swap(MappedFile& other) noexcept;

  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Writes under a temporary name in the folder of `path`. commit() makes the bytes durable and renames; without it, or
// when anything fails on the way, the temporary file is removed and a file that lay at `path` keeps its content.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(Bytes bytes);
  void commit();

 private:
  void flush();
  void write_through(Bytes bytes);
  [[noreturn]] void fail(const char* what);

  std::string path_;  // of the final file; symbolic links are followed, so that the file behind one is replaced
  std::string temporary_;
  int descriptor_ = -1;
  std::vector<std::byte> buffer_;
};

}  // namespace morel
