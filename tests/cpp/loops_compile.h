// Compiles loop programs with the machine's C compiler and loads them, for tests.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "morel/codegen/c/emit.h"
#include "morel/loops/program.h"

namespace morel::loops {

struct IsaFlags {
  std::string name, flags;
  bool fma;
};

inline std::vector<IsaFlags> isas() {
  std::vector<IsaFlags> out;
#if defined(__x86_64__)
  out.push_back({"sse4", "-msse4.2", false});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    out.push_back({"avx2", "-mavx2 -mfma -mf16c -mbmi2", true});
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    out.push_back(
        {"avx512", "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mbmi2 -mprefer-vector-width=512", true});
  }
#else
  out.push_back({"generic", "", false});
#endif
  return out;
}

inline std::string c_compiler() {
  const char* compiler = std::getenv("CC");
  return compiler ? compiler : "cc";
}
inline bool has_c_compiler() { return std::system((c_compiler() + " --version > /dev/null 2>&1").c_str()) == 0; }

// Compiles all programs once per instruction set.
class Compiled {
 public:
  Compiled(const std::vector<Program>& programs, const IsaFlags& isa) {
    static int count = 0;  // the loader knows a library by its path, so each needs its own
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() /
        ("morel_loops_" + std::to_string(getpid()) + "_" + std::to_string(count++) + "_" + isa.name);
    std::filesystem::create_directories(folder);
    std::ofstream source(folder / "loops.c");
    source << codegen::c_prelude();
    std::set<std::string> lines;
    for (const Program& program : programs) lines.merge(codegen::c_requirements(program));
    for (const std::string& line : lines) source << line;
    for (const Program& program : programs)
      source << codegen::c_function(program, codegen::c_symbol(program.name, isa.name));
    source.close();
    const std::string command = c_compiler() + " -std=gnu11 -O3 -ffp-contract=off -fno-math-errno " +
                                "-fno-trapping-math -w -fPIC -shared " + isa.flags + " -o " +
                                (folder / "loops.so").string() + " " + (folder / "loops.c").string() + " -lm";
    if (std::system(command.c_str()) == 0) library_ = dlopen((folder / "loops.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!std::getenv("MOREL_TEST_KEEP")) std::filesystem::remove_all(folder);
    for (const Program& program : programs) {
      if (library_)
        functions_[program.name] =
            reinterpret_cast<LoopFn>(dlsym(library_, codegen::c_symbol(program.name, isa.name).c_str()));
    }
  }
  bool good() const { return library_ != nullptr; }
  LoopFn operator[](const std::string& name) const { return functions_.at(name); }

 private:
  void* library_ = nullptr;
  std::map<std::string, LoopFn> functions_;
};

}  // namespace morel::loops
