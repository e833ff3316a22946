// CompiledCall: the callable that jit returns. It looks the arguments up among those for which a graph exists and runs
// that; for anything else it asks Python (morel/compiler), which compiles and tells it what to remember.
#include <Python.h>
#include <structmember.h>

#include <memory>
#include <vector>

#include "morel/python/bind/bind.h"
#include "morel/python/bind/graph.h"
#include "morel/runtime/graph_scope.h"

namespace morel::bind {
namespace {

// One positional argument: a tensor of this type and dtype, or this very object.
struct Pattern {
  nb::object object;  // the type of a tensor, or the object
  bool is_tensor = false;
  DType dtype = DType::Float32;
  bool matches(PyObject* given) const {
    if (!is_tensor) return given == object.ptr();
    return reinterpret_cast<PyObject*>(Py_TYPE(given)) == object.ptr() && unwrap(given)->dtype == dtype &&
           !unwrap(given)->shards;
  }
};

// A Python value that the graph relies on: an attribute of a cell (held weakly) or of a closure's cell, or a global.
struct Fact {
  nb::object owner, name, value;
};

struct Remembered {
  std::vector<Pattern> patterns;
  std::vector<Fact> facts;
  nb::object graph;
  const Executor* executor = nullptr;
  const Written* written = nullptr;
  Numbers served;          // values of the graph's sizes at the call that was found to fit last
  bool is_single = false;  // the result is one tensor, not a tuple of them
};

struct CompiledCall {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* slow;  // what is called where nothing is remembered
  PyObject* dict;
  std::vector<std::unique_ptr<Remembered>>* known;
};
PyTypeObject* call_type = nullptr;

bool facts_hold(const Remembered& entry) {
  for (const Fact& fact : entry.facts) {
    PyObject* owner = fact.owner.ptr();
    if (PyDict_Check(owner)) {
      if (PyDict_GetItem(owner, fact.name.ptr()) != fact.value.ptr()) return false;
      continue;
    }
    if (PyWeakref_Check(owner)) owner = PyWeakref_GetObject(owner);
    PyObject* now = PyObject_GetAttr(owner, fact.name.ptr());
    if (!now) return PyErr_Clear(), false;
    Py_DECREF(now);
    if (now != fact.value.ptr()) return false;
  }
  return true;
}

using Tensors = SmallVector<Value, 8>;

// Collects the tensors among the arguments.
bool matches(Remembered& entry, PyObject* const* args, Py_ssize_t count, Tensors& tensors) {
  if (static_cast<size_t>(count) != entry.patterns.size()) return false;
  tensors.clear();
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Pattern& pattern = entry.patterns[static_cast<size_t>(i)];
    if (!pattern.matches(args[i])) return false;
    if (pattern.is_tensor) tensors.push_back(Tensor(unwrap(args[i])));
  }
  const std::span<const Value> given(tensors.data(), tensors.size());
  if (entry.written->is_given_twice(given) || !entry.written->captured_too(given).empty()) return false;
  const Graph& graph = entry.executor->graph();
  Numbers values;
  if (!bind_sizes(graph, given, values)) return false;
  if (!(values == entry.served)) {
    if (!graph.sizes->hold(values)) return false;
    entry.served = std::move(values);
  }
  return facts_hold(entry);
}

PyObject* run(const Remembered& entry, const Tensors& tensors) {
  try {
    const Values results =
        entry.executor->run({tensors.data(), tensors.size()}, {entry.served.data(), entry.served.size()});
    if (entry.is_single) return from_value(results[0]);
    PyObject* out = PyTuple_New(static_cast<Py_ssize_t>(results.size()));
    for (size_t i = 0; i < results.size(); ++i)
      PyTuple_SET_ITEM(out, static_cast<Py_ssize_t>(i), from_value(results[i]));
    return out;
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* compiled_call(PyObject* object, PyObject* const* args, size_t flags, PyObject* keywords) {
  auto* self = reinterpret_cast<CompiledCall*>(object);
  if (!keywords && !GraphScope::current() && grad_depth() == 0) {
    Tensors tensors;
    for (const auto& entry : *self->known)
      if (matches(*entry, args, PyVectorcall_NARGS(flags), tensors)) return run(*entry, tensors);
  }
  return PyObject_Vectorcall(self->slow, args, flags, keywords);
}

PyObject* compiled_get(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

int compiled_traverse(PyObject* object, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<CompiledCall*>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->slow);
  Py_VISIT(self->dict);
  return 0;
}
int compiled_clear(PyObject* object) {
  auto* self = reinterpret_cast<CompiledCall*>(object);
  Py_CLEAR(self->slow);
  Py_CLEAR(self->dict);
  return 0;
}
void compiled_dealloc(PyObject* object) {
  auto* self = reinterpret_cast<CompiledCall*>(object);
  PyObject_GC_UnTrack(object);
  compiled_clear(object);
  delete self->known;
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyMemberDef compiled_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledCall, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CompiledCall, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef compiled_getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot compiled_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(compiled_dealloc)},
                                {Py_tp_traverse, reinterpret_cast<void*>(compiled_traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(compiled_clear)},
                                {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_descr_get, reinterpret_cast<void*>(compiled_get)},
                                {Py_tp_members, compiled_members},
                                {Py_tp_getset, compiled_getset},
                                {0, nullptr}};
PyType_Spec compiled_spec = {"morel._core.CompiledCall", sizeof(CompiledCall), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC, compiled_slots};

nb::object make_call(nb::object slow) {
  auto* self = reinterpret_cast<CompiledCall*>(call_type->tp_alloc(call_type, 0));
  self->vectorcall = compiled_call;
  self->slow = slow.release().ptr();
  self->dict = nullptr;
  self->known = new std::vector<std::unique_ptr<Remembered>>;
  return nb::steal(reinterpret_cast<PyObject*>(self));
}

// Calls with arguments like these run `graph`; facts: (owner, name, value) that must still hold then.
void remember(nb::handle object, nb::tuple args, nb::object graph, nb::list facts, bool is_single) {
  auto* self = reinterpret_cast<CompiledCall*>(object.ptr());
  auto entry = std::make_unique<Remembered>();
  for (nb::handle arg : args) {
    Pattern pattern;
    pattern.is_tensor = is_tensor(arg.ptr());
    if (pattern.is_tensor) {
      pattern.object = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(arg.ptr())));
      pattern.dtype = unwrap(arg.ptr())->dtype;
    } else {
      pattern.object = nb::borrow(arg);
    }
    entry->patterns.push_back(std::move(pattern));
  }
  for (nb::handle fact : facts) entry->facts.push_back({nb::borrow(fact[0]), nb::borrow(fact[1]), nb::borrow(fact[2])});
  entry->executor = nb::cast<PyGraph&>(graph).executor.get();
  entry->written = &nb::cast<PyGraph&>(graph).written;
  entry->graph = std::move(graph);
  entry->is_single = is_single;
  self->known->push_back(std::move(entry));
}

}  // namespace

void bind_compiled_call(nb::module_& module) {
  call_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&compiled_spec));
  module.attr("CompiledCall") = nb::handle(reinterpret_cast<PyObject*>(call_type));
  module.def("make_compiled_call", &make_call);
  module.def("remember_call", &remember);
}

}  // namespace morel::bind
