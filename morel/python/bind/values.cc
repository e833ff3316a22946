// Conversions between Python objects and Values.
#include <array>

#include "morel/python/bind/bind.h"
#include "morel/runtime/graph_scope.h"

namespace morel::bind {
namespace {

// One object per dtype; they compare by identity.
struct PyDType {
  DType dtype;
};
std::array<PyObject*, num_dtypes> dtype_objects;

bool dtype_from_name(std::string_view name, DType& out) {
  static constexpr std::pair<std::string_view, DType> names[] = {
      {"bool", DType::Bool},       {"int8", DType::Int8},           {"int16", DType::Int16},
      {"int32", DType::Int32},     {"int64", DType::Int64},         {"uint8", DType::UInt8},
      {"uint16", DType::UInt16},   {"uint32", DType::UInt32},       {"uint64", DType::UInt64},
      {"float16", DType::Float16}, {"bfloat16", DType::BFloat16},   {"float32", DType::Float32},
      {"float64", DType::Float64}, {"complex64", DType::Complex64}, {"complex128", DType::Complex128}};
  for (const auto& [text, dtype] : names) {
    if (text != name) continue;
    out = dtype;
    return true;
  }
  return false;
}

bool dtype_from_attribute(PyObject* object, const char* attribute, DType& out) {
  PyObject* name = PyObject_GetAttrString(object, attribute);
  if (!name) {
    PyErr_Clear();
    return false;
  }
  const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  const bool found = text && dtype_from_name(text, out);
  Py_DECREF(name);
  return found;
}

bool sequence_to_ints(PyObject* const* items, Py_ssize_t count, Ints& out) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (Dim dim; to_dim(items[i], dim)) {
      out.push_back(dim);
    } else if (is_tensor(items[i]) && unwrap(items[i])->size == 1 && !is_differentiable(unwrap(items[i])->dtype)) {
      out.push_back(static_cast<int64_t>(convert(Tensor(unwrap(items[i])), DType::Int64).as<int64_t>()[0]));
    } else if (PyIndex_Check(items[i]) && !is_tensor(items[i])) {
      PyObject* index = PyNumber_Index(items[i]);
      if (!index) return PyErr_Clear(), false;
      out.push_back(PyLong_AsLongLong(index));
      Py_DECREF(index);
    } else {
      return false;
    }
    if (PyErr_Occurred()) return PyErr_Clear(), false;
  }
  return true;
}

bool sequence_to_value(PyObject* object, const ArgSpec& spec, Value& out) {
  PyObject* const* items = PySequence_Fast_ITEMS(object);
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
  if (spec.kinds & kTensors) {
    Value::List list;
    bool fits = count > 0 || !(spec.kinds & kInts);
    for (Py_ssize_t i = 0; i < count && fits; ++i) {
      if (is_tensor(items[i])) {
        list.push_back(Tensor(unwrap(items[i])));
      } else {
        fits = false;
      }
    }
    if (fits) return out = Value(std::move(list)), true;
  }
  if (spec.kinds & kInts) {
    Ints ints;
    if (sequence_to_ints(items, count, ints)) return out = Value(std::move(ints)), true;
  }
  if (spec.kinds & kFloats) {
    Value::Floats floats;
    for (Py_ssize_t i = 0; i < count; ++i) {
      const double number = PyFloat_AsDouble(items[i]);
      if (number == -1.0 && PyErr_Occurred()) return PyErr_Clear(), false;
      floats.push_back(number);
    }
    return out = Value(std::move(floats)), true;
  }
  return false;
}

// A one-element tensor where a number is expected; a 1-D integer tensor where integers are expected.
bool tensor_to_number(const Tensor& tensor, const ArgSpec& spec, Value& out) {
  if (spec.kinds & kInts && is_integral(tensor.dtype()) && tensor.rank() <= 1) {
    const Tensor values = contiguous(convert(tensor, DType::Int64));
    out = Ints(values.as<int64_t>(), values.as<int64_t>() + values.size());
    return true;
  }
  if (tensor.size() != 1) return false;
  if (spec.kinds & (kInt | kBool) && tensor.dtype() == DType::Bool)
    return out = convert(tensor, DType::Bool).as<bool>()[0], true;
  if (spec.kinds & kInt && is_integral(tensor.dtype()))
    return out = convert(tensor, DType::Int64).as<int64_t>()[0], true;
  if (spec.kinds & (kFloat | kNumber)) {
    if (is_complex(tensor.dtype())) return out = convert(tensor, DType::Complex128).as<std::complex<double>>()[0], true;
    if (is_integral(tensor.dtype())) return out = convert(tensor, DType::Int64).as<int64_t>()[0], true;
    return out = convert(tensor, DType::Float64).as<double>()[0], true;
  }
  return false;
}

