// Building and running graphs for Python: morel/compiler/ reads the source and calls these.
#include "morel/python/bind/graph.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <unordered_set>

#include "morel/ir/parse.h"
#include "morel/python/bind/bind.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/graph_scope.h"
#include "morel/transform/effects.h"
#include "morel/transform/grad.h"
#include "morel/transform/jvp.h"
#include "morel/transform/old_values.h"
#include "morel/transform/passes.h"
#include "morel/transform/simplify.h"
#include "morel/transform/vmap.h"

namespace morel::bind {
namespace {

// A graph that is being built; the outermost one also holds the symbols for sizes.
struct OpenScope {
  std::unique_ptr<SymbolicSizes::Use> sizes;
  GraphScope scope;
  explicit OpenScope(std::string name) : scope(std::move(name)) {
    if (!scopes.empty()) return;
    scope.builder().graph().sizes = make_ref<SymbolicSizes>();
    sizes = std::make_unique<SymbolicSizes::Use>(scope.builder().graph().sizes.get());
  }
  static thread_local std::vector<std::unique_ptr<OpenScope>> scopes;
};
thread_local std::vector<std::unique_ptr<OpenScope>> OpenScope::scopes;

}  // namespace

GraphScope& open_scope() {
  MOREL_CHECK(!OpenScope::scopes.empty(), Internal, "internal error: no graph is being built; please report it");
  return OpenScope::scopes.back()->scope;
}
void begin_scope(std::string name) { OpenScope::scopes.push_back(std::make_unique<OpenScope>(std::move(name))); }
void close_scope() { OpenScope::scopes.pop_back(); }

bool serves(const Graph& graph, const std::vector<Tensor>& parameters) {
  Values given;
  for (const Tensor& parameter : parameters) given.push_back(parameter);
  Numbers values;
  return bind_sizes(graph, {given.data(), given.size()}, values) && (!graph.sizes || graph.sizes->hold(values));
}

Written::Written(const Graph& graph) {
  std::unordered_set<const Node*> written;
  for (const Ref<Node>& node : graph.nodes)
    for_each_written(*node, [&](const Value& value) { written.insert(node_of(value)); });
  for (size_t i = 0; i < graph.parameters.size(); ++i)
    if (written.contains(graph.parameters[i].get())) parameters_.push_back(i);
  for (const Ref<Node>& node : graph.captures)
    (written.contains(node.get()) ? captures_ : others_).push_back(node->captured);
}
bool Written::is_given_twice(std::span<const Value> given) const {
  return std::ranges::any_of(parameters_, [&](size_t at) {
    return std::ranges::count_if(given, [&](const Value& value) { return value.tensor() == given[at].tensor(); }) > 1;
  });
}
std::vector<size_t> Written::captured_too(std::span<const Value> given) const {
  std::vector<size_t> out;
  const auto add_if_among = [&](const std::vector<Tensor>& tensors, size_t at) {
    if (std::ranges::find(tensors, given[at].tensor()) != tensors.end()) out.push_back(at);
  };
  if (!captures_.empty())
    for (size_t at = 0; at < given.size(); ++at) add_if_among(captures_, at);
  for (const size_t at : parameters_) add_if_among(others_, at);
  return out;
}

PyGraph end_graph(const std::vector<Tensor>& results, bool with_changes) {
  GraphScope& scope = open_scope();
  for (const Tensor& result : results) scope.builder().graph().results.push_back(scope.value_of(result));
  PyGraph out{scope.builder().graph_ref(), scope.imports(), {}, nullptr, {}};
  for (const GraphScope::Change& change : scope.changes()) {
    MOREL_CHECK(with_changes || !change.is_written, NotImplemented,
                "a function that is mapped or calls itself, or the condition of a 'while', changes in place a tensor "
                "that was made outside of it, which is not supported in a compiled function; return the new value");
    if (!with_changes) continue;
    out.changed.push_back(change.tensor);
    scope.builder().graph().results.push_back(change.value);
  }
  keep_old_values(*out.graph);
  close_scope();
  return out;
}

Value list_of(const std::vector<Tensor>& tensors) {
  Value::List list;
  for (const Tensor& tensor : tensors) list.push_back(tensor);
  return Value(std::move(list));
}

nb::list tensors_of(const Values& values) {
  nb::list out;
  for (const Value& value : values) out.append(nb::steal(from_value(value)));
  return out;
}

namespace {

// A function that may call itself: its graph, known before its body is there. The outermost graph keeps it.
PyGraph begin_function(std::string name) {
  Graph& outermost = OpenScope::scopes.front()->scope.builder().graph();
  const auto is_taken = [&](const Ref<Graph>& function) { return function->name == name; };
  for (int64_t i = 2; std::ranges::any_of(outermost.functions, is_taken); ++i)
    name = cat(name.substr(0, name.rfind('.')), ".", i);
  OpenScope::scopes.push_back(std::make_unique<OpenScope>(name));
  const Ref<Graph>& graph = open_scope().builder().graph_ref();
  graph->is_function = true;
  outermost.functions.push_back(graph);
  return {graph, {}, {}, nullptr};
}

// Forgets a function, and the later ones, which were made within it.
void drop_function(const PyGraph& function) {
  std::vector<Ref<Graph>>& all = OpenScope::scopes.front()->scope.builder().graph().functions;
  const auto first = std::ranges::find(all, function.graph);
  for (auto at = first; at != all.end(); ++at) (*at)->clear();
  all.erase(first, all.end());
}

// Results of these types are what it gives.
void declare_results(PyGraph& function, const std::vector<Tensor>& like) {
  for (const Tensor& tensor : like) function.graph->result_types.push_back({tensor.dtype(), tensor.shape()});
}

nb::list graph_call(const PyGraph& function, const std::vector<Tensor>& operands) {
  const Value args[] = {Value::of_graph(function.graph), list_of(operands)};
  return tensors_of(open_scope().call(find_op("call"), args));
}

// Views of tensors that are there once others are: what reads them runs then, not before. Where a tensor is one of
// outside, they also stand for it, until graph_release.
nb::list graph_hold(const std::vector<Tensor>& tensors, const std::vector<Tensor>& until) {
  GraphScope& scope = open_scope();
  Value::List after;
  for (const Tensor& tensor : until) after.push_back(scope.value_of(tensor));
  nb::list out;
  for (const Tensor& tensor : tensors) {
    const Value args[] = {scope.value_of(tensor), after};
    const Value held = scope.builder().emit(find_op("view_after"), args)[0];
    if (!tensor->is_symbolic()) scope.set_stand_in(tensor, held);
    out.append(nb::cast(scope.tensor_of(held)));
  }
  return out;
}

// Parameters of the graph that were changed in place: what is given for them at a call changes at its end. Returns
// whether there are any.
bool graph_write_back(const std::vector<Tensor>& parameters) {
  GraphScope& scope = open_scope();
  bool any = false;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Value parameter = scope.builder().graph().parameters[i]->output(), now = scope.value_of(parameters[i]);
    if (node_of(now) == node_of(parameter)) continue;
    const Value args[] = {parameter, now};
    scope.builder().emit(find_op("copy_"), args);
    any = true;
  }
  return any;
}

bool is_parameter_of_graph(const Tensor& tensor) {
  const Node* node = node_of(open_scope().value_of(tensor));
  return !node->op && !node->captured;
}

// As tensors; zeros like those of `like` where nothing moves.
nb::list with_zeros(const Values& derivatives, const std::vector<Tensor>& like) {
  GraphScope& scope = open_scope();
  nb::list out;
  for (size_t i = 0; i < like.size(); ++i) {
    if (!derivatives[i].is_none()) {
      out.append(nb::cast(scope.tensor_of(derivatives[i])));
    } else {
      const Value zeros[] = {Ints(like[i].shape()), like[i].dtype()};
      out.append(nb::steal(from_value(scope.call(find_op("zeros"), zeros)[0])));
    }
  }
  return out;
}

std::vector<Value> nodes_of(const std::vector<Tensor>& tensors) {
  std::vector<Value> out;
  for (const Tensor& tensor : tensors) out.push_back(open_scope().value_of(tensor));
  return out;
}

// What a hook puts in the place of a cotangent of the graph; None where it keeps it.
Value call_hook(GraphScope& scope, const GradHook& hook, const Value& cotangent) {
  const Value replaced = hook(scope.tensor_of(cotangent));
  return replaced.is_none() ? replaced : scope.value_of(replaced.tensor());
}

nb::list graph_gradients(const std::vector<Tensor>& outputs, nb::list seeds, const std::vector<Tensor>& inputs) {
  GraphScope& scope = open_scope();
  std::vector<Value> of = nodes_of(outputs), at = nodes_of(inputs), with;
  for (nb::handle seed : seeds) with.push_back(seed.is_none() ? Value() : scope.value_of(nb::cast<Tensor>(seed)));
  Values found = morel::graph_gradients(scope.builder(), of, with, at);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (found[i].is_none()) continue;
    for (const auto& hook : lasting_hooks(inputs[i]))
      if (Value replaced = call_hook(scope, *hook, found[i]); !replaced.is_none()) found[i] = std::move(replaced);
  }
  return with_zeros(found, inputs);
}

