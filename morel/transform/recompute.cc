#include "morel/transform/recompute.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "morel/transform/effects.h"
#include "morel/transform/fused.h"
#include "morel/transform/live_memory.h"
#include "morel/transform/simplify.h"

namespace morel {
namespace {

// All that is computed again may read and write this part of what all nodes do.
constexpr int64_t recompute_share = 20;
// By how much arithmetic makes products and convolutions longer than what they read and write.
constexpr int64_t product_weight = 4;
// Nodes in a row that are computed again for one value.
constexpr size_t max_repeated = 2;
// Smaller values are not worth a step.
constexpr int64_t worthwhile_bytes = int64_t{64} << 10;
// An operand of at most this part of the value is kept for it.
constexpr int64_t kept_share = 8;

const Graph* body_of(const Node& node) {
  return node.op->control == Control::Fused ? static_cast<Graph*>(node.args[0].graph()) : nullptr;
}

int64_t traffic(const Node& node) {
  if (node.op->view || node.op->views) return 0;
  int64_t bytes = 0;
  for (const Type& type : node.types) bytes += bytes_of(type, *node.graph);
  for_each_input(node, [&](const Value& input) { bytes += bytes_of(type_of(input), *node.graph); });
  return bytes;
}

int64_t work(const Node& node) {
  const Graph* body = body_of(node);
  const bool is_product = node.op->has(kEpilogue) || (body && producer_of(*body));
  return traffic(node) * (is_product ? product_weight : 1);
}

// Rows are gone through several times.
int64_t cost_of(const Node& node) {
  const Graph* body = body_of(node);
  const bool once = node.op->is_elementwise() || (body && describe_fused(*body).kind == FusedBody::Kind::Elementwise);
  return once ? traffic(node) : 2 * traffic(node);
}

bool is_cheap(const Node& node) {
  const bool cheap = node.op->is_elementwise() || node.op->control == Control::Fused ||
                     (node.op->rows && !node.op->columns) || node.op->has(kCheap);
  return cheap && !has_effect(*node.op) && !node.op->has(kRandom);
}

// The node as it is computed again: of a kernel with an epilogue the latter alone, if the product is a result; null
// where it cannot be.
Ref<Node> repeated(const Ref<Node>& node) {
  const Graph* body = body_of(*node);
  if (!body || !producer_of(*body)) return is_cheap(*node) ? node : Ref<Node>();
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

// A node that is computed again in front of another one; both by position.
struct Copy {
  size_t late, idx;
  auto operator<=>(const Copy&) const = default;
};

// Finds what to compute again.
class Chooser {
 public:
  explicit Chooser(const Graph& graph) : graph_(graph), memory_(graph), repeated_(graph.nodes.size()) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = *graph.nodes[i];
      position_[&node] = i;
      for_each_written(node, [&](const Value& value) { writes_[memory_root(value)].push_back(i); });
      allowance_ += work(node);
    }
    allowance_ /= recompute_share;
  }

  // In order, with what repeated() gives for each.
  std::vector<Copy> run() {
    int64_t lowest = memory_.peak_bytes();
    size_t useful = 0;
    bool goes_on = true;
    while (goes_on) {
      goes_on = false;
      const size_t peak = memory_.peak();
      for (const Root& root : candidates(peak)) {
        const std::optional<Candidate> found = examine(*memory_.find(root, peak), peak);
        if (!found || found->cost > allowance_) continue;
        apply(*found);
        goes_on = true;
        const size_t now = memory_.peak();
        if (memory_.bytes_at(now) < lowest) {
          lowest = memory_.bytes_at(now);
          useful = copies_.size();
        }
        if (now != peak) break;
      }
    }
    copies_.resize(useful);
    std::ranges::sort(copies_);
    copies_.erase(std::unique(copies_.begin(), copies_.end()), copies_.end());
    return std::move(copies_);
  }

  const Ref<Node>& repeated_at(size_t idx) {
    std::optional<Ref<Node>>& known = repeated_[idx];
    if (!known) known = repeated(graph_.nodes[idx]);
    return *known;
  }

 private:
  struct Candidate {
    Root root;
    size_t late = 0;  // the first position behind the peak that reads it
    int64_t saved = 0, cost = 0;
    std::vector<Root> made = {};  // values that are computed again, in order
    double gain() const { return static_cast<double>(saved) / static_cast<double>(std::max<int64_t>(cost, 1)); }
  };

  // Values that could be computed again behind the peak, those first which spare most for what is read and written.
  std::vector<Root> candidates(size_t peak) {
    std::vector<Candidate> found;
    for (const Life& life : memory_.lives())
      if (std::optional<Candidate> candidate = examine(life, peak)) found.push_back(std::move(*candidate));
    std::ranges::stable_sort(found, [](const Candidate& a, const Candidate& b) {
      return a.gain() != b.gain() ? a.gain() > b.gain() : a.saved > b.saved;
    });
    std::vector<Root> out;
    for (const Candidate& candidate : found) out.push_back(candidate.root);
    return out;
  }

  std::optional<Candidate> examine(const Life& life, size_t peak) {
    if (life.bytes < worthwhile_bytes || life.first >= peak || life.last() <= peak) return {};
    if (life.last() == graph_.nodes.size() || writes_.contains(life.root)) return {};
    const size_t late = *std::ranges::lower_bound(life.uses, peak);
    if (late == peak) return {};
    Candidate out{life.root, late, life.bytes};
    const bool possible = add(life.root, max_repeated, peak, out);
    return possible && out.saved > 0 ? std::optional(out) : std::nullopt;
  }

