// The order of nodes: updates run as soon as they can, cheap values are computed again; results stay the same bits.
#include "morel/transform/schedule.h"

#include "morel/runtime/executor.h"
#include "morel/transform/graph_builder.h"
#include "ops_support.h"

namespace morel::testing {
namespace {

constexpr int64_t side = 512;

Tensor weight(uint64_t seed) { return sample({side, side}, DType::Float32, seed); }

// Two layers, their gradients and one step of SGD, as a gradient function writes it: all gradients, then the update.
Ref<Graph> two_layers(const Tensor& w1, const Tensor& w2) {
  auto graph = make_ref<Graph>();
  graph->name = "f";
  GraphBuilder b(graph);
  const Sym x(b, graph->add_parameter({DType::Float32, {side, side}}));
  const Sym p1(b, b.capture(w1)), p2(b, b.capture(w2));
  const Sym y = b("matmul", x, p1), z = b("matmul", y, p2);
  const Sym g2 = b("matmul", b("swapaxes", y, 0, 1), z);
  const Sym gy = b("matmul", z, b("swapaxes", p2, 0, 1));
  const Sym g1 = b("matmul", b("swapaxes", x, 0, 1), gy);
  const Value args[] = {Value(Value::List{p1.value(), p2.value()}), Value(Value::List{g1.value(), g2.value()}),
                        Value(Value::List{}), 1e-3};
  b.emit(find_op("sgd_"), args);
  graph->results.push_back(b("sum", z, nullptr, false).value());
  verify(*graph);
  return graph;
}

size_t position_of(const Graph& graph, const Node* node) {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].get() == node) return i;
  return graph.nodes.size();
}

TEST(Schedule, UpdatesRunWhenTheirGradientIsThere) {
  const Tensor w1 = weight(1), w2 = weight(2), v1 = weight(1), v2 = weight(2);
  const auto plain = two_layers(w1, w2), scheduled = two_layers(v1, v2);
  ASSERT_TRUE(schedule_updates(*scheduled));
  verify(*scheduled);
  std::vector<const Node*> updates;
  for (const Ref<Node>& node : scheduled->nodes)
    if (node->op->name == "sgd_") updates.push_back(node.get());
  ASSERT_EQ(updates.size(), 2u);
  // The second layer's comes first: behind the last reader of its Parameter, in front of the other gradient.
  const Node* capture2 = scheduled->captures[1].get();
  EXPECT_EQ(node_of(updates[0]->args[0].list()[0]), capture2);
  const size_t update = position_of(*scheduled, updates[0]);
  for (size_t i = update + 1; i < scheduled->nodes.size(); ++i)
    for_each_input(*scheduled->nodes[i], [&](const Value& input) { EXPECT_NE(node_of(input), capture2); });
  EXPECT_LT(update, position_of(*scheduled, node_of(updates[1]->args[1].list()[0])));

  const Executor first(plain), second(scheduled);
  EXPECT_LT(second.memory_use().lower_bound, first.memory_use().lower_bound);
  const Value given[] = {weight(3)};
  for (int step = 0; step < 2; ++step)
    EXPECT_EQ(elements(first.run(given)[0].tensor()), elements(second.run(given)[0].tensor()));
  EXPECT_EQ(elements(w1), elements(v1));
  EXPECT_EQ(elements(w2), elements(v2));
}

// A value that is read early and late, with much memory in use in between; `change` may write to what it is made of.
template <class F>
Ref<Graph> early_and_late(const Tensor& scale, F&& change) {
  auto graph = make_ref<Graph>();
  graph->name = "f";
  GraphBuilder b(graph);
  const Sym x(b, graph->add_parameter({DType::Float32, {side, side}}));
  const Sym y = b("mul", x, Sym(b, b.capture(scale)));
  const Sym wide = b("concat", Value(Value::List{y.value(), x.value(), x.value(), x.value()}), 1);
  change(b);
  Sym wider = wide;
  for (int i = 0; i < 10; ++i) wider = b("cumsum", wider, 1);
  const Sym sum = b("sum", wider, nullptr, false);
  graph->results = {b("sum", b("matmul", y, y), nullptr, false).value(), sum.value()};
  verify(*graph);
  return graph;
}

TEST(Schedule, CheapValuesAreComputedAgain) {
  const Tensor scale = weight(4);
  const auto plain = early_and_late(scale, [](GraphBuilder&) {}), lower = early_and_late(scale, [](GraphBuilder&) {});
  ASSERT_TRUE(recompute_cheap(*lower));
  verify(*lower);
  EXPECT_EQ(lower->nodes.size(), plain->nodes.size() + 1);
  const Executor first(plain), second(lower);
  EXPECT_LT(second.memory_use().lower_bound, first.memory_use().lower_bound);
  const Value given[] = {weight(5)};
  const Values wanted = first.run(given), found = second.run(given);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(elements(found[i].tensor()), elements(wanted[i].tensor()));
}

TEST(Schedule, NothingIsComputedAgainFromWhatHasChanged) {
  const Tensor scale = weight(4);
  const auto graph = early_and_late(scale, [&](GraphBuilder& b) {
    const Value args[] = {b.capture(scale), b.capture(weight(6))};
    b.emit(find_op("copy_"), args);
  });
  EXPECT_FALSE(recompute_cheap(*graph));
}

}  // namespace
}  // namespace morel::testing
