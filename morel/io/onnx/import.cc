#include "morel/io/onnx/import.h"

#include <cstring>
#include <unordered_set>

#include "morel/io/onnx/import_rules.h"
#include "morel/ops/call.h"

namespace morel::onnx {

constexpr int64_t largest_constant = 4096;  // elements of what is computed at once

Tensor tensor_of(const TensorData& data) {
  const std::optional<DType> dtype = dtype_of_code(data.type);
  MOREL_CHECK(dtype, NotImplemented, "the tensor '", data.name, "' has elements of ", name_of_code(data.type),
              ", which are not supported");
  Shape shape(data.dims.begin(), data.dims.end());
  Tensor out = Tensor::empty(shape, *dtype);
  if (!data.bytes.empty()) std::memcpy(out.data(), data.bytes.data(), data.bytes.size());
  return out;
}

std::optional<Ints> integers_of(const Value& value) {
  if (!value.is_tensor() || value.tensor_impl()->is_symbolic()) return {};
  const Tensor tensor = value.tensor();
  if (tensor.rank() > 1 || tensor.size() > largest_constant || !tensor.is_contiguous()) return {};
  Ints out;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.dtype() == DType::Int64) out.push_back(tensor.as<int64_t>()[i]);
    else if (tensor.dtype() == DType::Int32) out.push_back(tensor.as<int32_t>()[i]);
    else if (tensor.dtype() == DType::Bool) out.push_back(tensor.as<bool>()[i]);
    else return {};
  }
  return out;
}

std::optional<double> number_of(const Value& value) {
  if (!value.is_tensor() || value.tensor_impl()->is_symbolic() || value.tensor_impl()->size != 1) return {};
  const Tensor tensor = value.tensor();
  return visit_dtype(tensor.dtype(), [&](auto tag) -> std::optional<double> {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(*tensor.as<T>());
    else if constexpr (sizeof(T) == 2) return to_float(*tensor.as<T>());
    else return {};
  });
}

Item item_of(Value value) { return {.value = std::move(value), .known = {}}; }
Item item_of(Ints list) { return {.value = {}, .known = std::move(list)}; }
Item item_of(Dim scalar) { return {.value = {}, .known = Ints{scalar}, .is_scalar = true}; }
Sym places(Builder& b, Dim count, const Ints& shape) {
  return b("reshape", b("arange", 0, count, 1, DType::Int64), shape);
}
int64_t axis_of(int64_t axis, int64_t rank) {
  const int64_t out = axis < 0 ? axis + rank : axis;
  MOREL_CHECK(out >= 0 && out < std::max<int64_t>(rank, 1), Value, "axis ", axis, " is out of range for ", rank,
              " axes");
  return out;
}

namespace {

// Known numbers as a tensor.
Sym materialised(Builder& b, const Item& item) {
  const Ints& numbers = *item.known;
  const bool is_scalar = item.is_scalar;
  bool fixed = true;
  for (const Dim number : numbers) fixed &= !number.is_symbolic();
  if (fixed) {
    Tensor out = Tensor::empty(is_scalar ? Shape{} : Shape{static_cast<int64_t>(numbers.size())}, DType::Int64);
    for (size_t i = 0; i < numbers.size(); ++i) out.as<int64_t>()[i] = numbers[i];
    return b("cast", Sym(b, out), item.dtype);
  }
  Syms parts;
  for (const Dim number : numbers) parts.push_back(b("full", is_scalar ? Ints{} : Ints{1}, number, item.dtype));
  return parts.size() == 1 ? parts[0] : b("concat", parts, 0);
}

}  // namespace

void require(const Items& inputs, size_t idx) {
  MOREL_CHECK(idx < inputs.size() && !inputs[idx].is_none(), Value, "its input ", idx, " is missing");
}

Sym NodeCall::operator[](size_t idx) const {
  if (!has(idx)) return {};
  const Item& item = inputs_[idx];
  return item.known ? materialised(b, item) : Sym(b, item.value);
}

