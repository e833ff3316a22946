// What every use of oneDNN needs. It is built on OpenMP, whose threads must not start inside our tasks.
#pragma once

#include <omp.h>

#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>

#include <dnnl.hpp>

namespace morel {

// OpenMP regions that this thread opens run on it alone, while this lives. Restores the program's own setting.
class SerialOpenMp {
 public:
  SerialOpenMp() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~SerialOpenMp() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  SerialOpenMp(const SerialOpenMp&) = delete;
  SerialOpenMp& operator=(const SerialOpenMp&) = delete;

 private:
  int before_;
};

inline const dnnl::engine& onednn_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}
inline dnnl::stream& onednn_stream() {
  thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

// Primitives by the bytes of a key without padding. Null values record what oneDNN refuses. Emptied when full: whoever
// uses an entry holds it.
template <class T>
class OneDnnCache {
 public:
  template <class Make>
  std::shared_ptr<const T> get(const std::string& key, Make&& make) {
    std::lock_guard guard(lock_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) return found->second;
    if (entries_.size() >= max_entries) entries_.clear();
    std::shared_ptr<const T> value;
    try {
      value = make();
    } catch (const dnnl::error&) {
    }
    entries_.emplace(key, value);
    return value;
  }

 private:
  static constexpr size_t max_entries = 1024;
  std::mutex lock_;
  std::unordered_map<std::string, std::shared_ptr<const T>> entries_;
};

template <class Key>
std::string onednn_key(const Key& key) {
  static_assert(std::has_unique_object_representations_v<Key>);
  return std::string(reinterpret_cast<const char*>(&key), sizeof key);
}

}  // namespace morel
