// Compiled kernels on disk: $MOREL_CACHE_DIR, else $XDG_CACHE_HOME/morel, else ~/.cache/morel; without any of them, or
// where the folder cannot be written, nothing is kept. Files appear by renaming, so processes may share the folder; a
// file whose checksum or key is wrong counts as absent and is replaced. Of more than max_files the older half goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace morel::codegen {

uint64_t stable_hash(std::string_view text);  // the same in every process and on every machine

class DiskCache {
 public:
  static constexpr size_t max_files = 8192;
  DiskCache();  // of the environment
  // The content kept for `key`. Another user's files are not trusted: what is in them is run.
  std::optional<std::string> read(std::string_view key) const;
  void write(std::string_view key, std::string_view content) const noexcept;
  void remove_old_files(size_t limit = max_files) const noexcept;

 private:
  std::string path(std::string_view key) const;
  std::string folder_;  // empty: no cache
};

}  // namespace morel::codegen
