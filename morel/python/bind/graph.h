// A finished graph as Python holds it.
#pragma once

#include <memory>
#include <vector>

#include "morel/python/bind/bind.h"
#include "morel/runtime/executor.h"
#include "morel/runtime/graph_scope.h"

namespace morel::bind {

// What a compiled function changes in place. A tensor that comes to it in two ways would be changed in one of them
// only.
class Written {
 public:
  Written() = default;
  explicit Written(const Graph& graph);
  // Whether a written parameter is given what another one is given too.
  bool is_given_twice(std::span<const Value> given) const;
  // The places of tensors that are given and that the graph captures too, where one of the two is written.
  std::vector<size_t> captured_too(std::span<const Value> given) const;

 private:
  std::vector<size_t> parameters_;
  std::vector<Tensor> captures_, others_;  // written, and only read
};

// Of a function, or of a branch with the tensors of outside that it reads and those that it changes in place.
struct PyGraph {
  Ref<Graph> graph;
  std::vector<Tensor> imports;
  std::vector<Tensor> changed;
  std::unique_ptr<Executor> executor;
  Written written;  // of a function that is compiled
};

// The innermost graph that is being built on this thread.
GraphScope& open_scope();
void begin_scope(std::string name);
void close_scope();
// The innermost graph, finished. With changes, the values of its changed tensors follow the results.
PyGraph end_graph(const std::vector<Tensor>& results, bool with_changes = false);
Value list_of(const std::vector<Tensor>& tensors);
nb::list tensors_of(const Values& values);
// Control flow on a tensor (graph_control.cc), of finished graphs; the graphs of a loop take its state first.
Values call_if(const Tensor& condition, PyGraph& then, PyGraph& orelse);
Values call_while(PyGraph& condition, PyGraph& body, const std::vector<Tensor>& state);
void bind_graph_control(nb::module_& module);
// Whether a graph can be called with tensors of these sizes.
bool serves(const Graph& graph, const std::vector<Tensor>& parameters);

}  // namespace morel::bind
