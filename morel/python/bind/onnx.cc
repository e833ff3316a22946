// Graphs written as ONNX files, and such files called as functions.
#include <nanobind/stl/pair.h>

#include "morel/io/onnx/export.h"
#include "morel/io/onnx/import.h"
#include "morel/ops/call.h"
#include "morel/python/bind/bind.h"
#include "morel/python/bind/graph.h"
#include "morel/runtime/eager.h"

namespace morel::bind {
namespace {

// Of the graph that is being built: composites with a name of ONNX are kept as they are.
void keep_named() {
  open_scope().builder().set_keeps([](const OpDef& op) { return !op.onnx.empty(); });
}

// A parameter like this tensor; the sizes whose number is not negative are the symbols of these numbers.
Tensor sized_parameter(const Tensor& like, const std::vector<int64_t>& symbols) {
  GraphScope& scope = open_scope();
  SymbolicSizes& sizes = *scope.builder().graph().sizes;
  Type type{like.dtype(), like.shape()};
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i] < 0) continue;
    if (symbols[i] == static_cast<int64_t>(sizes.count()))
      sizes.add(std::max<Dim>(type.shape[i], SymbolicSizes::least));
    type.shape[i] = symbol(symbols[i]);
  }
  return scope.add_parameter(type);
}

void write(const PyGraph& graph, const std::string& path, int opset, std::vector<std::string> inputs,
           std::vector<std::string> outputs, std::vector<std::string> sizes,
           const std::vector<std::pair<std::string, Tensor>>& tensors, uint64_t data_limit) {
  onnx::ExportOptions options{.opset = opset,
                              .inputs = std::move(inputs),
                              .outputs = std::move(outputs),
                              .tensors = {},
                              .sizes = std::move(sizes)};
  for (const auto& [name, tensor] : tensors) options.tensors.emplace(tensor.get(), name);
  const SymbolicSizes::Use symbols(graph.graph->sizes.get());
  const onnx::Exported exported = onnx::export_graph(*graph.graph, options, &execute);
  for (const SizeGuard& guard : graph.graph->sizes->guards())
    MOREL_CHECK(guard.kind != SizeGuard::Kind::Zero, Value,
                "For 'export', the function fixes sizes that were to be open: ", to_string(guard), ", where ",
                graph.graph->sizes->legend(to_string(guard)));
  onnx::write_model(path, exported.model, data_limit);
}

// -- import --

// Runs operators at once, also while a graph is built.
class ConstantBuilder final : public Builder {
 public:
  Values emit(const OpDef& op, std::span<const Value> given) override {
    const Args args = complete_args(op, given);
    const std::span<const Value> all(args.data(), args.size());
    if (is_primitive(op)) return execute(op, all);
    Values out;
    for (const Sym& result : op.compose(Call(*this, op, all))) {
      const Value full[] = {Ints{}, result.value()};
      out.push_back(result.value().is_number() ? emit(find_op("full"), full)[0] : result.value());
    }
    return out;
  }
};

std::vector<Tensor> tensors(std::span<const Value> values) {
  std::vector<Tensor> out;
  for (const Value& value : values) out.push_back(value.tensor());
  return out;
}

// A graph of its own that `fill` builds and gives the results of.
template <class F>
PyGraph inner_graph(const char* name, F&& fill) {
  begin_scope(name);
  try {
    const Values results = fill();
    return end_graph(tensors({results.data(), results.size()}));
  } catch (...) {
    close_scope();
    throw;
  }
}

bool truth_of(const Value& condition) {
  ConstantBuilder now;
  return *now("cast", Sym(now, condition), DType::Bool).value().tensor().as<bool>();
}

Types result_types(const PyGraph& graph) {
  Types out;
  for (const Value& result : graph.graph->results) out.push_back(type_of(result));
  return out;
}
void check_types(const Types& a, const Types& b, std::string_view what) {
  MOREL_CHECK(a == b, NotImplemented, what, " of different types, which is not supported while a graph is built");
}

