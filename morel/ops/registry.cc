#include "morel/ops/registry.h"

#include <string>
#include <unordered_map>

#include "morel/ops/axes.h"
#include "morel/ops/quant.h"

namespace morel {
namespace {

std::unordered_map<uint64_t, const OpDef*>& by_hash() {
  static auto* map = new std::unordered_map<uint64_t, const OpDef*>;
  return *map;
}

Syms grad_from_derivative(const GradCall& g) {
  const Sym slope = g.op().derivative(g.builder(), g[0], g.out());
  return {g.dout() * (is_complex(slope.dtype()) ? g.builder()("conj", slope) : slope)};
}

// An entry must say how it is computed and whether it can be differentiated.
void check(const OpDef& op) {
  const int ways = (op.loop ? 1 : 0) + (op.rows ? 1 : 0) + (op.reduce ? 1 : 0) + (op.view || op.views ? 1 : 0) +
                   (op.kernel ? 1 : 0) + (op.control != Control::None ? 1 : 0);
  MOREL_CHECK(ways == 1 || (ways == 0 && op.compose), Internal, "operator ", op.name,
              ": exactly one of loop, rows, reduce, view, kernel is needed, or compose (which may stand beside one)");
  MOREL_CHECK(op.grad || op.compose || op.has(kNoGrad) || op.control != Control::None, Internal, "operator ", op.name,
              " has neither grad, compose nor kNoGrad");
  MOREL_CHECK(!op.doc.empty(), Internal, "operator ", op.name, " has no doc");
}

}  // namespace

OpDef& Registry::add(std::string_view family, OpDef op, std::source_location where) {
  op.schema = Schema::parse(op.args);
  op.family = family;
  op.file = where.file_name();
  op.line = static_cast<int>(where.line());
  op.id = static_cast<int>(ops_.size());
  if (op.loop) {
    if (!op.infer) op.infer = infer_elementwise;
    op.flags |= kBroadcast;
  }
  if (op.reduce && !op.infer) op.infer = infer_reduce;
  if ((op.view || op.views) && !op.infer) op.infer = infer_view;
  if (op.rows && !op.infer) op.infer = infer_rows;
  op.axes_pattern = parse_axes(op);
  if (op.axes_pattern && !op.infer) op.infer = infer_from_axes;
  for (const ArgSpec& spec : op.schema.args)
    if (spec.kinds & kRng) op.flags |= kRandom;
  if (op.derivative) op.grad = grad_from_derivative;
  check(op);
  ops_.push_back(std::move(op));
  OpDef& entry = ops_.back();
  const bool fresh = by_hash().emplace(OpName::hash_of(entry.name), &entry).second;
  MOREL_CHECK(fresh, Internal, "operator ", entry.name, " is registered twice");
  return entry;
}

const OpDef* Registry::find(std::string_view name) const {
  const auto found = by_hash().find(OpName::hash_of(name));
  return found == by_hash().end() ? nullptr : found->second;
}

const Registry& registry() {
  static const Registry* instance = [] {
    auto* made = new Registry;
    register_elementwise(*made);
    register_compare(*made);
    register_activation(*made);
    register_reduce(*made);
    register_shape(*made);
    register_create(*made);
    register_linalg(*made);
    register_norm(*made);
    register_attention(*made);
    register_conv(*made);
    register_index(*made);
    register_sort(*made);
    register_random(*made);
    register_loss(*made);
    register_optim(*made);
    register_control(*made);
    register_quant(*made);
    return made;
  }();
  return *instance;
}

const OpDef& find_op(OpName name) {
  registry();
  const auto found = by_hash().find(name.hash);
  MOREL_CHECK(found != by_hash().end(), Internal, "a rule uses the operator ", name.text, ", which does not exist");
  return *found->second;
}

std::string display_name(const OpDef& op) {
  std::string out;
  bool upper = true;
  for (const char c : op.name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return out;
}

}  // namespace morel
