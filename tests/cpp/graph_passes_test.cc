// Passes from text to text: every rule has cases, in one table. What a rule makes of a graph must also compute the same
// bits, for every dtype of the case, at inputs with NaN, infinities, -0.0 and the smallest and largest numbers.
#include <cstring>
#include <limits>
#include <set>

#include "morel/ir/parse.h"
#include "morel/runtime/executor.h"
#include "morel/transform/fold.h"
#include "morel/transform/passes.h"
#include "morel/transform/simplify.h"
#include "ops_support.h"

namespace morel::testing {
namespace {

// ---- inputs ----

template <class T>
std::vector<T> special_numbers() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    return {T(-0.0),
            Limits::quiet_NaN(),
            Limits::infinity(),
            T(0.0),
            -Limits::infinity(),
            Limits::denorm_min(),
            -Limits::denorm_min(),
            T(1.5),
            Limits::max(),
            T(-3),
            T(0.1),
            Limits::min()};
  } else {
    return {T(0), Limits::max(), Limits::min(), T(1), T(-1), T(7), T(100)};
  }
}

Tensor special_tensor(const Type& type, size_t shift) {
  const Tensor out = Tensor::empty(type.shape, type.dtype);
  visit_dtype(type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < out.size(); ++i) {
      const auto pick = [&](const auto& from, size_t stride) {
        return from[(static_cast<size_t>(i) * stride + shift) % from.size()];
      };
      T& element = out.as<T>()[i];
      if constexpr (std::is_same_v<T, bool>) element = (static_cast<size_t>(i) + shift) % 3 == 0;
      else if constexpr (std::is_same_v<T, Float16>) element = to_float16(pick(special_numbers<float>(), 1));
      else if constexpr (std::is_same_v<T, BFloat16>) element = to_bfloat16(pick(special_numbers<float>(), 1));
      else if constexpr (std::is_arithmetic_v<T>) element = pick(special_numbers<T>(), 1);
      else
        element =
            T(pick(special_numbers<typename T::value_type>(), 1), pick(special_numbers<typename T::value_type>(), 5));
    }
  });
  return out;
}

void expect_same_bits(const Tensor& got, const Tensor& wanted) {
  ASSERT_EQ(describe(got.dtype(), got.shape()), describe(wanted.dtype(), wanted.shape()));
  const Tensor a = contiguous(got), b = contiguous(wanted);
  const auto bytes = static_cast<size_t>(a.size() * size_of(a.dtype()));
  EXPECT_EQ(std::memcmp(a.as<std::byte>(), b.as<std::byte>(), bytes), 0)
      << ::testing::PrintToString(elements(a)) << " instead of " << ::testing::PrintToString(elements(b));
}

void expect_same_results(const Ref<Graph>& changed, const Ref<Graph>& original) {
  for (size_t shift = 0; shift < 3; ++shift) {
    const auto run = [&](const Ref<Graph>& graph) {
      Values arguments;  // made anew: a graph may write to them
      for (const Ref<Node>& parameter : original->parameters) {
        Type type = parameter->types[0];
        for (Dim& size : type.shape)
          if (size.is_symbolic()) size = evaluate(size, original->sizes->examples());
        arguments.push_back(special_tensor(type, shift + arguments.size()));
      }
      return Executor(graph).run({arguments.data(), arguments.size()});
    };
    const Values got = run(changed), wanted = run(original);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) expect_same_bits(got[i].tensor(), wanted[i].tensor());
  }
}

std::string with_dtype(std::string_view text, std::string_view dtype) {
  std::string out(text);
  for (size_t at; (at = out.find("T[")) != std::string::npos;) out.replace(at, 1, dtype);
  return out;
}

// ---- the rules ----

struct Case {
  std::string_view rule;  // that applies; empty: none does, and the graph stays as it is
  std::string_view dtypes;
  std::string_view before, after;  // nodes and return; T[..] is a type of each of dtypes
};
constexpr std::string_view floats_and_integers = "f32 f64 f16 bf16 i8 i32 i64 u8";
constexpr std::string_view all = "f32 f64 f16 bf16 i8 i32 i64 u8 c64 c128";

