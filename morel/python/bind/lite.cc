// Models for devices: conversion of graphs, and the runtime that devices have.
#include <nanobind/stl/pair.h>

#include "morel/base/file.h"
#include "morel/lite/converter/convert.h"
#include "morel/lite/converter/requirements.h"
#include "morel/lite/model.h"
#include "morel/python/bind/bind.h"
#include "morel/python/bind/graph.h"
#include "morel/transform/freeze.h"
#include "morel/transform/passes.h"

namespace morel::bind {
namespace {

// What int8 inputs and outputs stand for: None or (scale, zero_point) for each.
void note_types(lite::Function& model, const std::vector<int32_t>& values, const std::vector<nb::handle>& types) {
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].is_none()) continue;
    const auto [scale, zero_point] = nb::cast<std::pair<float, int32_t>>(types[i]);
    model.values[static_cast<size_t>(values[i])].quantisation = lite::Quantisation{{scale}, {zero_point}, -1};
  }
}

void convert_graph(PyGraph& self, const std::string& path, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs,
                   const std::vector<std::pair<Tensor, std::string>>& weight_names, bool fixed_sizes,
                   const std::vector<nb::handle>& input_types, const std::vector<nb::handle>& output_types) {
  {
    const SymbolicSizes::Use sizes(self.graph->sizes.get());
    freeze(*self.graph, &execute);
    optimise(*self.graph, &execute, false);
  }
  lite::Converted made = lite::convert(*self.graph, {inputs, outputs, weight_names, fixed_sizes});
  lite::Function& model = made.plan.functions[0];
  note_types(model, model.inputs, input_types);
  note_types(model, model.outputs, output_types);
  AtomicFile file(path);
  file.write(lite::write_plan(made.plan, made.weights));
  file.commit();
}

nb::list tensors_of(std::span<const lite::TensorRef> list) {
  nb::list out;
  for (const lite::TensorRef& tensor : list) out.append(nb::make_tuple(tensor.name(), nb::cast(tensor.tensor())));
  return out;
}

// What a library needs to run the model: kernels with their dtypes, loop programs, dtypes of tensors.
nb::tuple requirements_of(const lite::Model& model) {
  const lite::Requirements found = lite::requirements(model.plan());
  nb::dict kernels;
  for (const auto& [name, dtypes] : found.kernels) kernels[nb::str(name.c_str())] = dtypes;
  return nb::make_tuple(kernels, std::vector<std::string>(found.loops.begin(), found.loops.end()), found.dtypes);
}

}  // namespace

void bind_lite(nb::module_& module) {
  module.def("lite_convert", &convert_graph, nb::arg("graph"), nb::arg("path"), nb::arg("inputs"), nb::arg("outputs"),
             nb::arg("weight_names"), nb::arg("fixed_sizes"), nb::arg("input_types") = nb::make_tuple(),
             nb::arg("output_types") = nb::make_tuple(), "Writes a graph that is not compiled as a model for devices.");
  nb::class_<lite::Model>(module, "LiteModel")
      .def_static(
          "build_from_file",
          [](const std::string& path, int threads, bool maps_file) {
            return lite::Model::build(path, {threads, maps_file});
          },
          nb::arg("path"), nb::arg("threads") = 0, nb::arg("maps_file") = false)
      .def("inputs", [](const lite::Model& self) { return tensors_of(self.inputs()); })
      .def("outputs", [](const lite::Model& self) { return tensors_of(self.outputs()); })
      .def("resize", [](lite::Model& self, const std::vector<std::vector<int64_t>>& shapes) { self.resize(shapes); })
      .def("predict", &lite::Model::predict)
      .def("requirements", &requirements_of)
      .def_prop_ro("arena_bytes", &lite::Model::arena_bytes)
      .def_prop_ro("weight_bytes", &lite::Model::weight_bytes);
}

}  // namespace morel::bind
