// Memory that must not be touched now: a build with AddressSanitizer reports who does, others do nothing.
#pragma once

#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace morel {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool can_poison = true;
inline void poison(const void* data, size_t bytes) { __asan_poison_memory_region(data, bytes); }
inline void unpoison(const void* data, size_t bytes) { __asan_unpoison_memory_region(data, bytes); }
inline bool is_poisoned(const void* data, size_t bytes) {
  return __asan_region_is_poisoned(const_cast<void*>(data), bytes) != nullptr;
}
#else
inline constexpr bool can_poison = false;
inline void poison(const void*, size_t) {}
inline void unpoison(const void*, size_t) {}
inline bool is_poisoned(const void*, size_t) { return false; }
#endif

}  // namespace morel