Ints NodeCall::ints(size_t idx) const {
  if (has(idx)) {
    if (inputs_[idx].known) return *inputs_[idx].known;
    if (const std::optional<Ints> found = integers_of(inputs_[idx].value)) return *found;
  }
  raise(ErrorKind::NotImplemented, "its input ", idx,
        " must be known while a graph is built, but it depends on values");
}

Dim NodeCall::integer(size_t idx) const {
  const Ints all = ints(idx);
  MOREL_CHECK(all.size() == 1, Value, "its input ", idx, " must be one number, but there are ", all.size());
  return all[0];
}

double NodeCall::number(size_t idx) const {
  if (has(idx)) {
    if (inputs_[idx].known && inputs_[idx].known->size() == 1)
      return static_cast<double>(static_cast<int64_t>((*inputs_[idx].known)[0]));
    if (const std::optional<double> found = number_of(inputs_[idx].value)) return *found;
  }
  raise(ErrorKind::NotImplemented, "its input ", idx,
        " must be a number that is known while a graph is built, but it depends on values");
}

int64_t NodeCall::attribute(std::string_view name, int64_t fallback) const {
  const Attribute* found = node_.find(name);
  return found ? found->integer : fallback;
}
double NodeCall::real(std::string_view name, double fallback) const {
  const Attribute* found = node_.find(name);
  return found ? found->number : fallback;
}
std::string NodeCall::text(std::string_view name, std::string fallback) const {
  const Attribute* found = node_.find(name);
  return found ? found->text : fallback;
}
Ints NodeCall::list(std::string_view name, Ints fallback) const {
  const Attribute* found = node_.find(name);
  return found ? Ints(found->integers.begin(), found->integers.end()) : fallback;
}
std::optional<Ints> NodeCall::list_or_input(std::string_view name, size_t idx, int64_t since) const {
  if (opset_ >= since) return has(idx) ? std::optional(ints(idx)) : std::nullopt;
  return node_.find(name) ? std::optional(list(name, {})) : std::nullopt;
}
ReadNode NodeCall::read() const {
  ReadNode out{.node = node_, .types = {}, .opset = static_cast<int>(opset_)};
  for (const Item& item : inputs_)
    if (!item.value.is_none()) out.types.push_back(type_of(item.value));
  return out;
}

namespace {

// -- a node through the entry of an operator --

// An attribute, a list of known numbers or one of them as the argument that it is.
std::optional<Value> as_argument(const ArgSpec& spec, const Value& value) {
  if (value.is_none()) return value;
  if (spec.kinds & kDType && value.is_integer()) {
    const std::optional<DType> dtype = dtype_of_code(value.integer());
    return dtype ? std::optional<Value>(*dtype) : std::nullopt;
  }
  if (spec.kinds & kBool && value.is_integer()) return Value(value.integer() != 0);
  if (value.tag() == Value::Tag::Ints && !(spec.kinds & kInts)) {
    if (value.ints().size() != 1) return {};
    return Value(value.ints()[0]);
  }
  if (value.is_integer() && spec.kinds & kInts && !(spec.kinds & (kInt | kNumber | kFloat)))
    return Value(Ints{value.dim()});
  if (spec.kinds & kFloat && value.is_number() && value.tag() != Value::Tag::Size) return Value(value.number());
  return accepts(spec, value) ? std::optional(value) : std::nullopt;
}

Value value_of(const Attribute& attribute) {
  using Kind = Attribute::Kind;
  switch (static_cast<Kind>(attribute.kind)) {
    case Kind::Float: return attribute.number;
    case Kind::Int: return attribute.integer;
    case Kind::String: return attribute.text;
    case Kind::Ints: return Ints(attribute.integers.begin(), attribute.integers.end());
    default: return {};
  }
}

class MappedNode {
 public:
  MappedNode(const Mapping& mapping, const NodeCall& call)
      : mapping_(mapping), call_(call), op_(*mapping.op), args_(op_.schema.size()), is_set_(op_.schema.size()) {}