// Calls fn(cotangent) when the gradient at a tensor of this graph is made.
void graph_register_hook(const Tensor& tensor, nb::handle fn) {
  GraphScope& scope = open_scope();
  MOREL_CHECK(
      tensor->is_symbolic(), Value,
      "For 'register_hook', a Parameter or another tensor from outside of a compiled function takes no hook within "
      "it; register the hook before");
  MOREL_CHECK(
      OpenScope::scopes.size() == 1, NotImplemented,
      "'register_hook' within an 'if', a 'while' or a recursion on tensors of a compiled function is not supported");
  scope.builder().add_hook(scope.value_of(tensor), [hook = make_hook(fn), &scope](const Value& cotangent) {
    return call_hook(scope, *hook, cotangent);
  });
}

nb::list graph_tangents(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& tangents) {
  const std::vector<Value> of = nodes_of(outputs), at = nodes_of(inputs), by = nodes_of(tangents);
  return with_zeros(morel::graph_tangents(open_scope().builder(), of, at, by), outputs);
}

PyGraph parsed_graph(std::string_view text, const std::vector<Tensor>& captures) {
  const auto capture = [&](size_t idx, const Type&) { return idx < captures.size() ? captures[idx] : Tensor(); };
  return {parse(text, capture), {}, {}, nullptr};
}

