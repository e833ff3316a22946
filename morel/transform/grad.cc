#include "morel/transform/grad.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace morel {
namespace {

// Cotangents of the values of a graph, summed up as they come.
class Cotangents {
 public:
  explicit Cotangents(GraphBuilder& builder) : builder_(builder) {}
  void add(const Value& value, const Value& cotangent) {
    if (cotangent.is_none() || !is_differentiable(dtype_of_value(value))) return;
    Values& all = table_[node_of(value)];
    if (all.empty()) all.resize(node_of(value)->types.size());
    Value& sum = all[value.output()];
    const Value terms[] = {sum, cotangent};
    sum = sum.is_none() ? cotangent : builder_.emit(find_op("add"), terms)[0];
  }
  const Values* find(const Node* node) const {
    const auto found = table_.find(node);
    return found == table_.end() ? nullptr : &found->second;
  }
  Value of(const Value& value) const {
    const Values* all = find(node_of(value));
    return all ? (*all)[value.output()] : Value();
  }

 private:
  GraphBuilder& builder_;
  std::unordered_map<const Node*, Values> table_;
};

class Sweep {
 public:
  Sweep(GraphBuilder& builder, std::span<const Value> inputs) : builder_(builder), cotangents_(builder) {
    for (const Value& input : inputs) depends_.insert(node_of(input)), targets_.insert(node_of(input));
  }

  // Nodes [first, last) of the graph, latest first; `inputs` lie before them or among them.
  void run(size_t first, size_t last) {
    mark(first, last);
    for (size_t i = last; i-- > first;) {
      const Ref<Node> node = builder_.graph().nodes[i];  // the list grows meanwhile
      if (depends_.contains(node.get())) step(*node);
    }
  }
  Cotangents& cotangents() { return cotangents_; }

 private:
  void mark(size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const Node& node = *builder_.graph().nodes[i];
      if (const auto* custom = builder_.find_custom(&node)) {
        bool any = false;
        for (const Value& input : custom->inputs) any |= depends_.contains(node_of(input));
        if (any)
          for (const Value& output : custom->outputs) depends_.insert(node_of(output));
      }
      if (node.op->has(kNoGrad) || node.stops_gradient) continue;
      for_each_input(node, [&](const Value& input) {
        if (depends_.contains(node_of(input))) depends_.insert(&node);
      });
    }
  }

  void step(const Node& node) {
    if (targets_.contains(&node)) return;
    if (const auto* custom = builder_.find_custom(&node)) return step_custom(*custom);
    if (builder_.is_custom(&node)) return;
    const Values* found = cotangents_.find(&node);
    if (!found) return;
    const Values douts = *found;
    builder_.set_place(node.place);
    if (!node.op->grad) return expand(node, douts);
    SmallVector<char, 8> needs;
    SmallVector<Value, 8> edges;
    for_each_input(node, [&](const Value& input) {
      edges.push_back(input);
      needs.push_back(depends_.contains(node_of(input)));
    });
    if (std::ranges::count(needs, 1) == 0) return;
    Values outs;
    for (uint32_t i = 0; i < node.types.size(); ++i) outs.push_back(const_cast<Node&>(node).output(i));
    const Values grads = argument_gradients(builder_, *node.op, {node.args.data(), node.args.size()},
                                            {outs.data(), outs.size()}, {node.types.data(), node.types.size()},
                                            {douts.data(), douts.size()}, {needs.data(), needs.size()});
    for (size_t i = 0; i < edges.size(); ++i)
      if (needs[i]) cotangents_.add(edges[i], grads[i]);
  }

  // The outputs of a custom function follow one another; the first of them, met last, has all their cotangents.
  void step_custom(const GraphBuilder::Custom& custom) {
    Values douts;
    bool any = false;
    for (const Value& output : custom.outputs) {
      douts.push_back(cotangents_.of(output));
      any |= !douts.back().is_none();
    }
    if (!any) return;
    for (size_t i = 0; i < douts.size(); ++i) {
      if (!douts[i].is_none()) continue;
      const Type type = type_of(custom.outputs[i]);
      const Value zeros[] = {Ints(type.shape), type.dtype};
      douts[i] = builder_.emit(find_op("zeros"), zeros)[0];
    }
    const Values grads = custom.backward({douts.data(), douts.size()});
    for (size_t i = 0; i < custom.inputs.size() && i < grads.size(); ++i)
      if (node_of(custom.inputs[i]) && depends_.contains(node_of(custom.inputs[i])))
        cotangents_.add(custom.inputs[i], grads[i]);
  }

  // An operator without a rule of its own: what it is composed of is written out beside it and differentiated.
  void expand(const Node& node, const Values& douts) {
    MOREL_CHECK(node.op->compose, Internal, "operator ", node.name, " has no gradient");
    const size_t first = builder_.graph().nodes.size();
    const Syms results = node.op->compose(Call(builder_, *node.op, {node.args.data(), node.args.size()}));
    const size_t last = builder_.graph().nodes.size();
    for (size_t i = 0; i < results.size() && i < douts.size(); ++i)
      if (node_of(results[i].value())) cotangents_.add(results[i].value(), douts[i]);
    run(first, last);
  }

  GraphBuilder& builder_;
  Cotangents cotangents_;
  std::unordered_set<const Node*> depends_, targets_;
};

}  // namespace

Values graph_gradients(GraphBuilder& builder, std::span<const Value> outputs, std::span<const Value> seeds,
                       std::span<const Value> inputs) {
  Sweep sweep(builder, inputs);
  const size_t last = builder.graph().nodes.size();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!node_of(outputs[i])) continue;
    Value seed = i < seeds.size() ? seeds[i] : Value();
    const Type type = type_of(outputs[i]);
    if (seed.is_none()) {
      const Value ones[] = {Ints(type.shape), type.dtype};
      seed = builder.emit(find_op("ones"), ones)[0];
    }
    sweep.cotangents().add(outputs[i], seed);
  }
  sweep.run(0, last);
  Values out;
  for (const Value& input : inputs) out.push_back(sweep.cotangents().of(input));
  return out;
}

}  // namespace morel
