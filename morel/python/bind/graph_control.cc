// Control flow on tensors for Python: the finished graphs of branches and turns become operands of `if` and `while`.
#include <algorithm>
#include <optional>

#include "morel/python/bind/bind.h"
#include "morel/python/bind/graph.h"
#include "morel/transform/simplify.h"

namespace morel::bind {
namespace {

// Gives all graphs the same parameters after the first `own` ones; returns what they stand for.
std::vector<Tensor> unify_imports(std::initializer_list<PyGraph*> graphs, size_t own) {
  std::vector<Tensor> all;
  const auto place_of = [&](const Tensor& tensor) {
    for (size_t i = 0; i < all.size(); ++i)
      if (is_same(all[i]->symbol, tensor->symbol)) return i;
    all.push_back(tensor);
    return all.size() - 1;
  };
  for (const PyGraph* graph : graphs)
    for (const Tensor& tensor : graph->imports) place_of(tensor);
  for (PyGraph* graph : graphs) {
    std::vector<Ref<Node>>& parameters = graph->graph->parameters;
    std::vector<Ref<Node>> ordered(parameters.begin(), parameters.begin() + static_cast<int64_t>(own));
    ordered.resize(own + all.size());
    for (size_t i = 0; i < graph->imports.size(); ++i) ordered[own + place_of(graph->imports[i])] = parameters[own + i];
    for (size_t i = 0; i < all.size(); ++i) {
      if (ordered[own + i]) continue;
      graph->graph->add_parameter({all[i].dtype(), all[i].shape()});
      ordered[own + i] = parameters.back();
    }
    parameters = std::move(ordered);
    simplify(*graph->graph);
  }
  return all;
}

// The parameter of a finished branch that stands for a tensor of the enclosing graph.
Value imported(PyGraph& branch, const Tensor& tensor) {
  GraphScope& outer = open_scope();
  const Tensor source = outer.tensor_of(outer.value_of(tensor));
  const size_t own = branch.graph->parameters.size() - branch.imports.size();
  for (size_t i = 0; i < branch.imports.size(); ++i)
    if (is_same(branch.imports[i]->symbol, source->symbol)) return branch.graph->parameters[own + i]->output();
  branch.imports.push_back(source);
  return branch.graph->add_parameter({tensor.dtype(), tensor.shape()});
}

// The tensors of outside that either branch changes in place.
std::vector<Tensor> changes_of(const PyGraph& then, const PyGraph& orelse) {
  std::vector<Tensor> all = then.changed;
  for (const Tensor& tensor : orelse.changed)
    if (!std::ranges::count(then.changed, tensor.get(), &Tensor::get)) all.push_back(tensor);
  return all;
}

// Whether some of the tensors are, or are views of, some of the changed ones.
bool overlap(const std::vector<Tensor>& changed, const std::vector<Tensor>& tensors) {
  return std::ranges::any_of(tensors, [&](const Tensor& tensor) {
    return std::ranges::count(changed, tensor->base ? tensor->base.get() : tensor.get(), &Tensor::get) > 0;
  });
}

// What a tensor of the enclosing graph is at the end of a branch; `values`: of those that the branch changed.
Value after_branch(GraphBuilder& builder, PyGraph& branch, std::span<const Value> values, const Tensor& tensor) {
  const auto find = [&](const TensorImpl* impl) -> const Value* {
    const auto found = std::ranges::find(branch.changed, impl, &Tensor::get);
    return found == branch.changed.end() ? nullptr : &values[static_cast<size_t>(found - branch.changed.begin())];
  };
  if (const Value* value = find(tensor.get())) return *value;
  if (const Value* root = tensor->base ? find(tensor->base.get()) : nullptr) return view_again(builder, tensor, *root);
  return imported(branch, tensor);
}

// Replaces the results of a branch. A pick is the index of a result, a tensor of the enclosing graph, or (number,);
// each is converted to its dtype.
void graph_choose(PyGraph& self, nb::list picks, const std::vector<DType>& dtypes) {
  GraphBuilder builder(self.graph);
  const Values old = self.graph->results;
  const std::span<const Value> changed = std::span(old.data(), old.size()).last(self.changed.size());
  Values results;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    nb::handle pick = picks[i];
    Value value;
    if (is_tensor(pick.ptr())) {
      value = after_branch(builder, self, changed, nb::cast<Tensor>(pick));
    } else if (PyTuple_Check(pick.ptr())) {
      const Value args[] = {Ints{}, nb::cast<Value>(pick[0]), dtypes[i]};
      value = builder.emit(find_op("full"), args)[0];
    } else {
      value = old[nb::cast<size_t>(pick)];
    }
    const Value cast[] = {value, dtypes[i]};
    results.push_back(builder.emit(find_op("cast"), cast)[0]);
  }
  self.graph->results = std::move(results);
}

// Numbers are weak: only their kind counts beside a tensor.
DType common_dtype_of(nb::list values) {
  std::optional<DType> out;
  const auto rank = [](DType dtype) { return is_complex(dtype) ? 3 : is_float(dtype) ? 2 : dtype != DType::Bool; };
  for (nb::handle value : values)
    if (is_tensor(value.ptr())) out = out ? promote(*out, unwrap(value.ptr())->dtype) : unwrap(value.ptr())->dtype;
  for (nb::handle value : values) {
    if (is_tensor(value.ptr())) continue;
    const DType dtype = dtype_of_value(nb::cast<Value>(value));
    if (!out || rank(dtype) > rank(*out)) out = out ? promote(*out, dtype) : dtype;
  }
  return *out;
}

}  // namespace

Values call_if(const Tensor& condition, PyGraph& then, PyGraph& orelse) {
  const std::vector<Tensor> operands = unify_imports({&then, &orelse}, 0);
  const Value args[] = {condition, Value::of_graph(then.graph), Value::of_graph(orelse.graph), list_of(operands)};
  return open_scope().call(find_op("if"), args);
}

Values call_while(PyGraph& condition, PyGraph& body, const std::vector<Tensor>& state) {
  const std::vector<Tensor> operands = unify_imports({&condition, &body}, state.size());
  const Value args[] = {Value::of_graph(condition.graph), Value::of_graph(body.graph), list_of(state),
                        list_of(operands)};
  return open_scope().call(find_op("while"), args);
}

void bind_graph_control(nb::module_& module) {
  module.def("graph_if", [](const Tensor& condition, PyGraph& then, PyGraph& orelse) {
    return tensors_of(call_if(condition, then, orelse));
  });
  module.def("graph_while", [](PyGraph& condition, PyGraph& body, const std::vector<Tensor>& state) {
    return tensors_of(call_while(condition, body, state));
  });
  module.def("graph_choose", &graph_choose);
  module.def("graph_changes", &changes_of);
  module.def("graph_overlap", &overlap);
  module.def("graph_start_from", [](const Tensor& tensor, const Tensor& value) {
    open_scope().start_from(tensor, open_scope().value_of(value));
  });
  module.def("graph_assign", [](const Tensor& tensor, const Tensor& value) {
    open_scope().assign(tensor, open_scope().value_of(value));
  });
  module.def("common_dtype", &common_dtype_of);
}

}  // namespace morel::bind