// Stands for a tensor like this one. Sizes of 0 and 1 are fixed, and so is everything in graphs within others.
Tensor graph_parameter(const Tensor& like) {
  GraphScope& scope = open_scope();
  Type type{like.dtype(), like.shape()};
  if (const Ref<SymbolicSizes>& sizes = scope.builder().graph().sizes; sizes && !like->is_symbolic())
    for (Dim& dim : type.shape)
      if (dim >= SymbolicSizes::least) dim = sizes->add(dim);
  return scope.add_parameter(type);
}

// Stands for one example of a batch whose axis is in front.
Tensor graph_example(const Tensor& batch) {
  const Shape& shape = batch.shape();
  return open_scope().add_parameter({batch.dtype(), Shape(shape.begin() + 1, shape.end())});
}

// The results of a graph for one example, for batches of its own parameters: (tensor, whether it is a batch). Without
// an enclosing graph the operators run now.
nb::list graph_vmap(PyGraph& self, const std::vector<Tensor>& batches, const Value& batch) {
  GraphScope* scope = GraphScope::current();
  simplify(*self.graph);
  std::vector<Batched> operands;
  for (const Tensor& tensor : batches) operands.push_back({scope ? scope->value_of(tensor) : Value(tensor), true});
  for (const Tensor& tensor : self.imports) operands.push_back({scope->value_of(tensor), false});
  Builder& builder = scope ? static_cast<Builder&>(scope->builder()) : EagerBuilder::instance();
  nb::list out;
  for (const Batched& result : vmap(builder, *self.graph, operands, batch.dim()))
    out.append(nb::make_tuple(scope ? scope->tensor_of(result.value) : result.value.tensor(), result.batched));
  return out;
}

