#include "morel/transform/passes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string_view>

#include "morel/transform/fold.h"
#include "morel/transform/fuse.h"
#include "morel/transform/schedule.h"
#include "morel/transform/simplify.h"

namespace morel {
namespace {

struct Pass {
  std::string_view name;
  bool changes_operators;  // makes groups of them, or orders them for a run here
  void (*run)(Graph& graph, Evaluator evaluate, RuleCounts& counts);
};
// All gradients are taken: nothing needs to know any more where they stop.
void forget_gradient_stops(Graph& graph) {
  for (const Ref<Node>& node : graph.nodes) {
    node->stops_gradient = false;
    for_each_body(*node, forget_gradient_stops);
  }
}

// Puts what was found out of sizes that are symbols into what nodes say of them, so that equal ones look equal. The
// parameters stay: the symbols are read off them.
void settle_sizes(Graph& graph, SymbolicSizes& sizes) {
  const auto settle = [&](Dim& size) { size = sizes.normal(size); };
  for (const Ref<Node>& node : graph.nodes) {
    for (Type& type : node->types) std::ranges::for_each(type.shape, settle);
    for (Value& arg : node->args) {
      if (arg.tag() == Value::Tag::Size) arg = sizes.normal(arg.dim());
      if (arg.tag() != Value::Tag::Ints) continue;
      Ints settled = arg.ints();
      std::ranges::for_each(settled, settle);
      arg = std::move(settled);
    }
    for_each_body(*node, [&](Graph& body) {
      for (const Ref<Node>& parameter : body.parameters) std::ranges::for_each(parameter->types[0].shape, settle);
      settle_sizes(body, sizes);
    });
  }
}

constexpr Pass passes[] = {
    {"simplify", false,
     [](Graph& graph, Evaluator evaluate, RuleCounts& counts) {
       forget_gradient_stops(graph);
       if (SymbolicSizes* sizes = SymbolicSizes::current()) settle_sizes(graph, *sizes);
       simplify(graph, evaluate, &counts);
     }},
    {"fold", false,
     [](Graph& graph, Evaluator evaluate, RuleCounts& counts) {
       if (!evaluate || graph.is_function) return;  // which captures nothing
       const int64_t folded = fold_constants(graph, evaluate);
       if (folded == 0) return;
       counts["constants"] = folded;
       simplify(graph, evaluate, &counts);
     }},
    {"fuse", true, [](Graph& graph, Evaluator, RuleCounts&) { fuse(graph); }},
    {"schedule", true, [](Graph& graph, Evaluator, RuleCounts&) { schedule_updates(graph); }},
    {"recompute", true, [](Graph& graph, Evaluator, RuleCounts&) { recompute_cheap(graph); }},
};

// Writes one stage; a folder that cannot be written to is no reason to fail.
void dump(Graph& graph, int64_t number, std::string_view stage, const RuleCounts& counts) {
  const char* folder = std::getenv("MOREL_DUMP_DIR");
  const std::filesystem::path path(folder ? folder : "morel_dump");
  std::error_code error;
  std::filesystem::create_directories(path, error);
  std::string name = graph.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  std::ofstream file(path / cat(name, ".", number, ".", stage, ".txt"));
  file << print(graph);
  for (const auto& [rule, count] : counts) file << "# " << rule << ": " << count << "\n";
}

}  // namespace

std::vector<PassTime> optimise(Graph& graph, Evaluator evaluate, bool fuses) {
  static std::atomic<int64_t> next{0};
  const char* wanted = std::getenv("MOREL_DUMP");
  const bool dumps = wanted && std::string_view(wanted) == "passes";
  static std::once_flag once;
  if (wanted && *wanted && !dumps)
    std::call_once(once, [&] {
      std::fprintf(stderr, "morel: MOREL_DUMP=%s is not known and does nothing; known is: passes\n", wanted);
    });
  const int64_t number = dumps ? next.fetch_add(1) : 0;
  if (dumps) dump(graph, number, "0_source", {});
  int stage = 1;
  std::vector<PassTime> times;
  for (const Pass& pass : passes) {
    if (pass.changes_operators && !fuses) continue;
    RuleCounts counts;
    const auto began = std::chrono::steady_clock::now();
    pass.run(graph, evaluate, counts);
    for_each_function(graph, [&](Graph& function) { pass.run(function, evaluate, counts); });
    times.push_back({pass.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()});
    if (dumps) dump(graph, number, cat(stage++, "_", pass.name), counts);
  }
  verify(graph);
  return times;
}

}  // namespace morel
