// The order of nodes: updates run as soon as they can; results stay the same bits.
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

}  // namespace
}  // namespace morel::testing
