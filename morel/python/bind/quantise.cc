// Quantised graphs, and plans as C.
#include <nanobind/stl/map.h>
#include <nanobind/stl/set.h>

#include "morel/lite/container.h"
#include "morel/lite/mcu/generate.h"
#include "morel/python/bind/bind.h"
#include "morel/python/bind/graph.h"
#include "morel/runtime/calibrate.h"
#include "morel/transform/freeze.h"

namespace morel::bind {
namespace {

RangeMethod method_of(std::string_view name) {
  if (name == "MAX_MIN") return RangeMethod::MinMax;
  if (name == "REMOVAL_OUTLIER") return RangeMethod::RemoveOutliers;
  return RangeMethod::Kl;
}

nb::list types_of(const std::vector<std::optional<Int8Type>>& types) {
  nb::list out;
  for (const std::optional<Int8Type>& type : types) {
    if (type) out.append(nb::make_tuple(type->scale, type->zero_point));
    else out.append(nb::none());
  }
  return out;
}

// Changes the graph; `batches` are lists of its parameters.
nb::dict quantise_graph(PyGraph& self, const std::vector<std::vector<Tensor>>& batches, std::string_view method,
                        bool per_channel, bool int8_inputs, bool int8_outputs, const std::vector<std::string>& skip) {
  QuantiseOptions options{per_channel, int8_inputs, int8_outputs, {skip.begin(), skip.end()}};
  QuantiseReport report;
  {
    const SymbolicSizes::Use sizes(self.graph->sizes.get());
    freeze(*self.graph, &execute);
    const Values observed = values_to_observe(*self.graph, options);
    std::vector<Values> arguments;
    for (const std::vector<Tensor>& batch : batches) arguments.emplace_back(batch.begin(), batch.end());
    const nb::gil_scoped_release others_run;
    const std::vector<Range> ranges = calibrate(self.graph, observed, arguments, method_of(method));
    report = quantise(*self.graph, ranges, options, &execute);
  }
  nb::dict out;
  out["int8"] = report.num_int8;
  out["in_float"] = report.in_float;
  out["inputs"] = types_of(report.inputs);
  out["outputs"] = types_of(report.outputs);
  return out;
}

nb::dict plan_to_c(nb::bytes file, const std::string& name) {
  const Bytes bytes(static_cast<const std::byte*>(file.data()), file.size());
  const lite::PlanFile model = lite::read_plan(bytes, name);
  const lite::CModel made = lite::generate_c(model.plan, model.weights, name);
  nb::dict out;
  out["files"] = made.files;
  out["arena_bytes"] = made.arena_bytes;
  out["variable_bytes"] = made.variable_bytes;
  out["weight_bytes"] = made.weight_bytes;
  return out;
}

}  // namespace

void bind_quantise(nb::module_& module) {
  module.def("quantise_graph", &quantise_graph);
  module.def("plan_to_c", &plan_to_c, "The text of a folder of C99 for a model file's bytes, and what it needs.");
}

}  // namespace morel::bind