// flip reads a tensor and keeps its bits: the results of rules do not leave the graph themselves.
constexpr Case cases[] = {
    {"times_one", floats_and_integers, "(%0: T[2,5]) { %1 = mul(%0, 1) %2 = flip(%1, 0) return %2 }",
     "(%0: T[2,5]) { %1 = flip(%0, 0) return %1 }"},
    {"times_one", "f32 f64", "(%0: T[2,5]) { %1 = ones((2, 5), Float32) %2 = mul(%1, %0) %3 = flip(%2, 0) return %3 }",
     "(%0: T[2,5]) { %1 = flip(%0, 0) return %1 }"},
    {"", "c64 c128", "(%0: T[2,5]) { %1 = mul(%0, 1) %2 = flip(%1, 0) return %2 }", ""},
    {"", "i32", "(%0: T[2,5]) { %1 = mul(%0, 1.0) %2 = flip(%1, 0) return %2 }", ""},
    {"", "f32", "(%0: T[5]) { %1 = ones((2, 1), Float32) %2 = mul(%1, %0) return %2 }", ""},
    // What leaves the graph is a tensor of its own.
    {"", "f32", "(%0: T[2,5]) { %1 = mul(%0, 1) return %1 }", ""},
    {"", "f32", "(%0: T[2,5]) { %1 = mul(%0, 1) %2 = reshape(%1, (10)) return %2 }", ""},
    // What is written to is, too; and what is read before a write stays what it was.
    {"", "f32", "(%0: T[2,5], %1: T[2,5]) { %2 = mul(%0, 1) %3 = copy_(%2, %1) %4 = add(%0, %3) return %4 }", ""},
    {"", "f32", "(%0: T[2,5], %1: T[2,5]) { %2 = mul(%0, 1) %3 = copy_(%0, %1) %4 = add(%2, %3) return %4 }", ""},
    {"divided_by_one", "f32 f64 f16 bf16", "(%0: T[2,5]) { %1 = true_divide(%0, 1) %2 = flip(%1, 0) return %2 }",
     "(%0: T[2,5]) { %1 = flip(%0, 0) return %1 }"},
    {"", "i32 c64", "(%0: T[2,5]) { %1 = true_divide(%0, 1) %2 = flip(%1, 0) return %2 }", ""},
    {"minus_zero", floats_and_integers, "(%0: T[2,5]) { %1 = sub(%0, 0) %2 = flip(%1, 0) return %2 }",
     "(%0: T[2,5]) { %1 = flip(%0, 0) return %1 }"},
    {"", "f32", "(%0: T[2,5]) { %1 = sub(%0, -0.0) %2 = sub(0.0, %0) %3 = add(%1, %2) return %3 }", ""},
    {"plus_zero", "i8 i32 i64 u8", "(%0: T[2,5]) { %1 = add(0, %0) %2 = flip(%1, 0) return %2 }",
     "(%0: T[2,5]) { %1 = flip(%0, 0) return %1 }"},
    {"plus_zero", "f32 f64 f16 bf16", "(%0: T[2,5]) { %1 = add(%0, -0.0) %2 = flip(%1, 0) return %2 }",
     "(%0: T[2,5]) { %1 = flip(%0, 0) return %1 }"},
    {"", "f32", "(%0: T[2,5]) { %1 = add(%0, 0.0) %2 = mul(%0, 0) %3 = add(%1, %2) return %3 }", ""},
    {"to_the_first", floats_and_integers, "(%0: T[2,5]) { %1 = pow(%0, 1) %2 = flip(%1, 0) return %2 }",
     "(%0: T[2,5]) { %1 = flip(%0, 0) return %1 }"},
    {"twice", all, "(%0: T[2,5]) { %1 = neg(%0) %2 = neg(%1) %3 = flip(%2, 0) return %3 }",
     "(%0: T[2,5]) { %1 = flip(%0, 0) return %1 }"},
    {"twice", "bool", "(%0: T[2,5]) { %1 = logical_not(%0) %2 = logical_not(%1) %3 = flip(%2, 0) return %3 }",
     "(%0: T[2,5]) { %1 = flip(%0, 0) return %1 }"},
    {"", "f32", "(%0: T[2,5]) { %1 = logical_not(%0) %2 = logical_not(%1) %3 = flip(%2, 0) return %3 }", ""},
    {"where_same", all, "(%0: T[2,5], %1: bool[2,5]) { %2 = where(%1, %0, %0) %3 = flip(%2, 0) return %3 }",
     "(%0: T[2,5], %1: bool[2,5]) { %2 = flip(%0, 0) return %2 }"},
    {"where_known", all,
     "(%0: T[2,5], %1: T[2,5]) { %2 = zeros((2, 5), Bool) %3 = where(%2, %0, %1) %4 = flip(%3, 0) return %4 }",
     "(%0: T[2,5], %1: T[2,5]) { %2 = flip(%1, 0) return %2 }"},
    {"where_known", "f32", "(%0: T[2,5]) { %1 = full((5), True, None) %2 = where(%1, 0.1, %0) return %2 }",
     "(%0: T[2,5]) { %1 = full((2, 5), 0.1, Float32) return %1 }"},
    {"number_operand", "f32", "(%0: T[2,5]) { %1 = full((5), 0.1, Float32) %2 = sub(%0, %1) return %2 }",
     "(%0: T[2,5]) { %1 = sub(%0, 0.10000000149011612) return %1 }"},
    {"number_operand", "f16 bf16 f32 f64", "(%0: T[2,5]) { %1 = full((), 3, Int64) %2 = sub(%0, %1) return %2 }",
     "(%0: T[2,5]) { %1 = sub(%0, 3) return %1 }"},
    // Another dtype, or another shape.
    {"", "f32", "(%0: T[2,5]) { %1 = full((), 0.1, Float64) %2 = sub(%0, %1) return %2 }", ""},
    {"", "f32", "(%0: T[5]) { %1 = full((2, 5), 0.1, Float32) %2 = sub(%0, %1) return %2 }", ""},
    {"elementwise_of_numbers", "f32", "(%0: T[2,5]) { %1 = full((5), 0.5, Float32) %2 = neg(%1) return %2 }",
     "(%0: T[2,5]) { %1 = full((5), -0.5, Float32) return %1 }"},
    {"elementwise_of_numbers", "f32", "(%0: T[2]) { %1 = ones((5), Float32) %2 = convert_dtype(%1, Int32) return %2 }",
     "(%0: T[2]) { %1 = full((5), 1, Int32) return %1 }"},
    {"broadcast_operand", "f32 i32",
     "(%0: T[2,5], %1: T[5]) { %2 = broadcast_to(%1, (2, 5)) %3 = add(%0, %2) return %3 }",
     "(%0: T[2,5], %1: T[5]) { %2 = add(%0, %1) return %2 }"},
    {"", "f32", "(%0: T[5]) { %1 = broadcast_to(%0, (2, 5)) %2 = exp(%1) return %2 }", ""},
    {"cast_of_cast", "f16 bf16 i8 u8",
     "(%0: T[2,5]) { %1 = convert_dtype(%0, Float32) %2 = convert_dtype(%1, Float64) return %2 }",
     "(%0: T[2,5]) { %1 = convert_dtype(%0, Float64) return %1 }"},
    {"cast_of_cast", "f32 i32",
     "(%0: T[2,5]) { %1 = convert_dtype(%0, Float64) %2 = convert_dtype(%1, Float16) return %2 }",
     "(%0: T[2,5]) { %1 = convert_dtype(%0, Float16) return %1 }"},
    {"cast_of_cast", "f32",
     "(%0: T[2,5]) { %1 = convert_dtype(%0, Float64) %2 = convert_dtype(%1, Float32) %3 = flip(%2, 0) return %3 }",
     "(%0: T[2,5]) { %1 = flip(%0, 0) return %1 }"},
    {"", "f64 i64 i32", "(%0: T[2,5]) { %1 = convert_dtype(%0, Float32) %2 = convert_dtype(%1, Float16) return %2 }",
     ""},
    {"", "bf16", "(%0: T[2,5]) { %1 = convert_dtype(%0, Float16) %2 = convert_dtype(%1, Float32) return %2 }", ""},
    {"conversion_to_same", "f32", "(%0: T[2,5]) { %1 = reshape(%0, (2, -1)) return %1 }", "(%0: T[2,5]) { return %0 }"},
    {"view_of_all", "f32",
     "(%0: T[2,5]) { %1 = permute(%0, (0, 1)) %2 = strided_slice(%1, (0, 0), (2, 5), (1, 1)) %3 = flip(%2, 0) return "
     "%3 }",
     "(%0: T[2,5]) { %1 = flip(%0, 0) return %1 }"},
    {"", "f32", "(%0: T[2,2]) { %1 = permute(%0, (1, 0)) %2 = flip(%1, 0) return %2 }", ""},
    {"view_of_view", "f32",
     "(%0: T[2,6]) { %1 = reshape(%0, (2, 2, 3)) %2 = expand_dims(%1, 0) %3 = reshape(%2, (4, 3)) %4 = flip(%3, 0) "
     "return %4 }",
     "(%0: T[2,6]) { %1 = reshape(%0, (4, 3)) %2 = flip(%1, 0) return %2 }"},
    {"view_of_view", "f32",
     "(%0: T[2,1,3]) { %1 = permute(%0, (1, 2, 0)) %2 = squeeze(%1) %3 = swapaxes(%2, 0, 1) %4 = flip(%3, 0) return %4 "
     "}",
     "(%0: T[2,1,3]) { %1 = reshape(%0, (2, 3)) %2 = flip(%1, 0) return %2 }"},
    {"", "f32", "(%0: T[2,6]) { %1 = permute(%0, (1, 0)) %2 = reshape(%1, (2, 6)) %3 = flip(%2, 0) return %3 }", ""},
    // What is computed again stays apart from the first time.
    {"", "f32",
     "(%0: T[2,6]) { %1 = exp(%0) %2 = view_after(%1, [%0]) %3 = flip(%2, 0) %4 = flip(%1, 0) return %3, %4 }", ""},
    {"transpose_of_transpose", "f32",
     "(%0: T[2,3,4]) { %1 = transpose(%0, (2, 0, 1)) %2 = swapaxes(%1, 0, -1) %3 = flip(%2, 0) return %3 }",
     "(%0: T[2,3,4]) { %1 = transpose(%0, (1, 0, 2)) %2 = flip(%1, 0) return %2 }"},
    {"clone_of_temporary", "f32", "(%0: T[2,5]) { %1 = clone(%0) %2 = flip(%1, 0) return %2 }",
     "(%0: T[2,5]) { %1 = flip(%0, 0) return %1 }"},
    {"", "f32", "(%0: T[2,5], %1: T[2,5]) { %2 = clone(%0) %3 = copy_(%2, %1) return %0, %3 }", ""},
    {"concat_of_one", "f32", "(%0: T[2,5]) { %1 = concat([%0]) %2 = flip(%1, 0) return %2 }",
     "(%0: T[2,5]) { %1 = flip(%0, 0) return %1 }"},
    {"gradients_of_parts", "f32 f64 f16 bf16",
     R"((%0: T[1,5], %1: T[5], %2: T[2,5]) {
       %3 = as_strided_grad(%2, (4, 5), (2, 5), (5, 1), 10)
       %4 = as_strided_grad(%1, (4, 5), (5), (1), 0)
       %5 = as_strided_grad(%0, (4, 5), (1, 5), (5, 1), 5)
       %6 = add(%3, %4) %7 = add(%6, %5) return %7 })",
     R"((%0: T[1,5], %1: T[5], %2: T[2,5]) {
       %3 = reshape(%1, (1, 5)) %4 = concat([%3, %0, %2], 0) %5 = add(%4, 0.0) return %5 })"},
    {"", "f32",  // not side by side
     R"((%0: T[2,5], %1: T[2,5]) {
       %2 = as_strided_grad(%0, (3, 5), (2, 5), (5, 1), 0) %3 = as_strided_grad(%1, (3, 5), (2, 5), (5, 1), 5)
       %4 = add(%2, %3) return %4 })",
     ""},
    {"if_known", "f32",
     R"((%0: T[3], %1: T[3]) {
       %2 = ones((), Bool) %3 = if(%2, then, orelse, [%0, %1])
         graph then(%0: T[3], %1: T[3]) { %2 = add(%0, %1) return %2 }
         graph orelse(%0: T[3], %1: T[3]) { %2 = sub(%0, %1) return %2 }
       return %3 })",
     "(%0: T[3], %1: T[3]) { %2 = add(%0, %1) return %2 }"},
    {"while_never", "f32",
     R"((%0: T[3]) {
       %1 = while(condition, body, [%0], [])
         graph condition(%0: T[3]) { %1 = zeros((), Bool) return %1 }
         graph body(%0: T[3]) { %1 = exp(%0) return %1 }
       %2 = flip(%1, 0) return %2 })",
     "(%0: T[3]) { %1 = flip(%0, 0) return %1 }"},
    // Sizes that are symbols: what is certain of them suffices, and nothing more is assumed.
    {"times_one", "f32", "(%0: T[s0,5]) sizes(s0=2) { %1 = mul(%0, 1) %2 = flip(%1, 0) return %2 }",
     "(%0: T[s0,5]) sizes(s0=2) { %1 = flip(%0, 0) return %1 }"},
    {"view_of_view", "f32",
     R"((%0: T[s0,6]) sizes(s0=2) {
       %1 = reshape(%0, (s0, 2, 3)) %2 = reshape(%1, (s0*2, 3)) %3 = reshape(%2, (s0, 6)) %4 = flip(%3, 0) return %4 })",
     "(%0: T[s0,6]) sizes(s0=2) { %1 = flip(%0, 0) return %1 }"},
    {"gradients_of_parts", "f32",
     R"((%0: T[1,s0], %1: T[1,s0]) sizes(s0=5) {
       %2 = as_strided_grad(%1, (2, s0), (1, s0), (s0, 1), s0) %3 = as_strided_grad(%0, (2, s0), (1, s0), (s0, 1), 0)
       %4 = add(%2, %3) return %4 })",
     R"((%0: T[1,s0], %1: T[1,s0]) sizes(s0=5) { %2 = concat([%0, %1], 0) %3 = add(%2, 0.0) return %3 })"},
    {"", "f32", "(%0: T[s0], %1: T[s1]) sizes(s0=5, s1=5) { %2 = reshape(%0, (5)) %3 = flip(%2, 0) return %3 }", ""},
    // Within branches and loop bodies.
    {"times_one", "f32",
     R"((%0: T[3], %1: bool[]) {
       %2 = if(%1, then, orelse, [%0])
         graph then(%0: T[3]) { %1 = mul(%0, 1) %2 = exp(%1) return %2 }
         graph orelse(%0: T[3]) { return %0 }
       return %2 })",
     R"((%0: T[3], %1: bool[]) {
       %2 = if(%1, then, orelse, [%0])
         graph then(%0: T[3]) { %1 = exp(%0) return %1 }
         graph orelse(%0: T[3]) { return %0 }
       return %2 })"},
};

