#include "morel/transform/schedule.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "morel/transform/effects.h"
#include "morel/transform/fused.h"
#include "morel/transform/live_memory.h"

namespace morel {
namespace {

// An update becomes at most so many parts, each of so many bytes of parameters that it is worth a call of its own.
constexpr int64_t max_parts = 64, update_bytes = int64_t{32} << 10;
// Values of at most so many bytes (step counts, learning rates) are made early for an update that can run then.
constexpr int64_t light_bytes = 1024;

// ---- updates in parts ----

bool is_update(const Node& node) { return node.op->has(kItemwise) && node.args[0].is_list(); }

// The call on some items of the lists.
Ref<Node> part_of(const Node& whole, std::span<const size_t> items) {
  auto part = make_ref<Node>();
  part->op = whole.op;
  part->name = whole.name;
  part->types = whole.types;
  part->graph = whole.graph;
  part->place = whole.place;
  part->stops_gradient = whole.stops_gradient;
  const size_t count = whole.args[0].list().size();
  for (const Value& arg : whole.args) {
    if (!arg.is_list() || arg.list().size() != count) {
      part->args.push_back(arg);
      continue;
    }
    Value::List list;
    for (const size_t item : items) list.push_back(arg.list()[item]);
    part->args.push_back(Value(std::move(list)));
  }
  return part;
}

// In parts whose operands become available one after the other.
void split_update(const Node& whole, std::vector<Ref<Node>>& out) {
  const size_t count = whole.args[0].list().size();
  std::vector<std::pair<int64_t, size_t>> items;  // when the last operand is there
  for (size_t i = 0; i < count; ++i) {
    int64_t ready = -1;
    for (const Value& arg : whole.args)
      if (arg.is_list() && arg.list().size() == count)
        if (const Node* operand = node_of(arg.list()[i])) ready = std::max(ready, operand->id);
    items.emplace_back(ready, i);
  }
  std::sort(items.begin(), items.end());
  int64_t total = 0;
  for (const Value& item : whole.args[0].list()) total += bytes_of(type_of(item), *whole.graph);
  const int64_t enough = std::max(total / max_parts, update_bytes);
  std::vector<size_t> part;
  int64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    part.push_back(items[i].second);
    bytes += bytes_of(type_of(whole.args[0].list()[part.back()]), *whole.graph);
    if (bytes < enough && i + 1 < count) continue;
    std::sort(part.begin(), part.end());
    out.push_back(part_of(whole, part));
    part.clear();
    bytes = 0;
  }
}

// ---- order ----

// What must run before what: values, and the memory that effects change.
class Order {
 public:
  explicit Order(const std::vector<Ref<Node>>& nodes) : nodes_(nodes), before_(nodes.size()) {
    for (size_t i = 0; i < nodes.size(); ++i) position_[nodes[i].get()] = i;
    for (size_t i = 0; i < nodes.size(); ++i) add(i);
  }

  // In the given order, but effects as early as they can run.
  std::vector<Ref<Node>> run() {
    find_waiting();
    done_.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) emit(i);
    return std::move(out_);
  }

 private:
  struct Memory {
    int64_t writer = -1;
    std::vector<size_t> readers;
  };

  void add(size_t idx) {
    const Node& node = *nodes_[idx];
    const Effects effects = effects_of(node);
    const bool unknown = effects.draws || effects.talks || node.op->has(kRandom);
    const auto wait_for = [&](int64_t other) {
      if (other >= 0) before_[idx].push_back(static_cast<size_t>(other));
    };
    std::unordered_set<Root, Root::Hash> written;
    for_each_written(node, [&](const Value& value) { written.insert(memory_root(value)); });
    for_each_input(node, [&](const Value& input) {
      if (const auto found = position_.find(node_of(input)); found != position_.end())
        wait_for(static_cast<int64_t>(found->second));
      const Root root = memory_root(input);
      Memory& memory = memory_[root];
      wait_for(memory.writer);
      if (written.contains(root)) {
        for (const size_t reader : memory.readers) wait_for(static_cast<int64_t>(reader));
        memory = {static_cast<int64_t>(idx), {}};
      } else {
        memory.readers.push_back(idx);
      }
    });
    if (unknown) {  // stays between all effects
      for (const size_t other : effects_) before_[idx].push_back(other);
      barrier_ = static_cast<int64_t>(idx);
    } else if (effects.writes) {
      wait_for(barrier_);
    }
    if (effects.writes || unknown) effects_.push_back(idx);
    std::erase(before_[idx], idx);
  }

  bool is_light(size_t idx) const {
    int64_t bytes = 0;
    for (const Type& type : nodes_[idx]->types) bytes += bytes_of(type, *nodes_[idx]->graph);
    return bytes <= light_bytes;
  }

