// Where the values of a plan lie in the one array of a generated model: inputs among them, results that nobody reads
// nowhere.
#pragma once

#include <vector>

#include "morel/lite/sizes.h"

namespace morel::lite {

class MemoryMap {
 public:
  MemoryMap(const Plan& plan, const SizeValues& sizes);
  int64_t arena_bytes() const { return arena_bytes_[0]; }
  // Of a buffer in its function's part of the array.
  int64_t offset(size_t function, int32_t buffer) const { return offsets_[function][static_cast<size_t>(buffer)]; }
  bool is_used(size_t function, int32_t buffer) const { return used_[function][static_cast<size_t>(buffer)]; }

 private:
  void place(const Plan& plan, size_t idx, const SizeValues& sizes);
  std::vector<std::vector<int64_t>> offsets_;
  std::vector<std::vector<bool>> used_;
  std::vector<int64_t> arena_bytes_;
};

}  // namespace morel::lite
