#include "morel/kernels/simd.h"

#include <cstdlib>
#include <string_view>

namespace morel {

static Isa detect_isa() {
#if defined(MOREL_ONLY_AVX2)
  return Isa::Avx2;
#elif MOREL_X86
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  Isa isa = has_avx512 ? Isa::Avx512 : has_avx2 ? Isa::Avx2 : Isa::Sse4;
  if (const char* wanted = std::getenv("MOREL_ISA")) {
    const std::string_view name = wanted;
    if (name == "sse4") isa = Isa::Sse4;
    if (name == "avx2" && isa == Isa::Avx512) isa = Isa::Avx2;
  }
  return isa;
#else
  return Isa::Generic;
#endif
}

Isa best_isa() {
  static const Isa isa = detect_isa();
  return isa;
}

}  // namespace morel
