#include "morel/io/onnx/export.h"

#include <cstring>
#include <unordered_set>

#include "morel/io/onnx/mapping.h"
#include "morel/io/onnx/scalar_ops.h"
#include "morel/ops/axes.h"
#include "morel/ops/call.h"
#include "morel/tensor/scalar.h"

namespace morel::onnx {
namespace {

// A value of the model that is written.
class Output final : public TypedNode {
 public:
  Output(Type type, std::string name) : type_(std::move(type)), name_(std::move(name)) {}
  const Type& type(uint32_t) const override { return type_; }
  const std::string& name() const { return name_; }  // empty: ONNX does not have this result

 private:
  Type type_;
  std::string name_;
};

constexpr int64_t largest_constant = 1 << 16;  // elements of a result that is computed while exporting

class Exporter final : public Builder {
 public:
  Exporter(const Graph& graph, const ExportOptions& options, const Evaluator& evaluate)
      : source_(graph), options_(options), evaluate_(evaluate) {}

  Exported run() {
    GraphData& main = out_.model.graph;
    at_ = &main;
    main.name = source_.name;
    for (const auto* list : {&options_.inputs, &options_.outputs})
      for (const std::string& name : *list)
        MOREL_CHECK(!name.empty() && names_.insert(name).second, Value,
                    "For 'export', all inputs and outputs need names of their own, but got '", name,
                    name.empty() ? "'" : "' twice", "; see 'input_names' and 'output_names'");
    std::vector<Value> parameters;
    for (size_t i = 0; i < source_.parameters.size(); ++i) {
      const Type& type = source_.parameters[i]->type(0);
      main.inputs.push_back(declared(options_.inputs[i], type));
      parameters.push_back(output(type, options_.inputs[i]));
      for (size_t axis = 0; axis < type.shape.size(); ++axis)
        if (type.shape[axis].is_symbolic()) symbols_.try_emplace(type.shape[axis].code(), options_.inputs[i], axis);
    }
    const Values results = replay(source_, parameters);
    for (size_t i = 0; i < results.size(); ++i) {
      const Type type = type_of(results[i]);
      const std::string name = node("Identity", {name_of(results[i])}, 1, {}, options_.outputs[i])[0];
      main.outputs.push_back(declared(name, type));
    }
    refuse_all();
    main.nodes.insert(main.nodes.begin(), std::make_move_iterator(sizes_.nodes.begin()),
                      std::make_move_iterator(sizes_.nodes.end()));
    out_.model.ir_version = options_.opset >= 21 ? 10 : options_.opset >= 19 ? 9 : 8;
    out_.model.producer = "morel";
    out_.model.opsets[""] = options_.opset;
    return std::move(out_);
  }

  Values emit(const OpDef& op, std::span<const Value> given) override {
    const Args args = complete_args(op, given);
    const std::span<const Value> all(args.data(), args.size());
    if (Values known = evaluated(op, all); !known.empty()) return known;
    const Types types = result_types(op, all);
    for (const Mapping& mapping : mappings_of(op))
      if (Values outs = write(mapping, all, types); !outs.empty()) return outs;
    const Call call(*this, op, all);
    if (const ComposeRule rule = op.onnx_compose ? op.onnx_compose : op.compose) return composed(rule(call), types);
    if (op.loop) {
      const Sym out = compose_loop(call, types[0].dtype);
      if (out) return {out.value()};
    }
    if (op.has(kConversion) && op.view && shape_of(args[0]) == types[0].shape) return {args[0]};
    return refused(cat("'", op.name, "' has no form in ONNX at opset ", options_.opset), types);
  }

 private:
  // -- graphs --

