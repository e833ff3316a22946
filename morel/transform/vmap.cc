#include "morel/transform/vmap.h"

#include <algorithm>
#include <unordered_set>

#include "morel/ops/axes.h"
#include "morel/transform/effects.h"
#include "morel/transform/rewrite.h"
#include "morel/transform/vmap_call.h"

namespace morel {
namespace {

// Runs the nodes of a graph for a batch.
class Vectoriser {
 public:
  Vectoriser(Builder& builder, Dim batch) : builder_(builder), batch_(batch) {}

  std::vector<Batched> run(const Graph& graph, std::span<const Batched> operands) {
    for (size_t i = 0; i < graph.parameters.size(); ++i) values_[graph.parameters[i].get()] = {operands[i]};
    for (const Ref<Node>& capture : graph.captures) values_[capture.get()] = {{Value(capture->captured), false}};
    const std::unordered_set<const Node*> apart = changed_apart(graph, operands);
    for (const Ref<Node>& node : graph.nodes) {
      if (auto* graphs = dynamic_cast<GraphBuilder*>(&builder_)) {
        graphs->set_place(node->place);
        graphs->set_stops_gradient(node->stops_gradient);
      }
      values_[node.get()] = step(*node);
      if (apart.contains(node.get()))
        for (Batched& value : values_[node.get()])
          value = {builder_("clone", Sym(builder_, in_batch(value))).value(), true};
    }
    std::vector<Batched> out;
    for (const Value& result : graph.results) out.push_back(of(result));
    return out;
  }

 private:
  const Batched& of(const Value& value) const { return values_.at(node_of(value))[value.output()]; }

  static bool is_random(const Node& node) {
    return std::ranges::any_of(node.op->schema.args, [](const ArgSpec& spec) { return spec.kinds & kRng; });
  }

  // Nodes that make the same for all examples, in memory that later calls change by what differs between them.
  static std::unordered_set<const Node*> changed_apart(const Graph& graph, std::span<const Batched> operands) {
    std::unordered_set<const Node*> apart, batched;
    for (size_t i = 0; i < graph.parameters.size(); ++i)
      if (operands[i].batched) batched.insert(graph.parameters[i].get());
    for (bool settled = false; !settled;) {
      settled = true;
      for (const Ref<Node>& node : graph.nodes) {
        bool differs = is_random(*node);
        for_each_input(*node, [&](const Value& input) { differs |= batched.contains(node_of(input)); });
        if (!differs) continue;
        batched.insert(node.get());
        if (node->op->control != Control::None) continue;
        for_each_written(*node, [&](const Value& value) {
          const Node* root = root_of(value);
          if (!root->op || root->op->control != Control::None || !batched.insert(root).second) return;
          apart.insert(root);
          settled = false;
        });
      }
    }
    return apart;
  }

  std::vector<Batched> step(const Node& node) {
    if (node.op->control != Control::None) return control(node);
    VmapArgs args(builder_, batch_);
    for (const Value& value : node.args) add(args, value);
    if (!args.any() && !is_random(node)) return all(builder_.emit(*node.op, args.values()), false);
    const auto nested = [this](const Graph& graph, std::span<const Batched> operands) {
      return Vectoriser(builder_, batch_).run(graph, operands);
    };
    return all(vmap_call(args, node, nested), true);
  }

  void add(VmapArgs& args, const Value& value) const {
    if (value.tag() == Value::Tag::Node) return args.add(of(value).value, of(value).batched);
    if (!value.is_list()) return args.add(value, false);
    bool batched = false;
    for_each_input(value, [&](const Value& item) { batched |= of(item).batched; });
    Value::List list;
    for (const Value& item : value.list()) {
      const bool known = item.tag() == Value::Tag::Node;
      list.push_back(!known ? item : batched ? in_batch(of(item)) : of(item).value);
    }
    args.add(Value(std::move(list)), batched);
  }

  Value in_batch(const Batched& value) const {
    return value.batched ? value.value : spread(builder_, value.value, batch_);
  }

  static std::vector<Batched> all(const Values& values, bool batched) {
    std::vector<Batched> out;
    for (const Value& value : values) out.push_back({value, batched});
    return out;
  }

  // ---- control flow ----

