// Tensor indexing: x[key] and x[key] = value with integers, slices, None, ..., booleans, integer and boolean tensors.
// Basic keys become views, others the operators index and index_put.
#include <optional>

#include "morel/python/bind/bind.h"
#include "morel/runtime/device.h"
#include "morel/runtime/graph_scope.h"

namespace morel::bind {
namespace {

// A parsed key: first a strided slice with one entry per axis of the input, then axes dropped and inserted, then index
// tensors over the axes of that view.
struct Key {
  Ints begin, end, step;
  Ints drop;            // axes of the slice that integers select, descending
  Ints insert;          // axes of the result where None stands, ascending
  Value::List indices;  // one per axis of the view; None where the axis is kept
  bool advanced = false;
  bool identity = true;  // the slice takes everything
};

Tensor bool_to_positions(const Tensor& mask, size_t axis) {
  const Values positions = call("nonzero", {mask});
  return call("select", {positions[0], int64_t{1}, static_cast<int64_t>(axis)})[0].tensor();
}

class Parser {
 public:
  explicit Parser(const Shape& shape) : shape_(shape) {}

  Key parse(PyObject* object) {
    if (PyTuple_Check(object)) {
      const Py_ssize_t count = PyTuple_GET_SIZE(object);
      int64_t used = 0;
      for (Py_ssize_t i = 0; i < count; ++i) used += axes_of(PyTuple_GET_ITEM(object, i));
      for (Py_ssize_t i = 0; i < count; ++i) add(PyTuple_GET_ITEM(object, i), used);
    } else {
      add(object, axes_of(object));
    }
    while (axis_ < shape_.size()) take_all();
    if (key_.advanced) key_.indices.resize(view_axis_);
    std::reverse(key_.drop.begin(), key_.drop.end());
    return std::move(key_);
  }

 private:
  // How many axes of the input an item uses up.
  static int64_t axes_of(PyObject* item) {
    if (item == Py_None || item == Py_Ellipsis || PyBool_Check(item)) return 0;
    if (is_tensor(item) && unwrap(item)->dtype == DType::Bool)
      return static_cast<int64_t>(unwrap(item)->layout.shape.size());
    return 1;
  }

  void add(PyObject* item, int64_t used) {
    if (item == Py_Ellipsis) {
      MOREL_CHECK(!ellipsis_, Index, "an index can only have one ellipsis ('...')");
      ellipsis_ = true;
      for (int64_t rest = static_cast<int64_t>(shape_.size()) - used; rest > 0; --rest) take_all();
    } else if (item == Py_None) {
      key_.insert.push_back(static_cast<int64_t>(view_axis_++));
    } else if (PyBool_Check(item)) {
      add_bool(item == Py_True);
    } else if (PySlice_Check(item)) {
      add_slice(item);
    } else if (is_tensor(item)) {
      add_tensor(Tensor(unwrap(item)));
    } else if (PyIndex_Check(item) && !PyObject_HasAttrString(item, "__len__")) {
      add_integer(item);
    } else {
      add_array(item);
    }
  }

  Dim size() const {
    MOREL_CHECK(axis_ < shape_.size(), Index, "too many indices for a tensor of ", shape_.size(), " dimensions");
    return shape_[axis_];
  }

  void push(Dim begin, Dim end, int64_t step) {
    key_.identity &= begin == 0 && step == 1 && end == shape_[axis_];
    key_.begin.push_back(begin);
    key_.end.push_back(end);
    key_.step.push_back(step);
    ++axis_;
  }

  void take_all() {
    push(0, size(), 1);
    ++view_axis_;
  }

  // An integer, a Size or another object that can be an index; out of the range of integers: the nearest.
  static Dim dim_of(PyObject* item) {
    Dim dim;
    if (to_dim(item, dim)) return dim;
    const Py_ssize_t number = PyNumber_AsSsize_t(item, nullptr);
    if (number == -1 && PyErr_Occurred()) throw_python_error();
    return number;
  }

