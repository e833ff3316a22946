// Graphs: text, verifier, passes from text to text, gradients, the executor against eager calls.
#include "morel/ir/graph.h"

#include "morel/ir/parse.h"
#include "morel/runtime/executor.h"
#include "morel/transform/fuse.h"
#include "morel/transform/fused.h"
#include "morel/transform/grad.h"
#include "morel/transform/passes.h"
#include "morel/transform/simplify.h"
#include "ops_support.h"

namespace morel::testing {
namespace {

// A graph f(x: f32[2,3], y: f32[3]) made by `body`, which returns the results.
template <class F>
Ref<Graph> make(F&& body) {
  auto graph = make_ref<Graph>();
  graph->name = "f";
  GraphBuilder builder(graph);
  const Sym x(builder, graph->add_parameter({DType::Float32, {2, 3}}));
  const Sym y(builder, graph->add_parameter({DType::Float32, {3}}));
  for (const Sym& result : Syms(body(builder, x, y))) graph->results.push_back(result.value());
  verify(*graph);
  return graph;
}

Tensor x_value() { return sample({2, 3}); }
Tensor y_value() { return sample({3}); }

std::vector<double> numbers(const Value& value) {
  const Tensor tensor = convert(contiguous(value.tensor()), DType::Float64);
  return {tensor.as<double>(), tensor.as<double>() + tensor.size()};
}

void expect_results(const Ref<Graph>& graph, std::initializer_list<Tensor> wanted) {
  const Value arguments[] = {x_value(), y_value()};
  const Values found = Executor(graph).run(arguments);
  ASSERT_EQ(found.size(), wanted.size());
  size_t i = 0;
  for (const Tensor& tensor : wanted) EXPECT_EQ(numbers(found[i++]), numbers(tensor));
}

TEST(Graph, Text) {
  const auto graph = make([](Builder& b, const Sym& x, const Sym& y) -> Syms {
    const Sym z = x * y + 1.5;
    return {z, b("sum", z, Ints{1}, true)};
  });
  EXPECT_EQ(print(*graph), R"(graph f(%0: f32[2,3], %1: f32[3]) {
  %2: f32[2,3] = mul(%0, %1)
  %3: f32[2,3] = add(%2, 1.5)
  %4: f32[2,1] = sum(%3, (1), True, None)
  return %3, %4
}
)");
  const Tensor z = one("add", {one("mul", {x_value(), y_value()}), 1.5});
  expect_results(graph, {z, one("sum", {z, Ints{1}, true})});
}

TEST(Graph, ErrorsOfTypesAreFoundWhileItIsBuilt) {
  EXPECT_THROW(make([](Builder& b, const Sym& x, const Sym& y) -> Syms { return {b("matmul", y, x)}; }), Error);
  EXPECT_THROW(make([](Builder& b, const Sym& x, const Sym&) -> Syms { return {b("reshape", x, Ints{5})}; }), Error);
}

TEST(Graph, VerifierFindsForeignValues) {
  const auto other = make([](Builder&, const Sym& x, const Sym&) -> Syms { return {x}; });
  const auto graph = make([](Builder&, const Sym& x, const Sym& y) -> Syms { return {x + y}; });
  graph->nodes[0]->args[1] = other->parameters[0]->output();
  EXPECT_THROW(verify(*graph), Error);
}

TEST(Graph, CapturedTensorsAreReadAtEveryRun) {
  const Tensor weight = Tensor::full({3}, DType::Float32, 2);
  const auto graph = make([&](Builder& b, const Sym& x, const Sym&) -> Syms { return {b("mul", x, weight)}; });
  EXPECT_EQ(graph->captures.size(), 1u);
  expect_results(graph, {one("mul", {x_value(), weight})});
  call("fill_", {weight, 3.0});
  expect_results(graph, {one("mul", {x_value(), 3.0})});
}

TEST(Graph, LongChainsAreFreed) {
  make([](Builder&, const Sym& x, const Sym&) -> Syms {
    Sym z = x;
    for (int i = 0; i < 200000; ++i) z = z + 1.0;
    return {z};
  });
}

TEST(Passes, Simplify) {
  const auto graph = make([](Builder& b, const Sym& x, const Sym& y) -> Syms {
    const Sym unused = b("exp", x);
    const Sym same = b("reshape", x, Ints{2, 3});
    return {b("sin", same) + y, b("sin", x) + y, b("cast", x, DType::Float32)};
  });
  simplify(*graph);
  EXPECT_EQ(print(*graph), R"(graph f(%0: f32[2,3], %1: f32[3]) {
  %2: f32[2,3] = sin(%0)
  %3: f32[2,3] = add(%2, %1)
  return %3, %3, %0
}
)");
}

