#include "morel/transform/fuse.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "morel/transform/effects.h"
#include "morel/transform/fused.h"
#include "morel/transform/simplify.h"

namespace morel {
namespace {

// Inputs and outputs that one loop may have.
constexpr size_t max_buffers = 14;
// Operators that one loop may have: more gain nothing and take long to compile.
constexpr size_t max_members = 64;

using Kind = FusedBody::Kind;

struct Group {
  std::vector<Ref<Node>> members;
  Shape space;
  Kind kind = Kind::Elementwise;
  bool has_columns = false;
  bool open = true;
  // A kernel that comes before the loop, and a reshape of its result that the loop reads instead.
  Ref<Node> producer, reshape;
};

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph) {}

  bool run() {
    graph_.number();
    for (const Ref<Node>& node : graph_.nodes) visit(node);
    find_users();
    std::erase_if(group_of_, [&](const auto& entry) { return !worth(*entry.second); });
    bool changed = false;
    std::vector<Ref<Node>> nodes;
    Replaced replaced;
    for (Ref<Node>& node : graph_.nodes) {
      for (Value& arg : node->args) arg = map(arg, replaced);
      const Group* group = find(node.get());
      if (!group) {
        nodes.push_back(node);
      } else if (group->members.back() == node) {  // the group stands where its last member stood
        nodes.push_back(make(*group, replaced));
        if (group->reshape && visible_.contains({group->reshape.get(), 0})) {
          group->reshape->args[0] = map(group->reshape->args[0], replaced);
          nodes.push_back(group->reshape);
        }
        changed = true;
      }
    }
    for (Value& result : graph_.results) result = map(result, replaced);
    graph_.nodes.swap(nodes);
    return changed;
  }

 private:
  using Replaced = std::unordered_map<const Node*, std::vector<Value>>;

  static Value map(const Value& value, const Replaced& replaced) {
    return map_inputs(value, [&](const Value& reference) {
      const auto found = replaced.find(node_of(reference));
      return found == replaced.end() ? reference : found->second[reference.output()];
    });
  }

  Group* find(const Node* node) const {
    const auto found = group_of_.find(node);
    return found == group_of_.end() ? nullptr : found->second;
  }

  void visit(const Ref<Node>& node) {
    if (effects_of(*node).writes) {
      for_each_written(*node, [&](const Value& value) { close_users(value); });
      for_each_input(*node, [&](const Value& input) {
        if (Group* group = find(node_of(input))) group->open = false;
      });
      return;
    }
    if (Group* group = reshaped_product(*node)) {
      group->reshape = node;
      group->space = node->types[0].shape;
      group_of_[node.get()] = group;
      return;
    }
    Shape space;
    const Part part = part_of(*node, space);
    Group* home = nullptr;
    // Of two products, the loop follows on that which comes later.
    for_each_input(*node, [&](const Value& input) {
      Group* group = find(node_of(input));
      if (!group || !fits(*group, *node, part, space)) return;
      if (!home || (home->producer && group->producer && position_of(*home) < position_of(*group))) home = group;
    });
    for_each_input(*node, [&](const Value& input) {
      Group* group = find(node_of(input));
      if (!group || group == home || !fits(*group, *node, part, space)) return;
      if (part != Part::Reduce && can_absorb(*home, *group, *node)) absorb(*home, *group);
    });
    if (home && size_of_union(*home, *home, *node) > max_buffers) home = nullptr;
    // A group that somebody else reads cannot grow: it would move behind its reader.
    for_each_input(*node, [&](const Value& input) {
      Group* group = find(node_of(input));
      if (group && group != home) group->open = false;
    });
    const bool produces = node->op->has(kEpilogue);
    if (!produces && (part == Part::None || (part == Part::Reduce && !home))) return;
    if (!home) {
      groups_.push_back(std::make_unique<Group>());
      home = groups_.back().get();
      home->space = produces ? node->types[0].shape : std::move(space);
    }
    note_use(*home, *node);
    if (produces) {
      home->producer = node;
      group_of_[node.get()] = home;
    } else {
      add(*home, node, part);
    }
  }

  // A group stands where its last member stood, so it cannot grow past a write to what it reads or made. Captures share
  // memory where they have the same storage; null where it may be anybody's: of parameters and of control flow.
  static const void* memory_of(const Value& value) {
    const Node* root = root_of(value);
    if (root->op) return root->op->control == Control::None || root->op->control == Control::Fused ? root : nullptr;
    return root->captured ? static_cast<const void*>(root->captured->storage.get()) : nullptr;
  }

  void note_use(Group& group, const Node& member) {
    users_[&member].push_back(&group);
    for_each_input(member, [&](const Value& input) { users_[memory_of(input)].push_back(&group); });
  }

