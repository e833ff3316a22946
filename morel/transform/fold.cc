#include "morel/transform/fold.h"

#include "morel/ops/call.h"

namespace morel {
namespace {

constexpr int64_t max_bytes = 64 << 10;

bool is_small(const Types& types) {
  int64_t bytes = 0;
  for (const Type& type : types) {
    for (const Dim dim : type.shape)
      if (dim.is_symbolic()) return false;
    bytes += num_elements(type.shape) * size_of(type.dtype);
  }
  return bytes <= max_bytes;
}

bool is_source(const Node& node) {
  for (const Value& arg : node.args)
    if (arg.tag() == Value::Tag::Node || arg.is_list()) return false;
  return true;
}

class Folder {
 public:
  Folder(Graph& graph, Evaluator evaluate) : graph_(graph), evaluate_(evaluate), sharing_(graph) {}

  int64_t run() {
    const SymbolicSizes::Use nothing_is_assumed(nullptr);
    for (const Ref<Node>& node : graph_.nodes)
      if (Values found = value_of(*node); !found.empty()) known_.emplace(node.get(), std::move(found));
    const size_t before = graph_.captures.size();
    for (const Ref<Node>& node : graph_.nodes)
      if (!known_.contains(node.get()))
        for (Value& arg : node->args) arg = map_inputs(arg, [&](const Value& value) { return captured(value); });
    return static_cast<int64_t>(graph_.captures.size() - before);
  }

 private:
  bool may_be_known(const Node& node) const {
    const OpDef& op = *node.op;
    if (has_effect(op) || op.has(kRandom) || op.control != Control::None || node.name == "empty") return false;
    if (sharing_.is_written(&node) || sharing_.leaves(&node) || node.types.empty()) return false;
    return is_small(node.types);
  }

  // The outputs of a node whose inputs are known.
  Values value_of(const Node& node) const {
    if (!may_be_known(node)) return {};
    bool known = true;
    for (size_t i = 0; i < node.args.size(); ++i)
      for_each_input(node.args[i], [&](const Value& value) {
        known = known && node.op->schema.args[i].is_tensor_like() && known_.contains(node_of(value));
      });
    if (!known) return {};
    Args args;
    for (const Value& arg : node.args)
      args.push_back(map_inputs(arg, [&](const Value& value) { return known_.at(node_of(value))[value.output()]; }));
    try {
      return evaluate_(*node.op, {args.data(), args.size()});
    } catch (const Error&) {
      return {};  // it is raised where the node runs, if it does
    }
  }

  // What stands for a known value that a node reads: numbers in every element stay what they are.
  Value captured(const Value& value) {
    const auto found = known_.find(node_of(value));
    if (found == known_.end() || is_fill(*found->first)) return value;
    Value& out = captured_[{found->first, value.output()}];
    if (out.is_none()) out = graph_.add_capture(found->second[value.output()].tensor());
    return out;
  }
  static bool is_fill(const Node& node) {
    return is_source(node) && (node.name == "zeros" || node.name == "ones" || node.name == "full");
  }

  Graph& graph_;
  Evaluator evaluate_;
  const Sharing sharing_;
  std::unordered_map<const Node*, Values> known_;
  std::map<std::pair<const Node*, uint32_t>, Value> captured_;
};

}  // namespace

int64_t fold_constants(Graph& graph, Evaluator evaluate) { return Folder(graph, evaluate).run(); }

}  // namespace morel
