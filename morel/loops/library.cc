#include "morel/loops/library.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

namespace morel::loops {
namespace {

int machine_isa() {
#if defined(MOREL_ONLY_AVX2)  // a library for one device (cmake/lite.cmake)
  return 1;
#elif defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("sse4.2")) return -1;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c")) return 0;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return wide ? 2 : 1;
#else
  return 0;
#endif
}

int choose_isa() {
  const auto setting = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value ? value : "");
  };
  if (setting("MOREL_KERNELS") == "interp") return -1;
  int isa = machine_isa();
  constexpr std::string_view names[num_isas] = {"sse4", "avx2", "avx512"};
  for (int i = 0; i < num_isas; ++i) {
    if (setting("MOREL_ISA") == names[i]) isa = std::min(isa, i);
  }
  return isa;
}

}  // namespace

std::string reduction_name(std::string_view op, DType in, DType out, ProgramKind kind) {
  std::string name(op);
  for (const DType dtype : {in, out}) (name += '.') += info(dtype).short_name;
  return name + (kind == ProgramKind::Rows ? ".rows" : ".columns");
}

int active_isa() {
  static const int isa = choose_isa();
  return isa;
}

LoopFn find_loop(std::string_view program_name) {
  static const auto table = [] {
    std::unordered_map<std::string_view, LoopFn> out;
    for (const LibraryEntry& entry : library()) {
      LoopFn best = nullptr;
      for (int isa = 0; isa <= active_isa(); ++isa) best = entry.functions[isa] ? entry.functions[isa] : best;
      if (best) out.emplace(entry.name, best);
    }
    return out;
  }();
  const auto it = table.find(program_name);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace morel::loops