// Runs control flow, or adds it to the graph that is being built.
class TensorControl final : public onnx::ControlFlow {
 public:
  Values branch(const Value& condition, const std::function<Values()>& then,
                const std::function<Values()>& orelse) override {
    if (!GraphScope::current()) return truth_of(condition) ? then() : orelse();
    PyGraph first = inner_graph("then", then), second = inner_graph("orelse", orelse);
    check_types(result_types(first), result_types(second), "the branches give");
    return call_if(condition.tensor(), first, second);
  }
  Values loop(Values state, const Body& body) override {
    if (!GraphScope::current()) {
      while (truth_of(state[0])) state = body({state.data(), state.size()});
      return state;
    }
    const auto own = [&] {
      Values out;
      for (const Value& value : state) out.push_back(open_scope().add_parameter(type_of(value)));
      return out;
    };
    PyGraph condition = inner_graph("condition", [&] { return Values{own()[0]}; });
    PyGraph turn = inner_graph("turn", [&] {
      const Values now = own();
      return body({now.data(), now.size()});
    });
    Types types;
    for (const Value& value : state) types.push_back(type_of(value));
    check_types(types, result_types(turn), "the values before and after a turn are");
    return call_while(condition, turn, tensors({state.data(), state.size()}));
  }
};

nb::tuple call_model(const onnx::ImportedModel& model, nb::list inputs, const std::vector<Tensor>& weights) {
  Values given, own;
  for (nb::handle input : inputs) given.push_back(input.is_none() ? Value() : Value(nb::cast<Tensor>(input)));
  for (const Tensor& weight : weights) own.push_back(weight);
  ConstantBuilder now;
  TensorControl control;
  const Values results =
      model.call({EagerBuilder::instance(), now, control}, {given.data(), given.size()}, {own.data(), own.size()});
  nb::list out;
  for (const Value& result : results) out.append(nb::steal(from_value(result)));
  return nb::tuple(out);
}

// (name, dtype or None, [size or name or None] or None) of each.
nb::list describe(const std::vector<onnx::ValueInfo>& values) {
  nb::list out;
  for (const onnx::ValueInfo& value : values) {
    const std::optional<DType> dtype = onnx::dtype_of_code(value.type);
    nb::object shape = nb::none();
    if (value.has_shape) {
      nb::list sizes;
      for (const onnx::ValueInfo::Axis& axis : value.shape) {
        if (axis.size >= 0) sizes.append(axis.size);
        else if (axis.name.empty()) sizes.append(nb::none());
        else sizes.append(axis.name);
      }
      shape = nb::tuple(sizes);
    }
    out.append(nb::make_tuple(value.name, dtype ? nb::steal(wrap(*dtype)) : nb::none(), shape));
  }
  return out;
}

}  // namespace

void bind_onnx(nb::module_& module) {
  nb::class_<onnx::ImportedModel>(module, "OnnxModel", "A model of an ONNX file.")
      .def_prop_ro("inputs", [](const onnx::ImportedModel& self) { return describe(self.inputs()); })
      .def_prop_ro("outputs", [](const onnx::ImportedModel& self) { return describe(self.outputs()); })
      .def_prop_ro("opset", &onnx::ImportedModel::opset)
      .def_prop_ro("weights",
                   [](const onnx::ImportedModel& self) {
                     nb::list out;
                     for (const auto& [name, tensor] : self.weights()) out.append(nb::make_tuple(name, tensor));
                     return out;
                   })
      .def("call", &call_model, nb::arg("inputs"), nb::arg("weights"));
  module.def("open_onnx", [](const std::string& path) { return onnx::ImportedModel(onnx::read_model(path)); });
  module.attr("onnx_opsets") = nb::make_tuple(onnx::oldest_opset, onnx::newest_opset);
  module.def("graph_keep_named", &keep_named);
  module.def("graph_sized_parameter", &sized_parameter);
  module.def("write_onnx", &write, nb::arg("graph"), nb::arg("path"), nb::arg("opset"), nb::arg("inputs"),
             nb::arg("outputs"), nb::arg("sizes"), nb::arg("tensors"),
             nb::arg("data_limit") = onnx::default_data_limit);
}

}  // namespace morel::bind
