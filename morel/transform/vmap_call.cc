#include "morel/transform/vmap_call.h"

#include <algorithm>

#include "morel/ops/axes.h"

namespace morel {

Value spread(Builder& builder, const Value& value, Dim batch) {
  Ints shape(shape_of(value));
  shape.insert(shape.begin(), batch);
  return builder("broadcast_to", Sym(builder, value), shape).value();
}

void VmapArgs::spread_argument(size_t idx) {
  if (batched(idx)) return;
  Value& value = values_[idx];
  if (value.is_list()) {
    Value::List list;
    for (const Value& item : value.list()) list.push_back(item.is_none() ? item : spread(builder_, item, batch_));
    value = Value(std::move(list));
  } else {
    value = spread(builder_, value, batch_);
  }
  batched_[idx] = 1;
}

namespace {

bool holds_tensors(const OpDef& op, size_t idx, const Value& value) {
  return op.schema.args[idx].is_tensor_like() &&
         (is_tensor_value(value) || (value.is_list() && std::ranges::any_of(value.list(), is_tensor_value)));
}

// Calls fn(tensor) for an argument's tensors and gives the argument with what it returns.
template <class F>
Value map_tensors(const Value& value, F&& fn) {
  if (is_tensor_value(value)) return fn(value);
  if (!value.is_list()) return value;
  Value::List list;
  for (const Value& item : value.list()) list.push_back(is_tensor_value(item) ? fn(item) : item);
  return Value(std::move(list));
}

Shape with_batch(const Shape& shape, Dim batch) {
  Shape out = shape;
  out.insert(out.begin(), batch);
  return out;
}

bool same_but_for_ones(const Shape& a, const Shape& b) {
  Shape left, right;
  for (const Dim dim : a)
    if (!dim.identical(1)) left.push_back(dim);
  for (const Dim dim : b)
    if (!dim.identical(1)) right.push_back(dim);
  return left == right;
}

// Results as [batch] + their shapes for one example: some ways leave axes of 1, or take them away.
Values shaped(Builder& builder, const Values& results, const Node& node, Dim batch) {
  Values out;
  for (size_t i = 0; i < results.size(); ++i) {
    const Shape wanted = with_batch(node.types[i].shape, batch);
    if (shape_of(results[i]) == wanted) {
      out.push_back(results[i]);
      continue;
    }
    MOREL_CHECK(same_but_for_ones(shape_of(results[i]), wanted), Internal, "internal error: vmap of ", node.op->name,
                " gives ", to_string(shape_of(results[i])), ", wanted is ", to_string(wanted), "; please report it");
    out.push_back(builder("reshape", Sym(builder, results[i]), Ints(wanted)).value());
  }
  return out;
}

// ---- leading axes ----

class LeadingAxes {
 public:
  LeadingAxes(VmapArgs& args, const Node& node) : args_(args), node_(node), op_(*node.op) {}

  bool fits() const {
    for (size_t i = 0; i < args_.size(); ++i)
      if (args_.batched(i) && !takes_leading_axes(op_, i)) return false;
    return true;
  }

  Values run() {
    align();
    for (size_t i = 0; i < args_.size(); ++i) adapt(i);
    return shaped(args_.builder(), args_.builder().emit(op_, args_.values()), node_, args_.batch());
  }

 private:
  // How many axes of a tensor of argument `idx` stand before those that the entry names.
  int64_t lead(size_t idx, int64_t rank) const { return rank - named_axes(op_, idx); }
  bool broadcasts() const { return op_.has(kBroadcast) || op_.rows || op_.infer == infer_from_axes; }
  bool names_axes() const {
    return std::ranges::any_of(op_.schema.args, [](const ArgSpec& spec) { return spec.role == ArgRole::Axis; });
  }

