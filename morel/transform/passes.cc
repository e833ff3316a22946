#include "morel/transform/passes.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "morel/transform/fuse.h"
#include "morel/transform/simplify.h"

namespace morel {
namespace {

struct Pass {
  std::string_view name;
  void (*run)(Graph& graph);
};
constexpr Pass passes[] = {
    {"simplify", [](Graph& graph) { simplify(graph); }},
    {"fuse", [](Graph& graph) { fuse(graph); }},
};

// Writes one stage; a folder that cannot be written to is no reason to fail.
void dump(Graph& graph, int64_t number, std::string_view stage) {
  const char* folder = std::getenv("MOREL_DUMP_DIR");
  const std::filesystem::path path(folder ? folder : "morel_dump");
  std::error_code error;
  std::filesystem::create_directories(path, error);
  std::string name = graph.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  std::ofstream(path / cat(name, ".", number, ".", stage, ".txt")) << print(graph);
}

}  // namespace

void optimise(Graph& graph) {
  static std::atomic<int64_t> next{0};
  const char* wanted = std::getenv("MOREL_DUMP");
  const bool dumps = wanted && std::string_view(wanted) == "passes";
  const int64_t number = dumps ? next.fetch_add(1) : 0;
  if (dumps) dump(graph, number, "0_source");
  int stage = 1;
  for (const Pass& pass : passes) {
    pass.run(graph);
    for_each_function(graph, pass.run);
    verify(graph);
    if (dumps) dump(graph, number, cat(stage++, "_", pass.name));
  }
}

}  // namespace morel
