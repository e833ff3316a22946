// Graph: a function in single-assignment form. Parameters and captured tensors come in, nodes follow in the order in
// which they run, results go out. A graph is an argument of control-flow operators (if, while), whose other operands it
// takes as its parameters: nothing of an enclosing graph is visible inside but through them. A function is a graph that
// `call` names, also from inside of itself.
#pragma once

#include <vector>

#include "morel/ir/builder.h"
#include "morel/tensor/symbolic.h"

namespace morel {

class Graph;

class Node final : public TypedNode {
 public:
  const Type& type(uint32_t output) const override { return types[output]; }
  Value output(uint32_t idx = 0) { return Value(Ref<RefCounted>(this), idx); }

  const OpDef* op = nullptr;    // null for parameters and captured tensors
  std::string_view name;        // of the operator
  Args args;                    // complete, in the order of the schema
  Types types;                  // of the outputs
  Graph* graph = nullptr;       // the one it belongs to
  Tensor captured;              // the tensor outside of the graph that this node stands for
  bool stops_gradient = false;  // made where no gradient is wanted
  std::string place;            // "model.py:41", the user's line
  int64_t id = 0;               // position in its graph; set by number()
};

inline Node* node_of(const Value& value) {
  return value.tag() == Value::Tag::Node ? static_cast<Node*>(value.node()) : nullptr;
}

class Graph final : public RefCounted {
 public:
  Graph() = default;
  ~Graph() override;
  std::string name;
  std::vector<Ref<Node>> parameters, captures, nodes;
  Values results;
  // Of a whole graph that serves many shapes: the sizes of its parameters are symbols of these. Graphs within it speak
  // of the same symbols.
  Ref<SymbolicSizes> sizes;

  bool is_function = false;
  Types result_types;   // of a function, which is called before its results are there
  Ref<Graph> backward;  // of a function: the function of its gradients, once they are wanted
  Ref<Graph> tangent;   // of a function: the function of its tangents, likewise
  bool is_complete() const { return !is_function || results.size() == result_types.size(); }
  // Of an outermost graph: the functions called in it and by one another. They refer to themselves, so what they hold
  // is dropped together with this graph.
  std::vector<Ref<Graph>> functions;
  void clear();

  Value add_parameter(Type type);
  Value add_capture(const Tensor& tensor);
  Node& add_node(const OpDef& op, std::string_view op_name, Args args, Types types, std::string place);
  // Gives every node its position: parameters, captures, nodes.
  void number();
};

// Calls fn(value) for every node reference among the arguments, also inside lists.
template <class F>
void for_each_input(const Value& value, F&& fn) {
  if (value.tag() == Value::Tag::Node) {
    fn(value);
  } else if (value.is_list()) {
    for (const Value& item : value.list()) for_each_input(item, fn);
  }
}
template <class F>
void for_each_input(const Node& node, F&& fn) {
  for (const Value& arg : node.args) for_each_input(arg, fn);
}
// The same value with every node reference replaced by fn(reference).
template <class F>
Value map_inputs(const Value& value, F&& fn) {
  if (value.tag() == Value::Tag::Node) return fn(value);
  if (!value.is_list()) return value;
  Value::List list;
  for (const Value& item : value.list()) list.push_back(map_inputs(item, fn));
  return Value(std::move(list));
}

// Calls fn(graph) for the branches and bodies of a node; functions that it calls are no part of it.
template <class F>
void for_each_body(const Node& node, F&& fn) {
  for (const Value& arg : node.args) {
    if (arg.tag() != Value::Tag::Graph) continue;
    if (auto* graph = static_cast<Graph*>(arg.graph()); !graph->is_function) fn(*graph);
  }
}
// Calls fn(function) for a function and those of its derivatives.
template <class F>
void for_each_derivative(Graph& function, F&& fn) {
  fn(function);
  for (const Ref<Graph>& next : {function.backward, function.tangent})
    if (next) for_each_derivative(*next, fn);
}
// Calls fn(function) for the functions of an outermost graph and those of their derivatives.
template <class F>
void for_each_function(const Graph& graph, F&& fn) {
  for (const Ref<Graph>& function : graph.functions) for_each_derivative(*function, fn);
}
// Adds a copy of the nodes of a graph without captures, called with these arguments; what its results are then.
Values append_copy(Graph& graph, const Graph& callee, std::span<const Value> arguments);

// Reads the values of a graph's symbols off the sizes of its parameters; false where a fixed size differs.
bool bind_sizes(const Graph& graph, std::span<const Value> parameters, Numbers& values);

// Text form, which ir/parse.h reads back:
//   graph f(%0: f32[2,3]) captures(%1: f32[3]) {
//     %2: f32[2,3] = add(%0, %1)  # model.py:41
//     return %2
//   }
// Functions have an @ before their names and follow the outermost graph.
// Where sizes are symbols, what they were when the graph was built, and what is assumed of them, follow the inputs:
//   graph f(%0: f32[s0,s1]) sizes(s0=2, s1=3) assuming(s1-3 == 0) {
std::string print(Graph& graph);
// Raises Internal when a node reads something that does not come before it in its own graph.
void verify(Graph& graph);

}  // namespace morel