  // Batches of fewer axes than the widest operand get axes of 1 behind the batch. Where nothing broadcasts, what is no
  // batch becomes one.
  void align() {
    int64_t widest = 0;
    for (size_t i = 0; i < args_.size(); ++i) {
      if (!holds_tensors(op_, i, args_[i])) continue;
      if (!broadcasts() && takes_leading_axes(op_, i)) args_.spread_argument(i);
      map_tensors(args_[i], [&](const Value& value) {
        widest = std::max(widest, lead(i, static_cast<int64_t>(shape_of(value).size()) - (args_.batched(i) ? 1 : 0)));
        return value;
      });
    }
    if (op_.view && !node_.types.empty() &&
        has_shape())  // a view of more axes: new ones stand in front of the old ones
      widest = std::max(widest, static_cast<int64_t>(node_.types[0].shape.size()));
    if (names_axes()) widest = std::max<int64_t>(widest, 1);
    for (size_t i = 0; i < args_.size(); ++i) {
      if (!args_.batched(i)) continue;
      args_.set(i, map_tensors(args_[i], [&](const Value& value) {
                  const Shape& shape = shape_of(value);
                  const int64_t missing = widest - lead(i, static_cast<int64_t>(shape.size()) - 1);
                  if (missing <= 0 || !(broadcasts() || has_shape() || shape.size() == 1)) return value;
                  Ints wide(shape);
                  for (int64_t k = 0; k < missing; ++k) wide.insert(wide.begin() + 1, 1);
                  return args_.builder()("reshape", Sym(args_.builder(), value), wide).value();
                }));
    }
  }
  bool has_shape() const {
    return std::ranges::any_of(op_.schema.args, [](const ArgSpec& spec) { return spec.role == ArgRole::Shape; });
  }

  void adapt(size_t idx) {
    const Value& value = args_[idx];
    switch (op_.schema.args[idx].role) {
      case ArgRole::None: return;
      case ArgRole::Axis: return args_.set(idx, shifted(value, idx));
      case ArgRole::Permutation: return args_.set(idx, prefixed(shifted(value, idx), 0));
      case ArgRole::EachAxis: return args_.set(idx, prefixed(value, 0));
      case ArgRole::Shape: return args_.set(idx, prefixed(value, args_.batch()));
    }
  }
  static Value prefixed(const Value& value, Dim first) {
    Ints out = value.is_integer() ? Ints{value.dim()} : value.ints();
    out.insert(out.begin(), first);
    return out;
  }
  // Axes from the end stay. None: all axes of a reduction, and of those that look for axes of 1.
  Value shifted(const Value& value, size_t idx) const {
    const auto shift = [](int64_t axis) { return axis < 0 ? axis : axis + 1; };
    const bool all = value.is_none() || (value.tag() == Value::Tag::Ints && value.ints().empty());
    if (!all && value.is_integer()) return Value(shift(value.integer()));
    Ints out;
    if (!all) {
      for (const int64_t axis : value.ints()) out.push_back(shift(axis));
      return out;
    }
    if (!(op_.schema.args[idx].kinds & kInts)) return value;  // the last one
    const Shape& shape = shape_of(args_[0]);
    for (size_t i = 1; i < shape.size(); ++i)
      if (op_.reduce || shape[i] == 1) out.push_back(static_cast<int64_t>(i));
    return out;
  }

  VmapArgs& args_;
  const Node& node_;
  const OpDef& op_;
};

// Reductions without an axis run over all of them; a flat example keeps one.
bool reduces_everything(const OpDef& op, const VmapArgs& args) {
  const int axis = op.reduce ? op.schema.find("axis") : -1;
  return axis >= 0 && args[static_cast<size_t>(axis)].is_none() &&
         !(op.schema.args[static_cast<size_t>(axis)].kinds & kInts);
}

// ---- folding ----

class Fold {
 public:
  Fold(VmapArgs& args, const Node& node)
      : args_(args),
        node_(node),
        map_(axis_map(*node.op, {node.args.data(), node.args.size()}, {node.types.data(), node.types.size()})) {
    size_t next = 0;
    for (size_t i = 0; i < args.size(); ++i) {
      first_.push_back(next);
      if (!holds_tensors(*node.op, i, node.args[i])) continue;
      map_tensors(node.args[i], [&](const Value& value) {
        ++next;
        return value;
      });
    }
    factor_ = find();
  }

  bool fits() const { return factor_ >= 0; }

  Values run() {
    for (size_t i = 0; i < args_.size(); ++i) {
      if (!holds_tensors(*node_.op, i, args_[i])) continue;
      size_t tensor = first_[i];
      if (place(map_.inputs[tensor]).axis < 0) continue;
      args_.spread_argument(i);
      args_.set(i, map_tensors(args_[i], [&](const Value& value) { return folded(value, map_.inputs[tensor++]); }));
    }
    const Factor& factor = map_.factors[static_cast<size_t>(factor_)];
    if (factor.argument >= 0) args_.set(static_cast<size_t>(factor.argument), factor.size * args_.batch());
    for (size_t i = 0; i < args_.size(); ++i)
      if (node_.op->schema.args[i].role == ArgRole::Shape) args_.set(i, folded_size());
    Values out = args_.builder().emit(*node_.op, args_.values());
    for (size_t i = 0; i < out.size(); ++i) out[i] = unfolded(out[i], map_.outputs[i], node_.types[i].shape);
    return out;
  }

