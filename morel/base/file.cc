#include "morel/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace morel {

namespace {

constexpr size_t buffer_bytes = 64 * 1024;
// Some systems write at most 2 GiB per call.
constexpr size_t largest_write = size_t{1} << 30;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string resolve_links(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const auto target = std::filesystem::weakly_canonical(path, error);
  return error ? path : target.string();
}

// A rename is durable once the folder is; file systems that cannot sync folders say so, which is no failure.
void sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  MOREL_CHECK(descriptor >= 0, Os, path_, ": cannot be opened: ", std::strerror(errno));
  struct stat status;
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    raise(ErrorKind::Os, path_, ": not a regular file");
  }
  size_ = static_cast<size_t>(status.st_size);
  void* data = size_ == 0 ? nullptr : ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int code = errno;
  ::close(descriptor);
  if (data == MAP_FAILED) {
    size_ = 0;
    raise(ErrorKind::Os, path_, ": cannot be mapped: ", std::strerror(code));
  }
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::swap(MappedFile& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
}

AtomicFile::AtomicFile(const std::string& path) : path_(resolve_links(path)) {
  struct stat status;
  if (::stat(path_.c_str(), &status) == 0)
    MOREL_CHECK(S_ISREG(status.st_mode), Os, path_, ": cannot be written: not a regular file");
  static std::atomic<uint32_t> counter{0};
  // The name's start is kept short: with it the temporary name stays within the 255 bytes that file systems allow.
  const std::string folder = folder_of(path_);
  for (int attempt = 0; attempt < 100 && descriptor_ < 0; ++attempt) {
    temporary_ = cat(folder, "/.morel-", ::getpid(), "-", counter.fetch_add(1), ".tmp");
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST) break;
  }
  MOREL_CHECK(descriptor_ >= 0, Os, path_, ": cannot be written: ", std::strerror(errno));
  buffer_.reserve(buffer_bytes);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(Bytes bytes) {
  if (buffer_.size() + bytes.size() > buffer_bytes) flush();
  if (bytes.size() >= buffer_bytes) return write_through(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void AtomicFile::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void AtomicFile::write_through(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        ::write(descriptor_, bytes.data(), bytes.size() < largest_write ? bytes.size() : largest_write);
    if (count > 0) bytes = bytes.subspan(static_cast<size_t>(count));
    else if (count == 0 || errno != EINTR) fail("cannot be written");
  }
}

void AtomicFile::commit() {
  flush();
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP) fail("cannot be written");
  // Delayed allocation and network file systems report a full disk as late as here.
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary_.c_str());
    errno = code;
    fail("cannot be written");
  }
  sync_folder(folder_of(path_));
}

void AtomicFile::fail(const char* what) {
  raise(ErrorKind::Os, path_, ": ", what, ": ", std::strerror(errno), "; a file that was there before is unchanged");
}

}  // namespace morel