  void close_users(const Value& written) {
    const void* memory = memory_of(written);
    if (!memory)
      for (const auto& group : groups_) group->open = false;
    for (const void* one : {memory, static_cast<const void*>(nullptr)}) {
      std::vector<Group*>& users = users_[one];
      for (Group* group : users) group->open = false;
      users.clear();
    }
  }

  // The group of the product that a node only gives another shape: the kernel writes it densely.
  Group* reshaped_product(const Node& node) const {
    if (!node.op->view || !node_of(node.args[0])) return nullptr;
    Group* group = find(node_of(node.args[0]));
    if (!group || !group->open || !group->members.empty() || group->reshape || group->producer->op->strides ||
        node.args[0].output() != 0)
      return nullptr;
    const Shape &from = shape_of(node.args[0]), &to = node.types[0].shape;
    const ArgView call(*node.op, {node.args.data(), node.args.size()});
    const std::optional<Layout> view = node.op->view(call, {from, contiguous_strides(from), 0});
    return view && Dim(view->offset).identical(0) && same_strides(view->strides, contiguous_strides(to)) ? group
                                                                                                         : nullptr;
  }

  static bool same_strides(const Strides& a, const Strides& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](Dim x, Dim y) { return x.identical(y); });
  }

  static int64_t position_of(const Group& group) { return group.producer->id; }

  // Whether a node that reads a group can become one of its members.
  bool fits(const Group& group, const Node& node, Part part, const Shape& space) const {
    if (!group.open || group.members.size() >= max_members || part == Part::None) return false;
    if (group.producer && part != Part::Element) return false;
    const bool rows = group.kind == Kind::Rows;
    if (!same(space, group.space) && !(rows && part == Part::Element && same(space, row_shape(group.space))))
      return false;
    bool good = true;
    for_each_input(node, [&](const Value& input) {
      if (find(node_of(input)) != &group) return;
      // Results that are there when the loop is over: of a reduction that drops its axis, of a columns companion.
      const Shape& shape = shape_of(input);
      good = good && (same(shape, group.space) || (rows && same(shape, row_shape(group.space))));
      good = good && !(node_of(input) == group.producer.get() && input.output() != 0);
      good = good && !node.op->columns;  // its two programs read what is in memory
    });
    return good && (part != Part::Reduce || (group.kind == Kind::Elementwise && !same(node.types[0].shape, space) &&
                                             reads_whole_tensors(group)));
  }

  // A reduction cuts its input in many ways: others than tensors of its shape and scalars cannot follow.
  bool reads_whole_tensors(const Group& group) const {
    bool good = true;
    for (const Ref<Node>& member : group.members)
      for_each_input(*member, [&](const Value& input) {
        const Shape& shape = shape_of(input);
        good = good && (same(shape, group.space) || same(shape, Shape(shape.size(), 1)));
      });
    return good;
  }

  bool can_absorb(const Group& home, const Group& other, const Node& node) const {
    const bool both_elementwise = home.kind == Kind::Elementwise && other.kind == Kind::Elementwise;
    if (home.producer ? other.producer || !both_elementwise : other.producer && !both_elementwise) return false;
    return same(home.space, other.space) && !(home.has_columns && other.has_columns) &&
           home.members.size() + other.members.size() < max_members && size_of_union(home, other, node) <= max_buffers;
  }

  void add(Group& home, const Ref<Node>& node, Part part) {
    home.members.push_back(node);
    group_of_[node.get()] = &home;
    home.has_columns |= node->op->columns != nullptr;
    if (part == Part::Row || part == Part::RowReduce) home.kind = Kind::Rows;
    if (part == Part::Reduce) {
      home.kind = Kind::Reduction;
      home.open = false;
    }
  }

  void absorb(Group& home, Group& other) {
    if (other.producer) note_use(home, *other.producer);
    for (Ref<Node>& node : other.members) {
      note_use(home, *node);
      group_of_[node.get()] = &home;
      home.members.push_back(std::move(node));
    }
    if (other.kind == Kind::Rows) home.kind = Kind::Rows;
    home.has_columns |= other.has_columns;
    if (other.producer) {
      home.producer = std::move(other.producer);
      home.reshape = std::move(other.reshape);
      group_of_[home.producer.get()] = &home;
      if (home.reshape) group_of_[home.reshape.get()] = &home;
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
      for (uint32_t i = 0; i < member->types.size(); ++i)
        if (visible_.contains({member.get(), i})) buffers.emplace(member.get(), i);
    }
    return group.members.size() + (group.producer ? 1 : 0) > 1 && !group.members.empty() &&
           buffers.size() <= max_buffers;
  }

  // Members that are read by others than members, or returned.
  void find_users() {
    for (const Ref<Node>& node : graph_.nodes) {
      const Group* home = find(node.get());
      for_each_input(*node, [&](const Value& input) {
        const Group* group = find(node_of(input));
        if (group && group != home) visible_.emplace(node_of(input), input.output());
      });
    }
    for (const Value& result : graph_.results)
      for_each_input(result, [&](const Value& value) { visible_.emplace(node_of(value), value.output()); });
  }

  Ref<Node> make(const Group& group, Replaced& replaced) {
    auto body = make_ref<Graph>();
    body->name = "loop";
    std::unordered_map<const Node*, std::unordered_map<uint32_t, Value>> inner;
    Value::List operands;
    const auto append = [&](const Ref<Node>& member) {
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
      for (uint32_t i = 0; i < member->types.size(); ++i) inner[member.get()][i] = copy.output(i);
    };
    if (group.producer) append(group.producer);
    if (group.reshape) append(group.reshape);
    for (const Ref<Node>& member : group.members) append(member);
    auto node = make_ref<Node>();
    const auto give = [&](const Ref<Node>& member, uint32_t output) {
      std::vector<Value>& stands = replaced[member.get()];
      stands.resize(member->types.size());
      stands[output] = node->output(static_cast<uint32_t>(node->types.size()));
      node->types.push_back(member->types[output]);
      body->results.push_back(inner[member.get()][output]);
    };
    // Over the whole space and over rows first; what is there when the loop is over comes last.
    for (const bool late : {false, true})
      for (const Ref<Node>& member : group.members)
        for (uint32_t i = 0; i < member->types.size(); ++i)
          if (visible_.contains({member.get(), i}) && comes_last(*member, i) == late) give(member, i);
    if (const Ref<Node>& producer = group.producer) {
      for (uint32_t i = 1; i < producer->types.size(); ++i)
        if (visible_.contains({producer.get(), i})) give(producer, i);
      if (visible_.contains({producer.get(), 0}) || (group.reshape && visible_.contains({group.reshape.get(), 0})))
        give(producer, 0);
    }
    const OpDef& op = find_op("fused");
    node->op = &op;
    node->name = op.name;
    node->args = {Value::of_graph(body), Value(std::move(operands))};
    node->place = group.members.back()->place;
    node->graph = &graph_;
    return node;
  }

  Graph& graph_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::unordered_map<const Node*, Group*> group_of_;
  std::unordered_map<const void*, std::vector<Group*>> users_;  // groups by the memory that they read or made
  std::set<std::pair<const Node*, uint32_t>> visible_;
};

