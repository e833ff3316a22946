// The Python type Tensor: life, attributes, conversions from and to NumPy. Its operators are bound in op_callable.cc,
// its methods come from api/ and from the Python package.
#include <Python.h>
#include <structmember.h>

#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include "morel/dist/shards.h"
#include "morel/python/bind/bind.h"
#include "morel/runtime/device.h"
#include "morel/runtime/graph_scope.h"

namespace morel::bind {

PyTypeObject* tensor_type = nullptr;
void bind_dtypes(nb::module_& module);

namespace {

// Objects of the exact type come from a short free list.
constexpr int free_limit = 64;
PyTensor* free_list[free_limit];
int free_count = 0;

PyTensor* self_of(PyObject* object) { return reinterpret_cast<PyTensor*>(object); }

Tensor tensor_of(PyObject* object) {
  MOREL_CHECK(unwrap(object), Runtime, "this Tensor has not been initialised: its class must call super().__init__");
  return Tensor(unwrap(object));
}

PyObject* tensor_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* object = type->tp_alloc(type, 0);
  if (object) new (&self_of(object)->impl) Ref<TensorImpl>();
  return object;
}

void tensor_dealloc(PyObject* object) {
  PyTensor* self = self_of(object);
  if (self->weaklist) PyObject_ClearWeakRefs(object);
  self->impl.~Ref<TensorImpl>();
  Py_CLEAR(self->dict);
  PyTypeObject* type = Py_TYPE(object);
  if (type == tensor_type && free_count < free_limit) {
    free_list[free_count++] = self;
  } else {
    type->tp_free(object);
  }
  Py_DECREF(type);
}

Py_hash_t tensor_hash(PyObject* self) { return _Py_HashPointer(self); }

template <class F>
PyObject* guarded(F&& fn) {
  try {
    return fn();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

// -- attributes --
PyObject* get_shape(PyObject* self, void*) {
  return guarded([&] { return from_value(Ints(tensor_of(self).shape())); });
}
PyObject* get_strides(PyObject* self, void*) {
  return guarded([&] {
    Ints bytes(tensor_of(self).strides());
    for (Dim& stride : bytes) stride *= size_of(unwrap(self)->dtype);
    return from_value(bytes);
  });
}
PyObject* get_dtype(PyObject* self, void*) {
  return guarded([&] { return wrap(tensor_of(self).dtype()); });
}
PyObject* get_rank(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLongLong(tensor_of(self).rank()); });
}
PyObject* get_size(PyObject* self, void*) {
  return guarded([&] { return wrap(tensor_of(self)->size); });
}
PyObject* get_itemsize(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLongLong(size_of(tensor_of(self).dtype())); });
}
PyObject* get_nbytes(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLongLong(tensor_of(self).size() * size_of(unwrap(self)->dtype)); });
}
PyObject* get_device(PyObject* self, void*) {
  return guarded([&] { return from_value(to_string(tensor_of(self).device())); });
}
PyObject* get_version(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLong(tensor_of(self)->storage->version()); });
}
PyObject* get_tracked(PyObject* self, void*) {
  return guarded([&] { return PyBool_FromLong(grad_depth() > 0 && morel::requires_grad(tensor_of(self).get())); });
}
PyGetSetDef tensor_getset[] = {
    {"shape", get_shape, nullptr, "Sizes of the axes, a tuple.", nullptr},
    {"_strides", get_strides, nullptr, "Strides of the axes in bytes.", nullptr},
    {"dtype", get_dtype, nullptr, "Element type.", nullptr},
    {"ndim", get_rank, nullptr, "Number of axes.", nullptr},
    {"size", get_size, nullptr, "Number of elements.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of an element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"device", get_device, nullptr, "Where the elements are: \"CPU\" or \"OpenCL:0\".", nullptr},
    {"_version", get_version, nullptr, "Number of in-place changes of the storage.", nullptr},
    {"_tracked", get_tracked, nullptr, "Whether a gradient flows to this tensor now.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef tensor_members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
                                {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weaklist), READONLY, nullptr},
                                {nullptr, 0, 0, 0, nullptr}};