  // Nothing: the mapping does not fit, `reason` says why.
  std::optional<Items> run() {
    if (mapping_.since > call_.opset()) return no("it is another one before opset ", mapping_.since);
    if (!read_attributes() || !read_inputs() || !complete()) return {};
    Values outs = call_.b.emit(op_, {args_.data(), args_.size()});
    for (const Sym& more : further_) {
      const Value pair[] = {outs[0], more.value()};
      outs = call_.b.emit(op_, pair);
    }
    const size_t count = mapping_.results.empty() ? outs.size() : mapping_.results.size();
    for (size_t i = count; i < call_.num_outputs(); ++i)
      if (call_.has_output(i)) return no("its output ", i, " is not supported");
    Items items;
    for (size_t i = 0; i < std::min(count, outs.size()); ++i) items.push_back(item_of(of_type(outs[i], i)));
    return items;
  }
  std::string reason;

 private:
  template <class... Text>
  std::nullopt_t no(const Text&... text) {
    reason = cat(text...);
    return std::nullopt;
  }
  template <class... Text>
  bool fail(const Text&... text) {
    reason = cat(text...);
    return false;
  }

  bool set(size_t arg, const Value& value, std::string_view name) {
    if (is_set_[arg])
      return same_value(args_[arg], value) ||
             fail("'", name, "' is ", to_string(value), ", which goes not with its others");
    args_[arg] = value;
    is_set_[arg] = true;
    return true;
  }

  bool assign(const Source& source, Value value, std::string_view name) {
    if (source.conversion) {
      const std::optional<Value> converted = source.conversion->from_onnx(call_.read(), value);
      if (!converted) return fail("'", name, "' is ", to_string(value));
      value = *converted;
    }
    if (value.is_none()) return true;
    if (source.args.size() == 2) {
      const Ints& all = value.ints();
      const auto middle = all.begin() + static_cast<int64_t>(all.size() / 2);
      return set(static_cast<size_t>(source.args[0]), Ints(all.begin(), middle), name) &&
             set(static_cast<size_t>(source.args[1]), Ints(middle, all.end()), name);
    }
    const size_t arg = static_cast<size_t>(source.args[0]);
    const std::optional<Value> fitting = as_argument(op_.schema.args[arg], value);
    return fitting ? set(arg, *fitting, name) : fail("'", name, "' is ", to_string(value));
  }

  bool read_attribute(const Source& source, std::string_view name, const std::optional<Value>& fallback) {
    const Attribute* found = call_.node().find(name);
    if (source.is_ignored) return true;
    const Value value = found ? value_of(*found) : fallback.value_or(Value());
    if (!source.args.empty()) return assign(source, value, name);
    return same_value(value, source.literal) || fail("'", name, "' is ", to_string(value));
  }

  bool read_attributes() {
    for (const Attribute& given : call_.node().attributes) {
      bool known = false;
      for (const AttributeRule& rule : mapping_.attributes) known |= rule.name == given.name;
      for (const InputRule& rule : mapping_.inputs) known |= rule.since > call_.opset() && rule.attribute == given.name;
      if (!known) return fail("its attribute '", given.name, "' is not known");
    }
    for (const AttributeRule& rule : mapping_.attributes)
      if (!read_attribute(rule.source, rule.name, rule.fallback)) return false;
    return true;
  }