// Whether a node only repeats its first argument along axes, as operators with several operands do by themselves.
bool is_broadcast(const Node& node) {
  if (!node.op->view || !node_of(node.args[0])) return false;
  const Shape &from = shape_of(node.args[0]), &to = node.types[0].shape;
  if (from.size() > to.size()) return false;
  const Layout input{from, contiguous_strides(from), 0};
  const std::optional<Layout> view = node.op->view(ArgView(*node.op, {node.args.data(), node.args.size()}), input);
  if (!view || !Dim(view->offset).identical(0)) return false;
  const size_t shift = to.size() - from.size();
  for (size_t axis = 0; axis < to.size(); ++axis) {
    const bool repeats = axis < shift || from[axis - shift].identical(1);
    const bool fits =
        repeats ? to[axis].identical(1) || view->strides[axis].identical(0)
                : to[axis].identical(from[axis - shift]) && view->strides[axis].identical(input.strides[axis - shift]);
    if (!fits) return false;
  }
  return true;
}

// Elementwise operators read what was broadcast for them in its own shape, where another operand has theirs.
bool remove_broadcasts(Graph& graph) {
  bool changed = false;
  for (const Ref<Node>& node : graph.nodes) {
    if (!node->op->is_elementwise()) continue;
    for (size_t i = 0; i < node->args.size(); ++i) {
      const Node* view = node_of(node->args[i]);
      if (!view || !view->op || !is_broadcast(*view)) continue;
      Shape shape = shape_of(view->args[0]);
      for (size_t k = 0; k < node->args.size(); ++k)
        if (k != i && node_of(node->args[k])) shape = broadcast_shapes(*node->op, shape, shape_of(node->args[k]));
      if (!same(shape, node->types[0].shape)) continue;
      node->args[i] = view->args[0];
      changed = true;
    }
  }
  return changed;
}

}  // namespace

bool fuse(Graph& graph) {
  bool changed = remove_broadcasts(graph) && remove_dead_nodes(graph);
  for (const Ref<Node>& node : graph.nodes) {
    if (node->op->control == Control::Fused) continue;
    for_each_body(*node, [&](Graph& body) { changed |= fuse(body); });
  }
  return Fuser(graph).run() || changed;
}

}  // namespace morel