 private:
  // Where a factor lies: its axis, and how much of that axis is before and behind it.
  struct Place {
    int64_t axis = -1;
    Dim before = 1, behind = 1;
  };
  Place place(const TensorFactors& tensor) const { return place(tensor, factor_); }
  Place place(const TensorFactors& tensor, int factor) const {
    Place out;
    for (size_t i = 0; i < tensor.size(); ++i) {
      bool found = false;
      Dim before = 1, behind = 1;
      for (const int at : tensor[i]) {
        if (at == factor) {
          found = true;
        } else {
          Dim& part = found ? behind : before;
          part = part * map_.factors[static_cast<size_t>(at)].size;
        }
      }
      if (found) out = {static_cast<int64_t>(i), before, behind};
    }
    return out;
  }

  // A factor of all batches and all results. Of several, the one for which fewest others must be repeated.
  int find() const {
    int best = -1;
    size_t least = 0;
    for (size_t f = 0; f < map_.factors.size(); ++f) {
      if (map_.factors[f].kind != FactorKind::Map) continue;
      const int factor = static_cast<int>(f);
      bool fits = std::ranges::all_of(map_.outputs,
                                      [&](const TensorFactors& output) { return place(output, factor).axis >= 0; });
      size_t repeated = 0;
      for (size_t i = 0; i < args_.size() && fits; ++i) {
        if (!holds_tensors(*node_.op, i, args_[i])) continue;
        const bool has = place(map_.inputs[first_[i]], factor).axis >= 0;
        if (args_.batched(i)) fits = has;
        if (!args_.batched(i) && has) ++repeated;
      }
      if (fits && (best < 0 || repeated < least)) {
        best = factor;
        least = repeated;
      }
    }
    return best;
  }

  // [batch, ..., before * size * behind, ...] -> [..., before * batch * size * behind, ...]
  Value folded(const Value& value, const TensorFactors& tensor) const {
    Builder& b = args_.builder();
    const Place at = place(tensor);
    const Shape& shape = shape_of(value);
    const size_t axis = static_cast<size_t>(at.axis) + 1;
    Ints split, order, merged;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i == axis) split.push_back(at.before);
      split.push_back(i == axis ? shape[i] / at.before : shape[i]);
      if (i > 0) merged.push_back(i == axis ? shape[i] * args_.batch() : shape[i]);
    }
    for (size_t i = 1; i < split.size(); ++i) {
      order.push_back(static_cast<int64_t>(i));
      if (i == axis) order.push_back(0);
    }
    return b("reshape", b("transpose", b("reshape", Sym(b, value), split), order), merged).value();
  }
  Value unfolded(const Value& value, const TensorFactors& tensor, const Shape& shape) const {
    Builder& b = args_.builder();
    const Place at = place(tensor);
    const size_t axis = static_cast<size_t>(at.axis);
    Ints split, order{static_cast<int64_t>(axis) + 1};
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i == axis) {
        split.push_back(at.before);
        split.push_back(args_.batch());
      }
      split.push_back(i == axis ? shape[i] / at.before : shape[i]);
    }
    for (size_t i = 0; i < split.size(); ++i)
      if (i != axis + 1) order.push_back(static_cast<int64_t>(i));
    return b("reshape", b("transpose", b("reshape", Sym(b, value), split), order),
             Ints(with_batch(shape, args_.batch())))
        .value();
  }
  // The shape argument is that of result 0.
  Ints folded_size() const {
    Ints out(node_.types[0].shape);
    Dim& size = out[static_cast<size_t>(place(map_.outputs[0]).axis)];
    size = size * args_.batch();
    return out;
  }

  VmapArgs& args_;
  const Node& node_;
  AxisMap map_;
  std::vector<size_t> first_;  // of the tensors of each argument, its first one in the map
  int factor_ = -1;
};

// ---- other ways ----