  std::vector<Batched> control(const Node& node) {
    MOREL_CHECK(
        dynamic_cast<GraphBuilder*>(&builder_), NotImplemented,
        "vmap of control flow on tensors within a gradient of a gradient of PyNative mode is not supported; put "
        "the gradients into one function with @jit");
    switch (node.op->control) {
      case Control::If: return vmap_if(node);
      case Control::While: return vmap_while(node);
      case Control::Scan: return vmap_scan(node);
      default:
        for_each_input(node, [&](const Value& input) {
          MOREL_CHECK(!of(input).batched, NotImplemented,
                      "vmap of a function that calls itself under a condition on a tensor is not supported");
        });
        return same_for_all(node);
    }
  }

  std::vector<Batched> same_for_all(const Node& node) {
    VmapArgs args(builder_, batch_);
    for (const Value& value : node.args) add(args, value);
    return all(builder_.emit(*node.op, args.values()), false);
  }

  std::vector<Batched> batched_list(const Value& list) const {
    std::vector<Batched> out;
    for (const Value& item : list.list()) out.push_back(of(item));
    return out;
  }
  static Graph& graph_of(const Node& node, size_t arg) { return *static_cast<Graph*>(node.args[arg].graph()); }
  static bool any(const std::vector<Batched>& values) {
    return std::ranges::any_of(values, [](const Batched& value) { return value.batched; });
  }

  // A branch or body as a graph for the batch: which results are batches, given which of its parameters are. Those of
  // `wanted` are batches in any case.
  struct Body {
    Ref<Graph> graph;
    std::vector<char> batched;
  };
  Body body(const Graph& graph, std::span<const Batched> operands, std::span<const char> wanted) {
    Body out{make_ref<Graph>(), {}};
    out.graph->name = graph.name;
    GraphBuilder builder(out.graph);
    std::vector<Batched> inside;
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
      Type type = graph.parameters[i]->types[0];
      if (operands[i].batched) type.shape.insert(type.shape.begin(), batch_);
      inside.push_back({out.graph->add_parameter(std::move(type)), operands[i].batched});
    }
    const std::vector<Batched> results = Vectoriser(builder, batch_).run(graph, inside);
    for (size_t i = 0; i < results.size(); ++i) {
      const bool batched = results[i].batched || (i < wanted.size() && wanted[i]);
      out.batched.push_back(batched);
      out.graph->results.push_back(batched && !results[i].batched ? spread(builder, results[i].value, batch_)
                                                                  : results[i].value);
    }
    return out;
  }
  static Value values_of(const std::vector<Batched>& all) {
    Value::List list;
    for (const Batched& value : all) list.push_back(value.value);
    return Value(std::move(list));
  }

  std::vector<Batched> vmap_if(const Node& node) {
    const Batched& condition = of(node.args[0]);
    const std::vector<Batched> operands = batched_list(node.args[3]);
    if (!condition.batched) {
      if (!any(operands)) return same_for_all(node);
      std::vector<char> wanted;
      for (const size_t branch : {1, 2}) {
        const std::vector<char> found = body(graph_of(node, branch), operands, wanted).batched;
        wanted.resize(found.size());
        for (size_t i = 0; i < found.size(); ++i) wanted[i] |= found[i];
      }
      const Value args[] = {condition.value, Value::of_graph(body(graph_of(node, 1), operands, wanted).graph),
                            Value::of_graph(body(graph_of(node, 2), operands, wanted).graph), values_of(operands)};
      std::vector<Batched> out = all(builder_.emit(*node.op, args), false);
      for (size_t i = 0; i < out.size(); ++i) out[i].batched = wanted[i];
      return out;
    }
    // Some examples go one way, some the other: both are computed.
    MOREL_CHECK(!effects_of(graph_of(node, 1)).is_seen() && !effects_of(graph_of(node, 2)).is_seen(), NotImplemented,
                "vmap: an 'if' whose condition differs between the examples changes something outside of itself, "
                "prints or raises an error");
    const std::vector<Batched> then = Vectoriser(builder_, batch_).run(graph_of(node, 1), operands),
                               orelse = Vectoriser(builder_, batch_).run(graph_of(node, 2), operands);
    std::vector<Batched> out;
    for (size_t i = 0; i < then.size(); ++i)
      out.push_back({chosen(builder_, condition.value, in_batch(then[i]), in_batch(orelse[i])), true});
    return out;
  }

  // For each example a or b, by a batch of truths of one element each.
  Value chosen(Builder& builder, const Value& condition, const Value& a, const Value& b) const {
    Ints shape(shape_of(a).size(), 1);
    shape[0] = batch_;
    return builder("where", builder("reshape", Sym(builder, condition), shape), Sym(builder, a), Sym(builder, b))
        .value();
  }

