#include "morel/codegen/llvm/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

namespace morel::codegen {
namespace {

struct Header {
  char magic[8];
  uint64_t key_size, content_size;
  uint64_t checksum;  // of key and content
};
constexpr char magic[8] = {'M', 'O', 'R', 'E', 'L', 'J', 'I', '1'};

std::string choose_folder() {
  const auto setting = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string folder = setting("MOREL_CACHE_DIR"); !folder.empty()) return folder + "/jit";
  if (const std::string folder = setting("XDG_CACHE_HOME"); folder.starts_with('/')) return folder + "/morel/jit";
  if (const std::string home = setting("HOME"); home.starts_with('/')) return home + "/.cache/morel/jit";
  return "";
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  bool good() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  int number_;
};

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

std::optional<std::string> read_all(int descriptor, size_t size) {
  std::string bytes(size, '\0');
  for (size_t done = 0; done < size;) {
    const ssize_t count = ::read(descriptor, bytes.data() + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    done += static_cast<size_t>(count);
  }
  return bytes;
}

}  // namespace

// FNV-1a.
uint64_t stable_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

DiskCache::DiskCache() : folder_(choose_folder()) {}

std::string DiskCache::path(std::string_view key) const {
  char name[32];
  std::snprintf(name, sizeof name, "/%016llx.o", static_cast<unsigned long long>(stable_hash(key)));
  return folder_ + name;
}

std::optional<std::string> DiskCache::read(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const Descriptor file(::open(path(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat facts;
  if (!file.good() || ::fstat(file.number(), &facts) != 0) return std::nullopt;
  const bool ours = facts.st_uid == ::geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (!ours || !S_ISREG(facts.st_mode) || facts.st_size < static_cast<off_t>(sizeof(Header))) return std::nullopt;
  const auto bytes = read_all(file.number(), static_cast<size_t>(facts.st_size));
  if (!bytes) return std::nullopt;
  Header header;
  std::memcpy(&header, bytes->data(), sizeof header);
  const std::string_view body = std::string_view(*bytes).substr(sizeof header);
  if (std::memcmp(header.magic, magic, sizeof magic) != 0 || header.key_size != key.size() ||
      body.size() < key.size() || header.content_size != body.size() - key.size() ||
      body.substr(0, key.size()) != key || header.checksum != stable_hash(body)) {
    return std::nullopt;
  }
  return std::string(body.substr(key.size()));
}

void DiskCache::write(std::string_view key, std::string_view content) const noexcept try {
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  static std::atomic<int> written{0};
  const int count = written.fetch_add(1);
  if (count == 0) remove_old_files();  // once in a process
  const std::string target = path(key);
  const std::string temporary = target + "." + std::to_string(::getpid()) + "." + std::to_string(count) + ".tmp";
  std::string body(key);
  body += content;
  Header header{{}, key.size(), content.size(), stable_hash(body)};
  std::memcpy(header.magic, magic, sizeof magic);
  bool good = false;
  {
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!file.good()) return;
    good = write_all(file.number(), {reinterpret_cast<const char*>(&header), sizeof header}) &&
           write_all(file.number(), body);
  }
  if (!good || ::rename(temporary.c_str(), target.c_str()) != 0) ::unlink(temporary.c_str());
} catch (const std::exception&) {
  // A kernel that cannot be kept is compiled again by the next process.
}

void DiskCache::remove_old_files(size_t limit) const noexcept try {
  namespace fs = std::filesystem;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    const fs::file_time_type time = at->last_write_time(error);
    if (!error) files.emplace_back(time, at->path());
    error.clear();  // another process may have removed it
  }
  if (files.size() <= limit) return;
  const auto middle = files.begin() + static_cast<std::ptrdiff_t>(files.size() - limit / 2);
  std::nth_element(files.begin(), middle, files.end());
  for (auto it = files.begin(); it != middle; ++it) fs::remove(it->second, error);
} catch (const std::exception&) {
  // The next process tries again.
}

}  // namespace morel::codegen