  bool read_inputs() {
    size_t next = 0;
    for (const InputRule& rule : mapping_.inputs) {
      if (rule.since > call_.opset()) {
        if (!read_attribute(rule.source, rule.attribute, {})) return false;
        continue;
      }
      const size_t at = next++;
      const size_t arg = static_cast<size_t>(rule.source.args[0]);
      const ArgSpec& spec = op_.schema.args[arg];
      if (rule.is_required && !call_.has(at)) return fail("its '", spec.name, "' is missing");
      if (spec.kinds & kTensors) {
        Value::List all;
        for (next = at; next < call_.size(); ++next) all.push_back(call_.given(next).value());
        if (!set(arg, Value(all), spec.name)) return false;
      } else if (spec.kinds & kTensor) {
        if (call_.has(at) && !set(arg, call_[at].value(), spec.name)) return false;
      } else if (!assign(rule.source, call_.has(at) ? number_or_list(at, spec) : Value(), spec.name)) {
        return false;
      }
      if (rule.is_repeated)
        for (; next < call_.size(); ++next) further_.push_back(call_.given(next));
    }
    for (; next < call_.size(); ++next)
      if (call_.has(next)) return fail("its input ", next, " is not known");
    return true;
  }
  Value number_or_list(size_t at, const ArgSpec& spec) const {
    if (spec.kinds & (kFloat | kNumber) && !call_.item(at).known) {
      const double number = call_.number(at);
      return is_float(dtype_of_value(call_.item(at).value)) ? Value(number) : Value(static_cast<int64_t>(number));
    }
    return Value(call_.ints(at));
  }

  bool complete() {
    for (const Condition& condition : mapping_.conditions) {
      const size_t arg = static_cast<size_t>(condition.arg);
      if (condition.kind == Condition::Kind::Equals && !is_set_[arg]) {
        const ArgSpec& spec = op_.schema.args[arg];
        args_[arg] = as_argument(spec, condition.literal).value_or(condition.literal);
        is_set_[arg] = true;
      }
    }
    for (size_t i = 0; i < args_.size(); ++i) {
      const ArgSpec& spec = op_.schema.args[i];
      if (is_set_[i]) continue;
      if (!spec.has_default && !(spec.kinds & (kNone | kRng))) return fail("its '", spec.name, "' is missing");
      if (spec.has_default) args_[i] = spec.default_value;
    }
    const ArgView view(op_, {args_.data(), args_.size()});
    for (const Condition& condition : mapping_.conditions)
      if (!holds(condition, view, true))
        return fail("its '", op_.schema.args[static_cast<size_t>(condition.arg)].name, "' is ",
                    to_string(view.value(static_cast<size_t>(condition.arg))));
    return true;
  }

  Value of_type(const Value& value, size_t idx) const {
    if (idx >= mapping_.results.size()) return value;
    const ResultRule& rule = mapping_.results[idx];
    const DType dtype = rule.dtype ? *rule.dtype : dtype_of_value(args_[static_cast<size_t>(rule.like)]);
    if (dtype_of_value(value) == dtype) return value;
    return call_.b("cast", Sym(call_.b, value), dtype).value();
  }

  const Mapping& mapping_;
  const NodeCall& call_;
  const OpDef& op_;
  std::vector<Value> args_;
  std::vector<char> is_set_;
  Syms further_;
};

const ImportEntry* find_rule(const NodeData& node, int64_t opset) {
  for (const auto& rules : {shape_rules(), math_rules(), window_rules(), resize_rules(), recurrent_rules(),
                            attention_rules(), quant_rules(), signal_rules(), einsum_rules()})
    for (const ImportEntry& entry : rules)
      if (entry.name == node.type && opset < entry.before) return &entry;
  return nullptr;
}

bool is_control(std::string_view type) { return type == "If" || type == "Loop" || type == "Scan"; }

// Why a node cannot be read whatever its inputs are; empty where it can.
std::string refusal(const NodeData& node, int64_t opset) {
  if (!node.domain.empty()) return cat("the domain '", node.domain, "' is not known");
  if (is_control(node.type) || find_rule(node, opset)) return "";
  bool any = false;
  for (const Mapping* mapping : mappings_named(node.type)) any |= mapping->since <= opset;
  return any                                 ? ""
         : mappings_named(node.type).empty() ? "there is no operator for it"
                                             : cat("not in the form of opset ", opset);
}

}  // namespace

