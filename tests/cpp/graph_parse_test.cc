// The text form of graphs reads back as itself; what is no graph is refused with the place, whatever the text is.
#include <algorithm>
#include <limits>
#include <random>

#include "morel/ir/parse.h"
#include "morel/runtime/executor.h"
#include "morel/transform/graph_builder.h"
#include "ops_support.h"

namespace morel::testing {
namespace {

constexpr std::string_view control_flow = R"(graph f(%0: f32[3], %1: bool[]) captures(%2: f32[3], %3: i64[2]) {
  %4: f32[3] = add(%0, 1.0)  # model.py:41
  %5: f32[3], i64[] = if(%1, then, orelse, [%4, %2])
    graph then(%0: f32[3], %1: f32[3]) {
      %2: i64[] = full((), 3, Int64)  # model.py:43
      return %0, %2
    }
    graph orelse(%0: f32[3], %1: f32[3]) {
      %2: i64[] = full((), -3, Int64)
      return %1, %2
    }
  %6: i64[], i64[] = while('<lambda>', body, [%5.1], [])
    graph '<lambda>'(%0: i64[]) {
      %1: bool[] = less(%0, 10)
      return %1
    }
    graph body(%0: i64[]) {
      %1: i64[] = add(%0, 1)
      return %1
    }
  %7: f32[3] = fused(loop, [%5.0, %2])
    graph loop(%0: f32[3], %1: f32[3]) {
      %2: f32[3] = mul(%0, %1)
      %3: f32[3] = tanh(%2)
      return %3
    }
  return %7, %6.0
}
)";

TEST(GraphText, ControlFlowReadsBack) { EXPECT_EQ(print(*parse(control_flow)), control_flow); }

TEST(GraphText, EveryKindOfValueReadsBack) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  auto graph = make_ref<Graph>();
  graph->name = "f";
  GraphBuilder builder(graph);
  const Sym x(builder, graph->add_parameter({DType::Float32, {2, 3}}));
  builder.set_place("a file.py:3");
  for (const double number : {0.1, 1.0, -0.0, 1e300, 5e-324, 1.0 / 3, inf, -inf, nan, -nan})
    graph->results.push_back(builder("add", x, number).value());
  for (const int64_t number : {int64_t{0}, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()})
    graph->results.push_back(builder("add", x, number).value());
  builder.set_place("");
  builder.set_stops_gradient(true);
  graph->results.push_back(builder("mul", x, std::complex<double>(-0.0, inf)).value());
  graph->results.push_back(builder("mul", x, true).value());
  graph->results.push_back(builder("cast", x, DType::BFloat16).value());
  graph->results.push_back(builder("concat", Syms{x, x}, 1).value());
  graph->results.push_back(builder("sum", x, Ints{0, 1}, false, DType::Float64).value());
  graph->results.push_back(builder("reshape", builder("sum", x), Ints{}).value());
  const std::string text = print(*graph);
  EXPECT_NE(text.find("add(%0, -0.0)  # a file.py:3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("complex(-0.0, inf)) stops_gradient\n"), std::string::npos) << text;
  const Ref<Graph> read = parse(text);
  EXPECT_EQ(print(*read), text);
  for (size_t i = 0; i < 10; ++i) {
    const double wanted = graph->nodes[i]->args[1].number(), found = read->nodes[i]->args[1].number();
    EXPECT_EQ(std::memcmp(&wanted, &found, sizeof wanted), 0) << wanted;
  }
}

TEST(GraphText, StringsAreQuoted) {
  for (const std::string text : {"same", "it's \\ \n \x01 \x7f", "", "f(%0) # x"}) {
    const Ref<Graph> graph = parse("graph " + to_string(Value(text)) + "() { return " + to_string(Value(text)) + " }");
    EXPECT_EQ(graph->name, text);
    EXPECT_EQ(graph->results[0].str(), text);
  }
}

TEST(GraphText, TypesAndDefaultsMayBeLeftOut) {
  const Ref<Graph> graph = parse(R"(# a comment
graph f(%7: f32[2,3]) {
  %8 = sum(%7)  # here
  # another comment
  return %8, [%7, 2.5]
})");
  EXPECT_EQ(print(*graph), R"(graph f(%0: f32[2,3]) {
  %1: f32[] = sum(%0, None, False, None)  # here
  return %1, [%0, 2.5]
}
)");
}

TEST(GraphText, CapturesComeFromASource) {
  constexpr std::string_view text = "graph f(%0: f32[3]) captures(%1: f32[3]) { %2 = mul(%0, %1) return %2 }";
  const Tensor weight = tensor({3}, {1, 2, 3});
  const Ref<Graph> graph = parse(text, [&](size_t, const Type&) { return weight; });
  const Value arguments[] = {tensor({3}, {4, 5, 6})};
  EXPECT_EQ(elements(Executor(graph).run(arguments)[0].tensor()), (std::vector<double>{4, 10, 18}));
  EXPECT_THROW(Executor(parse(text)), Error);
  EXPECT_THROW(parse(text, [&](size_t, const Type&) { return tensor({2}, {1, 2}); }), Error);
}