// What the operator is composed of, for one example, as a graph that is then vectorised.
Values composed(const VmapArgs& args, const Node& node, const NestedVmap& nested) {
  const auto graph = make_ref<Graph>();
  graph->name = std::string(node.op->name);
  GraphBuilder builder(graph);
  std::vector<Batched> operands;
  Args inside;
  for (size_t i = 0; i < args.size(); ++i) {
    const Value* given = &args[i];
    size_t item = 0;
    inside.push_back(map_tensors(node.args[i], [&](const Value& value) {
      operands.push_back({given->is_list() ? given->list()[item] : *given, args.batched(i)});
      ++item;
      return graph->add_parameter(type_of(value));
    }));
  }
  const Syms results = node.op->compose(Call(builder, *node.op, {inside.data(), inside.size()}));
  for (const Sym& result : results) graph->results.push_back(result.value());
  Values out;
  for (const Batched& result : nested(*graph, operands))
    out.push_back(result.batched ? result.value : spread(args.builder(), result.value, args.batch()));
  return out;
}

// One call for each example. Random numbers are drawn anew for each.
Values looped(const VmapArgs& args, const Node& node) {
  Builder& b = args.builder();
  const int64_t count = args.batch();
  std::vector<Value::List> parts(node.types.size());
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<Value, 8> one;
    for (size_t k = 0; k < args.size(); ++k) {
      const bool is_rng = node.op->schema.args[k].kinds & kRng;
      one.push_back(
          is_rng ? Value()
          : args.batched(k)
              ? map_tensors(args[k], [&](const Value& value) { return b("select", Sym(b, value), 0, i).value(); })
              : args[k]);
    }
    if (node.op->has(kInPlace)) one[0] = b("clone", Sym(b, one[0])).value();
    const Values results = b.emit(*node.op, {one.data(), one.size()});
    for (size_t r = 0; r < parts.size(); ++r) parts[r].push_back(results[r]);
  }
  Values out;
  for (Value::List& part : parts) out.push_back(b("stack", Sym(b, Value(std::move(part))), 0).value());
  if (node.op->has(kInPlace)) out[0] = b("copy_", Sym(b, args[0]), Sym(b, out[0])).value();
  return out;
}

// Of no examples there is nothing to compute; a size that other axes would have to tell is not known then.
Values of_no_examples(const VmapArgs& args, const Node& node) {
  Builder& b = args.builder();
  Values out;
  for (const Type& type : node.types) out.push_back(b("zeros", Ints(with_batch(type.shape, 0)), type.dtype).value());
  if (node.op->has(kInPlace)) out[0] = args[0];
  return out;
}

// Every example draws its own numbers: the draw itself becomes a batch.
void spread_draw(VmapArgs& args, const OpDef& op) {
  if (args.any() || !op.has(kRandom)) return;
  for (size_t i = 0; i < args.size(); ++i)
    if (holds_tensors(op, i, args[i])) return args.spread_argument(i);
}
bool draws_by_shape(const OpDef& op) {
  return op.has(kRandom) &&
         std::ranges::any_of(op.schema.args, [](const ArgSpec& spec) { return spec.role == ArgRole::Shape; });
}

}  // namespace

Values vmap_call(VmapArgs args, const Node& node, const NestedVmap& nested) {
  const OpDef& op = *node.op;
  MOREL_CHECK(!op.data_dependent, NotImplemented, "For '", display_name(op),
              "', vmap is not supported: the shape of its result depends on the values of each example");
  spread_draw(args, op);
  MOREL_CHECK(
      !op.has(kInPlace) || args.batched(0), NotImplemented,
      "For 'vmap', a tensor that all examples share cannot be changed in place by values that differ between them. "
      "A normalisation in training does so with its running statistics: call set_train(False) on it, or run it "
      "outside of vmap. Of other tensors make an argument with an axis in 'in_axes', and return the new value");
  if (args.batch().identical(0)) return of_no_examples(args, node);
  if (op.vmap) {
    const VmapCall call(args.builder(), op, args.values(), args.flags(), args.batch());
    Values out;
    for (const Sym& result : op.vmap(call)) out.push_back(result.value());
    if (!out.empty()) return out;
  }
  if (reduces_everything(op, args)) {
    Builder& b = args.builder();
    args.set(0, b("reshape", Sym(b, args[0]), Ints{args.batch(), num_elements(shape_of(node.args[0]))}).value());
    args.set(static_cast<size_t>(op.schema.find("axis")), 1);
    return shaped(b, b.emit(op, args.values()), node, args.batch());
  }
  LeadingAxes leading(args, node);
  if (args.any() ? leading.fits() && has_axes(op) : draws_by_shape(op)) {
    return leading.run();
  }
  if (args.any())
    if (Fold fold(args, node); fold.fits()) return fold.run();
  if (op.compose && args.any()) return composed(args, node, nested);
  return looped(args, node);
}

}  // namespace morel