class Import {
 public:
  Import(const ImportedModel& model, const Target& target) : model_(model), target_(target) {}

  Values run(std::span<const Value> inputs, std::span<const Value> weights) {
    scopes_.emplace_back();
    for (size_t i = 0; i < weights.size(); ++i) scopes_.back()[model_.weights_[i].first] = item_of(weights[i]);
    for (size_t i = 0; i < inputs.size(); ++i) scopes_.back()[model_.inputs_[i].name] = item_of(inputs[i]);
    Values out;
    for (const Item& item : graph(model_.model_.graph)) out.push_back(tensor(item));
    return out;
  }

  static void check(const GraphData& graph, int64_t opset, std::string& problems) {
    for (const NodeData& node : graph.nodes) {
      if (const std::string reason = refusal(node, opset); !reason.empty())
        problems +=
            cat("\n  ", node.type, " '", node.name.empty() ? node.outputs.empty() ? "" : node.outputs[0] : node.name,
                "' (byte ", node.place, "): ", reason);
      for (const Attribute& attribute : node.attributes)
        if (attribute.graph) check(*attribute.graph, opset, problems);
    }
  }

 private:
  using Scope = std::unordered_map<std::string, Item>;

  Items graph(const GraphData& graph) {
    for (const TensorData& data : graph.initializers)
      if (!scopes_.back().contains(data.name)) {
        Item& item = scopes_.back()[data.name] = item_of(model_.constants_.at(&data));
        item.is_constant = true;
      }
    for (const NodeData& node : graph.nodes) run(node);
    Items out;
    for (const ValueInfo& result : graph.outputs) out.push_back(find(result.name));
    return out;
  }

  // Names made within are forgotten afterwards.
  Items inner(const GraphData& body, std::span<const Item> inputs) {
    scopes_.emplace_back();
    struct Leave {
      std::vector<Scope>& scopes;
      ~Leave() { scopes.pop_back(); }
    } leave{scopes_};
    for (size_t i = 0; i < inputs.size(); ++i) scopes_.back()[body.inputs[i].name] = inputs[i];
    return graph(body);
  }

  Item find(const std::string& name) const {
    if (name.empty()) return {};
    for (size_t i = scopes_.size(); i-- > 0;)
      if (const auto found = scopes_[i].find(name); found != scopes_[i].end()) return found->second;
    raise(ErrorKind::Value, model_.model_.file.path(), ": the value '", name, "' is used before it is made");
  }

  Value tensor(const Item& item) const { return item.known ? materialised(target_.here, item).value() : item.value; }

  static bool is_constant(const Items& inputs) {
    int64_t size = 0;
    for (const Item& item : inputs) {
      if (item.is_none() || (item.known && std::ranges::none_of(*item.known, &Dim::is_symbolic))) continue;
      if (!item.is_constant) return false;
      size += item.value.tensor_impl()->size;
    }
    return size <= largest_constant;
  }

