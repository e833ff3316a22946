// What all functions of a plan share: expressions of sizes and weights.
#pragma once

#include <unordered_map>

#include "morel/ir/graph.h"
#include "morel/lite/converter/convert.h"

namespace morel::lite {

// Sizes of the graph as sizes of the plan.
class SizeTable {
 public:
  SizeTable(const Graph& graph, bool fixed, Plan& plan);
  Size operator()(Dim dim);
  Sizes operator()(std::span<const Dim> dims);
  // The number for the sizes that the graph was built with.
  int64_t example(Dim dim) const { return evaluate(dim, examples_); }

 private:
  Plan& plan_;
  SymbolValues examples_;
  bool fixed_;
  std::unordered_map<const morel::SizeExpr*, int32_t> known_;
};

// Bytes of the weights section; a tensor is in it once.
class WeightTable {
 public:
  explicit WeightTable(const ConvertOptions& options);
  struct Place {
    int64_t offset, bytes;
    Layout layout;  // dense
  };
  const Place& add(const Tensor& tensor);
  std::string name_of(const Tensor& tensor) const;
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::unordered_map<const TensorImpl*, std::string> names_;
  std::unordered_map<const TensorImpl*, Place> known_;
  std::vector<Tensor> kept_;
  std::vector<std::byte> bytes_;
};

}  // namespace morel::lite
