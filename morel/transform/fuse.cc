#include "morel/transform/fuse.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "morel/ops/call.h"

namespace morel {
namespace {

// Inputs and outputs that one loop may have.
constexpr size_t max_buffers = 14;
// Operators that one loop may have: more gain nothing and take long to compile.
constexpr size_t max_members = 64;

bool is_scalar_argument(const OpDef& op, size_t i) {
  return !op.schema.args[i].is_tensor_like() && !(op.schema.args[i].kinds & kNumber);
}

// A number that is the same whatever sizes the graph is called with.
bool is_constant(const Value& arg) { return arg.is_number() && arg.tag() != Value::Tag::Size; }

bool is_plain(DType dtype) { return dtype == DType::Bool || compute_dtype(dtype) == dtype; }

// Whether a node is a loop without conversions on the way: its operands have the dtype in which it computes. (Halves
// are left alone: they are rounded between operators.)
bool can_fuse(const Node& node) {
  const OpDef& op = *node.op;
  if (!op.is_elementwise() || node.types.size() != 1 || !is_plain(node.types[0].dtype)) return false;
  const DType compute = elementwise_compute_dtype(op, {node.args.data(), node.args.size()});
  if (!is_plain(compute) || is_complex(compute)) return false;
  for (size_t i = 0; i < node.args.size(); ++i) {
    const Value& arg = node.args[i];
    const bool is_node = arg.tag() == Value::Tag::Node;
    if (is_scalar_argument(op, i)) {
      if (is_node || !is_constant(arg)) return false;
    } else if (is_node) {
      if (dtype_of_value(arg) != (op.bool_args >> i & 1 ? DType::Bool : compute)) return false;
    } else if (!is_constant(arg)) {
      return false;
    }
  }
  return true;
}

struct Group {
  std::vector<Ref<Node>> members;
  bool open = true;
};

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph) {}

  bool run() {
    for (const Ref<Node>& node : graph_.nodes) visit(node);
    find_users();
    std::erase_if(group_of_, [&](const auto& entry) { return !worth(*entry.second); });
    bool changed = false;
    std::vector<Ref<Node>> nodes;
    std::unordered_map<const Node*, Value> replaced;
    for (Ref<Node>& node : graph_.nodes) {
      for (Value& arg : node->args) arg = map(arg, replaced);
      const Group* group = find(node.get());
      if (!group) {
        nodes.push_back(node);
      } else if (group->members.back() == node) {  // the group stands where its last member stood
        nodes.push_back(make(*group, replaced));
        changed = true;
      }
    }
    for (Value& result : graph_.results) result = map(result, replaced);
    graph_.nodes.swap(nodes);
    return changed;
  }

 private:
  static Value map(const Value& value, const std::unordered_map<const Node*, Value>& replaced) {
    return map_inputs(value, [&](const Value& reference) {
      const auto found = replaced.find(node_of(reference));
      return found == replaced.end() ? reference : found->second;
    });
  }

  Group* find(const Node* node) const {
    const auto found = group_of_.find(node);
    return found == group_of_.end() ? nullptr : found->second;
  }

  void visit(const Ref<Node>& node) {
    if (has_effect(*node->op)) {  // what members read may change here
      for (const auto& group : groups_) group->open = false;
      return;
    }
    Group* home = nullptr;
    const bool fusable = can_fuse(*node);
    if (fusable) {
      for_each_input(*node, [&](const Value& input) {
        Group* group = find(node_of(input));
        if (!group || !group->open || group->members.size() >= max_members ||
            group->members[0]->types[0].shape != node->types[0].shape || group == home)
          return;
        if (!home) home = group;
        else if (home->members.size() + group->members.size() < max_members &&
                 size_of_union(*home, *group, *node) <= max_buffers)
          absorb(*home, *group);
      });
      if (home && size_of_union(*home, *home, *node) > max_buffers) home = nullptr;
    }
    // A group that somebody else reads cannot grow: it would move behind its reader.
    for_each_input(*node, [&](const Value& input) {
      Group* group = find(node_of(input));
      if (group && group != home) group->open = false;
    });
    if (!fusable) return;
    if (!home) {
      groups_.push_back(std::make_unique<Group>());
      home = groups_.back().get();
    }
    home->members.push_back(node);
    group_of_[node.get()] = home;
  }

  void absorb(Group& home, Group& other) {
    for (Ref<Node>& node : other.members) {
      group_of_[node.get()] = &home;
      home.members.push_back(std::move(node));
    }
    other.members.clear();
    other.open = false;
  }

  using Buffers = std::set<std::pair<const Node*, uint32_t>>;