  void run(const NodeData& node) {
    try {
      Items inputs;
      for (const std::string& input : node.inputs) inputs.push_back(find(input));
      Items outs = is_control(node.type) ? control(node, inputs) : call(node, std::move(inputs));
      MOREL_CHECK(outs.size() >= node.outputs.size() || outs.size() > 0, Value, "it has ", node.outputs.size(),
                  " outputs");
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i].empty()) continue;
        MOREL_CHECK(i < outs.size(), NotImplemented, "its output ", i, " is not supported");
        scopes_.back()[node.outputs[i]] = std::move(outs[i]);
      }
    } catch (Error& error) {
      error.append(
          cat("\nnode: ", node.type, " '", node.name, "', byte ", node.place, " of ", model_.model_.file.path()));
      throw;
    }
  }

  Items call(const NodeData& node, Items inputs) {
    const bool constant = is_constant(inputs);
    Builder& builder = constant ? target_.now : target_.here;
    const NodeCall call(target_, builder, node, model_.opset_, std::move(inputs));
    if (std::optional<Item> sizes = compute_sizes(call)) return {std::move(*sizes)};
    const auto marked = [&](Items outs) {
      for (Item& item : outs)
        item.is_constant = constant && item.value.is_tensor() && !item.value.tensor_impl()->is_symbolic();
      return outs;
    };
    if (const ImportEntry* entry = find_rule(node, model_.opset_)) {
      const size_t count = entry->inputs == every_input ? std::max<size_t>(call.size(), 1) : entry->inputs;
      for (size_t i = 0; i < count; ++i) call.given(i);
      if (std::optional<Items> outs = entry->rule(call)) return marked(std::move(*outs));
    }
    std::string reasons;
    for (const Mapping* mapping : mappings_named(node.type)) {
      MappedNode mapped(*mapping, call);
      if (std::optional<Items> outs = mapped.run()) return marked(std::move(*outs));
      reasons += cat(reasons.empty() ? "" : "; ", "as '", mapping->op->name, "': ", mapped.reason);
    }
    raise(ErrorKind::NotImplemented, "a node of ONNX is not supported in this form", reasons.empty() ? "" : ": ",
          reasons);
  }

  // -- control flow --

  static const GraphData& body_of(const NodeData& node, std::string_view name) {
    const Attribute* found = node.find(name);
    MOREL_CHECK(found && found->graph, Value, "its attribute '", name, "' is missing");
    return *found->graph;
  }

  Items control(const NodeData& node, const Items& inputs) {
    if (node.type == "If") return branch(node, inputs);
    return node.type == "Loop" ? loop(node, inputs) : scan(node, inputs);
  }

  Values tensors(const Items& items) const {
    Values out;
    for (const Item& item : items) out.push_back(tensor(item));
    return out;
  }
  static Items items(std::span<const Value> values) {
    Items out;
    for (const Value& value : values) out.push_back(item_of(value));
    return out;
  }

  // One number that is known.
  static std::optional<double> number_in(const Item& item) {
    if (!item.known) return number_of(item.value);
    if (item.known->size() != 1 || (*item.known)[0].is_symbolic()) return {};
    return static_cast<double>(static_cast<int64_t>((*item.known)[0]));
  }

  Items branch(const NodeData& node, const Items& inputs) {
    const GraphData &then = body_of(node, "then_branch"), &orelse = body_of(node, "else_branch");
    require(inputs, 0);
    if (const std::optional<double> known = number_in(inputs[0])) return inner(*known != 0 ? then : orelse, {});
    const Value condition = tensor(inputs[0]);
    const Values outs = target_.control.branch(
        condition, [&] { return tensors(inner(then, {})); }, [&] { return tensors(inner(orelse, {})); });
    return items({outs.data(), outs.size()});
  }

  Value flag(bool value) const { return Value(Tensor::full({}, DType::Bool, value)); }
  Item turn(int64_t number) const {
    return item_of(Value(Tensor::full({}, DType::Int64, static_cast<double>(number))));
  }

  Items loop(const NodeData& node, const Items& inputs) {
    const GraphData& body = body_of(node, "body");
    MOREL_CHECK(inputs.size() >= 2 && body.inputs.size() == inputs.size() && body.outputs.size() + 1 >= inputs.size(),
                Value, "its body has ", body.inputs.size(), " inputs and ", body.outputs.size(), " outputs");
    const size_t carried = inputs.size() - 2;
    for (size_t i = 2; i < inputs.size(); ++i) require(inputs, i);
    const std::optional<double> most =
        inputs[0].is_none() ? static_cast<double>(int64_t{1} << 62) : number_in(inputs[0]);
    Items state(inputs.begin() + 2, inputs.end());
    std::vector<Items> scanned(body.outputs.size() - 1 - carried);
    Item again = inputs[1].is_none() ? item_of(flag(true)) : inputs[1];
    // Turn after turn, as long as it is known whether there is another one.
    const bool is_unknown = !most || !number_in(again) || (*most > most_turns && is_symbolic(state));
    for (int64_t i = 0; !is_unknown; ++i) {
      const std::optional<double> goes_on = number_in(again);
      if (!goes_on) break;
      if (static_cast<double>(i) >= *most || *goes_on == 0) return with_scanned(std::move(state), scanned);
      Items given{turn(i), again};
      given.insert(given.end(), state.begin(), state.end());
      Items outs = inner(body, given);
      again = outs[0];
      state.assign(outs.begin() + 1, outs.begin() + 1 + static_cast<int64_t>(carried));
      for (size_t k = 0; k < scanned.size(); ++k) scanned[k].push_back(outs[1 + carried + k]);
    }
    MOREL_CHECK(scanned.empty(), NotImplemented,
                "the number of its turns depends on values, and so does the length of its outputs");
    return while_loop(body, inputs);
  }

  bool is_symbolic(const Items& items) const {
    for (const Item& item : items)
      if (!item.value.is_tensor() || item.value.tensor_impl()->is_symbolic()) return true;
    return false;
  }

  // state: whether there is another turn, which one it is, the values.
  Items while_loop(const GraphData& body, const Items& inputs) {
    Builder& b = target_.here;
    const auto goes_on = [&](const Sym& again, const Sym& number) {
      if (inputs[0].is_none()) return again;
      return b("logical_and", again, b("less", number, b("reshape", Sym(b, tensor(inputs[0])), Ints{})));
    };
    const Sym first = inputs[1].is_none() ? Sym(b, flag(true)) : b("reshape", Sym(b, tensor(inputs[1])), Ints{});
    const Sym zero(b, turn(0).value);
    Values state{goes_on(first, zero).value(), zero.value()};
    for (size_t i = 2; i < inputs.size(); ++i) state.push_back(tensor(inputs[i]));
    const Values last = target_.control.loop(state, [&](std::span<const Value> now) {
      Items given{item_of(now[1]), item_of(now[0])};
      for (const Value& value : now.subspan(2)) given.push_back(item_of(value));
      const Values outs = tensors(inner(body, given));
      const Sym next = b("add", Sym(b, now[1]), 1);
      Values state_after{goes_on(b("reshape", Sym(b, outs[0]), Ints{}), next).value(), next.value()};
      for (size_t i = 1; i < outs.size(); ++i) state_after.push_back(outs[i]);
      return state_after;
    });
    return items(std::span<const Value>(last.data(), last.size()).subspan(2));
  }

  // The values of each turn, one after another along a new axis.
  Items with_scanned(Items state, const std::vector<Items>& scanned, std::span<const Dim> axes = {}) {
    Builder& b = target_.here;
    for (size_t k = 0; k < scanned.size(); ++k) {
      MOREL_CHECK(!scanned[k].empty(), NotImplemented, "it has no turn, so its output has no known shape");
      Syms parts;
      for (const Item& item : scanned[k]) parts.push_back(Sym(b, tensor(item)));
      state.push_back(item_of(b("stack", parts, axes.empty() ? Dim(0) : axes[k]).value()));
    }
    return state;
  }

  Items scan(const NodeData& node, const Items& inputs) {
    Builder& b = target_.here;
    const GraphData& body = body_of(node, "body");
    const Attribute* count = node.find("num_scan_inputs");
    MOREL_CHECK(
        model_.opset_ >= 9 && count && count->integer >= 1 && count->integer <= static_cast<int64_t>(inputs.size()),
        NotImplemented, "it has the form of opset ", model_.opset_);
    for (size_t i = 0; i < inputs.size(); ++i) require(inputs, i);
    const size_t sequences = static_cast<size_t>(count->integer), carried = inputs.size() - sequences;
    MOREL_CHECK(body.inputs.size() == inputs.size() && body.outputs.size() >= carried, Value, "its body does not fit");
    const auto list = [&](std::string_view name, size_t size) {
      const Attribute* found = node.find(name);
      return found ? Ints(found->integers.begin(), found->integers.end()) : Ints(size, 0);
    };
    const size_t results = body.outputs.size() - carried;
    const Ints axes = list("scan_input_axes", sequences), backwards = list("scan_input_directions", sequences);
    const Ints out_axes = list("scan_output_axes", results), out_backwards = list("scan_output_directions", results);
    const Sym first(b, tensor(inputs[carried]));
    const Dim turns = first.dim(axes[0]);
    MOREL_CHECK(!turns.is_symbolic() && turns <= most_turns, NotImplemented, "the number of its turns is ",
                to_string(turns));
    Items state(inputs.begin(), inputs.begin() + static_cast<int64_t>(carried));
    std::vector<Items> scanned(results);
    for (int64_t i = 0; i < turns; ++i) {
      Items given = state;
      for (size_t k = 0; k < sequences; ++k) {
        const Dim at = backwards[k] == 1 ? turns - 1 - i : Dim(i);
        given.push_back(item_of(b("select", Sym(b, tensor(inputs[carried + k])), axes[k], at).value()));
      }
      Items outs = inner(body, given);
      state.assign(outs.begin(), outs.begin() + static_cast<int64_t>(carried));
      for (size_t k = 0; k < results; ++k) {
        Items& all = scanned[k];
        all.insert(out_backwards[k] == 1 ? all.begin() : all.end(), outs[carried + k]);
      }
    }
    return with_scanned(std::move(state), scanned, {out_axes.data(), out_axes.size()});
  }

  const ImportedModel& model_;
  const Target& target_;
  std::vector<Scope> scopes_;
};