  Values replay(const Graph& graph, std::span<const Value> parameters) {
    std::unordered_map<const Node*, Values> values;
    for (size_t i = 0; i < parameters.size(); ++i) values[graph.parameters[i].get()] = {parameters[i]};
    for (const Ref<Node>& capture : graph.captures) values[capture.get()] = {Value(capture->captured)};
    const auto mapped = [&](const Value& value) {
      return map_inputs(value, [&](const Value& ref) { return values.at(node_of(ref))[ref.output()]; });
    };
    const std::unordered_set<const Node*> live = live_nodes(graph);
    for (const Ref<Node>& node : graph.nodes) {
      if (!live.contains(node.get())) continue;
      place_ = node->place;
      Args args;
      for (const Value& arg : node->args) args.push_back(mapped(arg));
      const std::span<const Value> all(args.data(), args.size());
      if (changes_outside(*node))
        values[node.get()] =
            refused(cat("'", node->name, "' changes a tensor of outside of the function"), node->types);
      else if (node->op->control == Control::If) values[node.get()] = write_if(all, node->types);
      else if (node->op->control == Control::While) values[node.get()] = write_loop(all, node->types);
      else if (node->op->control != Control::None)
        values[node.get()] = refused(cat("'", node->name, "' has no form in ONNX"), node->types);
      else values[node.get()] = emit(*node->op, all);
    }
    Values results;
    for (const Value& result : graph.results) results.push_back(mapped(result));
    return results;
  }

  static bool changes_outside(const Node& node) {
    if (!has_effect(*node.op)) return false;
    const Node* target = node.op->has(kInPlace) ? node_of(node.args[0]) : nullptr;
    return !target || !target->op;
  }

  static std::unordered_set<const Node*> live_nodes(const Graph& graph) {
    std::unordered_set<const Node*> live;
    const auto mark = [&](const Value& value) { live.insert(node_of(value)); };
    for (const Value& result : graph.results) for_each_input(result, mark);
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      const Node& node = *graph.nodes[i];
      if (changes_outside(node)) live.insert(&node);
      if (live.contains(&node)) for_each_input(node, mark);
    }
    return live;
  }

  // A graph within the one that is written; its results get names of their own.
  std::shared_ptr<GraphData> body(const Graph& graph, std::span<const Value> parameters,
                                  const std::function<void(Values&)>& finish) {
    auto inner = std::make_shared<GraphData>();
    inner->name = graph.name.empty() ? "body" : graph.name;
    GraphData* outer = std::exchange(at_, inner.get());
    Values results = replay(graph, parameters);
    finish(results);
    for (const Value& result : results) {
      const Type type = type_of(result);
      inner->outputs.push_back(declared(node("Identity", {name_of(result)}, 1)[0], type));
    }
    at_ = outer;
    return inner;
  }

  static Attribute graph_attribute(std::string name, std::shared_ptr<GraphData> graph) {
    Attribute out;
    out.name = std::move(name);
    out.kind = static_cast<int64_t>(Attribute::Kind::Graph);
    out.graph = std::move(graph);
    return out;
  }

  Values write_if(std::span<const Value> args, const Types& types) {
    const std::string condition = name_of(truth(args[0]));
    const Value::List& operands = args[3].list();
    std::vector<Attribute> branches;
    for (const size_t i : {1, 2})
      branches.push_back(graph_attribute(
          i == 1 ? "then_branch" : "else_branch",
          body(*static_cast<Graph*>(args[i].graph()), {operands.data(), operands.size()}, [](Values&) {})));
    return outputs(node("If", {condition}, types.size(), std::move(branches)), types);
  }

  Values write_loop(std::span<const Value> args, const Types& types) {
    const Graph &condition = *static_cast<Graph*>(args[0].graph()), &turn = *static_cast<Graph*>(args[1].graph());
    const Value::List &state = args[2].list(), &operands = args[3].list();
    const auto with_operands = [&](const auto& values) {
      std::vector<Value> all(values.begin(), values.end());
      all.insert(all.end(), operands.begin(), operands.end());
      return all;
    };
    const auto holds_for = [&](const auto& values) { return truth(replay(condition, with_operands(values))[0]); };
    std::vector<std::string> inputs{"", name_of(holds_for(state))};
    for (const Value& value : state) inputs.push_back(name_of(value));
    std::vector<Value> own;
    std::vector<ValueInfo> parameters{declared(unique("turn"), {DType::Int64, {}}),
                                      declared(unique("again"), {DType::Bool, {}})};
    for (const Value& value : state) {
      const Type type = type_of(value);
      own.push_back(output(type, unique("state")));
      parameters.push_back(declared(name_of(own.back()), type));
    }
    const auto loop = body(turn, with_operands(own), [&](Values& results) {
      const Value again = holds_for(results);
      results.insert(results.begin(), again);
    });
    loop->inputs = std::move(parameters);
    return outputs(node("Loop", inputs, types.size(), {graph_attribute("body", loop)}), types);
  }

