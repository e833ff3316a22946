#include "morel/tensor/generator.h"

#include <random>

namespace morel {

Generator& default_generator() {
  static Generator* generator = [] {
    auto* made = new Generator;
    std::random_device device;
    made->set_seed(static_cast<int64_t>((static_cast<uint64_t>(device()) << 31) ^ device()) & 0x7fffffffffffffffll);
    return made;
  }();
  return *generator;
}

}  // namespace morel