  void add_integer(PyObject* item) {
    Dim at = dim_of(item);
    const Dim n = size();
    MOREL_CHECK(at >= -n && at < n, Index, "index ", at, " is out of bounds for axis ", axis_, " with size ", n);
    if (at < 0) at += n;
    key_.drop.push_back(static_cast<int64_t>(axis_));
    push(at, at + 1, 1);
  }

  void add_slice(PyObject* item) {
    const auto& slice = *reinterpret_cast<PySliceObject*>(item);
    const int64_t step = slice.step == Py_None ? 1 : static_cast<int64_t>(dim_of(slice.step));
    MOREL_CHECK(step > 0, Value, "slice step must be positive, but got ", step);
    const Dim n = size();
    const auto bound = [&](PyObject* given, Dim fallback) {
      if (given == Py_None) return fallback;
      const Dim at = dim_of(given);
      return std::clamp<Dim>(at < 0 ? at + n : at, 0, n);
    };
    const Dim begin = bound(slice.start, 0), end = bound(slice.stop, n);
    push(begin, std::max(begin, end), step);
    ++view_axis_;
  }

  void add_bool(bool value) {
    key_.insert.push_back(static_cast<int64_t>(view_axis_));
    set_index(call("zeros", {Ints{value ? 1 : 0}, DType::Int64})[0].tensor());
  }

  void set_index(const Tensor& index) {
    key_.advanced = true;
    key_.indices.resize(view_axis_);
    key_.indices.push_back(index);
    ++view_axis_;
  }

  // positions(i): where the mask holds, along its axis i.
  template <typename Positions>
  void add_mask(const Shape& shape, Positions positions) {
    for (size_t i = 0; i < shape.size(); ++i) {
      MOREL_CHECK(shape[i] == size(), Index, "the shape of the mask ", to_string(shape), " does not fit axis ", axis_,
                  " with size ", size());
      set_index(positions(i));
      push(0, size(), 1);
    }
  }

  void add_tensor(const Tensor& index) {
    if (index.dtype() == DType::Bool) {
      if (index.rank() == 0) return add_bool(*index.as<bool>());
      return add_mask(index.shape(), [&](size_t i) { return bool_to_positions(index, i); });
    }
    MOREL_CHECK(is_integral(index.dtype()), Index, "tensors used as indices must be integers or booleans, but got ",
                info(index.dtype()).name);
    push(0, size(), 1);
    set_index(index);
  }

  // Lists, nested lists, NumPy arrays.
  void add_array(PyObject* item) {
    const nb::object tensor_of = nb::module_::import_("morel").attr("Tensor");
    Tensor index(unwrap(tensor_of(nb::borrow(item)).ptr()));
    if (index.dtype() == DType::Bool && index.rank() > 0) {  // its values are known, also while a graph is built
      const nb::object positions = nb::module_::import_("numpy").attr("nonzero")(nb::borrow(item));
      return add_mask(index.shape(), [&](size_t i) { return Tensor(unwrap(tensor_of(positions[i]).ptr())); });
    }
    if (index.size() == 0 && index.rank() == 1) index = Tensor::empty(index.shape(), DType::Int64);
    add_tensor(index);
  }

