#include "morel/base/stack.h"

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace morel {
namespace {

uintptr_t lowest_address() {
  constexpr size_t reserve = size_t{256} << 10;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* begin = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &begin, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uintptr_t>(begin) + reserve;
}

}  // namespace

bool stack_is_low() {
  thread_local const uintptr_t lowest = lowest_address();
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < lowest;
}

}  // namespace morel