  // For every update the nodes that it waits for, but for light ones.
  void find_waiting() {
    waiting_.resize(nodes_.size());
    missing_.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!is_update(*nodes_[i])) continue;
      std::unordered_set<size_t> seen;
      std::vector<size_t> stack = {i};
      while (!stack.empty()) {
        const size_t at = stack.back();
        stack.pop_back();
        for (const size_t other : before_[at]) {
          if (!seen.insert(other).second) continue;
          if (is_light(other) && !is_update(*nodes_[other])) {
            stack.push_back(other);
          } else {
            waiting_[other].push_back(i);
            ++missing_[i];
          }
        }
      }
    }
  }

  void emit(size_t idx) {
    std::vector<size_t> stack = {idx};
    while (!stack.empty()) {
      const size_t at = stack.back();
      if (done_[at]) {
        stack.pop_back();
        continue;
      }
      const size_t height = stack.size();
      for (const size_t other : before_[at])
        if (!done_[other]) stack.push_back(other);
      if (stack.size() > height) continue;
      stack.pop_back();
      done_[at] = true;
      out_.push_back(nodes_[at]);
      for (const size_t update : waiting_[at])
        if (--missing_[update] == 0) stack.push_back(update);
    }
  }

  const std::vector<Ref<Node>>& nodes_;
  std::vector<std::vector<size_t>> before_;
  std::unordered_map<const Node*, size_t> position_;
  std::unordered_map<Root, Memory, Root::Hash> memory_;
  std::vector<size_t> effects_;
  int64_t barrier_ = -1;
  std::vector<std::vector<size_t>> waiting_;  // updates that wait for a node
  std::vector<size_t> missing_;
  std::vector<bool> done_;
  std::vector<Ref<Node>> out_;
};

// ---- values computed again ----

// All that is computed again may read and write this part of what all nodes do.
constexpr int64_t recompute_share = 20;
// Nodes in a row that are computed again for one value.
constexpr size_t max_repeated = 2;
// Smaller values are not worth it.
constexpr int64_t worthwhile_bytes = int64_t{256} << 10;

int64_t traffic(const Node& node) {
  if (node.op->view || node.op->views) return 0;
  int64_t bytes = 0;
  for (const Type& type : node.types) bytes += bytes_of(type, *node.graph);
  for_each_input(node, [&](const Value& input) { bytes += bytes_of(type_of(input), *node.graph); });
  return bytes;
}

class Recomputer {
 public:
  explicit Recomputer(Graph& graph) : graph_(graph) {}

  // Lets one value that is only kept while the most memory is in use be computed again; its cost is taken from
  // `allowance`. False where that helps no more.
  bool lower_peak(int64_t& allowance) {
    const LiveMemory memory(graph_);
    find_changes();
    const size_t peak = memory.peak();
    std::unordered_map<Root, Uses, Root::Hash> uses;
    find_uses(peak, uses);
    Candidate best;
    for (const auto& [root, use] : uses) {
      const Life* life = memory.find(root);
      if (!life || life->last >= graph_.nodes.size() || life->first >= peak || use.at_peak || !use.late) continue;
      if (life->bytes < worthwhile_bytes) continue;
      Candidate found{life->bytes, 0, use.late, {}};
      if (!find_nodes(root, life->first, memory, max_repeated, found) || found.cost > allowance) continue;
      if (found.is_better_than(best)) best = std::move(found);
    }
    if (!best.bytes) return false;
    allowance -= best.cost;
    repeat(best.nodes, best.late);
    return true;
  }

 private:
  // Who reads the memory of a value: somebody at the peak; the first position behind it (0: nobody).
  struct Uses {
    bool at_peak = false;
    size_t late = 0;
  };
  struct Candidate {
    int64_t bytes = 0, cost = 0;
    size_t late = 0;
    std::vector<size_t> nodes;  // that are computed again, in order
    bool is_better_than(const Candidate& other) const {
      // Bytes that are spared for what is read and written.
      const double gain = static_cast<double>(bytes) / static_cast<double>(cost),
                   other_gain = other.cost ? static_cast<double>(other.bytes) / static_cast<double>(other.cost) : 0;
      if (gain != other_gain) return gain > other_gain;
      return bytes > other.bytes || (bytes == other.bytes && nodes < other.nodes);
    }
  };

