// Values that are cheap to compute are computed again behind the peak: from text to text, and the bits stay.
#include "morel/transform/recompute.h"

#include "morel/ir/parse.h"
#include "morel/runtime/executor.h"
#include "morel/transform/simplify.h"
#include "ops_support.h"

namespace morel::testing {
namespace {

struct Case {
  std::string_view what;
  std::string_view before;
  std::string_view behind;  // the peak, instead of what `before` has there; empty: the graph stays as it is
};

// Between the two parts of every graph the most memory is in use: %50 is made of %49.
constexpr std::string_view peak = R"(
  %50 = concat([%49, %49, %49, %49, %49, %49, %49, %49, %49, %49, %49, %49, %49, %49, %49, %49], 0)
  %51 = cumsum(%50, 1)
  %52 = cumsum(%51, 1)
  %53 = sum(%52))";

constexpr Case cases[] = {
    {"views of it are made again too, but for those that nobody reads", R"((%0: f32[128,128], %1: f32[128]) {
  %2 = mul(%0, %1)
  %3 = swapaxes(%2, 0, 1)
  %4 = reshape(%3, (4, 32, 128))
  %49 = cumsum(%2, 1)
  PEAK
  %60 = cumsum(%3, 1)
  %61 = flip(%2, 1)
  return %53, %60, %61 })",
     "%58 = mul(%0, %1) %59 = swapaxes(%58, 0, 1) %60 = cumsum(%59, 1) %61 = flip(%58, 1) return %53, %60, %61 }"},
    {"small operands are kept for it", R"((%0: f32[128,128]) {
  %1 = cumsum(%0, 1)
  %2 = sum(%1, (0))
  %3 = sub(%1, %2)
  %49 = cumsum(%3, 1)
  PEAK
  %60 = cumsum(%3, 0)
  %61 = flip(%1, 1)
  return %53, %60, %61 })",
     "%59 = sub(%1, %2) %60 = cumsum(%59, 0) %61 = flip(%1, 1) return %53, %60, %61 }"},
    {"two in a row", R"((%0: f32[128,128]) {
  %1 = exp(%0)
  %2 = tanh(%1)
  %49 = cumsum(%2, 1)
  PEAK
  %60 = cumsum(%2, 0)
  return %53, %60 })",
     "%58 = exp(%0) %59 = tanh(%58) %60 = cumsum(%59, 0) return %53, %60 }"},
    {"loops of several operators", R"((%0: f32[128,128]) {
  %1 = fused(loop, [%0])
    graph loop(%0: f32[128,128]) {
      %1 = exp(%0)
      %2 = tanh(%1)
      return %2
    }
  %49 = cumsum(%1, 1)
  PEAK
  %60 = cumsum(%1, 0)
  return %53, %60 })",
     R"(
  %59 = fused(loop, [%0])
    graph loop(%0: f32[128,128]) {
      %1 = exp(%0)
      %2 = tanh(%1)
      return %2
    }
  %60 = cumsum(%59, 0)
  return %53, %60 })"},
    {"of a kernel with an epilogue the latter alone", R"((%0: f32[128,128], %1: f32[128,128]) {
  %2 = fused(loop, [%0, %1])
    graph loop(%0: f32[128,128], %1: f32[128,128]) {
      %2 = matrix_product(%0, %1)
      %3 = relu(%2)
      return %3, %2
    }
  %49 = cumsum(%2.0, 1)
  PEAK
  %60 = cumsum(%2.0, 0)
  %61 = cumsum(%2.1, 0)
  return %53, %60, %61 })",
     "%59 = relu(%2.1) %60 = cumsum(%59, 0) %61 = cumsum(%2.1, 0) return %53, %60, %61 }"},
    {"not from what is gone and large", R"((%0: f32[128,128]) {
  %1 = cumsum(%0, 1)
  %2 = cumsum(%0, 0)
  %3 = sub(%1, %2)
  %49 = cumsum(%3, 1)
  PEAK
  %60 = cumsum(%3, 0)
  return %53, %60 })",
     ""},
    {"not from what has changed", R"((%0: f32[128,128], %1: f32[128,128]) {
  %2 = exp(%0)
  %49 = cumsum(%2, 1)
  %3 = copy_(%0, %1)
  PEAK
  %60 = cumsum(%2, 0)
  return %53, %60 })",
     ""},
    {"not what is written to", R"((%0: f32[128,128], %1: f32[128,128]) {
  %2 = exp(%0)
  %3 = copy_(%2, %1)
  %49 = cumsum(%3, 1)
  PEAK
  %60 = cumsum(%3, 0)
  return %53, %60 })",
     ""},
    {"not what is dear", R"((%0: f32[128,128]) {
  %1 = cumsum(%0, 0)
  %49 = cumsum(%1, 1)
  PEAK
  %60 = cumsum(%1, 0)
  return %53, %60 })",
     ""},
    {"not what is read at the peak", R"((%0: f32[128,128]) {
  %1 = exp(%0)
  %2 = concat([%1, %1, %1, %1, %1, %1, %1, %1, %1, %1, %1, %1, %1, %1, %1, %1], 0)
  %3 = concat([%2, %1], 0)
  %4 = sum(%3)
  %5 = cumsum(%1, 0)
  return %4, %5 })",
     ""},
    {"not where a loop writes over its operand", R"((%0: f32[128,128]) {
  %1 = exp(%0)
  %2 = cumsum(%1, 0)
  %3 = tanh(%2)
  %4 = cumsum(%3, 0)
  %5 = mul(%4, %1)
  %6 = sum(%5)
  return %6 })",
     ""},
};

std::string with_peak(std::string_view text) {
  std::string out(text);
  if (const size_t at = out.find("PEAK"); at != std::string::npos) out.replace(at, 4, peak);
  return "graph f" + out;
}

Values run(const Ref<Graph>& graph) {
  Values arguments;  // made anew: a graph may write to them
  for (const Ref<Node>& parameter : graph->parameters)
    arguments.push_back(sample(parameter->types[0].shape, DType::Float32, arguments.size() + 1));
  return Executor(graph).run({arguments.data(), arguments.size()});
}

TEST(Recompute, FromTextToText) {
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    const std::string before = with_peak(one.before);
    std::string after = before;
    if (!one.behind.empty()) after = before.substr(0, before.find("%60 =")) + std::string(one.behind);
    const Ref<Graph> original = parse(before), changed = parse(before);
    EXPECT_EQ(recompute_cheap(*changed), !one.behind.empty());
    verify(*changed);
    const Ref<Graph> expected = parse(after);
    remove_dead_nodes(*expected);
    EXPECT_EQ(print(*changed), print(*expected));
    const Values wanted = run(original), found = run(changed);
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(elements(found[i].tensor()), elements(wanted[i].tensor()));
    if (!one.behind.empty())
      EXPECT_LT(Executor(changed).memory_use().lower_bound, Executor(original).memory_use().lower_bound);
  }
}

}  // namespace
}  // namespace morel::testing
