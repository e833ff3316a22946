#include "morel/transform/fold.h"

#include <algorithm>
#include <optional>

#include "morel/ops/call.h"

namespace morel {
namespace {

constexpr int64_t max_bytes = 64 << 10;

std::optional<int64_t> bytes_of(const Types& types) {
  int64_t bytes = 0;
  for (const Type& type : types) {
    for (const Dim dim : type.shape)
      if (dim.is_symbolic()) return {};
    bytes += num_elements(type.shape) * size_of(type.dtype);
  }
  return bytes;
}

bool is_source(const Node& node) {
  for (const Value& arg : node.args)
    if (arg.tag() == Value::Tag::Node || arg.is_list()) return false;
  return true;
}

class Folder {
 public:
  Folder(Graph& graph, Evaluator evaluate, bool freezes) : graph_(graph), evaluate_(evaluate), sharing_(graph) {
    if (!freezes) return;
    for (const Ref<Node>& capture : graph.captures)
      if (capture->captured && !sharing_.is_written(capture.get()))
        known_.emplace(capture.get(), Values{capture->captured});
  }

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
    int64_t most = max_bytes;
    for_each_input(node,
                   [&](const Value& value) { most = std::max(most, bytes_of(node_of(value)->types).value_or(0)); });
    const std::optional<int64_t> bytes = bytes_of(node.types);
    return bytes && *bytes <= most;
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
    if (found == known_.end() || !found->first->op || is_fill(*found->first)) return value;
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

int64_t fold_constants(Graph& graph, Evaluator evaluate, bool freezes) {
  return Folder(graph, evaluate, freezes).run();
}

}  // namespace morel
