// Sizes that are not known while a graph is built, as Python sees them: x.shape holds such objects. They compute like
// integers; where Python needs the number (range, an index of a list, a comparison), the graph is specialised to it.
#include "morel/python/bind/bind.h"

namespace morel::bind {
namespace {

struct PySize {
  Dim dim;
};

nb::object number(Dim dim) { return nb::steal(PyLong_FromLongLong(dim)); }

using DimOperator = Dim (*)(Dim, Dim);
using PythonOperator = PyObject* (*)(PyObject*, PyObject*);

// Python's division rounds down; that of sizes is for numbers of at least 0.
bool rounds_alike(Dim a, Dim b) { return a >= 0 && b > 0; }

// With integers an expression, with floats their number; everything else may know itself what to do with a size.
nb::object binary(Dim a, Dim b, DimOperator fn, PythonOperator plain, bool divides) {
  if (!divides || rounds_alike(a, b)) return nb::steal(wrap(fn(a, b)));
  nb::object out = nb::steal(plain(number(a).ptr(), number(b).ptr()));
  if (!out) throw_python_error();
  return out;
}

void bind_binary(nb::class_<PySize>& type, const char* name, const char* reflected, DimOperator fn,
                 PythonOperator plain, bool divides = false) {
  const auto call = [=](const PySize& self, nb::handle other, bool swapped) -> nb::object {
    Dim dim;
    if (fn && to_dim(other.ptr(), dim))
      return swapped ? binary(dim, self.dim, fn, plain, divides) : binary(self.dim, dim, fn, plain, divides);
    if (!PyFloat_Check(other.ptr()) && !PyLong_Check(other.ptr()) && !nb::isinstance<PySize>(other))
      return nb::borrow(Py_NotImplemented);
    const nb::object mine = number(self.dim);
    nb::object out = nb::steal(swapped ? plain(other.ptr(), mine.ptr()) : plain(mine.ptr(), other.ptr()));
    if (!out) throw_python_error();
    return out;
  };
  type.def(name, [=](const PySize& self, nb::handle other) { return call(self, other, false); });
  type.def(reflected, [=](const PySize& self, nb::handle other) { return call(self, other, true); });
}

void bind_compare(nb::class_<PySize>& type, const char* name, bool (*fn)(Dim, Dim), int plain) {
  type.def(name, [=](const PySize& self, nb::handle other) -> nb::object {
    Dim dim;
    if (to_dim(other.ptr(), dim)) return nb::bool_(fn(self.dim, dim));
    if (!PyFloat_Check(other.ptr())) return nb::borrow(Py_NotImplemented);
    return nb::steal(PyObject_RichCompare(number(self.dim).ptr(), other.ptr(), plain));
  });
}

PyObject* power(PyObject* base, PyObject* exponent) { return PyNumber_Power(base, exponent, Py_None); }

}  // namespace

PyObject* wrap(Dim dim) {
  return dim.is_symbolic() ? nb::cast(PySize{dim}).release().ptr() : PyLong_FromLongLong(dim.code());
}

bool to_dim(PyObject* object, Dim& out) {
  if (PyLong_Check(object)) {
    int overflow = 0;
    const int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return !overflow && (out = value, true);
  }
  if (!nb::isinstance<PySize>(nb::handle(object))) return false;
  out = nb::cast<PySize&>(nb::handle(object)).dim;
  return true;
}

void bind_size(nb::module_& module) {
  nb::class_<PySize> type(module, "Size", "A size that is not known while a graph is built; computes like an int.");
  bind_binary(
      type, "__add__", "__radd__", [](Dim a, Dim b) { return a + b; }, PyNumber_Add);
  bind_binary(
      type, "__sub__", "__rsub__", [](Dim a, Dim b) { return a - b; }, PyNumber_Subtract);
  bind_binary(
      type, "__mul__", "__rmul__", [](Dim a, Dim b) { return a * b; }, PyNumber_Multiply);
  bind_binary(
      type, "__floordiv__", "__rfloordiv__", [](Dim a, Dim b) { return a / b; }, PyNumber_FloorDivide, true);
  bind_binary(
      type, "__mod__", "__rmod__", [](Dim a, Dim b) { return a % b; }, PyNumber_Remainder, true);
  bind_binary(type, "__truediv__", "__rtruediv__", nullptr, PyNumber_TrueDivide);
  bind_binary(type, "__pow__", "__rpow__", nullptr, power);
  bind_binary(type, "__divmod__", "__rdivmod__", nullptr, PyNumber_Divmod);
  bind_binary(type, "__lshift__", "__rlshift__", nullptr, PyNumber_Lshift);
  bind_binary(type, "__rshift__", "__rrshift__", nullptr, PyNumber_Rshift);
  bind_binary(type, "__and__", "__rand__", nullptr, PyNumber_And);
  bind_binary(type, "__or__", "__ror__", nullptr, PyNumber_Or);
  bind_binary(type, "__xor__", "__rxor__", nullptr, PyNumber_Xor);
  bind_compare(
      type, "__eq__", [](Dim a, Dim b) { return a == b; }, Py_EQ);
  bind_compare(
      type, "__ne__", [](Dim a, Dim b) { return !(a == b); }, Py_NE);
  bind_compare(
      type, "__lt__", [](Dim a, Dim b) { return a < b; }, Py_LT);
  bind_compare(
      type, "__le__", [](Dim a, Dim b) { return a <= b; }, Py_LE);
  bind_compare(
      type, "__gt__", [](Dim a, Dim b) { return a > b; }, Py_GT);
  bind_compare(
      type, "__ge__", [](Dim a, Dim b) { return a >= b; }, Py_GE);
  type.def("__neg__", [](const PySize& self) { return nb::steal(wrap(-self.dim)); })
      .def("__pos__", [](const PySize& self) { return nb::steal(wrap(self.dim)); })
      .def("__abs__", [](const PySize& self) { return nb::steal(wrap(self.dim < 0 ? -self.dim : self.dim)); })
      .def("__invert__", [](const PySize& self) { return nb::steal(wrap(-self.dim - 1)); })
      .def("__round__", [](const PySize& self, nb::args) { return nb::steal(wrap(self.dim)); })
      // So that NumPy makes numbers of sizes in lists, not objects.
      .def("__array__", [](const PySize& self, nb::args,
                           nb::kwargs) { return nb::module_::import_("numpy").attr("array")(number(self.dim)); })
      .def("__bool__", [](const PySize& self) { return !(self.dim == 0); })
      .def("__index__", [](const PySize& self) { return number(self.dim); })
      .def("__int__", [](const PySize& self) { return number(self.dim); })
      .def("__float__", [](const PySize& self) { return static_cast<double>(static_cast<int64_t>(self.dim)); })
      .def("__hash__", [](const PySize& self) { return static_cast<int64_t>(self.dim); })
      .def("__repr__", [](const PySize& self) { return std::to_string(static_cast<int64_t>(self.dim)); })
      .def("__format__", [](const PySize& self, nb::handle spec) { return number(self.dim).attr("__format__")(spec); });
  // isinstance(size, int) holds; assigning to the attribute would change the class of the type itself.
  const nb::object as_int =
      nb::cpp_function([](nb::handle) { return nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type)); });
  const nb::object property = nb::handle(reinterpret_cast<PyObject*>(&PyProperty_Type))(as_int);
  auto* own = reinterpret_cast<PyTypeObject*>(type.ptr());
  PyDict_SetItemString(own->tp_dict, "__class__", property.ptr());
  PyType_Modified(own);
}

}  // namespace morel::bind
