// Control flow: operators whose arguments are graphs. The executor runs them (runtime/executor.h).
#include "morel/ir/graph.h"
#include "morel/ops/registry.h"

namespace morel {
namespace {

Graph& graph_argument(const ArgView& call, std::string_view name) {
  return *static_cast<Graph*>(call.value(name).graph());
}

Types result_types(const Graph& graph) {
  Types out;
  for (const Value& result : graph.results) out.push_back(type_of(result));
  return out;
}

void check_parameters(const ArgView& call, const Graph& graph, const Value::List& operands) {
  MOREL_CHECK(graph.parameters.size() == operands.size(), Internal, "internal error: graph ", graph.name, " takes ",
              graph.parameters.size(), " operands but ", call.op().name, " has ", operands.size());
}

Types infer_if(const ArgView& call) {
  const Graph &then = graph_argument(call, "then"), &orelse = graph_argument(call, "orelse");
  for (const Graph* graph : {&then, &orelse}) check_parameters(call, *graph, call.value("operands").list());
  Types types = result_types(then);
  MOREL_CHECK(types == result_types(orelse), Internal, "internal error: the branches of 'if' have different types");
  return types;
}

Types infer_while(const ArgView& call) {
  const Value::List& state = call.value("state").list();
  const Graph& body = graph_argument(call, "body");
  Types types = result_types(body);
  MOREL_CHECK(types.size() == state.size(), Internal, "internal error: the body of 'while' gives ", types.size(),
              " values for ", state.size());
  for (size_t i = 0; i < types.size(); ++i)
    MOREL_CHECK(types[i] == type_of(state[i]), Internal, "internal error: the body of 'while' changes a type");
  return types;
}

Types infer_fused(const ArgView& call) {
  const Graph& body = graph_argument(call, "body");
  check_parameters(call, body, call.value("operands").list());
  return result_types(body);
}

}  // namespace

void register_control(Registry& registry) {
  Family add(registry, "control");
  add({.name = "if",
       .args = "condition: Tensor, then: graph, orelse: graph, operands: Tensor[]",
       .doc = "Results of then(*operands) where condition is true, else of orelse(*operands).",
       .infer = infer_if,
       .control = Control::If,
       .flags = kHidden});
  add({.name = "while",
       .args = "condition: graph, body: graph, state: Tensor[], operands: Tensor[]",
       .doc = "While condition(*state, *operands) is true: state = body(*state, *operands); the last state. Where its "
              "gradient is wanted the node has one more output, the states before every turn.",
       .infer = infer_while,
       .control = Control::While,
       .flags = kHidden});
  add({.name = "while_grad",
       .args = "body: graph, states: Tensor, operands: Tensor[], douts: Tensor[]",
       .doc = "The turns of a while backwards: body(*state, *operands, *douts) gives the next douts and what is added "
              "to the "
              "gradients of the operands.",
       .infer = [](const ArgView& call) -> Types { return result_types(graph_argument(call, "body")); },
       .control = Control::WhileGrad,
       .flags = kHidden});
  add({.name = "fused",
       .args = "body: graph, operands: Tensor[]",
       .doc = "Results of body(*operands), whose nodes are elementwise operators over one shape: one loop.",
       .infer = infer_fused,
       .control = Control::Fused,
       .flags = kNoGrad | kHidden});
}

}  // namespace morel