TEST(Rules, FromTextToTextWithTheSameBits) {
  for (const Case& example : cases) {
    for (const std::string_view dtype : split_text(example.dtypes, ' ')) {
      const std::string before = "graph f" + with_dtype(example.before, dtype);
      SCOPED_TRACE(std::string(example.rule) + ": " + before);
      const Ref<Graph> graph = parse(before), original = parse(before);
      RuleCounts counts;
      simplify(*graph, &execute, &counts);
      verify(*graph);
      const std::string_view after = example.rule.empty() ? example.before : example.after;
      EXPECT_EQ(print(*graph), print(*parse("graph f" + with_dtype(after, dtype))));
      if (example.rule.empty()) EXPECT_TRUE(counts.empty()) << counts.begin()->first;
      else EXPECT_GT(counts[example.rule], 0);
      expect_same_results(graph, original);
    }
  }
}

TEST(Rules, AllHaveCases) {
  std::set<std::string_view> tested;
  for (const Case& example : cases) tested.insert(example.rule);
  for (const Rule& rule : rules()) EXPECT_TRUE(tested.contains(rule.name)) << rule.name;
}

// Where gradients may still be taken, what stops them stays.
TEST(Rules, LeaveStopsOfGradientsAlone) {
  constexpr std::string_view text =
      "graph f(%0: f32[3]) { %1 = mul(%0, 1) stops_gradient %2 = reshape(%1, (3)) stops_gradient %3 = exp(%2) return "
      "%3 }";
  const Ref<Graph> graph = parse(text);
  simplify(*graph);
  EXPECT_EQ(print(*graph), print(*parse(text)));
  optimise(*graph);
  EXPECT_EQ(print(*graph), print(*parse("graph f(%0: f32[3]) { %1 = exp(%0) return %1 }")));
}