  const Shape& shape_;
  Key key_;
  size_t axis_ = 0;       // of the input
  size_t view_axis_ = 0;  // of the view after dropping and inserting
  bool ellipsis_ = false;
};

Tensor basic_view(const Tensor& input, const Key& key) {
  Tensor out = input;
  if (!key.identity) out = call("strided_slice", {out, key.begin, key.end, key.step})[0].tensor();
  if (!key.drop.empty()) out = call("squeeze", {out, key.drop})[0].tensor();
  for (const int64_t axis : key.insert) out = call("expand_dims", {out, axis})[0].tensor();
  // x[...] is a view as well, never x itself.
  if (out == input) out = call("view_as_self", {out})[0].tensor();
  return out;
}

// A Python value as a tensor of the target's dtype.
Tensor value_tensor(PyObject* value, DType dtype) {
  if (is_tensor(value)) return Tensor(unwrap(value));
  static const ArgSpec number{.name = "value", .kinds = kNumber, .type_text = "number"};
  Value scalar;
  if (to_value(value, number, scalar)) return call("full", {Ints{}, scalar, dtype})[0].tensor();
  nb::object tensor = nb::module_::import_("morel").attr("Tensor")(nb::borrow(value));
  return Tensor(unwrap(tensor.ptr()));
}

// The mask that is the whole key, if it is one.
std::optional<Tensor> mask_of(PyObject* key) {
  if (PyTuple_Check(key) && PyTuple_GET_SIZE(key) == 1) key = PyTuple_GET_ITEM(key, 0);
  if (!is_tensor(key) || unwrap(key)->dtype != DType::Bool) return {};
  return Tensor(unwrap(key));
}

// Whether a value goes to each place of a mask alike, so that nobody needs to know how many there are.
bool is_same_everywhere(const Tensor& input, const Tensor& mask, const Tensor& value) {
  const size_t inner = input.rank() - std::min(mask.rank(), input.rank());
  return value.rank() <= inner || (value.rank() == inner + 1 && value.shape()[0] == 1);
}

Tensor chosen_by_mask(const Tensor& input, Tensor mask, const Tensor& value) {
  const size_t inner = input.rank() - std::min(mask.rank(), input.rank());
  const Shape wanted(input.shape().begin(), input.shape().end() - static_cast<int64_t>(inner));
  MOREL_CHECK(mask.shape() == wanted, Index, "the shape of the mask ", to_string(mask.shape()),
              " does not fit a tensor of shape ", to_string(input.shape()));
  MOREL_CHECK(is_same_everywhere(input, mask, value), NotImplemented,
              "in a compiled function, x[mask] = value takes a value that is the same for every place of the mask, but "
              "its shape is ",
              to_string(value.shape()), "; use where");
  if (inner == 0 && value.rank() == 1)
    return chosen_by_mask(input, mask, call("squeeze", {value, Ints{0}})[0].tensor());
  for (size_t i = 0; i < inner; ++i) mask = call("expand_dims", {mask, int64_t{-1}})[0].tensor();
  const Tensor same = call("cast", {value, input.dtype()})[0].tensor();
  return call("where", {mask, same, input})[0].tensor();
}

template <class F>
auto with_place(F&& fn) {
  try {
    return fn();
  } catch (Error& error) {
    const std::string place = user_location();
    if (!place.empty()) error.append("\nat " + place);
    throw;
  }
}

}  // namespace

PyObject* tensor_get_item(PyObject* self, PyObject* key_object) {
  try {
    return with_place([&] {
      const Tensor input(unwrap(self));
      const DeviceScope scope(input.device());
      const Key key = Parser(input.shape()).parse(key_object);
      const Tensor view = basic_view(input, key);
      return wrap(key.advanced ? call("index", {view, key.indices})[0].tensor() : view);
    });
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

int tensor_set_item(PyObject* self, PyObject* key_object, PyObject* value) {
  try {
    MOREL_CHECK(value, Type, "elements of a tensor cannot be deleted");
    with_place([&] {
      const Tensor input(unwrap(self));
      const DeviceScope scope(input.device());
      const Tensor source = value_tensor(value, input.dtype());
      const std::optional<Tensor> mask = mask_of(key_object);
      if (mask && (GraphScope::current() || is_same_everywhere(input, *mask, source))) {
        call("copy_", {input, chosen_by_mask(input, *mask, source)});
        return 0;
      }
      const Key key = Parser(input.shape()).parse(key_object);
      const Tensor view = basic_view(input, key);
      if (key.advanced) {
        call("index_put_", {view, key.indices, source});
      } else {
        call("copy_", {view, source});
      }
      return 0;
    });
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

}  // namespace morel::bind
