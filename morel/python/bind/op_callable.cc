// The one callable type of all operators. A public name binds an operator with its own parameter names, order and
// defaults (rows of api/*.toml); arguments are parsed here by the schema, without intermediate objects.
#include <Python.h>
#include <structmember.h>

#include <vector>

#include "morel/loops/library.h"
#include "morel/ops/axes.h"
#include "morel/python/bind/bind.h"

namespace morel::bind {
namespace {

// A parameter of the public signature.
struct Parameter {
  PyObject* name;  // interned
  int arg = 0;     // index in the operator's schema
  bool keyword_only = false;
  bool has_default = false;
  Value default_value;
};

struct OpCallable {
  PyObject_HEAD vectorcallfunc vectorcall;
  const OpDef* op;
  bool in_place;
  std::string* name;
  std::string* spec;
  std::vector<Parameter>* parameters;
  std::vector<std::pair<int, Value>>* fixed;  // schema arguments that the public name sets itself
  Py_ssize_t positional;                      // parameters before the keyword-only ones
  PyObject* doc;
  PyObject* dict;
};
PyTypeObject* callable_type = nullptr;

[[noreturn]] void wrong_type(const OpCallable* self, const Parameter& parameter, PyObject* object) {
  const ArgSpec& spec = self->op->schema.args[static_cast<size_t>(parameter.arg)];
  PyObject* text = PyObject_Repr(object);
  std::string shown = text ? PyUnicode_AsUTF8(text) : "?";
  Py_XDECREF(text);
  PyErr_Clear();
  if (is_tensor(object)) {
    shown = describe(unwrap(object)->dtype, unwrap(object)->layout.shape);
  } else if (shown.size() > 60) {
    shown = shown.substr(0, 57) + "...";
  }
  raise(ErrorKind::Type, "For '", *self->name, "', the type of '", PyUnicode_AsUTF8(parameter.name), "' must be ",
        spec.type_text, ", but got ", Py_TYPE(object)->tp_name, ": ", shown);
}

size_t find_parameter(const OpCallable* self, PyObject* key) {
  const auto& parameters = *self->parameters;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == key) return i;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (PyUnicode_Compare(parameters[i].name, key) == 0) return i;
  std::string known;
  for (const Parameter& parameter : parameters)
    known += cat(known.empty() ? "" : ", ", "'", PyUnicode_AsUTF8(parameter.name), "'");
  raise(ErrorKind::Type, "For '", *self->name, "', got an unexpected keyword argument '", PyUnicode_AsUTF8(key),
        "'; its arguments are ", known);
}

// Trailing positional integers given one by one where one int[] is expected: x.reshape(2, 3), x.permute(0, 2, 1).
bool gathers_rest(const OpCallable* self, Py_ssize_t given, PyObject* const* args) {
  if (self->positional == 0 || given <= self->positional) return false;
  const Parameter& last = (*self->parameters)[static_cast<size_t>(self->positional) - 1];
  if (!(self->op->schema.args[static_cast<size_t>(last.arg)].kinds & kInts)) return false;
  Dim dim;
  for (Py_ssize_t i = self->positional - 1; i < given; ++i)
    if (!to_dim(args[i], dim)) return false;
  return true;
}

void parse(const OpCallable* self, PyObject* const* args, Py_ssize_t given, PyObject* keywords, Args& out) {
  const auto& parameters = *self->parameters;
  const Schema& schema = self->op->schema;
  for (size_t i = 0; i < schema.size(); ++i) out.push_back(schema.args[i].default_value);
  uint64_t seen = 0;
  const auto take = [&](size_t idx, PyObject* object) {
    const Parameter& parameter = parameters[idx];
    const ArgSpec& spec = schema.args[static_cast<size_t>(parameter.arg)];
    if (!to_value(object, spec, out[static_cast<size_t>(parameter.arg)])) wrong_type(self, parameter, object);
    seen |= uint64_t{1} << idx;
  };
  if (gathers_rest(self, given, args)) {
    Ints rest;
    for (Py_ssize_t i = self->positional - 1; i < given; ++i) {
      rest.push_back({});
      to_dim(args[i], rest.back());
    }
    const size_t last = static_cast<size_t>(self->positional) - 1;
    out[static_cast<size_t>(parameters[last].arg)] = std::move(rest);
    seen |= uint64_t{1} << last;
    given = self->positional - 1;
  }
  MOREL_CHECK(given <= self->positional, Type, "For '", *self->name, "', at most ", self->positional,
              " positional arguments are taken, but got ", given);
  for (Py_ssize_t i = 0; i < given; ++i) take(static_cast<size_t>(i), args[i]);
  if (keywords) {
    const Py_ssize_t count = PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t i = 0; i < count; ++i) {
      const size_t idx = find_parameter(self, PyTuple_GET_ITEM(keywords, i));
      MOREL_CHECK(!(seen >> idx & 1), Type, "For '", *self->name, "', the argument '",
                  PyUnicode_AsUTF8(parameters[idx].name), "' is given twice");
      take(idx, args[given + i]);
    }
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (seen >> i & 1) continue;
    MOREL_CHECK(parameters[i].has_default, Type, "For '", *self->name, "', the argument '",
                PyUnicode_AsUTF8(parameters[i].name), "' is missing");
    out[static_cast<size_t>(parameters[i].arg)] = parameters[i].default_value;
  }
  for (const auto& [arg, value] : *self->fixed) out[static_cast<size_t>(arg)] = value;
}