// ---- other passes ----

struct PassCase {
  std::string_view name;
  bool (*run)(Graph& graph);
  std::string_view before, after;
};
constexpr PassCase pass_cases[] = {
    {"dead nodes", remove_dead_nodes,
     R"(graph f(%0: f32[3]) captures(%1: f32[3], %2: f32[3]) {
       %3 = add(%0, %1) %4 = exp(%3) %5 = copy_(%2, %0) return %0 })",
     "graph f(%0: f32[3]) captures(%1: f32[3]) { %2 = copy_(%1, %0) return %0 }"},
    {"equal nodes", share_equal_nodes,
     "graph f(%0: f32[3]) { %1 = add(%0, 1) %2 = add(%0, 1) %3 = add(%0, 1.0) %4 = mul(%1, %2) return %4, %3 }",
     "graph f(%0: f32[3]) { %1 = add(%0, 1) %2 = add(%0, 1.0) %3 = mul(%1, %1) return %3, %2 }"},
    {"equal nodes around a write", share_equal_nodes,
     "graph f(%0: f32[3]) { %1 = exp(%0) %2 = copy_(%0, %1) %3 = exp(%0) %4 = add(%1, %3) return %4, %2 }", ""},
    {"equal random numbers", share_equal_nodes, "graph f() { %0 = next_rng() %1 = next_rng() return %0, %1 }", ""},
    {"constants", [](Graph& graph) { return fold_constants(graph, &execute) != 0; },
     R"(graph f(%0: f32[4]) {
       %1 = arange_from(0, 4, 1, Float32) %2 = mul(%1, 0.5) %3 = sin(%2) %4 = add(%0, %3) return %4 })",
     "graph f(%0: f32[4]) captures(%1: f32[4]) { %2 = add(%0, %1) return %2 }"},
    {"constants that leave, are written, large, random or filled",
     [](Graph& graph) { return fold_constants(graph, &execute) != 0; },
     R"(graph f(%0: f32[4]) {
       %1 = arange_from(0, 4, 1, Float32) %2 = reshape(%1, (2, 2))
       %3 = arange_from(0, 4, 1, Float32) %4 = copy_(%3, %0)
       %5 = arange_from(0, 100000, 1, Float32) %6 = sum(%5) %7 = add(%0, %6)
       %8 = next_rng()
       %9 = zeros((4), Float32) %10 = mul(%0, %9)
       return %2, %4, %7, %8, %10 })",
     ""},
};

TEST(Passes, FromTextToText) {
  for (const PassCase& example : pass_cases) {
    SCOPED_TRACE(example.name);
    const Ref<Graph> graph = parse(example.before);
    EXPECT_EQ(example.run(*graph), !example.after.empty());
    remove_dead_nodes(*graph);
    verify(*graph);
    EXPECT_EQ(print(*graph), print(*parse(example.after.empty() ? example.before : example.after)));
  }
}

TEST(Passes, ConstantsHaveTheSameBits) {
  constexpr std::string_view text = R"(graph f(%0: f32[4]) {
    %1 = arange_from(0, 4, 1, Float32) %2 = mul(%1, 0.3) %3 = sin(%2) %4 = eye(4, 4, Float32)
    %5 = matrix_product(%4, %4) %6 = sum(%5, (0)) %7 = mul(%3, %6) %8 = add(%0, %7) return %8 })";
  const Ref<Graph> graph = parse(text);
  optimise(*graph, &execute);
  EXPECT_EQ(print(*graph), print(*parse("graph f(%0: f32[4]) captures(%1: f32[4]) { %2 = add(%0, %1) return %2 }")));
  expect_same_results(graph, parse(text));
}

}  // namespace
}  // namespace morel::testing
