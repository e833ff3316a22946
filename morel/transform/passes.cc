#include "morel/transform/passes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>

#include "morel/transform/expand.h"
#include "morel/transform/fold.h"
#include "morel/transform/fuse.h"
#include "morel/transform/recompute.h"
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
    {"expand", true, [](Graph& graph, Evaluator, RuleCounts&) { expand(graph); }},
    {"fuse", true, [](Graph& graph, Evaluator, RuleCounts&) { fuse(graph); }},
    {"schedule", true, [](Graph& graph, Evaluator, RuleCounts&) { schedule_updates(graph); }},
    {"recompute", true, [](Graph& graph, Evaluator, RuleCounts&) { recompute_cheap(graph); }},
};

std::mutex chosen_mutex;
std::string chosen_folder;

// The folder for the stages of a graph, empty for none: $MOREL_DUMP, then MindSpore's variable, then save_graphs().
std::string folder_of_stages() {
  const auto variable = [](const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return std::string(value ? value : otherwise);
  };
  const std::string wanted = variable("MOREL_DUMP", "");
  if (wanted == "passes") return variable("MOREL_DUMP_DIR", "morel_dump");
  static std::once_flag once;
  if (!wanted.empty())
    std::call_once(once, [&] {
      std::fprintf(stderr, "morel: MOREL_DUMP=%s is not known and does nothing; known is: passes\n", wanted.c_str());
    });
  if (const std::string level = variable("MS_DEV_SAVE_GRAPHS", ""); !level.empty())
    return level == "1" || level == "2" || level == "3" ? variable("MS_DEV_SAVE_GRAPHS_PATH", ".") : "";
  const std::lock_guard lock(chosen_mutex);
  return chosen_folder;
}

// Whether $MS_DEV_DUMP_IR_PASSES, parts of names with commas between them, names a stage; without it each one.
bool is_wanted(std::string_view stage) {
  const char* names = std::getenv("MS_DEV_DUMP_IR_PASSES");
  if (!names || !*names) return true;
  std::istringstream parts(names);
  for (std::string part; std::getline(parts, part, ',');)
    if (!part.empty() && stage.find(part) != std::string_view::npos) return true;
  return false;
}

// The files of one graph; a folder that cannot be written to is no reason to fail.
class StageFiles {
 public:
  explicit StageFiles(const Graph& graph) : folder_(folder_of_stages()) {
    if (folder_.empty()) return;
    static std::atomic<int64_t> next{0};
    prefix_ = graph.name;
    for (char& c : prefix_)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    prefix_ = cat(prefix_, ".", next.fetch_add(1), ".");
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
  }
  void write(Graph& graph, std::string_view name, const RuleCounts& counts = {}) {
    if (folder_.empty()) return;
    const std::string stage = cat(stage_++, "_", name);
    if (!is_wanted(stage)) return;
    std::ofstream file(folder_ / cat(prefix_, stage, ".ir"));
    file << print(graph);
    for (const auto& [rule, count] : counts) file << "# " << rule << ": " << count << "\n";
  }

 private:
  std::filesystem::path folder_;
  std::string prefix_;
  int stage_ = 0;
};

}  // namespace

void save_graphs(std::string folder) {
  const std::lock_guard lock(chosen_mutex);
  chosen_folder = std::move(folder);
}

std::vector<PassTime> optimise(Graph& graph, Evaluator evaluate, bool fuses) {
  StageFiles files(graph);
  files.write(graph, "source");
  std::vector<PassTime> times;
  for (const Pass& pass : passes) {
    if (pass.changes_operators && !fuses) continue;
    RuleCounts counts;
    const auto began = std::chrono::steady_clock::now();
    pass.run(graph, evaluate, counts);
    for_each_function(graph, [&](Graph& function) { pass.run(function, evaluate, counts); });
    times.push_back({pass.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()});
    files.write(graph, pass.name, counts);
  }
  verify(graph);
  files.write(graph, "validate");
  return times;
}

}  // namespace morel
