// Graph -> ONNX. The exporter is a Builder: a call becomes a node where its entry has a name of ONNX that fits, and
// otherwise what the entry is composed of: `onnx_compose`, `compose`, or the expression of an elementwise operator.
#pragma once

#include <functional>
#include <unordered_map>

#include "morel/io/onnx/model.h"
#include "morel/ir/graph.h"

namespace morel::onnx {

inline constexpr int oldest_opset = 17, newest_opset = 22;

// Runs an operator whose arguments are all known.
using Evaluator = std::function<Values(const OpDef& op, std::span<const Value> args)>;

struct ExportOptions {
  int opset = newest_opset;
  std::vector<std::string> inputs, outputs;
  std::unordered_map<const TensorImpl*, std::string> tensors;  // names of those that the graph captures
  std::vector<std::string> sizes;                              // names of the graph's symbols
};

struct Exported {
  Model model;
  std::vector<Tensor> tensors;  // which hold the bytes of the model
};

// Raises NotImplemented with all calls that ONNX cannot say.
Exported export_graph(const Graph& graph, const ExportOptions& options, const Evaluator& evaluate);

}  // namespace morel::onnx
