#include "morel/ops/call.h"

#include "morel/ir/parse.h"
#include "morel/ops/axes.h"

namespace morel {
namespace {

[[noreturn]] void wrong_argument(const OpDef& op, const ArgSpec& spec, const Value& value) {
  raise(ErrorKind::Type, "For '", display_name(op), "', '", spec.name, "' must be ", spec.type_text, ", but got ",
        to_string(value));
}

// Sums a gradient over the axes along which its argument was broadcast, and gives it the argument's dtype.
Sym fit(const Sym& grad, const Value& arg, bool broadcast) {
  if (!grad) return grad;
  Sym out = grad;
  if (broadcast && out.shape() != shape_of(arg)) out = out.builder()("sum_to", out, Ints(shape_of(arg)));
  const DType dtype = dtype_of_value(arg);
  if (out.dtype() != dtype) out = out.builder()("cast", out, dtype);
  return out;
}

// Makes nothing but types.
class TypeBuilder final : public Builder {
 public:
  Values emit(const OpDef& op, std::span<const Value> given) override {
    const Args args = complete_args(op, given);
    const std::span<const Value> all(args.data(), args.size());
    Values out;
    for (Type& type : result_types(op, all)) out.push_back(Value(Ref<RefCounted>(new Known(std::move(type))), 0));
    return out;
  }

 private:
  class Known final : public TypedNode {
   public:
    explicit Known(Type type) : type_(std::move(type)) {}
    const Type& type(uint32_t) const override { return type_; }

   private:
    Type type_;
  };
};

}  // namespace

bool is_primitive(const OpDef& op) {
  return op.loop || op.rows || op.reduce || op.view || op.views || op.kernel || op.control != Control::None;
}

Args complete_args(const OpDef& op, std::span<const Value> given) {
  const Schema& schema = op.schema;
  MOREL_CHECK(given.size() <= schema.size(), Type, "For '", display_name(op), "', at most ", schema.size(),
              " arguments are taken, but got ", given.size());
  Args args;
  for (size_t i = 0; i < schema.size(); ++i) {
    const ArgSpec& spec = schema.args[i];
    if (i < given.size()) {
      if (!accepts(spec, given[i])) wrong_argument(op, spec, given[i]);
      args.push_back(given[i]);
    } else {
      MOREL_CHECK(spec.has_default, Type, "For '", display_name(op), "', the argument '", spec.name, "' is missing");
      args.push_back(spec.default_value);
    }
  }
  return args;
}

Types result_types(const OpDef& op, std::span<const Value> args) {
  if (!is_primitive(op)) {
    TypeBuilder builder;
    Types out;
    for (const Sym& result : op.compose(Call(builder, op, args))) out.push_back(result.type());
    return out;
  }
  if (!op.has(kInPlace)) return infer_types(op, args);
  if (op.infer) op.infer(ArgView(op, args));  // for its checks
  return {type_of(args[0])};
}

Types infer_types(const OpDef& op, std::span<const Value> args) {
  MOREL_CHECK(!op.data_dependent, NotImplemented, "For '", display_name(op),
              "', the shape of the result depends on values, which a compiled graph does not support; call it outside "
              "of the compiled function");
  MOREL_CHECK(op.infer, Internal, "operator ", op.name, " has no infer rule");
  return op.infer(ArgView(op, args));
}

NamedOp op_of_name(std::string_view name) {
  const OpDef* op = registry().find(name);
  if (!op || op->name != name) return {};
  NamedOp out{op, op->name};
  for (size_t i = 0; i < op->schema.size(); ++i)
    if (op->schema.args[i].kinds & kGraph) out.graphs |= uint64_t{1} << i;
  return out;
}

Types checked_call(const OpDef& op, Args& args, const Types& written) {
  for (size_t i = 0; i < args.size() && i < op.schema.size(); ++i) {  // () is an empty list of either kind
    const bool empty = args[i].tag() == Value::Tag::Ints && args[i].ints().empty();
    if (empty && !accepts(op.schema.args[i], args[i])) args[i] = Value::Floats();
  }
  MOREL_CHECK(op.infer || op.has(kInPlace), Value, "For '", display_name(op),
              "', a graph holds the operators that it is composed of");
  args = complete_args(op, {args.data(), args.size()});
  Types types = result_types(op, {args.data(), args.size()});
  // Where its gradient is wanted, a loop gives besides what its carry was before every turn.
  if (op.control == Control::While || op.control == Control::Scan) {
    const Value::List& carry = args[args.size() - 2].list();
    if (written.size() == types.size() + carry.size())
      for (const Value& value : carry) types.push_back(type_of(value));
  }
  if (written.empty()) return types;
  if (types == written) return written;
  const auto text = [](const Types& all) {
    std::string out;
    for (const Type& type : all) out += (out.empty() ? "" : ", ") + to_string(type);
    return out;
  };
  raise(ErrorKind::Type, "For '", display_name(op), "', the result is ", text(types), ", but ", text(written),
        " is written");
}

Values argument_gradients(Builder& builder, const OpDef& op, std::span<const Value> args, std::span<const Value> outs,
                          std::span<const Type> out_types, std::span<const Value> cotangents,
                          std::span<const char> needs) {
  uint32_t wanted = 0;
  size_t edge = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    if (is_tensor_value(args[i])) {
      if (needs[edge++]) wanted |= 1u << i;
    } else if (args[i].is_list()) {
      for (const Value& item : args[i].list())
        if (is_tensor_value(item) && needs[edge++]) wanted |= 1u << i;
    }
  }
  const Syms grads = op.grad(GradCall(builder, op, args, outs, out_types, cotangents, wanted));
  const bool broadcast = op.has(kBroadcast) || op.rows;
  Values out;
  for (size_t i = 0; i < args.size(); ++i) {
    const Sym grad = i < grads.size() && wanted >> i & 1 ? grads[i] : Sym();
    if (args[i].is_list()) {
      for (size_t k = 0; k < args[i].list().size(); ++k)
        if (is_tensor_value(args[i].list()[k]))
          out.push_back(grad ? fit(grad.item(k), args[i].list()[k], broadcast).value() : Value());
    } else if (is_tensor_value(args[i])) {
      out.push_back(fit(grad, args[i], broadcast).value());
    }
  }
  return out;
}

}  // namespace morel
