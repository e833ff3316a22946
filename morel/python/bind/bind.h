// Shared by the binding files: the Python Tensor type, conversions between Python objects and Values, errors.
#pragma once

#include <Python.h>

#include "morel/ops/registry.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/tape.h"

// nanobind comes after Python.h.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

namespace morel::bind {

namespace nb = nanobind;

// -- the Python object of a tensor --
struct PyTensor {
  PyObject_HEAD Ref<TensorImpl> impl;
  PyObject* dict;
  PyObject* weaklist;
};
extern PyTypeObject* tensor_type;
inline bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type);
}
inline const Ref<TensorImpl>& unwrap(PyObject* object) { return reinterpret_cast<PyTensor*>(object)->impl; }
PyObject* wrap(const Tensor& tensor);  // new reference

// -- dtypes --
PyObject* wrap(DType dtype);                  // new reference to the one object of this dtype
bool to_dtype(PyObject* object, DType& out);  // a morel dtype, a Python type (float, int, bool) or a NumPy dtype

// -- values --
// Converts `object` for an argument of kind `spec`; false (no Python error set) where it does not fit.
bool to_value(PyObject* object, const ArgSpec& spec, Value& out);
PyObject* from_value(const Value& value);     // new reference
PyObject* from_values(const Values& values);  // one value, or a tuple

// -- sizes --
PyObject* wrap(Dim dim);                  // new reference: an int, or a Size while a graph is built
bool to_dim(PyObject* object, Dim& out);  // an int or a Size

// -- errors --
// Sets the Python error of a C++ exception; call in a catch block.
void set_python_error();
// Turns the Python error that is set into a C++ exception and throws it.
[[noreturn]] void throw_python_error();
// "model.py:41": the innermost Python frame outside of the package.
std::string user_location();

// One call from Python: adds the line with call, shapes and place to errors.
PyObject* call_from_python(const OpDef& op, std::string_view public_name, std::span<const Value> args, bool in_place);

// -- parts of the module --
void bind_tensor(nb::module_& module);
void bind_size(nb::module_& module);
void bind_ops(nb::module_& module);
void bind_autograd(nb::module_& module);
void bind_system(nb::module_& module);
void bind_io(nb::module_& module);
void bind_onnx(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_training(nb::module_& module);
void bind_compiled_call(nb::module_& module);
void bind_lite(nb::module_& module);
void bind_quantise(nb::module_& module);
void bind_dist(nb::module_& module);
// custom_backward (autograd.cc) while a graph is built.
nb::tuple graph_custom_backward(nb::list inputs, const std::vector<Tensor>& outputs, nb::handle fn);
// A Python callable held by C++; released with the interpreter lock.
std::shared_ptr<PyObject> hold(nb::handle object);
// A hook of a tensor: fn(cotangent) gives a tensor to put in its place, or something else.
std::shared_ptr<GradHook> make_hook(nb::handle fn);
PyObject* tensor_get_item(PyObject* self, PyObject* key);
int tensor_set_item(PyObject* self, PyObject* key, PyObject* value);
// Number protocol of the Tensor type.
std::span<const PyType_Slot> number_slots();

// C++ code calls Python code: throws Error subclasses through.
struct PythonError : std::exception {
  PyObject *type, *value, *traceback;
  const char* what() const noexcept override { return "Python error"; }
};

}  // namespace morel::bind

namespace nanobind::detail {
template <>
struct type_caster<morel::Tensor> {
  NB_TYPE_CASTER(morel::Tensor, const_name("Tensor"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (!morel::bind::is_tensor(source.ptr())) return false;
    value = morel::Tensor(morel::bind::unwrap(source.ptr()));
    return static_cast<bool>(value);
  }
  static handle from_cpp(const morel::Tensor& tensor, rv_policy, cleanup_list*) noexcept {
    return morel::bind::wrap(tensor);
  }
};
template <>
struct type_caster<morel::DType> {
  NB_TYPE_CASTER(morel::DType, const_name("DType"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    return morel::bind::to_dtype(source.ptr(), value);
  }
  static handle from_cpp(morel::DType dtype, rv_policy, cleanup_list*) noexcept { return morel::bind::wrap(dtype); }
};
template <>
struct type_caster<morel::Value> {
  NB_TYPE_CASTER(morel::Value, const_name("object"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    static const morel::ArgSpec anything{.name = "value", .kinds = ~0u & ~morel::kRng, .type_text = "object"};
    return morel::bind::to_value(source.ptr(), anything, value);
  }
  static handle from_cpp(const morel::Value& value, rv_policy, cleanup_list*) noexcept {
    return morel::bind::from_value(value);
  }
};
}  // namespace nanobind::detail