  void find_changes() {
    changes_.clear();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = *graph_.nodes[i];
      for_each_written(node, [&](const Value& value) { changes_[memory_root(value)].push_back(i); });
    }
  }

  // Whether effects may have changed the memory of a value between two positions.
  bool is_changed(const Root& root, size_t from, size_t to) const {
    const auto within = [&](size_t position) { return from <= position && position < to; };
    const auto found = changes_.find(root);
    return found != changes_.end() && std::ranges::any_of(found->second, within);
  }

  void find_uses(size_t peak, std::unordered_map<Root, Uses, Root::Hash>& uses) const {
    for (size_t i = peak; i < graph_.nodes.size(); ++i)
      for_each_input(*graph_.nodes[i], [&](const Value& input) {
        Uses& found = uses[memory_root(input)];
        if (i == peak) found.at_peak = true;
        else if (!found.late) found.late = i;
      });
  }

  static bool can_repeat(const Node& node) {
    const bool cheap = node.op->is_elementwise() || node.op->control == Control::Fused ||
                       (node.op->rows && !node.op->columns) || node.op->has(kCheap);
    return cheap && !has_effect(*node.op) && !node.op->has(kRandom);
  }

  // The node as it is computed again: of a kernel with an epilogue the latter alone, if the product is a result; else
  // null.
  static Ref<Node> repeated(const Ref<Node>& node) {
    if (node->op->control != Control::Fused || !producer_of(*static_cast<Graph*>(node->args[0].graph()))) return node;
    EpilogueParts parts = split_epilogue(*node);
    if (parts.outputs.empty() || parts.outputs.back() != 0) return {};
    parts.operands[parts.product] = node->output(static_cast<uint32_t>(node->types.size()) - 1);
    auto again = make_ref<Node>();
    again->op = node->op;
    again->name = node->name;
    for (const Value& result : parts.loop->results) again->types.push_back(type_of(result));
    again->graph = node->graph;
    again->place = node->place;
    if (parts.loop->nodes.size() != 1) {
      again->args = {Value::of_graph(parts.loop), Value(std::move(parts.operands))};
      return again;
    }
    const Node& single = *parts.loop->nodes[0];
    again->op = single.op;
    again->name = single.name;
    const std::vector<Ref<Node>>& parameters = parts.loop->parameters;
    for (const Value& arg : single.args)
      again->args.push_back(map_inputs(arg, [&](const Value& input) {
        const auto found = std::ranges::find(parameters, node_of(input), [](const Ref<Node>& p) { return p.get(); });
        return parts.operands[static_cast<size_t>(found - parameters.begin())];
      }));
    return again;
  }

  // The node at `idx`, which makes `wanted`, and those of which it needs the results again, since they are gone at
  // candidate.late; at most `limit`. What they read must be there then without living longer, and unchanged.
  bool find_nodes(const Root& wanted, size_t idx, const LiveMemory& memory, size_t limit, Candidate& candidate) const {
    const Ref<Node> again = repeated(graph_.nodes[idx]);
    if (limit == 0 || !again || !can_repeat(*again) || wanted.output >= again->types.size()) return false;
    const Node& node = *again;
    bool good = true;
    for_each_input(node, [&](const Value& input) {
      const Root root = memory_root(input);
      const Life* life = memory.find(root);
      if (is_changed(root, idx, candidate.late)) good = false;
      if (!good || !life || life->last >= candidate.late) return;
      if (std::ranges::count(candidate.nodes, life->first) == 0)
        good = life->first != idx && find_nodes(root, life->first, memory, limit - 1, candidate);
    });
    candidate.nodes.push_back(idx);
    candidate.cost += node.op->is_elementwise() ? traffic(node) : 2 * traffic(node);
    return good;
  }

  // Puts copies of the nodes in front of `position`; whoever reads their results from there on reads the copies'.
  void repeat(const std::vector<size_t>& originals, size_t position) {
    std::unordered_map<const Node*, Ref<Node>> copies;
    std::vector<Ref<Node>> added;
    const auto copy = [&](const Ref<Node>& original) {
      const Ref<Node> node = repeated(original);
      auto made = make_ref<Node>();
      made->op = node->op;
      made->name = node->name;
      made->args = node->args;
      made->types = node->types;
      made->graph = &graph_;
      made->place = node->place;
      made->stops_gradient = node->stops_gradient;
      copies[original.get()] = made;
      added.push_back(made);
    };
    const auto replaced = [&](const Value& value) {
      return map_inputs(value, [&](const Value& input) {
        const auto found = copies.find(node_of(input));
        return found == copies.end() || input.output() >= found->second->types.size()
                   ? input
                   : found->second->output(input.output());
      });
    };
    for (size_t i = originals[0]; i < position; ++i) {
      const Ref<Node>& node = graph_.nodes[i];
      const bool is_view = node->op->view || node->op->views;
      if (std::ranges::count(originals, i) == 0 && !(is_view && copies.contains(node_of(node->args[0])))) continue;
      copy(node);
      for (Value& arg : added.back()->args) arg = replaced(arg);
    }
    for (size_t i = position; i < graph_.nodes.size(); ++i)
      for (Value& arg : graph_.nodes[i]->args) arg = replaced(arg);
    graph_.nodes.insert(graph_.nodes.begin() + static_cast<int64_t>(position), added.begin(), added.end());
  }

  Graph& graph_;
  std::unordered_map<Root, std::vector<size_t>, Root::Hash> changes_;  // positions of the nodes that write
};

}  // namespace

bool schedule_updates(Graph& graph) {
  graph.number();
  std::vector<Ref<Node>> nodes;
  bool split = false;
  for (const Ref<Node>& node : graph.nodes) {
    if (!is_update(*node)) {
      nodes.push_back(node);
      continue;
    }
    split_update(*node, nodes);
    split = true;
  }
  if (!split) return false;
  graph.nodes = Order(nodes).run();
  return true;
}

bool recompute_cheap(Graph& graph) {
  int64_t allowance = 0;
  for (const Ref<Node>& node : graph.nodes) allowance += traffic(*node);
  allowance /= recompute_share;
  Recomputer recomputer(graph);
  bool changed = false;
  while (recomputer.lower_peak(allowance)) changed = true;
  return changed;
}

}  // namespace morel