  // What a group reads from outside.
  static void add_inputs(const Node& member, const std::unordered_set<const Node*>& inside, Buffers& out) {
    for_each_input(member, [&](const Value& input) {
      if (!inside.contains(node_of(input))) out.emplace(node_of(input), input.output());
    });
  }

  // Buffers that two groups with one more node need at least.
  static size_t size_of_union(const Group& a, const Group& b, const Node& node) {
    std::unordered_set<const Node*> inside;
    for (const Group* group : {&a, &b})
      for (const Ref<Node>& member : group->members) inside.insert(member.get());
    Buffers buffers;
    for (const Group* group : {&a, &b})
      for (const Ref<Node>& member : group->members) add_inputs(*member, inside, buffers);
    add_inputs(node, inside, buffers);
    return buffers.size() + 1;
  }

  bool worth(const Group& group) const {
    std::unordered_set<const Node*> inside;
    for (const Ref<Node>& member : group.members) inside.insert(member.get());
    Buffers buffers;
    for (const Ref<Node>& member : group.members) {
      add_inputs(*member, inside, buffers);
      if (visible_.contains(member.get())) buffers.emplace(member.get(), 0);
    }
    return group.members.size() > 1 && buffers.size() <= max_buffers;
  }

  // Members that are read by others than members, or returned.
  void find_users() {
    for (const Ref<Node>& node : graph_.nodes) {
      const Group* home = find(node.get());
      for_each_input(*node, [&](const Value& input) {
        const Group* group = find(node_of(input));
        if (group && group != home) visible_.insert(node_of(input));
      });
    }
    for (const Value& result : graph_.results)
      for_each_input(result, [&](const Value& value) { visible_.insert(node_of(value)); });
  }

  Ref<Node> make(const Group& group, std::unordered_map<const Node*, Value>& replaced) {
    auto body = make_ref<Graph>();
    body->name = "loop";
    std::unordered_map<const Node*, std::unordered_map<uint32_t, Value>> inner;
    Value::List operands;
    Types types;
    std::vector<const Node*> visible;
    for (const Ref<Node>& member : group.members) {
      Args args;
      for (const Value& arg : member->args) {
        args.push_back(map_inputs(map(arg, replaced), [&](const Value& reference) {
          Value& known = inner[node_of(reference)][reference.output()];
          if (known.is_none()) {
            known = body->add_parameter(type_of(reference));
            operands.push_back(reference);
          }
          return known;
        }));
      }
      Node& copy = body->add_node(*member->op, member->name, std::move(args), member->types, member->place);
      inner[member.get()][0] = copy.output();
      if (!visible_.contains(member.get())) continue;
      body->results.push_back(copy.output());
      types.push_back(member->types[0]);
      visible.push_back(member.get());
    }
    const OpDef& op = find_op("fused");
    auto node = make_ref<Node>();
    node->op = &op;
    node->name = op.name;
    node->args = {Value::of_graph(body), Value(std::move(operands))};
    node->types = std::move(types);
    node->place = group.members.back()->place;
    node->graph = &graph_;
    for (size_t i = 0; i < visible.size(); ++i) replaced[visible[i]] = node->output(static_cast<uint32_t>(i));
    return node;
  }

  Graph& graph_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::unordered_map<const Node*, Group*> group_of_;
  std::unordered_set<const Node*> visible_;
};

}  // namespace

bool fuse(Graph& graph) {
  bool changed = false;
  for (const Ref<Node>& node : graph.nodes) {
    if (node->op->control == Control::Fused) continue;
    for_each_body(*node, [&](Graph& body) { changed |= fuse(body); });
  }
  return Fuser(graph).run() || changed;
}

loops::Program fused_program(const Graph& body) {
  loops::ProgramBuilder builder("fused");
  std::unordered_map<const Node*, loops::Expr> values;
  for (const Ref<Node>& parameter : body.parameters) values[parameter.get()] = builder.input(parameter->types[0].dtype);
  for (const Ref<Node>& node : body.nodes) {
    const OpDef& op = *node->op;
    const DType compute = elementwise_compute_dtype(op, {node->args.data(), node->args.size()});
    loops::Expr args[8];
    for (size_t i = 0; i < node->args.size(); ++i) {
      const Value& arg = node->args[i];
      const DType wanted = op.bool_args >> i & 1 ? DType::Bool : compute;
      args[i] = node_of(arg) ? values.at(node_of(arg)) : loops::constant(arg.complex(), wanted);
    }
    values[node.get()] = op.loop(args);
  }
  for (const Value& result : body.results) {
    const Node* node = node_of(result);
    builder.store(builder.output(node->types[0].dtype), values.at(node));
  }
  return builder.finish();
}

}  // namespace morel
