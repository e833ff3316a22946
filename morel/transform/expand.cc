#include "morel/transform/expand.h"

#include <unordered_set>

#include "morel/transform/graph_builder.h"
#include "morel/transform/rewrite.h"

namespace morel {

bool expand(Graph& graph) {
  bool changed = false;
  std::unordered_set<const Node*> read;  // by elementwise operators
  for (const Ref<Node>& node : graph.nodes) {
    if (node->op->is_elementwise()) for_each_input(*node, [&](const Value& input) { read.insert(node_of(input)); });
    if (node->op->control != Control::Fused) for_each_body(*node, [&](Graph& body) { changed |= expand(body); });
  }
  GraphBuilder builder{Ref<Graph>(&graph)};
  const auto write_out = [&](const Node& node) {
    Values out;
    if (!node.op->has(kCheap) || !node.op->compose || !read.contains(&node)) return out;
    builder.set_place(node.place);
    for (const Sym& result : node.op->compose(Call(builder, *node.op, {node.args.data(), node.args.size()})))
      out.push_back(result.value());
    return out;
  };
  return rewrite(graph, write_out) || changed;
}

}  // namespace morel