template <class Integer>
bool integer_to_value(Integer value, const ArgSpec& spec, Value& out) {
  if (spec.kinds & (kNumber | kInt)) return out = value, true;
  if (spec.kinds & kFloat) return out = static_cast<double>(static_cast<int64_t>(value)), true;
  if (spec.kinds & kInts) return out = Ints{value}, true;
  if (spec.kinds & kBool && (value == 0 || value == 1)) return out = value != 0, true;
  return false;
}

// NumPy scalars, dtypes, other objects with the number protocol.
bool other_to_value(PyObject* object, const ArgSpec& spec, Value& out) {
  if (spec.kinds & kDType) {
    DType dtype;
    if (to_dtype(object, dtype)) return out = dtype, true;
  }
  if (Dim dim; to_dim(object, dim)) return integer_to_value(dim, spec, out);
  if (PyIndex_Check(object)) {
    PyObject* index = PyNumber_Index(object);
    if (!index) return PyErr_Clear(), false;
    const int64_t value = PyLong_AsLongLong(index);
    Py_DECREF(index);
    return integer_to_value(value, spec, out);
  }
  const PyNumberMethods* methods = Py_TYPE(object)->tp_as_number;
  if (spec.kinds & (kNumber | kFloat) && methods && methods->nb_float && !PyObject_HasAttrString(object, "__len__")) {
    const double value = PyFloat_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred()) return PyErr_Clear(), false;
    return out = value, true;
  }
  return false;
}

}  // namespace

PyObject* wrap(DType dtype) { return Py_NewRef(dtype_objects[static_cast<size_t>(dtype)]); }

bool to_dtype(PyObject* object, DType& out) {
  for (int i = 0; i < num_dtypes; ++i) {
    if (dtype_objects[static_cast<size_t>(i)] != object) continue;
    out = static_cast<DType>(i);
    return true;
  }
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return out = DType::Float32, true;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return out = DType::Int64, true;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return out = DType::Bool, true;
  if (PyType_Check(object)) {
    DType found;
    const bool numpy_type = dtype_from_attribute(object, "__name__", found) && PyObject_HasAttrString(object, "dtype");
    return numpy_type && (out = found, true);
  }
  return PyObject_HasAttrString(object, "itemsize") && dtype_from_attribute(object, "name", out);
}

bool to_value(PyObject* object, const ArgSpec& spec, Value& out) {
  if (is_tensor(object)) {
    if (spec.kinds & kTensor) return out = Tensor(unwrap(object)), true;
    if (spec.kinds & kTensors) return out = Value::List{Tensor(unwrap(object))}, true;
    // In a graph the number is known when it runs.
    if (GraphScope::current() && (spec.kinds & (kNumber | kInt | kFloat | kBool)))
      return out = Tensor(unwrap(object)), true;
    return tensor_to_number(Tensor(unwrap(object)), spec, out);
  }
  if (object == Py_None) return (spec.kinds & (kNone | kRng)) && (out = Value(), true);
  if (PyBool_Check(object)) {
    const bool value = object == Py_True;
    if (spec.kinds & (kBool | kNumber)) return out = value, true;
    return (spec.kinds & (kInt | kInts)) && integer_to_value(value, spec, out);
  }
  if (PyLong_Check(object)) {
    int overflow = 0;
    const int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow) return (spec.kinds & (kNumber | kFloat)) && (out = PyLong_AsDouble(object), true);
    return integer_to_value(value, spec, out);
  }
  if (PyFloat_Check(object)) return (spec.kinds & (kNumber | kFloat)) && (out = PyFloat_AS_DOUBLE(object), true);
  if (PyTuple_Check(object) || PyList_Check(object)) return sequence_to_value(object, spec, out);
  if (PyUnicode_Check(object)) {
    if (!(spec.kinds & kStr)) return false;
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    return text && (out = std::string(text, static_cast<size_t>(size)), true);
  }
  if (PyComplex_Check(object)) {
    return (spec.kinds & kNumber) &&
           (out = std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)), true);
  }
  return other_to_value(object, spec, out);
}

