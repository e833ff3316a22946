// Effects: what nodes do beside giving results, in themselves and in their branches; passes keep it, and its order.
#include "morel/transform/effects.h"

#include "morel/kernels/output.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/executor.h"
#include "morel/transform/passes.h"
#include "morel/transform/replay.h"
#include "morel/transform/simplify.h"
#include "ops_support.h"

namespace morel::testing {
namespace {

Ref<Graph> named(const char* name) {
  auto graph = make_ref<Graph>();
  graph->name = name;
  return graph;
}

// A branch with one parameter, of which `body` makes what it likes.
template <class F>
Value branch(const Type& type, F&& body) {
  auto graph = named("branch");
  GraphBuilder builder(graph);
  body(builder, Sym(builder, graph->add_parameter(type)));
  return Value::of_graph(graph);
}

void say(Builder& b, const char* text) { b("print_", Value(Value::List{}), text); }
void add_one(Builder& b, const Sym& x) { b("copy_", x, b("add", x, 1)); }
void nothing(Builder&, const Sym&) {}

const Graph& graph_of(const Value& value) { return *static_cast<const Graph*>(value.graph()); }

TEST(Effects, AreFoundInBranches) {
  const Type type{DType::Float32, {2}};
  const auto effects = [&](auto body) { return effects_of(graph_of(branch(type, body))); };
  EXPECT_FALSE(effects(nothing).any());
  EXPECT_TRUE(effects(add_one).writes);
  EXPECT_FALSE(effects([](Builder& b, const Sym& x) { add_one(b, b("clone", x)); }).any());  // its own memory
  EXPECT_TRUE(effects([](Builder& b, const Sym&) { say(b, "x"); }).talks);
  EXPECT_TRUE(effects([](Builder& b, const Sym& x) { b("dropout", x); }).draws);
  const Effects nested = effects([&](Builder& b, const Sym& x) {
    const Value args[] = {b("full", Ints{}, 1, DType::Bool).value(), branch(type, add_one), branch(type, nothing),
                          Value(Value::List{x.value()})};
    b.emit(find_op("if"), args);
  });
  EXPECT_TRUE(nested.writes);
  EXPECT_FALSE(nested.draws || nested.talks);
}

// What was read before a branch changes it must not be read after it.
TEST(Effects, WhatBranchesChangeIsNotReadLater) {
  const Tensor state = Tensor::full(Shape{2}, DType::Float32, 3);
  const auto graph = named("f");
  GraphBuilder b(graph);
  const Sym condition(b, graph->add_parameter({DType::Bool, {}}));
  const Sym p(b, b.capture(state)), before = b("clone", p);
  const Value args[] = {condition.value(), branch(type_of(p.value()), add_one), branch(type_of(p.value()), nothing),
                        Value(Value::List{p.value()})};
  b.emit(find_op("if"), args);
  graph->results = {b("mul", before, 2).value(), b("mul", p, 2).value()};
  verify(*graph);
  optimise(*graph, &execute);
  const Value given[] = {Tensor::full(Shape{}, DType::Bool, true)};
  const Values results = Executor(graph).run(given);
  EXPECT_EQ(elements(results[0].tensor()), std::vector<double>({6, 6}));
  EXPECT_EQ(elements(results[1].tensor()), std::vector<double>({8, 8}));
}

TEST(Effects, PrintsStayAndKeepTheirOrder) {
  static std::string printed;
  printed.clear();
  const auto keep = [](const std::string& format, std::span<const Value>) { printed += format; };
  const Output before = set_output({.print = keep, .raise = nullptr});
  const auto graph = named("f");
  GraphBuilder b(graph);
  const Type type{DType::Float32, {2}};
  const Sym x(b, graph->add_parameter(type));
  say(b, "a");
  say(b, "a");
  const Value args[] = {b("greater", b("sum", x, nullptr, false), 0).value(),
                        branch(type, [](Builder& inner, const Sym&) { say(inner, "yes"); }),
                        branch(type, [](Builder& inner, const Sym&) { say(inner, "no"); }),
                        Value(Value::List{x.value()})};
  b.emit(find_op("if"), args);
  say(b, "b");
  graph->results = {b("exp", x).value()};
  verify(*graph);
  EXPECT_EQ(without_effects(*graph)->nodes.size(), 4u);  // the `if` with empty branches, and what is computed
  optimise(*graph, &execute);
  const Executor executor(graph);
  const Value yes[] = {Tensor::full(Shape{2}, DType::Float32, 1)}, no[] = {Tensor::full(Shape{2}, DType::Float32, -1)};
  executor.run(yes);
  executor.run(no);
  set_output(before);
  EXPECT_EQ(printed, "aayesbaanob");
}

TEST(Effects, RaisesInCppWithItsText) {
  const auto graph = named("f");
  GraphBuilder b(graph);
  const Sym x(b, graph->add_parameter({DType::Float32, {2}}));
  const Value args[] = {Value(Value::List{x.value()}), "bad {}", "ValueError"};
  b.emit(find_op("raise_"), args);
  optimise(*graph, &execute);
  const Executor executor(graph);
  const Value given[] = {Tensor::full(Shape{2}, DType::Float32, 1)};
  try {
    executor.run(given);
    FAIL() << "nothing was raised";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Runtime);
    EXPECT_NE(error.message().find("ValueError: bad "), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("[1, 1]"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace morel::testing