// A graph reads Parameters when it runs; a value taken now would stay in it for good.
void check_readable(const Tensor& tensor) {
  MOREL_CHECK(
      !(GraphScope::current() && tensor->is_parameter), Runtime,
      "the value of a Parameter is asked for while a graph is compiled, which would fix it for all later calls; do "
      "it outside of the compiled function");
}

// Copies at all processes can be read without asking others.
Tensor readable(const Tensor& tensor) {
  return tensor->shards && dist::sharding_of(tensor)->is_replicated() ? dist::full_tensor(tensor) : tensor;
}

// -- one element as a Python number --
Value item_value(const Tensor& given) {
  check_readable(given);
  const Tensor tensor = readable(given);
  MOREL_CHECK(tensor.size() == 1, Value,
              "only a tensor of one element can be turned into a Python number, but this one is ",
              describe(tensor.dtype(), tensor.shape()));
  if (!tensor.device().is_cpu()) return item_value(to_device(detach(tensor), Device{}));
  const DType dtype = tensor.dtype();
  if (dtype == DType::Bool) return *tensor.as<bool>();
  if (dtype == DType::UInt64 && *tensor.as<uint64_t>() >> 63) return static_cast<double>(*tensor.as<uint64_t>());
  if (is_integral(dtype)) return *convert(tensor, DType::Int64).as<int64_t>();
  if (is_complex(dtype)) return *convert(tensor, DType::Complex128).as<std::complex<double>>();
  return *convert(tensor, DType::Float64).as<double>();
}