PyObject* from_value(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::Tensor: return wrap(value.tensor());
    case Value::Tag::Bool: return PyBool_FromLong(value.boolean());
    case Value::Tag::Int: return PyLong_FromLongLong(value.integer());
    case Value::Tag::Size: return wrap(value.dim());
    case Value::Tag::Float: return PyFloat_FromDouble(value.number());
    case Value::Tag::Complex: return PyComplex_FromDoubles(value.complex().real(), value.complex().imag());
    case Value::Tag::DType: return wrap(value.dtype());
    case Value::Tag::Str:
      return PyUnicode_FromStringAndSize(value.str().data(), static_cast<Py_ssize_t>(value.str().size()));
    case Value::Tag::Ints: {
      PyObject* out = PyTuple_New(static_cast<Py_ssize_t>(value.ints().size()));
      for (size_t i = 0; i < value.ints().size(); ++i)
        PyTuple_SET_ITEM(out, static_cast<Py_ssize_t>(i), wrap(value.ints()[i]));
      return out;
    }
    case Value::Tag::Floats: {
      PyObject* out = PyTuple_New(static_cast<Py_ssize_t>(value.floats().size()));
      for (size_t i = 0; i < value.floats().size(); ++i)
        PyTuple_SET_ITEM(out, static_cast<Py_ssize_t>(i), PyFloat_FromDouble(value.floats()[i]));
      return out;
    }
    case Value::Tag::List: {
      PyObject* out = PyTuple_New(static_cast<Py_ssize_t>(value.list().size()));
      for (size_t i = 0; i < value.list().size(); ++i)
        PyTuple_SET_ITEM(out, static_cast<Py_ssize_t>(i), from_value(value.list()[i]));
      return out;
    }
    default: return Py_NewRef(Py_None);
  }
}

PyObject* from_values(const Values& values) {
  if (values.empty()) return Py_NewRef(Py_None);
  if (values.size() == 1) return from_value(values[0]);
  PyObject* out = PyTuple_New(static_cast<Py_ssize_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) PyTuple_SET_ITEM(out, static_cast<Py_ssize_t>(i), from_value(values[i]));
  return out;
}

// Called once by bind_tensor.
void bind_dtypes(nb::module_& module) {
  nb::class_<PyDType>(module, "DType", "Element type of a tensor; prints as MindSpore's: Float32.")
      .def("__repr__", [](const PyDType& self) { return std::string(info(self.dtype).name); })
      .def("__str__", [](const PyDType& self) { return std::string(info(self.dtype).name); })
      .def("__hash__", [](const PyDType& self) { return static_cast<int>(self.dtype) + 1; })
      .def(
          "__eq__",
          [](const PyDType& self, nb::handle other) {
            return nb::isinstance<PyDType>(other) && nb::cast<const PyDType&>(other).dtype == self.dtype;
          },
          nb::arg("other").none())
      .def("__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); })
      .def("__copy__", [](nb::handle self) { return nb::borrow(self); })
      .def("__reduce__",
           [](const PyDType& self) {
             return nb::make_tuple(nb::module_::import_("morel.common.dtype").attr("named"),
                                   nb::make_tuple(std::string(info(self.dtype).name)));
           })
      .def_prop_ro("itemsize", [](const PyDType& self) { return size_of(self.dtype); })
      .def_prop_ro("is_floating_point", [](const PyDType& self) { return is_float(self.dtype); })
      .def_prop_ro("is_complex", [](const PyDType& self) { return is_complex(self.dtype); })
      .def_prop_ro("is_signed", [](const PyDType& self) {
        return info(self.dtype).kind != DTypeKind::UInt && info(self.dtype).kind != DTypeKind::Bool;
      });
  nb::list all;
  for (int i = 0; i < num_dtypes; ++i) {
    nb::object object = nb::cast(PyDType{static_cast<DType>(i)});
    all.append(object);
    dtype_objects[static_cast<size_t>(i)] = object.release().ptr();
  }
  module.attr("dtypes") = all;
  module.def("as_dtype", [](nb::handle object) {
    DType dtype;
    MOREL_CHECK(to_dtype(object.ptr(), dtype), Type,
                "a dtype was expected, such as morel.float32, float or a NumPy type, but got ",
                Py_TYPE(object.ptr())->tp_name);
    return dtype;
  });
  module.def("dtype_named", [](std::string_view name) -> nb::object {
    for (int i = 0; i < num_dtypes; ++i)
      if (dtype_table[i].name == name) return nb::borrow(dtype_objects[static_cast<size_t>(i)]);
    DType dtype;
    if (dtype_from_name(name, dtype)) return nb::borrow(dtype_objects[static_cast<size_t>(dtype)]);
    raise(ErrorKind::Type, "there is no dtype '", name, "'");
  });
}

}  // namespace morel::bind