  // Adds the node that makes `wanted`, and those of which it needs the results again since they are gone by then; at
  // most `limit`. What is read must be unchanged, and there or small.
  bool add(const Root& wanted, size_t limit, size_t peak, Candidate& out) {
    const size_t idx = position_.at(wanted.node);
    const Ref<Node>& again = repeated_at(idx);
    if (limit == 0 || !again || wanted.output >= again->types.size()) return false;
    bool good = true;
    for_each_input(*again, [&](const Value& input) {
      const Root root = memory_root(input);
      const Life* life = memory_.find(root, out.late);
      good = good && !is_changed(root, idx, out.late);
      if (!good || !life || life->last() >= out.late || std::ranges::count(out.made, root)) return;
      if (life->bytes * kept_share > memory_.find(out.root, peak)->bytes) good = add(root, limit - 1, peak, out);
      else if (life->last() < peak) out.saved -= life->bytes;
    });
    out.made.push_back(wanted);
    out.cost += cost_of(*again);
    return good;
  }

  // Whether effects may have changed the memory of a value between two positions.
  bool is_changed(const Root& root, size_t from, size_t to) const {
    const auto found = writes_.find(root);
    return found != writes_.end() &&
           std::ranges::any_of(found->second, [&](size_t position) { return from <= position && position < to; });
  }

  void apply(const Candidate& candidate) {
    allowance_ -= candidate.cost;
    for (const Root& root : candidate.made) {
      const size_t idx = position_.at(root.node);
      memory_.make_again(root, candidate.late);
      copies_.push_back({candidate.late, idx});
      for_each_input(*repeated_at(idx),
                     [&](const Value& input) { memory_.add_use(memory_root(input), candidate.late); });
    }
  }

  const Graph& graph_;
  LiveMemory memory_;
  std::unordered_map<const Node*, size_t> position_;
  std::unordered_map<Root, std::vector<size_t>, Root::Hash> writes_;  // positions of the nodes that write
  std::vector<std::optional<Ref<Node>>> repeated_;
  int64_t allowance_ = 0;
  std::vector<Copy> copies_;
};

// Adds the copies of nodes to a graph. Who reads a value reads what was made of it last.
class Writer {
 public:
  Writer(Graph& graph, Chooser& chooser, std::span<const Copy> copies)
      : graph_(graph), chooser_(chooser), copies_(copies), last_read_(graph.nodes.size()) {
    find_views();
  }

  void run() {
    std::vector<Ref<Node>> nodes;
    std::vector<Args> args;  // a node is copied as it was
    size_t next = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (; next < copies_.size() && copies_[next].late == i; ++next) {
        const Ref<Node>& original = graph_.nodes[copies_[next].idx];
        add(nodes, *original, *chooser_.repeated_at(copies_[next].idx));
        for (const size_t view : views_[original.get()])
          if (view < i && last_read_[view] >= i) add(nodes, *graph_.nodes[view], *graph_.nodes[view]);
      }
      nodes.push_back(graph_.nodes[i]);
      args.push_back(replaced(*graph_.nodes[i]));
    }
    for (size_t i = 0; i < args.size(); ++i) graph_.nodes[i]->args = std::move(args[i]);
    graph_.nodes.swap(nodes);
  }

 private:
  // The views of what is copied, and how late they are read, also through other views.
  void find_views() {
    std::unordered_map<const Node*, size_t> position;
    const auto note = [&](const Value& input, size_t reader) {
      const auto found = position.find(node_of(input));
      if (found != position.end()) last_read_[found->second] = std::max(last_read_[found->second], reader);
    };
    for (const Copy& copy : copies_) views_[graph_.nodes[copy.idx].get()];
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Ref<Node>& node = graph_.nodes[i];
      position[node.get()] = i;
      for_each_input(*node, [&](const Value& input) { note(input, i); });
      if (!node->op->view && !node->op->views) continue;
      if (const auto found = views_.find(memory_root(node->output()).node); found != views_.end())
        found->second.push_back(i);
    }
    for (const Copy& copy : copies_)
      for_each_input(*chooser_.repeated_at(copy.idx), [&](const Value& input) { note(input, copy.late); });
    for (size_t i = graph_.nodes.size(); i-- > 0;)
      if (graph_.nodes[i]->op->view || graph_.nodes[i]->op->views) note(graph_.nodes[i]->args[0], last_read_[i]);
  }

  Args replaced(const Node& node) const {
    Args out;
    for (const Value& arg : node.args)
      out.push_back(map_inputs(arg, [&](const Value& input) {
        const auto found = current_.find(node_of(input));
        return found == current_.end() || input.output() >= found->second->types.size()
                   ? input
                   : found->second->output(input.output());
      }));
    return out;
  }

  void add(std::vector<Ref<Node>>& nodes, const Node& original, const Node& as) {
    auto made = make_ref<Node>();
    made->op = as.op;
    made->name = as.name;
    made->args = replaced(as);
    made->types = as.types;
    made->graph = &graph_;
    made->place = as.place;
    made->stops_gradient = as.stops_gradient;
    current_[&original] = made;
    nodes.push_back(std::move(made));
  }

  Graph& graph_;
  Chooser& chooser_;
  std::span<const Copy> copies_;
  std::vector<size_t> last_read_;                               // of nodes, by position
  std::unordered_map<const Node*, std::vector<size_t>> views_;  // positions, in order
  std::unordered_map<const Node*, Ref<Node>> current_;          // what was made again of a node
};

}  // namespace

bool recompute_cheap(Graph& graph) {
  Chooser chooser(graph);
  const std::vector<Copy> copies = chooser.run();
  if (copies.empty()) return false;
  Writer(graph, chooser, copies).run();
  remove_dead_nodes(graph);
  return true;
}

}  // namespace morel
