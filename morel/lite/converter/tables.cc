#include "morel/lite/converter/tables.h"

#include <cstring>

#include "morel/loops/run/elementwise.h"
#include "morel/runtime/eager.h"

namespace morel::lite {

SizeTable::SizeTable(const Graph& graph, bool fixed, Plan& plan) : plan_(plan), fixed_(fixed || !graph.sizes) {
  if (!graph.sizes) return;
  examples_ = graph.sizes->examples();
  if (fixed_) return;
  for (const int64_t example : examples_) plan_.symbols.push_back({0, 0, example});
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const Shape& shape = graph.parameters[i]->types[0].shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (!shape[axis].is_symbolic()) continue;
      Symbol& symbol = plan_.symbols[static_cast<size_t>(shape[axis].expr().terms()[0].atoms[0]->symbol)];
      symbol.input = static_cast<int32_t>(i);
      symbol.axis = static_cast<int32_t>(axis);
    }
  }
}

Size SizeTable::operator()(Dim dim) {
  if (!dim.is_symbolic()) return {dim, -1};
  if (fixed_) return {example(dim), -1};
  const morel::SizeExpr& expr = dim.expr();
  if (const auto found = known_.find(&expr); found != known_.end()) return {0, found->second};
  lite::SizeExpr made;
  for (const morel::SizeTerm& term : expr.terms()) {
    SizeTerm& to = made.terms.emplace_back();
    to.factor = term.factor;
    for (const morel::SizeAtom* atom : term.atoms) {
      SizeAtom& part = to.atoms.emplace_back();
      part.symbol = static_cast<int32_t>(atom->symbol);
      if (atom->symbol >= 0) continue;
      part.symbol = -1;
      part.a = (*this)(atom->a);
      part.b = (*this)(atom->b);
    }
  }
  const int32_t idx = static_cast<int32_t>(plan_.exprs.size());
  plan_.exprs.push_back(std::move(made));
  known_.emplace(&expr, idx);
  return {0, idx};
}

Sizes SizeTable::operator()(std::span<const Dim> dims) {
  Sizes out;
  for (const Dim dim : dims) out.push_back((*this)(dim));
  return out;
}

WeightTable::WeightTable(const ConvertOptions& options) {
  for (const auto& [tensor, name] : options.weight_names) names_.emplace(tensor.get(), name);
}

std::string WeightTable::name_of(const Tensor& tensor) const {
  const auto found = names_.find(tensor.get());
  return found == names_.end() ? "" : found->second;
}

const WeightTable::Place& WeightTable::add(const Tensor& tensor) {
  if (const auto found = known_.find(tensor.get()); found != known_.end()) return found->second;
  // As it lies where that is dense in any order of axes: what kernels choose by it stays so.
  const TensorImpl* impl = tensor.get();
  const TensorImpl* donor = loops::find_donor({&impl, 1}, tensor.shape());
  const Tensor dense = donor ? tensor : contiguous(tensor);
  Place place;
  place.layout = {dense.shape(), dense.is_contiguous() ? contiguous_strides(dense.shape()) : dense.strides(), 0};
  place.bytes = dense.size() * size_of(dense.dtype());
  place.offset = weight_offset(static_cast<int64_t>(bytes_.size()), place.bytes);
  bytes_.resize(static_cast<size_t>(place.offset + place.bytes));
  if (place.bytes) std::memcpy(bytes_.data() + place.offset, dense.data(), static_cast<size_t>(place.bytes));
  kept_.push_back(tensor);
  return known_.emplace(tensor.get(), std::move(place)).first->second;
}

}  // namespace morel::lite