  Value truth(const Value& value) {
    if (type_of(value) == Type{DType::Bool, {}}) return value;
    const Value cast[] = {value, DType::Bool}, shaped[] = {emit(find_op("cast"), cast)[0], Ints{}};
    return emit(find_op("reshape"), shaped)[0];
  }

  // -- nodes --

  std::string unique(std::string_view base) {
    std::string name;
    do name = cat(base, "_", ++counter_);
    while (!names_.insert(name).second);
    return name;
  }

  static Value output(const Type& type, std::string name) {
    return Value(Ref<RefCounted>(new Output(type, std::move(name))), 0);
  }

  std::vector<std::string> node(std::string_view type, std::vector<std::string> inputs, size_t count,
                                std::vector<Attribute> attributes = {}, std::string_view name = {}) {
    while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
    NodeData& made = at_->nodes.emplace_back();
    made.type = type;
    made.name = unique(type);
    made.inputs = std::move(inputs);
    made.attributes = std::move(attributes);
    for (size_t i = 0; i < count; ++i)
      made.outputs.push_back(!name.empty() ? std::string(name)
                             : count == 1  ? made.name + "_out"
                                           : cat(made.name, "_out", i));
    return made.outputs;
  }

  static Values outputs(const std::vector<std::string>& names, const Types& types) {
    Values out;
    for (size_t i = 0; i < types.size(); ++i) out.push_back(output(types[i], i < names.size() ? names[i] : ""));
    return out;
  }

  ValueInfo declared(const std::string& name, const Type& type) const {
    ValueInfo out{.name = name, .type = type_code(type.dtype), .has_shape = true, .shape = {}};
    for (const Dim dim : type.shape) {
      ValueInfo::Axis& axis = out.shape.emplace_back();
      if (!dim.is_symbolic()) axis.size = dim;
      else axis.name = size_name(dim);
    }
    return out;
  }
  // What a size is called: the caller's name for a symbol, the formula in these for others.
  std::string size_name(Dim dim) const {
    std::string text = to_string(dim);
    for (size_t i = options_.sizes.size(); i-- > 0;) {
      const std::string plain = to_string(symbol(static_cast<int64_t>(i)));
      for (size_t at = 0; (at = text.find(plain, at)) != std::string::npos; at += options_.sizes[i].size())
        text.replace(at, plain.size(), options_.sizes[i]);
    }
    return text;
  }

  // -- values --

  std::string name_of(const Value& value) {
    if (value.is_none()) return "";
    if (value.is_tensor()) return initializer(value.tensor());
    const auto& known = static_cast<const Output&>(*value.node());
    if (known.name().empty()) refusals_.push_back("a further result of an operator that ONNX does not have" + where());
    return known.name();
  }

  std::string initializer(const Tensor& given) {
    std::string& name = tensors_[given.get()];
    if (!name.empty()) return name;
    const auto named = options_.tensors.find(given.get());
    const bool is_named = named != options_.tensors.end() && names_.insert(named->second).second;
    name = is_named ? named->second : unique("constant");
    Tensor tensor = given;
    if (!tensor.is_contiguous()) {
      const Value args[] = {given};
      tensor = evaluate_(find_op("clone"), args)[0].tensor();
    }
    TensorData data;
    data.name = name;
    data.type = type_code(tensor.dtype());
    for (const Dim dim : tensor.shape()) data.dims.push_back(dim);
    data.bytes = {tensor.as<const std::byte>(), static_cast<size_t>(tensor.size() * size_of(tensor.dtype()))};
    out_.model.graph.initializers.push_back(std::move(data));
    out_.tensors.push_back(given);
    out_.tensors.push_back(tensor);
    return name;
  }

  static Tensor scalar(const Value& number, DType dtype) {
    const Tensor out = Tensor::empty({}, dtype);
    store_scalar(number, dtype, out.data());
    return out;
  }
  Tensor list(const Ints& numbers) {
    std::string key = to_string(Shape(numbers));
    Tensor& known = lists_[key];
    if (known) return known;
    known = Tensor::empty({static_cast<int64_t>(numbers.size())}, DType::Int64);
    for (size_t i = 0; i < numbers.size(); ++i) known.as<int64_t>()[i] = numbers[i];
    return known;
  }