PyObject* callable_call(PyObject* object, PyObject* const* args, size_t flags, PyObject* keywords) {
  auto* self = reinterpret_cast<OpCallable*>(object);
  try {
    Args values;
    parse(self, args, PyVectorcall_NARGS(flags), keywords, values);
    PyObject* out = call_from_python(*self->op, *self->name, {values.data(), values.size()}, self->in_place);
    if (self->in_place && out) {  // the very object that was given
      Py_DECREF(out);
      return Py_NewRef(args[0]);
    }
    return out;
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* callable_get(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

void callable_dealloc(PyObject* object) {
  auto* self = reinterpret_cast<OpCallable*>(object);
  for (Parameter& parameter : *self->parameters) Py_XDECREF(parameter.name);
  delete self->parameters;
  delete self->fixed;
  delete self->name;
  delete self->spec;
  Py_XDECREF(self->doc);
  Py_XDECREF(self->dict);
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* callable_repr(PyObject* object) {
  auto* self = reinterpret_cast<OpCallable*>(object);
  return PyUnicode_FromFormat("<operator %s>", self->name->c_str());
}

PyObject* callable_name(PyObject* object, void*) {
  return PyUnicode_FromString(reinterpret_cast<OpCallable*>(object)->name->c_str());
}
PyObject* callable_op(PyObject* object, void*) {
  const std::string_view name = reinterpret_cast<OpCallable*>(object)->op->name;
  return PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
}

// "(input, other, *, alpha=1)", which inspect.signature reads.
std::string signature_text(const OpCallable* self) {
  std::string out = "(";
  bool star = false;
  for (const Parameter& parameter : *self->parameters) {
    if (out.size() > 1) out += ", ";
    if (parameter.keyword_only && !star) {
      out += "*, ";
      star = true;
    }
    out += PyUnicode_AsUTF8(parameter.name);
    if (parameter.has_default) out += "=" + to_string(parameter.default_value);
  }
  return out + ")";
}

PyObject* callable_signature(PyObject* object, void*) {
  return PyUnicode_FromString(signature_text(reinterpret_cast<OpCallable*>(object)).c_str());
}
// ((name, type as the schema writes it, whether keyword-only, default or None), ...)
PyObject* callable_parameters(PyObject* object, void*) {
  const auto* self = reinterpret_cast<OpCallable*>(object);
  nb::list out;
  for (const Parameter& parameter : *self->parameters) {
    const std::string& type = self->op->schema.args[static_cast<size_t>(parameter.arg)].type_text;
    nb::object fallback = nb::none();
    if (parameter.has_default) fallback = nb::cast(to_string(parameter.default_value));
    out.append(nb::make_tuple(nb::borrow(parameter.name), type, parameter.keyword_only, fallback));
  }
  return nb::tuple(out).release().ptr();
}
PyObject* callable_doc(PyObject* object, void*) {
  const auto* self = reinterpret_cast<OpCallable*>(object);
  if (self->doc) return Py_NewRef(self->doc);
  return PyUnicode_FromStringAndSize(self->op->doc.data(), static_cast<Py_ssize_t>(self->op->doc.size()));
}

// Operators are immutable: a copy is the operator itself, a pickle makes it again.
PyObject* callable_copy(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyObject* callable_reduce(PyObject* object, PyObject*) {
  const auto* self = reinterpret_cast<OpCallable*>(object);
  PyObject* module = PyImport_ImportModule("morel._core");
  PyObject* maker = module ? PyObject_GetAttrString(module, "make_operator") : nullptr;
  Py_XDECREF(module);
  if (!maker) return nullptr;
  return Py_BuildValue("N(ssO)", maker, self->name->c_str(), self->spec->c_str(), self->in_place ? Py_True : Py_False);
}
PyMethodDef callable_methods[] = {{"__copy__", callable_copy, METH_NOARGS, nullptr},
                                  {"__deepcopy__", callable_copy, METH_O, nullptr},
                                  {"__reduce__", callable_reduce, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
PyGetSetDef callable_getset[] = {{"__name__", callable_name, nullptr, nullptr, nullptr},
                                 {"__qualname__", callable_name, nullptr, nullptr, nullptr},
                                 {"op", callable_op, nullptr, "name of the operator", nullptr},
                                 {"__text_signature__", callable_signature, nullptr, nullptr, nullptr},
                                 {"parameters", callable_parameters, nullptr, "for stubs and documentation", nullptr},
                                 {"__doc__", callable_doc, nullptr, nullptr, nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef callable_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpCallable, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(OpCallable, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot callable_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(callable_dealloc)},
                                {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_descr_get, reinterpret_cast<void*>(callable_get)},
                                {Py_tp_repr, reinterpret_cast<void*>(callable_repr)},
                                {Py_tp_getset, callable_getset},
                                {Py_tp_methods, callable_methods},
                                {Py_tp_members, callable_members},
                                {0, nullptr}};
PyType_Spec callable_spec = {"morel._core.Operator", sizeof(OpCallable), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                             callable_slots};

// Parameters of a public signature: "input, dim: axis = None, *, dtype = None". A name after a colon is the schema
// argument that the parameter stands for; arguments that are not mentioned keep the operator's default.
std::vector<Parameter> parse_signature(const OpDef& op, std::string_view text) {
  std::vector<Parameter> out;
  bool keyword_only = false;
  for (const std::string_view part : split_text(text, ',')) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    const auto left = split_text(part.substr(0, part.find('=')), ':');
    const std::string_view target = left.back();
    Parameter parameter;
    parameter.arg = op.schema.find(target);
    MOREL_CHECK(parameter.arg >= 0, Internal, "operator ", op.name, " has no argument '", target,
                "', which an api row names");
    parameter.name = PyUnicode_InternFromString(std::string(left.front()).c_str());
    parameter.keyword_only = keyword_only;
    parameter.has_default = part.find('=') != std::string_view::npos;
    if (parameter.has_default) {
      const auto sides = split_text(part, '=');
      parameter.default_value = parse_default(sides[1], op.schema.args[static_cast<size_t>(parameter.arg)].kinds);
    }
    out.push_back(std::move(parameter));
  }
  return out;
}

std::vector<Parameter> schema_parameters(const OpDef& op) {
  std::vector<Parameter> out;
  for (size_t i = 0; i < op.schema.size(); ++i) {
    const ArgSpec& spec = op.schema.args[i];
    if (spec.kinds & kRng) continue;
    out.push_back({PyUnicode_InternFromString(spec.name.c_str()), static_cast<int>(i), spec.keyword_only,
                   spec.has_default, spec.default_value});
  }
  return out;
}

const OpDef& operator_named(std::string_view name) {
  const OpDef* op = registry().find(name);
  MOREL_CHECK(op, Attribute, "there is no operator '", name, "'");
  return *op;
}

// spec: "operator", "operator(signature)" or "operator(signature) fixed = value, ...".
nb::object make_operator(std::string_view name, std::string_view spec, bool in_place) {
  const size_t open = spec.find('(');
  size_t close = open;
  for (int depth = 0; close < spec.size(); ++close) {
    depth += spec[close] == '(' ? 1 : spec[close] == ')' ? -1 : 0;
    if (depth == 0) break;
  }
  const std::string_view op_name = split_text(spec.substr(0, open), ' ').front();
  const OpDef& op = operator_named(op_name);
  auto* self = reinterpret_cast<OpCallable*>(callable_type->tp_alloc(callable_type, 0));
  self->vectorcall = callable_call;
  self->op = &op;
  self->in_place = in_place || op.has(kInPlace);
  self->name = new std::string(name);
  self->spec = new std::string(spec);
  self->fixed = new std::vector<std::pair<int, Value>>;
  const bool plain = open == std::string_view::npos;
  self->parameters = new std::vector<Parameter>;
  nb::object owner = nb::steal(reinterpret_cast<PyObject*>(self));
  *self->parameters = plain ? schema_parameters(op) : parse_signature(op, spec.substr(open + 1, close - open - 1));
  if (!plain)
    for (Parameter& fixed : parse_signature(op, spec.substr(close + 1))) {
      self->fixed->emplace_back(fixed.arg, fixed.default_value);
      Py_DECREF(fixed.name);
    }
  self->positional = 0;
  for (const Parameter& parameter : *self->parameters) self->positional += parameter.keyword_only ? 0 : 1;
  return owner;
}

// [(name, has_default, default)] of a signature, for Primitive classes.
nb::list describe_signature(std::string_view op_name, std::string_view text) {
  nb::list out;
  for (const Parameter& parameter : parse_signature(operator_named(op_name), text)) {
    out.append(nb::make_tuple(nb::steal(parameter.name), parameter.has_default,
                              nb::steal(from_value(parameter.default_value))));
  }
  return out;
}

// Where the index structure of calls comes from, and batches of them.
const char* axes_source(const OpDef& op) {
  if (op.axis_rule) return "rule";
  if (has_axes(op)) return "derived";
  return op.control != Control::None ? "control flow" : op.compose ? "compose" : "none";
}
const char* vmap_source(const OpDef& op) {
  if (op.vmap) return "rule";
  if (op.control != Control::None) return "control flow";
  if (has_axes(op) && !op.axis_rule) return "derived";
  return op.compose ? "compose" : op.data_dependent ? "none" : "loop";
}
// How many results a call gives, where that is the same for all of them and known without one; else 0.
size_t num_results(const OpDef& op) {
  if (op.loop || op.reduce || op.view || op.has(kInPlace)) return 1;
  if (op.rows) return rows_signature(op, DType::Float32).outputs.size();
  if (op.data_dependent) return static_cast<size_t>(op.data_dependent);
  return op.axes.empty() ? 0 : split_text(op.axes.substr(op.axes.find("->") + 2), ',').size();
}

nb::dict describe_op(const OpDef& op) {
  nb::dict out;
  out["name"] = std::string(op.name);
  out["args"] = std::string(op.args);
  out["doc"] = std::string(op.doc);
  out["axes"] = std::string(op.axes);
  out["family"] = std::string(op.family);
  out["file"] = std::string(op.file);
  out["line"] = op.line;
  out["version"] = op.version;
  nb::list onnx;
  for (const OnnxMap& map : op.onnx)
    onnx.append(nb::make_tuple(std::string(map.name), map.since, std::string(map.map)));
  out["onnx"] = onnx;
  out["kind"] = op.loop               ? "loop"
                : op.rows             ? "rows"
                : op.reduce           ? "reduce"
                : op.view || op.views ? "view"
                : op.kernel           ? "kernel"
                : op.compose          ? "compose"
                                      : "control flow";
  out["sharding"] = axes_source(op);
  out["vmap"] = vmap_source(op);
  out["grad"] = op.has(kNoGrad) ? "none" : op.derivative ? "derivative" : op.grad ? "rule" : "compose";
  out["hidden"] = op.has(kHidden);
  out["results"] = num_results(op);
  out["in_place"] = op.has(kInPlace);
  out["random"] = op.has(kRandom);
  nb::list names, dtypes;
  for (const ArgSpec& spec : op.schema.args) names.append(spec.name);
  for (int i = 0; i < num_dtypes; ++i)
    if (contains(op.dtypes, static_cast<DType>(i))) dtypes.append(nb::steal(wrap(static_cast<DType>(i))));
  out["arguments"] = names;
  out["dtypes"] = dtypes;
  return out;
}

// -- number protocol --

const ArgSpec operand_spec{.name = "other", .kinds = kTensor | kNumber, .type_text = "Tensor|number"};

enum class Operands : uint8_t { Numbers, AlsoSequences };

// Arrays of NumPy become tensors; Tensor.__array_priority__ makes NumPy leave them to us on the left too. For
// arithmetic tuples and lists of numbers do as well.
bool to_operand(PyObject* object, Operands allowed, Value& out) {
  if (to_value(object, operand_spec, out)) return true;
  nb::object tensor;
  if (PyTuple_Check(object) || PyList_Check(object)) {
    if (allowed == Operands::Numbers) return false;
    tensor = nb::module_::import_("morel.common.tensor").attr("of_sequence")(nb::handle(object));
  } else {
    if (!PyObject_HasAttrString(object, "__array_interface__")) return false;
    tensor = nb::steal(PyObject_CallOneArg(reinterpret_cast<PyObject*>(tensor_type), object));
  }
  if (!tensor.is_valid()) throw_python_error();
  return to_value(tensor.ptr(), operand_spec, out);
}

PyObject* binary(OpName name, PyObject* a, PyObject* b, bool in_place = false,
                 Operands allowed = Operands::AlsoSequences) {
  try {
    Value values[2];
    if (!to_operand(a, allowed, values[0]) || !to_operand(b, allowed, values[1])) Py_RETURN_NOTIMPLEMENTED;
    PyObject* out = call_from_python(find_op(name), name.text, values, in_place);
    if (in_place && out) {
      Py_DECREF(out);
      return Py_NewRef(a);
    }
    return out;
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* unary(OpName name, PyObject* a) {
  try {
    const Value value = Tensor(unwrap(a));
    return call_from_python(find_op(name), name.text, {&value, 1}, false);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* power(PyObject* a, PyObject* b, PyObject*) { return binary("pow", a, b); }

#define BINARY(name) [](PyObject* a, PyObject* b) -> PyObject* { return binary(name, a, b); }
#define IN_PLACE(name) [](PyObject* a, PyObject* b) -> PyObject* { return binary(name, a, b, true); }
#define UNARY(name) [](PyObject* a) -> PyObject* { return unary(name, a); }
#define SLOT(slot, type, fn)                                                                                           \
  { slot, reinterpret_cast<void*>(static_cast<type>(fn)) }

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  const auto compared = [&](OpName name) { return binary(name, a, b, false, Operands::Numbers); };
  switch (operation) {
    case Py_EQ: return compared("equal");
    case Py_NE: return compared("not_equal");
    case Py_LT: return compared("less");
    case Py_LE: return compared("less_equal");
    case Py_GT: return compared("greater");
    default: return compared("greater_equal");
  }
}

const PyType_Slot tensor_number_slots[] = {
    SLOT(Py_nb_add, binaryfunc, BINARY("add")),
    SLOT(Py_nb_subtract, binaryfunc, BINARY("sub")),
    SLOT(Py_nb_multiply, binaryfunc, BINARY("mul")),
    SLOT(Py_nb_true_divide, binaryfunc, BINARY("true_divide")),
    SLOT(Py_nb_floor_divide, binaryfunc, BINARY("floor_divide")),
    SLOT(Py_nb_remainder, binaryfunc, BINARY("floor_mod")),
    SLOT(Py_nb_matrix_multiply, binaryfunc, BINARY("matmul")),
    SLOT(Py_nb_and, binaryfunc, BINARY("bitwise_and")),
    SLOT(Py_nb_or, binaryfunc, BINARY("bitwise_or")),
    SLOT(Py_nb_xor, binaryfunc, BINARY("bitwise_xor")),
    SLOT(Py_nb_lshift, binaryfunc, BINARY("bitwise_left_shift")),
    SLOT(Py_nb_rshift, binaryfunc, BINARY("bitwise_right_shift")),
    SLOT(Py_nb_inplace_add, binaryfunc, IN_PLACE("add")),
    SLOT(Py_nb_inplace_subtract, binaryfunc, IN_PLACE("sub")),
    SLOT(Py_nb_inplace_multiply, binaryfunc, IN_PLACE("mul")),
    SLOT(Py_nb_inplace_true_divide, binaryfunc, IN_PLACE("true_divide")),
    SLOT(Py_nb_inplace_floor_divide, binaryfunc, IN_PLACE("floor_divide")),
    SLOT(Py_nb_negative, unaryfunc, UNARY("neg")),
    SLOT(Py_nb_absolute, unaryfunc, UNARY("abs")),
    SLOT(Py_nb_invert, unaryfunc, UNARY("bitwise_not")),
    {Py_nb_power, reinterpret_cast<void*>(power)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
};

}  // namespace

std::span<const PyType_Slot> number_slots() { return tensor_number_slots; }

PyObject* call_from_python(const OpDef& op, std::string_view public_name, std::span<const Value> args, bool in_place) {
  try {
    if (in_place && !op.has(kInPlace)) return wrap(call_in_place(op, args));
    return from_values(call_op(op, args));
  } catch (Error& error) {
    std::string line = cat("\ncall: ", public_name, "(");
    for (size_t i = 0; i < args.size(); ++i) line += (i ? ", " : "") + to_string(args[i]);
    const std::string place = user_location();
    error.append(line + ")" + (place.empty() ? "" : " at " + place));
    throw;
  }
}

void bind_ops(nb::module_& module) {
  callable_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&callable_spec));
  module.attr("Operator") = nb::handle(reinterpret_cast<PyObject*>(callable_type));
  module.def("make_operator", &make_operator, nb::arg("name"), nb::arg("spec"), nb::arg("in_place") = false,
             "A callable named `name` for an api row: 'operator', 'operator(signature)' or 'operator(signature) fixed "
             "= value'.");
  module.def("describe_signature", &describe_signature);
  module.def("operator_names", [] {
    nb::list out;
    for (const OpDef& op : registry().ops()) out.append(std::string(op.name));
    return out;
  });
  module.def("loop_names", [] {
    nb::list out;
    for (const loops::LibraryEntry& entry : loops::library()) out.append(std::string(entry.name));
    return out;
  });
  module.def("public_operator_names", [] {
    nb::list out;
    for (const OpDef& op : registry().ops())
      if (!op.has(kHidden)) out.append(std::string(op.name));
    return out;
  });
  module.def("describe_operator", [](std::string_view name) { return describe_op(operator_named(name)); });
}

}  // namespace morel::bind
