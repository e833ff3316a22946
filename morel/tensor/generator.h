// State of random numbers: a seed and an offset. Numbers are a function of (seed, offset, element), computed by the
// counter-based Philox generator (kernels/random.h), so they do not depend on threads, workers or shards.
#pragma once

#include <cstdint>
#include <mutex>

#include "morel/tensor/value.h"

namespace morel {

class Generator {
 public:
  // (seed, offset) for one operator call; moves the offset on.
  Value next() {
    const std::lock_guard lock(mutex_);
    return Ints{seed_, offset_++};
  }
  void set_seed(int64_t seed) {
    const std::lock_guard lock(mutex_);
    seed_ = seed;
    offset_ = 0;
  }
  int64_t seed() const { return seed_; }
  int64_t offset() const { return offset_; }
  void set_offset(int64_t offset) { offset_ = offset; }

 private:
  std::mutex mutex_;
  int64_t seed_ = 0;
  int64_t offset_ = 0;
};

// Generator of the process; its first seed comes from the system.
Generator& default_generator();

}  // namespace morel