  // A size as a tensor of one element, made where the whole model can see it.
  std::string size(Dim dim) {
    if (!dim.is_symbolic()) return initializer(list({dim}));
    std::string& name = size_names_[dim.code()];
    if (!name.empty()) return name;
    GraphData* outer = std::exchange(at_, &sizes_);
    std::string made;
    if (const auto found = symbols_.find(dim.code()); found != symbols_.end()) {
      const auto& [input, axis] = found->second;
      made = node("Shape", {input}, 1,
                  {integer("start", static_cast<int64_t>(axis)), integer("end", static_cast<int64_t>(axis) + 1)})[0];
    } else {
      made = polynomial(dim.expr());
    }
    at_ = outer;
    return size_names_[dim.code()] = made;
  }
  std::string polynomial(const SizeExpr& expr) {
    std::string sum;
    for (const SizeTerm& term : expr.terms()) {
      std::string product = term.factor == 1 && !term.atoms.empty() ? "" : initializer(list({term.factor}));
      for (const SizeAtom* atom : term.atoms) {
        const std::string factor =
            atom->symbol >= 0 ? size(symbol(atom->symbol)) : node("Div", {size(atom->a), size(atom->b)}, 1)[0];
        product = product.empty() ? factor : node("Mul", {product, factor}, 1)[0];
      }
      sum = sum.empty() ? product : node("Add", {sum, product}, 1)[0];
    }
    return sum;
  }
  std::string size_list(const Ints& sizes) {
    bool known = true;
    for (const Dim dim : sizes) known &= !dim.is_symbolic();
    if (known) return initializer(list(sizes));
    if (sizes.size() == 1) return size(sizes[0]);
    std::vector<std::string> parts;
    for (const Dim dim : sizes) parts.push_back(size(dim));
    return node("Concat", parts, 1, {integer("axis", 0)})[0];
  }

  static Attribute integer(std::string name, int64_t value) {
    Attribute out;
    out.name = std::move(name);
    out.kind = static_cast<int64_t>(Attribute::Kind::Int);
    out.integer = value;
    return out;
  }

  // A call without unknown operands, unless it would hide the name of a parameter.
  Values evaluated(const OpDef& op, std::span<const Value> args) {
    if (op.has(kRandom) || has_effect(op) || op.control != Control::None || op.data_dependent) return {};
    bool known = true;
    const auto look = [&](const auto& self, const Value& value) -> void {
      if (value.is_list())
        for (const Value& item : value.list()) self(self, item);
      if (value.tag() == Value::Tag::Node || value.tag() == Value::Tag::Size) known = false;
      if (value.tag() == Value::Tag::Ints)
        for (const Dim dim : value.ints()) known &= !dim.is_symbolic();
      if (value.is_tensor())
        known &= !options_.tensors.contains(value.tensor_impl()) && value.tensor_impl()->size <= largest_constant;
    };
    for (const Value& arg : args) look(look, arg);
    if (!known) return {};
    const Types types = result_types(op, args);
    for (const Type& type : types)
      if (num_elements(type.shape) > largest_constant) return {};
    if (is_primitive(op)) return evaluate_(op, args);
    return composed(op.compose(Call(*this, op, args)), types);
  }

  // Results of a rule: numbers become tensors.
  Values composed(const Syms& results, const Types& types) {
    Values out;
    for (size_t i = 0; i < results.size(); ++i) {
      const Value& value = results[i].value();
      out.push_back(value.is_number() ? Value(scalar(value, types[i].dtype)) : value);
    }
    return out;
  }

  Value cast(const Value& value, DType dtype) {
    if (dtype_of_value(value) == dtype) return value;
    const Value args[] = {value, dtype};
    return emit(find_op("cast"), args)[0];
  }

  // -- mappings --