std::vector<std::string> assumptions(PyGraph& self) {
  std::vector<std::string> out;
  if (self.graph->sizes)
    for (const SizeGuard& guard : self.graph->sizes->guards()) out.push_back(to_string(guard));
  return out;
}

nb::list run(PyGraph& self, const std::vector<Tensor>& parameters) {
  Values given;
  for (const Tensor& parameter : parameters) given.push_back(parameter);
  return tensors_of(self.executor->run({given.data(), given.size()}));
}

}  // namespace

// As custom_backward of eager mode (autograd.cc): fn(*cotangents) gives one gradient or None for each input.
nb::tuple graph_custom_backward(nb::list inputs, const std::vector<Tensor>& outputs, nb::handle fn) {
  GraphScope& scope = open_scope();
  std::vector<Value> sources, results;
  for (nb::handle input : inputs)
    sources.push_back(is_tensor(input.ptr()) ? scope.value_of(nb::cast<Tensor>(input)) : Value());
  for (const Tensor& output : outputs) results.push_back(scope.value_of(output));
  scope.builder().set_stops_gradient(grad_depth() == 0);
  if (OpenScope::scopes.size() > 1) {  // gradients that are taken outside of this graph know nothing of fn
    Value::List known;
    for (const Value& source : sources)
      if (!source.is_none()) known.push_back(source);
    for (Value& result : results) {
      const Value args[] = {result, Value(known)};
      result = scope.builder().emit(find_op("custom_gradient"), args)[0];
    }
  }
  const auto backward = [callback = hold(fn), &scope](std::span<const Value> cotangents) {
    nb::list given;
    for (const Value& cotangent : cotangents) given.append(nb::cast(scope.tensor_of(cotangent)));
    nb::object result = nb::steal(PyObject_Call(callback.get(), nb::tuple(given).ptr(), nullptr));
    if (!result) throw_python_error();
    if (!PyTuple_Check(result.ptr()) && !PyList_Check(result.ptr())) result = nb::make_tuple(result);
    Values out;
    for (nb::handle gradient : result)
      out.push_back(is_tensor(gradient.ptr()) ? scope.value_of(nb::cast<Tensor>(gradient)) : Value());
    return out;
  };
  nb::list out;
  for (const Value& value : scope.builder().custom(sources, results, backward))
    out.append(nb::cast(scope.tensor_of(value)));
  return nb::tuple(out);
}