int tensor_bool(PyObject* self) {
  try {
    const Tensor tensor = tensor_of(self);
    MOREL_CHECK(tensor.size() == 1, Value, "The truth value of an array with ",
                tensor.size() ? "more than one element" : "no element",
                " is ambiguous: ", describe(tensor.dtype(), tensor.shape()));
    // Which way a program goes is decided by all processes together.
    return item_value(tensor->shards ? dist::full_tensor(tensor) : tensor).complex() != std::complex<double>(0);
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyObject* tensor_float(PyObject* self) {
  return guarded([&] { return PyFloat_FromDouble(item_value(tensor_of(self)).number()); });
}
PyObject* tensor_int(PyObject* self) {
  return guarded([&] {
    const Value value = item_value(tensor_of(self));
    return value.tag() == Value::Tag::Float ? PyLong_FromDouble(value.number()) : PyLong_FromLongLong(value.integer());
  });
}
PyObject* tensor_index(PyObject* self) {
  return guarded([&] {
    const Tensor tensor = tensor_of(self);
    MOREL_CHECK(!is_differentiable(tensor.dtype()), Type,
                "only integer tensors of one element can be used as an index, but this one is ",
                describe(tensor.dtype(), tensor.shape()));
    return PyLong_FromLongLong(item_value(tensor).integer());
  });
}

Py_ssize_t tensor_length(PyObject* self) {
  try {
    const Tensor tensor = tensor_of(self);
    MOREL_CHECK(tensor.rank() > 0, Type, "a tensor without axes has no length");
    return tensor.dim(0);
  } catch (...) {
    set_python_error();
    return -1;
  }
}

#define SLOT(slot, fn)                                                                                                 \
  { slot, reinterpret_cast<void*>(fn) }
const PyType_Slot own_slots[] = {SLOT(Py_tp_new, tensor_new),
                                 SLOT(Py_tp_dealloc, tensor_dealloc),
                                 SLOT(Py_tp_hash, tensor_hash),
                                 SLOT(Py_tp_getset, tensor_getset),
                                 SLOT(Py_tp_members, tensor_members),
                                 SLOT(Py_nb_bool, tensor_bool),
                                 SLOT(Py_nb_float, tensor_float),
                                 SLOT(Py_nb_int, tensor_int),
                                 SLOT(Py_nb_index, tensor_index),
                                 SLOT(Py_mp_length, tensor_length),
                                 SLOT(Py_mp_subscript, tensor_get_item),
                                 SLOT(Py_mp_ass_subscript, tensor_set_item)};

void make_type(nb::module_& module) {
  std::vector<PyType_Slot> slots(std::begin(own_slots), std::end(own_slots));
  slots.insert(slots.end(), number_slots().begin(), number_slots().end());
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"morel._core.Tensor", sizeof(PyTensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                      slots.data()};
  tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!tensor_type) throw nb::python_error();
  module.attr("Tensor") = nb::handle(reinterpret_cast<PyObject*>(tensor_type));
}

// -- NumPy --

nb::dlpack::dtype dlpack_type(DType dtype) {
  const auto bits = static_cast<uint8_t>(size_of(dtype) * 8);
  switch (info(dtype).kind) {
    case DTypeKind::Bool: return {static_cast<uint8_t>(nb::dlpack::dtype_code::Bool), bits, 1};
    case DTypeKind::Int: return {static_cast<uint8_t>(nb::dlpack::dtype_code::Int), bits, 1};
    case DTypeKind::UInt: return {static_cast<uint8_t>(nb::dlpack::dtype_code::UInt), bits, 1};
    case DTypeKind::Float:
      return {static_cast<uint8_t>(dtype == DType::BFloat16 ? nb::dlpack::dtype_code::Bfloat
                                                            : nb::dlpack::dtype_code::Float),
              bits, 1};
    default: return {static_cast<uint8_t>(nb::dlpack::dtype_code::Complex), bits, 1};
  }
}

DType from_dlpack(nb::dlpack::dtype type) {
  for (int i = 0; i < num_dtypes; ++i)
    if (dlpack_type(static_cast<DType>(i)) == type) return static_cast<DType>(i);
  raise(ErrorKind::Type, "arrays of this dtype (code ", static_cast<int>(type.code), ", ", static_cast<int>(type.bits),
        " bits) are not supported");
}

// An array over the same memory, which it keeps alive; of a tensor on a device over a copy.
nb::object to_numpy(const Tensor& given) {
  check_readable(given);
  const Tensor tensor = given->is_symbolic() ? given : to_device(detach(readable(given)), Device{});
  MOREL_CHECK(tensor.dtype() != DType::BFloat16, Type,
              "NumPy has no bfloat16: convert the tensor first, x.float().asnumpy()");
  size_t shape[16];
  int64_t strides[16];
  const size_t rank = tensor.shape().size();
  MOREL_CHECK(rank <= 16, NotImplemented, "tensors of more than 16 dimensions are not supported");
  std::copy(tensor.shape().begin(), tensor.shape().end(), shape);
  std::copy(tensor.strides().begin(), tensor.strides().end(), strides);
  auto* keep = new Ref<Storage>(tensor->storage);
  nb::capsule owner(keep, [](void* pointer) noexcept { delete static_cast<Ref<Storage>*>(pointer); });
  nb::ndarray<nb::numpy> array(tensor.data(), rank, shape, owner, strides, dlpack_type(tensor.dtype()));
  return nb::cast(array, nb::rv_policy::reference);
}

// A tensor over the same memory; it keeps the array alive.
Tensor from_numpy(nb::object object) {
  const auto array = nb::cast<nb::ndarray<nb::ro>>(object);
  Layout layout;
  int64_t last = 0;
  for (size_t i = 0; i < array.ndim(); ++i) {
    layout.shape.push_back(static_cast<int64_t>(array.shape(i)));
    layout.strides.push_back(array.stride(i));
    MOREL_CHECK(array.stride(i) >= 0, Value, "an array with negative strides cannot be shared: copy it first");
    last += (layout.shape.back() - 1) * layout.strides.back();
  }
  const DType dtype = from_dlpack(array.dtype());
  const size_t bytes = num_elements(layout.shape) == 0 ? 0 : static_cast<size_t>((last + 1) * size_of(dtype));
  auto storage = make_ref<Storage>(
      const_cast<void*>(array.data()), bytes, Device{},
      [](void*, size_t, void* context) {
        const nb::gil_scoped_acquire lock;
        Py_DECREF(static_cast<PyObject*>(context));
      },
      object.inc_ref().ptr());
  return Tensor::from_storage(std::move(storage), std::move(layout), dtype);
}

}  // namespace