  // The type in which ONNX wants a tensor argument.
  static DType wanted_type(const Mapping& mapping, std::span<const Value> args, const Types& types, size_t arg) {
    const OpDef& op = *mapping.op;
    const Value& value = args[arg];
    const DType own = value.is_list() ? types[0].dtype : dtype_of_value(value);
    if (op.has(kConverts)) return own;
    if (op.loop) return op.bool_args >> arg & 1 ? DType::Bool : elementwise_compute_dtype(op, args);
    if (!mapping.results.empty() && mapping.results[0].like == static_cast<int>(arg)) return types[0].dtype;
    const bool is_operand = op.schema.args[arg].kinds & kNumber;
    return is_operand || (is_differentiable(own) && is_differentiable(types[0].dtype)) ? types[0].dtype : own;
  }
  static DType given_type(const Mapping& mapping, std::span<const Value> args, const Types& types, size_t result) {
    if (result < mapping.results.size()) {
      const ResultRule& rule = mapping.results[result];
      return rule.dtype ? *rule.dtype : wanted_type(mapping, args, types, static_cast<size_t>(rule.like));
    }
    const OpDef& op = *mapping.op;
    if (op.loop && op.promotion != Promotion::Compare && op.promotion != Promotion::Logic)
      return elementwise_compute_dtype(op, args);
    return types[result].dtype;
  }

  std::optional<Value> source_value(const Source& source, const WrittenCall& call) const {
    if (source.args.empty()) return source.literal;
    Value value = call.args[static_cast<size_t>(source.args[0])];
    if (source.args.size() == 2) {
      Ints joined = value.ints();
      const Ints& second = call.args[static_cast<size_t>(source.args[1])].ints();
      joined.append(second.begin(), second.end());
      value = Value(joined);
    }
    if (source.conversion && !value.is_none()) return source.conversion->to_onnx(call, value);
    return value;
  }

  // The same argument as an attribute has it; nothing where it is no attribute.
  std::optional<Attribute> attribute(std::string_view name, const Value& value, const Source& source,
                                     const OpDef& op) const {
    using Kind = Attribute::Kind;
    const uint32_t kinds =
        source.args.empty() || source.conversion ? 0 : op.schema.args[static_cast<size_t>(source.args[0])].kinds;
    Attribute out;
    out.name = name;
    const auto is = [&](Kind kind) { out.kind = static_cast<int64_t>(kind); };
    if (value.tag() == Value::Tag::Ints || (kinds & kInts && value.is_integer())) {
      is(Kind::Ints);
      for (const Dim dim : value.tag() == Value::Tag::Ints ? value.ints() : Ints{value.dim()}) {
        if (dim.is_symbolic()) return {};
        out.integers.push_back(dim);
      }
    } else if (value.tag() == Value::Tag::Float || kinds & kFloat) {
      is(Kind::Float);
      out.number = value.number();
    } else if (value.tag() == Value::Tag::Str) {
      is(Kind::String);
      out.text = value.str();
    } else if (value.tag() == Value::Tag::DType) {
      is(Kind::Int);
      out.integer = type_code(value.dtype());
    } else if (value.tag() == Value::Tag::Int || value.tag() == Value::Tag::Bool) {
      is(Kind::Int);
      out.integer = value.tag() == Value::Tag::Bool ? value.boolean() : value.integer();
    } else {
      return {};
    }
    return out;
  }

  std::string input_name(const Mapping& mapping, const Value& value, const WrittenCall& call, const Source& source) {
    const size_t arg = static_cast<size_t>(source.args[0]);
    if (value.is_none()) return "";
    if (is_tensor_value(value)) return name_of(cast(value, wanted_type(mapping, call.args, call.results, arg)));
    if (value.tag() == Value::Tag::Ints) return size_list(value.ints());
    const ArgSpec& spec = mapping.op->schema.args[arg];
    if (value.is_integer() && spec.kinds & kInts) return size_list({value.dim()});
    const bool is_operand = mapping.op->loop || spec.kinds & (kNumber | kFloat);
    const DType dtype = is_operand ? wanted_scalar(mapping, call, arg) : DType::Int64;
    if (value.tag() != Value::Tag::Size) return initializer(scalar(value, dtype));
    const std::string flat = node("Reshape", {size(value.dim()), initializer(list({}))}, 1)[0];
    return name_of(cast(output({DType::Int64, {}}, flat), dtype));
  }
  static DType wanted_scalar(const Mapping& mapping, const WrittenCall& call, size_t arg) {
    return mapping.op->loop ? wanted_type(mapping, call.args, call.results, arg) : call.results[0].dtype;
  }

