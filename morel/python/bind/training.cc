// TrainedGraph: a compiled function called within a gradient of PyNative mode. The call runs the forward half of its
// graph and leaves one node on the tape, whose backward runs the other half.
#include <algorithm>
#include <memory>

#include <nanobind/stl/shared_ptr.h>

#include "morel/python/bind/bind.h"
#include "morel/python/bind/graph.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/graph_scope.h"
#include "morel/runtime/tape.h"
#include "morel/transform/grad.h"
#include "morel/transform/old_values.h"
#include "morel/transform/passes.h"
#include "morel/transform/split.h"

namespace morel::bind {
namespace {

struct TrainedGraph {
  Ref<Graph> whole;  // keeps the functions that the halves call
  std::unique_ptr<Executor> forward, backward;
  size_t num_results = 0;
  std::vector<size_t> places;      // of the parameters with gradients
  std::vector<Tensor> weights;     // tensors of outside with gradients
  std::vector<size_t> cotangents;  // places of the results with cotangents
};

void prepare(const Ref<Graph>& graph, std::unique_ptr<Executor>& executor) {
  optimise(*graph, &execute);
  executor = std::make_unique<Executor>(graph);
}

// The scope that is open ends with these results.
std::shared_ptr<TrainedGraph> end_trained(const std::vector<Tensor>& results, const std::vector<size_t>& places) {
  GraphScope& scope = open_scope();
  Graph& graph = scope.builder().graph();
  auto out = std::make_shared<TrainedGraph>();
  out->whole = scope.builder().graph_ref();
  out->places = places;
  out->num_results = results.size();
  const size_t num_parameters = graph.parameters.size();
  for (const Tensor& result : results) graph.results.push_back(scope.value_of(result));
  const Ref<Node> last = graph.nodes.empty() ? Ref<Node>() : graph.nodes.back();

  std::vector<Value> of, seeds, at;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!is_differentiable(results[i].dtype())) continue;
    out->cotangents.push_back(i);
    of.push_back(graph.results[i]);
    seeds.push_back(graph.add_parameter(type_of(graph.results[i])));
  }
  for (const size_t place : places) at.push_back(graph.parameters[place]->output());
  for (const Ref<Node>& capture : graph.captures) {
    if (!requires_grad(capture->captured.get())) continue;
    out->weights.push_back(capture->captured);
    at.push_back(capture->output());
  }
  scope.builder().set_stops_gradient(false);
  for (Value& gradient : graph_gradients(scope.builder(), of, seeds, at)) graph.results.push_back(std::move(gradient));
  keep_old_values(graph);
  // Nodes may have been put between those of the function.
  const auto end = std::ranges::find(graph.nodes, last);
  const size_t num_nodes = last ? static_cast<size_t>(end - graph.nodes.begin()) + 1 : 0;
  const Halves halves = split(graph, num_parameters, num_nodes, results.size());
  prepare(halves.forward, out->forward);
  prepare(halves.backward, out->backward);
  optimise(graph, &execute);  // its functions
  close_scope();
  return out;
}

// Whether the tensors of outside that have gradients now are those of which the graph makes them.
bool fits(const TrainedGraph& self) {
  return std::ranges::all_of(self.forward->graph().captures, [&](const Ref<Node>& capture) {
    const auto same = [&](const Tensor& weight) { return weight.get() == capture->captured.get(); };
    return requires_grad(capture->captured.get()) == std::ranges::any_of(self.weights, same);
  });
}

// What a call of the forward half leaves for the other one.
struct Kept {
  Values values;
  Types cotangents;  // where none comes, it is zeros of this type
  Numbers sizes;
  std::vector<std::pair<Tensor, uint32_t>> versions;

  void add(Value value) {
    if (value.is_tensor()) versions.emplace_back(value.tensor(), value.tensor()->storage->version());
    values.push_back(std::move(value));
  }
  void check() const {
    for (const auto& [tensor, version] : versions)
      MOREL_CHECK(
          tensor->storage->version() == version, Runtime,
          "a tensor that the gradient of a compiled function needs was changed in place after the call; use the "
          "out-of-place operator or copy the tensor first");
  }
};

Values run_backward(const TrainedGraph& self, const Kept& kept, std::span<const Value> cotangents) {
  MOREL_CHECK(grad_depth() == 0, NotImplemented,
              "gradients of gradients of a compiled function must be taken within gradients of it");
  kept.check();
  Values given(kept.values);
  for (size_t i = 0; i < cotangents.size(); ++i) {
    const Type& type = kept.cotangents[i];
    given.push_back(cotangents[i].is_none() ? Value(Tensor::full(type.shape, type.dtype, 0)) : cotangents[i]);
  }
  return self.backward->run({given.data(), given.size()}, {kept.sizes.data(), kept.sizes.size()});
}

nb::list run(const std::shared_ptr<TrainedGraph>& self, const std::vector<Tensor>& parameters) {
  Values given;
  for (const Tensor& parameter : parameters) given.push_back(parameter);
  Kept kept;
  bind_sizes(self->forward->graph(), {given.data(), given.size()}, kept.sizes);
  Values found = self->forward->run({given.data(), given.size()}, {kept.sizes.data(), kept.sizes.size()});
  for (size_t i = self->num_results; i < found.size(); ++i) kept.add(std::move(found[i]));
  std::vector<Tensor> results, inputs, outputs;
  for (size_t i = 0; i < self->num_results; ++i) results.push_back(detach(found[i].tensor()));
  for (const size_t place : self->places) inputs.push_back(parameters[place]);
  inputs.insert(inputs.end(), self->weights.begin(), self->weights.end());
  for (const size_t i : self->cotangents) {
    outputs.push_back(results[i]);
    kept.cotangents.push_back({results[i].dtype(), results[i].shape()});
  }
  if (!inputs.empty() && !outputs.empty())
    record_function(self->forward->graph().name, inputs, outputs,
                    [self, kept = std::move(kept)](std::span<const Value> cotangents) {
                      return run_backward(*self, kept, cotangents);
                    });
  nb::list out;
  for (const Tensor& result : results) out.append(nb::cast(result));
  return out;
}

}  // namespace

void bind_training(nb::module_& module) {
  nb::class_<TrainedGraph>(module, "TrainedGraph", "A compiled function within a gradient of PyNative mode.")
      .def("__call__",
           [](std::shared_ptr<TrainedGraph> self, const std::vector<Tensor>& given) { return run(self, given); })
      .def("serves",
           [](const TrainedGraph& self, const std::vector<Tensor>& given) {
             return fits(self) && serves(self.forward->graph(), given);
           })
      .def("__repr__", [](const TrainedGraph& self) {
        return print(self.forward->graph()) + print(self.backward->graph()) + print(*self.whole);
      });
  module.def("graph_end_trained", &end_trained);
  module.def("requires_grad", [](const Tensor& tensor) { return requires_grad(tensor.get()); });
}

}  // namespace morel::bind