namespace {

template <class F>
void for_each_tensor(const GraphData& graph, bool is_main, F&& fn) {
  for (const TensorData& data : graph.initializers) fn(data, is_main);
  for (const NodeData& node : graph.nodes)
    for (const Attribute& attribute : node.attributes)
      if (attribute.graph) for_each_tensor(*attribute.graph, false, fn);
}

}  // namespace

ImportedModel::ImportedModel(Model model) : model_(std::move(model)) {
  const auto version = model_.opsets.find("");
  opset_ = version == model_.opsets.end() ? 1 : version->second;
  std::string problems;
  Import::check(model_.graph, opset_, problems);
  std::unordered_set<std::string> given;
  for_each_tensor(model_.graph, true, [&](const TensorData& data, bool is_main) {
    const std::optional<DType> dtype = dtype_of_code(data.type);
    if (!dtype) {
      problems += cat("\n  tensor '", data.name, "' (byte ", data.place, "): elements of ", name_of_code(data.type));
      return;
    }
    if (is_main) given.insert(data.name);
    const Tensor tensor = tensor_of(data);
    if (is_main && is_float(*dtype)) weights_.emplace_back(data.name, tensor);
    constants_.emplace(&data, tensor);
  });
  MOREL_CHECK(problems.empty(), NotImplemented, model_.file.path(), " has what is not supported:", problems);
  for (const ValueInfo& input : model_.graph.inputs)
    if (!given.contains(input.name)) inputs_.push_back(input);
}

Values ImportedModel::call(const Target& target, std::span<const Value> inputs, std::span<const Value> weights) const {
  MOREL_CHECK(inputs.size() == inputs_.size() && weights.size() == weights_.size(), Type, model_.file.path(), " takes ",
              inputs_.size(), " inputs, but got ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<DType> dtype = dtype_of_code(inputs_[i].type);
    if (inputs[i].is_none()) continue;
    MOREL_CHECK(!dtype || dtype_of_value(inputs[i]) == *dtype, Type, model_.file.path(), ": the input '",
                inputs_[i].name, "' must be ", info(*dtype).name, ", but got ", to_string(inputs[i]));
  }
  return Import(*this, target).run(inputs, weights);
}

}  // namespace morel::onnx