  // Empty where the mapping does not fit this call.
  Values write(const Mapping& mapping, std::span<const Value> args, const Types& types) {
    if (mapping.since > options_.opset) return {};
    const ArgView view(*mapping.op, args);
    for (const Condition& condition : mapping.conditions)
      if (!holds(condition, view, false)) return {};
    const WrittenCall call{*mapping.op, args, types, options_.opset};
    std::vector<Attribute> attributes;
    const auto add_attribute = [&](std::string_view name, const Value& value, const Source& source) {
      std::optional<Attribute> made = attribute(name, value, source, *mapping.op);
      if (made) attributes.push_back(std::move(*made));
      return made.has_value();
    };
    for (const AttributeRule& rule : mapping.attributes) {
      if (rule.source.is_ignored) continue;
      const std::optional<Value> value = source_value(rule.source, call);
      if (!value) return {};
      if (rule.fallback && same_value(*value, *rule.fallback)) continue;
      if (value->is_none()) {
        if (rule.fallback) return {};
        continue;
      }
      if (!add_attribute(rule.name, *value, rule.source)) return {};
    }
    std::vector<std::optional<Value>> values;
    for (const InputRule& rule : mapping.inputs) {
      values.push_back(source_value(rule.source, call));
      if (!values.back()) return {};
      if (rule.is_required && values.back()->is_none()) return {};
    }
    std::vector<std::string> inputs;
    for (size_t i = 0; i < values.size(); ++i) {
      const InputRule& rule = mapping.inputs[i];
      if (rule.since > options_.opset) {
        if (!values[i]->is_none() && !add_attribute(rule.attribute, *values[i], rule.source)) return {};
      } else if (values[i]->is_list()) {
        const DType dtype = wanted_type(mapping, args, types, static_cast<size_t>(rule.source.args[0]));
        for (const Value& item : values[i]->list()) inputs.push_back(name_of(cast(item, dtype)));
      } else {
        inputs.push_back(input_name(mapping, *values[i], call, rule.source));
      }
    }
    const size_t count = mapping.results.empty() ? types.size() : mapping.results.size();
    const std::vector<std::string> names = node(mapping.name, inputs, count, std::move(attributes));
    Values out;
    for (size_t i = 0; i < types.size(); ++i) {
      if (i >= count) {
        out.push_back(output(types[i], ""));
        continue;
      }
      out.push_back(cast(output({given_type(mapping, args, types, i), types[i].shape}, names[i]), types[i].dtype));
    }
    return out;
  }

  // -- what cannot be said --

  std::string where() const { return place_.empty() ? "" : cat(" (", place_, ")"); }
  Values refused(std::string text, const Types& types) {
    refusals_.push_back(text + where());
    Values out;
    for (const Type& type : types) out.push_back(output(type, "refused"));
    return out;
  }
  void refuse_all() const {
    if (refusals_.empty()) return;
    std::string text;
    std::unordered_set<std::string> told;
    for (const std::string& refusal : refusals_)
      if (told.insert(refusal).second) text += "\n  " + refusal;
    raise(ErrorKind::NotImplemented, "For 'export', '", source_.name, "' cannot be written as ONNX:", text);
  }

  const Graph& source_;
  const ExportOptions& options_;
  const Evaluator& evaluate_;
  Exported out_;
  GraphData sizes_;  // nodes that compute sizes, which stand first
  GraphData* at_ = nullptr;
  std::unordered_map<const TensorImpl*, std::string> tensors_;
  std::unordered_map<std::string, Tensor> lists_;
  std::unordered_map<int64_t, std::pair<std::string, size_t>> symbols_;  // the input and axis of each
  std::unordered_map<int64_t, std::string> size_names_;
  std::unordered_set<std::string> names_;
  int64_t counter_ = 0;
  std::string place_;
  std::vector<std::string> refusals_;
};

}  // namespace

Exported export_graph(const Graph& graph, const ExportOptions& options, const Evaluator& evaluate) {
  MOREL_CHECK(options.opset >= oldest_opset && options.opset <= newest_opset, Value,
              "For 'export', 'opset' must be from ", oldest_opset, " to ", newest_opset, ", but got ", options.opset);
  return Exporter(graph, options, evaluate).run();
}

}  // namespace morel::onnx