  std::vector<Batched> vmap_while(const Node& node) {
    std::vector<Batched> state = batched_list(node.args[2]);
    const std::vector<Batched> operands = batched_list(node.args[3]);
    if (!any(state) && !any(operands) && node.types.size() == state.size()) return same_for_all(node);
    const size_t count = state.size();
    bool differs = false;
    std::vector<Batched> given;
    for (bool settled = false; !settled;) {  // until no more of the state becomes a batch
      given = state;
      given.insert(given.end(), operands.begin(), operands.end());
      differs = body(graph_of(node, 0), given, {}).batched[0];
      const std::vector<char> after = body(graph_of(node, 1), given, {}).batched;
      settled = true;
      for (size_t i = 0; i < count; ++i) {
        if (state[i].batched || !(differs || after[i])) continue;
        state[i] = {in_batch(state[i]), true};
        settled = false;
      }
    }
    MOREL_CHECK(!differs || node.types.size() == count, NotImplemented,
                "vmap of the gradient of a 'while' whose condition differs between the examples is not supported; take "
                "the gradient of the vmap instead");
    MOREL_CHECK(!differs || !effects_of(graph_of(node, 1)).is_seen(), NotImplemented,
                "vmap: a 'while' whose condition differs between the examples changes something outside of itself, "
                "prints or raises an error");
    std::vector<char> wanted;
    for (const Batched& value : state) wanted.push_back(value.batched);
    Ref<Graph> condition = body(graph_of(node, 0), given, {}).graph,
               turn = body(graph_of(node, 1), given, wanted).graph;
    if (differs) {
      freeze(*turn, *condition, count);
      GraphBuilder builder(condition);
      condition->results[0] = builder("any", Sym(builder, condition->results[0])).value();
    }
    const Value args[] = {Value::of_graph(condition), Value::of_graph(turn), values_of(state), values_of(operands)};
    return loop_results(node, args, wanted, count);
  }

  // Examples whose condition does not hold any more keep their state.
  void freeze(Graph& turn, const Graph& condition, size_t count) const {
    Ref<Graph> held(&turn);
    GraphBuilder builder(held);
    std::vector<Value> parameters;
    for (const Ref<Node>& parameter : turn.parameters) parameters.push_back(parameter->output());
    const Value goes_on = append_copy(turn, condition, parameters)[0];
    for (size_t i = 0; i < count; ++i) turn.results[i] = chosen(builder, goes_on, turn.results[i], parameters[i]);
  }

  // Results of a loop; sequences of what its carry was follow where the node keeps them.
  std::vector<Batched> loop_results(const Node& node, std::span<const Value> args, const std::vector<char>& batched,
                                    size_t carry) {
    auto& builder = static_cast<GraphBuilder&>(builder_);
    const Values results = builder.emit(*node.op, args);
    Node& made = *node_of(results[0]);
    const bool keeps = node.types.size() > results.size();
    if (keeps)
      for (size_t i = 0; i < carry; ++i) made.types.push_back(made.types[i]);
    std::vector<Batched> out;
    for (uint32_t i = 0; i < made.types.size(); ++i)
      out.push_back({made.output(i), batched[i < results.size() ? i : i - results.size()] != 0});
    return out;
  }

  std::vector<Batched> vmap_scan(const Node& node) {
    const std::vector<Batched> sequences = batched_list(node.args[2]), operands = batched_list(node.args[4]);
    std::vector<Batched> carry = batched_list(node.args[3]), given;
    std::vector<char> wanted;
    for (bool settled = false; !settled;) {
      given = sequences;
      given.insert(given.end(), carry.begin(), carry.end());
      given.insert(given.end(), operands.begin(), operands.end());
      wanted = body(graph_of(node, 1), given, {}).batched;
      settled = true;
      for (size_t i = 0; i < carry.size(); ++i) {
        if (wanted[i] && !carry[i].batched) {
          carry[i] = {in_batch(carry[i]), true};
          settled = false;
        }
        wanted[i] = carry[i].batched;
      }
    }
    const Value args[] = {node.args[0], Value::of_graph(body(graph_of(node, 1), given, wanted).graph),
                          values_of(sequences), values_of(carry), values_of(operands)};
    return loop_results(node, args, wanted, carry.size());
  }

  Builder& builder_;
  Dim batch_;
  std::unordered_map<const Node*, std::vector<Batched>> values_;
};

}  // namespace

std::vector<Batched> vmap(Builder& builder, const Graph& graph, std::span<const Batched> operands, Dim batch) {
  return Vectoriser(builder, batch).run(graph, operands);
}

}  // namespace morel