TEST(Passes, RandomNumbersAndEffectsStay) {
  const Tensor state = Tensor::full({3}, DType::Float32, 1);
  const auto graph = make([&](Builder& b, const Sym& x, const Sym& y) -> Syms {
    const Sym before = b("mul", x, state);
    b("copy_", state, y);
    const Sym a = b("dropout", x, 0.5, true), c = b("dropout", x, 0.5, true);
    return {before, b("mul", x, state), a, c};
  });
  simplify(*graph);
  fuse(*graph);
  const Value arguments[] = {x_value(), y_value()};
  const Values found = Executor(graph).run(arguments);
  EXPECT_EQ(numbers(found[0]), numbers(x_value()));
  EXPECT_EQ(numbers(found[1]), numbers(one("mul", {x_value(), y_value()})));
  EXPECT_EQ(numbers(state), numbers(y_value()));
}

TEST(Passes, Fuse) {
  const auto graph = make([](Builder& b, const Sym& x, const Sym& y) -> Syms {
    const Sym z = b("tanh", x * y);
    const Sym total = b("sum", z, Ints{1}, true);
    return {z * total - 1.0};
  });
  const Tensor z = one("tanh", {one("mul", {x_value(), y_value()})});
  const Tensor wanted = one("sub", {one("mul", {z, one("sum", {z, Ints{1}, true})}), 1.0});
  optimise(*graph);
  EXPECT_EQ(print(*graph), R"(graph f(%0: f32[2,3], %1: f32[3]) {
  %2: f32[2,3] = fused(loop, [%0, %1])
    graph loop(%0: f32[2,3], %1: f32[3]) {
      %2: f32[2,3] = mul(%0, %1)
      %3: f32[2,3] = tanh(%2)
      return %3
    }
  %3: f32[2,1] = sum(%2, (1), True, None)
  %4: f32[2,3] = fused(loop, [%2, %3])
    graph loop(%0: f32[2,3], %1: f32[2,1]) {
      %2: f32[2,3] = mul(%0, %1)
      %3: f32[2,3] = sub(%2, 1.0)
      return %3
    }
  return %4
}
)");
  expect_results(graph, {wanted});
  const loops::Program program = fused_program(*static_cast<Graph*>(graph->nodes[0]->args[0].graph()));
  EXPECT_EQ(program.buffers.size(), 3u);
}

TEST(Passes, GradientIsMoreNodes) {
  const auto graph = make([](Builder& b, const Sym& x, const Sym& y) -> Syms {
    const Value of[] = {(x * y).value()}, with[] = {Value()}, at[] = {x.value(), y.value()};
    const Values gradients = graph_gradients(static_cast<GraphBuilder&>(b), of, with, at);
    return {Sym(b, gradients[0]), Sym(b, gradients[1])};
  });
  simplify(*graph);
  EXPECT_EQ(print(*graph), R"(graph f(%0: f32[2,3], %1: f32[3]) {
  %2: f32[2,3] = ones((2, 3), Float32)
  %3: f32[2,3] = mul(%2, %1)
  %4: f32[3] = sum(%0, (0), False, Float32)
  return %3, %4
}
)");
}

// n! by recursion.
constexpr std::string_view factorial = R"(graph f(%0: f64[]) {
  %1: f64[] = call(@factorial, [%0])
  return %1
}
graph @factorial(%0: f64[]) {
  %1: bool[] = less(%0, 2)
  %2: f64[] = if(%1, then, orelse, [%0])
    graph then(%0: f64[]) {
      %1: f64[] = full((), 1, Float64)
      return %1
    }
    graph orelse(%0: f64[]) {
      %1: f64[] = sub(%0, 1)
      %2: f64[] = call(@factorial, [%1])
      %3: f64[] = mul(%0, %2)
      return %3
    }
  return %2
}
)";

double run_at(const Ref<Graph>& graph, double x) {
  const Value argument[] = {Tensor::full({}, DType::Float64, x)};
  return numbers(Executor(graph).run(argument)[0])[0];
}

TEST(Graph, FunctionsCallThemselves) {
  auto graph = parse(factorial);
  EXPECT_EQ(print(*graph), factorial);
  EXPECT_EQ(run_at(graph, 5), 120);
  const Ref<Graph> function = graph->functions[0];
  EXPECT_GT(function->use_count(), 2);  // also by its own call
  graph = nullptr;
  EXPECT_EQ(function->use_count(), 1);
}

TEST(Graph, GradientsOfFunctionsThatCallThemselves) {
  auto graph = parse(factorial);
  for (const double wanted : {154.0, 142.0}) {  // of x (x - 1) (x - 2) (x - 3), at 5
    GraphBuilder builder(graph);
    graph->results = graph_gradients(builder, graph->results, {}, std::vector{graph->parameters[0]->output()});
    EXPECT_EQ(run_at(graph, 5), wanted);
    EXPECT_EQ(print(*parse(print(*graph))), print(*graph));
  }
  const Ref<Graph> second = graph->functions[0]->backward->backward;
  graph = nullptr;
  EXPECT_EQ(second->use_count(), 1);
}

}  // namespace
}  // namespace morel::testing