namespace {

void bind_graph_class(nb::module_& module) {
  nb::class_<PyGraph>(module, "Graph", "A compiled function: call it with its tensors.")
      .def("__call__", &run)
      .def_prop_ro("assumptions", &assumptions, "What is assumed of the sizes s0, s1, ... of the parameters.")
      .def(
          "serves",
          [](PyGraph& self, const std::vector<Tensor>& parameters) { return serves(*self.graph, parameters); },
          "Whether the graph can be called with tensors of these sizes.")
      .def(
          "captured_too",
          [](PyGraph& self, const std::vector<Tensor>& parameters) {
            Values given;
            for (const Tensor& parameter : parameters) given.push_back(parameter);
            return self.written.captured_too({given.data(), given.size()});
          },
          "Where among the tensors those are that the graph captures too and changes, so that it must be built for "
          "them.")
      .def("__repr__", [](PyGraph& self) { return print(*self.graph); })
      .def(
          "copy",
          [](PyGraph& self) {
            std::vector<Tensor> captures;
            for (const Ref<Node>& node : self.graph->captures) captures.push_back(node->captured);
            return parsed_graph(print(*self.graph), captures);
          },
          "A graph of its own that reads the same tensors, not compiled yet.")
      .def_static("parse", &parsed_graph, nb::arg("text"), nb::arg("captures") = nb::make_tuple(),
                  "The graph that a text describes (what repr() writes), with the tensors that it captures.")
      .def_prop_ro("imports", [](PyGraph& self) { return self.imports; })
      .def_prop_ro("changed", [](PyGraph& self) { return self.changed; })
      .def_prop_ro("num_nodes", [](PyGraph& self) { return self.graph->nodes.size(); })
      .def(
          "memory_plan",
          [](PyGraph& self) {
            const Executor::MemoryUse use = self.executor->memory_use();
            nb::dict out;
            out["arena_bytes"] = use.arena_bytes;
            out["lower_bound_bytes"] = use.lower_bound;
            out["own_bytes"] = use.own_bytes;
            return out;
          },
          "Memory that a run needs: of the planned arena, the most bytes in it that are alive at a time, and what is "
          "allocated by itself (results, operands of control flow).")
      .def(
          "compile",
          [](PyGraph& self) {
            const SymbolicSizes::Use sizes(self.graph->sizes.get());
            const auto began = std::chrono::steady_clock::now();
            nb::dict seconds;
            double passes = 0;
            for (const PassTime& pass : optimise(*self.graph, &execute)) {
              seconds[nb::str(pass.name.data(), pass.name.size())] = pass.seconds;
              passes += pass.seconds;
            }
            self.executor = std::make_unique<Executor>(self.graph);
            self.written = Written(*self.graph);
            const std::chrono::duration<double> total = std::chrono::steady_clock::now() - began;
            seconds["executor"] = total.count() - passes;
            return seconds;
          },
          "Optimises the graph and makes it ready to be called; returns how long each stage took, in seconds.");
}

void bind_building(nb::module_& module) {
  module.def("graph_begin", &begin_scope);
  module.def("graph_abort", &close_scope);
  module.def("graph_end", &end_graph, nb::arg("results"), nb::arg("with_changes") = false);
  module.def("graph_active", [] { return GraphScope::current() != nullptr; });
  module.def("graph_place", [](std::string place) { open_scope().builder().set_place(std::move(place)); });
  module.def("graph_parameter", &graph_parameter);
  module.def("graph_begin_function", &begin_function);
  module.def("graph_drop_function", &drop_function);
  module.def("graph_declare_results", &declare_results);
  module.def("graph_call", &graph_call);
  module.def(
      "graph_value", [](const Tensor& tensor) { return open_scope().tensor_of(open_scope().value_of(tensor)); },
      "A tensor of its own with the value that a tensor has now.");
  module.def("graph_import", [](const Tensor& tensor) { open_scope().value_of(tensor); });
  module.def(
      "graph_zeros",
      [](const Tensor& like) {
        const Value args[] = {Ints(like.shape()), like.dtype()};
        return open_scope().call(find_op("zeros"), args)[0].tensor();
      },
      "Zeros of the type of a tensor, of which nothing else is read.");
  module.def("graph_example", &graph_example);
  module.def("graph_vmap", &graph_vmap);
  module.def("graph_hold", &graph_hold);
  module.def("graph_release", [] { open_scope().clear_stand_ins(); });
  module.def("graph_num_nodes", [] { return open_scope().builder().graph().nodes.size(); });
  module.def("graph_draws_since", [](size_t first) {
    return effects_of(std::span(open_scope().builder().graph().nodes).subspan(first)).draws;
  });
  module.def(
      "graph_talks", [] { return effects_of(open_scope().builder().graph().nodes).talks; },
      "Whether what the open graph does so far is seen by others: it prints or may raise an error.");
  module.def("graph_write_back", &graph_write_back);
  module.def("graph_is_parameter", &is_parameter_of_graph);
  module.def("save_graphs", &save_graphs);
  module.def("graph_depth", [] { return OpenScope::scopes.size(); });
  module.def("graph_gradients", &graph_gradients);
  module.def("graph_register_hook", &graph_register_hook);
  module.def("graph_tangents", &graph_tangents);
  module.def("describe", [](const Tensor& tensor) { return describe(tensor.dtype(), tensor.shape()); });
  module.def("is_symbolic", [](const Tensor& tensor) { return tensor->is_symbolic(); });
}

}  // namespace

void bind_graph(nb::module_& module) {
  bind_graph_class(module);
  bind_building(module);
  bind_graph_control(module);
}

}  // namespace morel::bind
