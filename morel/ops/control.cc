// Control flow: operators whose arguments are graphs, which the executor runs (runtime/executor.h). And what a graph
// tells while it runs.
#include "morel/ir/graph.h"
#include "morel/ops/registry.h"

namespace morel {
namespace {

Graph& graph_argument(const ArgView& call, std::string_view name) {
  Graph& graph = *static_cast<Graph*>(call.value(name).graph());
  MOREL_CHECK(graph.is_function == (name == "function"), Value, "For '", call.op().name, "', '", name, "' must be ",
              name == "function" ? "a function" : "a graph of its own, no function");
  return graph;
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

Types infer_scan(const ArgView& call) {
  const Value::List &sequences = call.value("sequences").list(), &carry = call.value("carry").list();
  const Graph& body = graph_argument(call, "body");
  Value::List all(sequences);
  all.append(carry.begin(), carry.end());
  all.append(call.value("operands").list().begin(), call.value("operands").list().end());
  check_parameters(call, body, all);
  Types types = result_types(body);
  MOREL_CHECK(!sequences.empty() && types.size() >= carry.size(), Internal,
              "internal error: a scan has no sequence, or its body gives less than its carry");
  return types;
}

Types infer_call(const ArgView& call) { return graph_argument(call, "function").result_types; }

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
       .doc = "While condition(*state, *operands) is true: state = body(*state, *operands); the last state. Where a "
              "gradient wants them, it is followed by sequences: what each part of the state was before every turn.",
       .infer = infer_while,
       .control = Control::While,
       .flags = kHidden});
  add({.name = "scan",
       .args = "backwards: bool, body: graph, sequences: Tensor[], carry: Tensor[], operands: Tensor[]",
       .doc =
           "For the turns of the sequences, first to last or backwards: (*carry, *items) = body(*turn, *carry, "
           "*operands). The last carry, then a sequence of each item. Where a gradient wants them, these are followed "
           "by sequences of what each part of the carry was before every turn. The type of a sequence is that of one "
           "of its turns; only scans read it.",
       .infer = infer_scan,
       .control = Control::Scan,
       .flags = kHidden});
  add({.name = "call",
       .args = "function: graph, operands: Tensor[]",
       .doc = "Results of function(*operands), a graph that may call itself.",
       .infer = infer_call,
       .control = Control::Call,
       .flags = kHidden});
  add({.name = "fused",
       .args = "body: graph, operands: Tensor[]",
       .doc = "Results of body(*operands), whose nodes are stages of one loop over one shape.",
       .infer = infer_fused,
       .control = Control::Fused,
       .flags = kNoGrad | kHidden});
  add({.name = "print_",
       .args = "tensors: Tensor[], format: str",
       .doc = "Prints the format with the tensors, in order, where it has '{}' or '{!r}'; '{{' and '}}' are braces.",
       .infer = [](const ArgView&) { return Types(); },
       .kernel = true,
       .flags = kNoGrad | kEffect | kHidden});
  add({.name = "raise_",
       .args = "tensors: Tensor[], format: str, kind: str",
       .doc = "Raises the exception of this name with a text, whose format is as that of `print_`.",
       .infer = [](const ArgView&) { return Types(); },
       .kernel = true,
       .flags = kNoGrad | kEffect | kHidden});
}

}  // namespace morel
