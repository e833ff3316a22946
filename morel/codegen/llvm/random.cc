// LLVM's static libraries ask glibc 2.36 for random numbers (names of temporary files). With a function of our own in
// this library, whose symbols are hidden, it runs with older ones.
#include <sys/random.h>

#include <cstdint>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}