struct Wrong {
  std::string_view text, message;
};

TEST(GraphText, ErrorsNameThePlace) {
  constexpr Wrong table[] = {
      {"", "line 1, column 1: expected 'graph' but found the end"},
      {"graph f(%0: f32[2]) {\n  %1 = nonsense(%0)\n return }", "line 2, column 8: there is no operator 'nonsense'"},
      {"graph f() {\n  %1 = add(%0, 1)\n return }", "line 2, column 12: %0 is not defined before"},
      {"graph f(%0: f32[2], %0: f32[2]) { return }", "line 1, column 21: %0 is defined twice"},
      {"graph f(%0: f33[2]) { return }", "line 1, column 13: expected a type but found 'f33'"},
      {"graph f(%0: f32[2) { return }", "line 1, column 18: expected ']' but found ')'"},
      {"graph f(%0: f32[9999999,9999999,9999999]) { return }", "the tensor is too large"},
      {"graph f() { return 'x }", "line 1, column 20: the string does not end"},
      {"graph f() { return 99999999999999999999 }", "line 1, column 20: '99999999999999999999' is no number that fits"},
      {"graph f() { return (1, 2.0) }", "integers and floats are mixed"},
      {"graph f() { return foo }", "line 1, column 20: expected a value but found 'foo'"},
      {"graph f() { return 1 } x", "expected the end of the text but found 'x'"},
      {"graph f(%0: f32[2]) {\n  %1: f32[3] = add(%0, 1)\n return }",
       "line 2, column 3: For 'Add', the result is f32[2], but f32[3] is written"},
      {"graph f(%0: f32[2], %1: f32[3]) {\n  %2 = matmul(%0, %1)\n return }",
       "For 'Matmul', a graph holds the operators that it is composed of"},
      {"graph f(%0: f32[2], %1: f32[3]) {\n  %2 = add(%0, %1)\n return }", "line 2, column 3: For 'Add', the shapes"},
      {"graph f(%0: f32[2]) {\n  %1 = add(%0)\n return }", "For 'Add', the argument 'other' is missing"},
      {"graph f(%0: f32[2]) {\n  %1 = reshape(%0, 1.5)\n return }", "must be int[], but got 1.5"},
      {"graph f(%0: f32[2]) {\n  %1 = sin(%0)\n return %1.1 }", "%1.1 does not exist: there are 1 outputs"},
      {"graph f(%0: f32[2]) {\n  %1 = fused(loop, [%0])\n graph other(%0: f32[2]) { return %0 }\n return %1 }",
       "line 3, column 2: expected graph loop but found graph other"},
      {"graph f(%0: f32[2]) {\n  %1: f32[2] = call(@g, [%0])\n return %1 }", "the function g is called but not there"},
      {"graph f(%0: f32[2]) {\n  %1: f32[3] = call(@g, [%0])\n return %1 }\ngraph @g(%0: f32[2]) { return %0 }",
       "the results are not of the types that a call says"},
      {"graph f(%0: f32[2]) {\n  %1: f32[2] = fused(@g, [%0])\n return %1 }", "must be a graph of its own"},
  };
  for (const Wrong& wrong : table) {
    try {
      parse(wrong.text);
      ADD_FAILURE() << wrong.text;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find(wrong.message), std::string::npos) << error.message();
    }
  }
  std::string deep = "graph f() { return ";
  EXPECT_THROW(parse(deep + std::string(100000, '[')), Error);
  for (int i = 0; i < 1000; ++i) deep = "graph f() { %0 = fused(f, [])\n" + deep;
  EXPECT_THROW(parse(deep), Error);
}

// Bytes changed, removed, repeated and moved: nothing but an Error may come of it.
TEST(GraphText, MutationsAreReadOrRefused) {
  std::mt19937 random(1);
  const auto below = [&](size_t count) { return count ? random() % count : 0; };
  constexpr std::string_view pieces[] = {
      "%",    "(",   ")",  "[",     "]",  "9999999999999", "-1",  "nan", "'",  "\\x",  "{", "}",  "graph",
      "None", "()",  "[[", "%0",    ".1", "i64",           "add", ": ",  "= ", "f32[", ",", "# ", "return",
      "if",   "sum", "\n", "while", "0",  "full"};
  int64_t read = 0, refused = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    std::string text(control_flow);
    for (size_t changes = 1 + below(4); changes-- > 0;) {
      const size_t at = below(text.size()), count = below(12);
      switch (below(5)) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, count); break;
        case 2: text.insert(at, pieces[below(std::size(pieces))]); break;
        case 3: text.insert(at, text.substr(below(text.size()), count)); break;
        default: text.replace(at, std::min(count, text.size() - at), pieces[below(std::size(pieces))]); break;
      }
    }
    try {
      const Ref<Graph> graph = parse(text);
      EXPECT_EQ(print(*parse(print(*graph))), print(*graph));
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace morel::testing