PyObject* wrap(const Tensor& tensor) {
  PyTensor* self;
  if (free_count > 0) {
    self = free_list[--free_count];
    PyObject_Init(reinterpret_cast<PyObject*>(self), tensor_type);
    self->dict = self->weaklist = nullptr;
  } else {
    self = self_of(tensor_type->tp_alloc(tensor_type, 0));
    if (!self) return nullptr;
  }
  new (&self->impl) Ref<TensorImpl>(tensor.impl());
  return reinterpret_cast<PyObject*>(self);
}

// `with DeviceScope(name):` new tensors of this thread lie there; None changes nothing.
class ScopeObject {
 public:
  explicit ScopeObject(std::optional<std::string> name) {
    if (name) device_ = parse_device(*name);
    if (device_ && !device_->is_cpu()) device_runtime(*device_);
  }
  void enter() {
    if (device_) scope_.emplace(*device_);
  }
  void exit(nb::args) { scope_.reset(); }

 private:
  std::optional<Device> device_;
  std::optional<DeviceScope> scope_;
};

void bind_tensor(nb::module_& module) {
  nb::class_<ScopeObject>(module, "DeviceScope")
      .def(nb::init<std::optional<std::string>>(), nb::arg("device").none())
      .def("__enter__", &ScopeObject::enter)
      .def("__exit__", &ScopeObject::exit);
  bind_dtypes(module);
  make_type(module);
  module.def(
      "init_tensor", [](nb::handle self, const Tensor& source) { self_of(self.ptr())->impl = source.impl(); },
      "Makes `self`, an object of a Tensor class, a handle of `source`.");
  module.def("is_initialized", [](nb::handle self) { return static_cast<bool>(unwrap(self.ptr())); });
  module.def("to_numpy", &to_numpy, nb::arg("tensor"));
  module.def("from_numpy", &from_numpy, nb::arg("array"));
  module.def("item", [](const Tensor& tensor) { return item_value(tensor); });
  module.def("detach", [](const Tensor& tensor) { return detach(tensor); });
  module.def("to_device",
             [](const Tensor& tensor, const std::string& device) { return to_device(tensor, parse_device(device)); });
  // Where what is made now belongs.
  module.def("to_current_device", [](const Tensor& tensor) { return to_device(tensor, current_device()); });
  module.def("parse_device", [](const std::string& device) { return to_string(parse_device(device)); });
  module.def("set_default_device", [](const std::string& device) { set_default_device(parse_device(device)); });
  module.def("device_count", [](const std::string& kind) { return device_count(parse_device(kind).kind); });
  module.def("describe_device",
             [](const std::string& device) { return device_runtime(parse_device(device)).description(); });
  module.def("is_contiguous", [](const Tensor& tensor) { return tensor.is_contiguous(); });
  module.def("offset", [](const Tensor& tensor) { return tensor->layout.offset; });
  module.def("data_ptr", [](const Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.data()); });
  module.def("is_parameter", [](const Tensor& tensor, bool value) { tensor->is_parameter = value; });
  module.def("shares_storage", [](const Tensor& a, const Tensor& b) { return a->storage == b->storage; });
  // Replaces what the handle `self` points to by `source`'s data; every holder of the same tensor sees it.
  module.def("set_data", [](const Tensor& self, const Tensor& source) {
    self->storage = source->storage;
    self->layout = source->layout;
    self->size = source->size;
    self->dtype = source->dtype;
    self->contiguous = source->contiguous;
    self->shards = source->shards;
    self->base = {};
  });
}

}  // namespace morel::bind
