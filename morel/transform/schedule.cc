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

}  // namespace morel
