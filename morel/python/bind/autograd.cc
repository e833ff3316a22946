// value_and_grad, custom backward functions and hooks for Python.
#include <memory>

#include "morel/dist/shards.h"
#include "morel/python/bind/bind.h"
#include "morel/runtime/device.h"
#include "morel/runtime/graph_scope.h"

namespace morel::bind {

std::shared_ptr<PyObject> hold(nb::handle object) {
  return {object.inc_ref().ptr(), [](PyObject* pointer) {
            const nb::gil_scoped_acquire lock;
            Py_DECREF(pointer);
          }};
}

std::shared_ptr<GradHook> make_hook(nb::handle fn) {
  return std::make_shared<GradHook>([callback = hold(fn)](const Value& cotangent) -> Value {
    const nb::gil_scoped_acquire lock;
    nb::object argument = nb::steal(from_value(cotangent));
    nb::object result = nb::steal(PyObject_CallOneArg(callback.get(), argument.ptr()));
    if (!result) throw_python_error();
    if (!is_tensor(result.ptr())) return {};
    const Tensor replaced(unwrap(result.ptr()));
    MOREL_CHECK(replaced.shape() == cotangent.tensor().shape(), Value,
                "For 'register_hook', a hook of a gradient of shape ", to_string(cotangent.tensor().shape()),
                " returned one of shape ", to_string(replaced.shape()));
    return replaced;
  });
}

namespace {

void collect(nb::handle object, std::vector<Tensor>& out) {
  if (is_tensor(object.ptr())) {
    out.emplace_back(unwrap(object.ptr()));
  } else if (PyTuple_Check(object.ptr()) || PyList_Check(object.ptr())) {
    for (nb::handle item : object) collect(item, out);
  } else if (PyDict_Check(object.ptr())) {
    for (nb::handle item : nb::borrow<nb::dict>(object).values()) collect(item, out);
  }
}

Value gradient_or_zeros(const Value& gradient, const Tensor& of) {
  if (!gradient.is_none()) return gradient;
  const Tensor zeros = Tensor::full(of.shape(), of.dtype(), 0);
  return of->shards ? dist::distribute(zeros, dist::sharding_of(of)->without_partial()) : to_device(zeros, of.device());
}

// fn(*args, **kwargs) and its gradients. positions: argument indices to differentiate at; weights: Parameters. Returns
// (output, list of gradients at the positions, list of gradients of the weights).
nb::tuple value_and_grad(nb::handle fn, const std::vector<int>& positions, nb::handle weights, bool has_aux,
                         nb::tuple args, nb::dict kwargs, nb::handle sens) {
  std::vector<Tensor> inputs, parameters;
  if (!weights.is_none()) {
    for (nb::handle weight : weights) {
      MOREL_CHECK(is_tensor(weight.ptr()), Type, "weights must be Parameters, but got ",
                  Py_TYPE(weight.ptr())->tp_name);
      parameters.emplace_back(unwrap(weight.ptr()));
    }
  }
  const LeafScope leaves(parameters);
  nb::object output;
  Values gradients;
  {
    const GradScope scope;
    nb::list given;
    for (nb::handle arg : args) given.append(arg);
    for (const int position : positions) {
      MOREL_CHECK(position >= 0 && static_cast<size_t>(position) < given.size(), Index, "the gradient at argument ",
                  position, " is asked for, but the function was called with ", given.size(), " positional arguments");
      nb::handle arg = given[static_cast<size_t>(position)];
      MOREL_CHECK(is_tensor(arg.ptr()), Type, "the gradient is asked for at argument ", position,
                  ", which must be a Tensor but is ", Py_TYPE(arg.ptr())->tp_name);
      const Tensor source(unwrap(arg.ptr()));
      MOREL_CHECK(source.dtype() != DType::Bool, Type, "argument ", position,
                  " has dtype Bool, which cannot be differentiated: it must be a tensor of numbers");
      inputs.push_back(make_input(source));
      given[static_cast<size_t>(position)] = nb::steal(wrap(inputs.back()));
    }
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    output = nb::steal(PyObject_Call(fn.ptr(), nb::tuple(given).ptr(), kwargs.ptr()));
    if (!output) throw_python_error();
    std::vector<Tensor> outputs, auxiliary;
    if (has_aux) {
      MOREL_CHECK(PyTuple_Check(output.ptr()) && nb::len(output) >= 1, Value,
                  "with has_aux=True the function must return a tuple (value, ...)");
      collect(output[0], outputs);
      collect(output, auxiliary);
    } else {
      collect(output, outputs);
    }
    MOREL_CHECK(!outputs.empty(), Type, "the function to differentiate returned no Tensor but ",
                Py_TYPE(output.ptr())->tp_name);
    std::vector<Tensor> seeds_given;
    if (!sens.is_none()) {
      collect(sens, seeds_given);
      MOREL_CHECK(seeds_given.size() == outputs.size(), Value, seeds_given.size(), " sensitivities are given for ",
                  outputs.size(), " outputs");
    }
    std::vector<Value> seeds(outputs.size());
    for (size_t i = 0; i < seeds_given.size(); ++i) seeds[i] = seeds_given[i];
    const GradDepth outer(grad_depth() - 1);
    gradients = backward(outputs, seeds, inputs, false);
    for (size_t i = 0; i < inputs.size(); ++i) gradients[i] = gradient_or_zeros(gradients[i], inputs[i]);
    if (grad_depth() == 0)
      for (const Tensor& tensor : has_aux ? auxiliary : outputs)
        if (!tensor->is_parameter) clear_leaf(tensor);
  }
  nb::list by_position, by_weight;
  for (size_t i = 0; i < gradients.size(); ++i)
    (i < positions.size() ? by_position : by_weight).append(nb::steal(from_value(gradients[i])));
  return nb::make_tuple(output, by_position, by_weight);
}

// Runs fn(*variables) on the tape, `scopes` gradient scopes deep; variables: fresh handles of the inputs. Returns
// (variables and, to differentiate at, handles of the weights; output), which keep the tape.
nb::tuple trace(nb::handle fn, const std::vector<Tensor>& inputs, const std::vector<Tensor>& weights, int scopes) {
  const LeafScope leaves(weights);
  const GradDepth inside(grad_depth() + scopes);
  nb::list variables;
  for (const Tensor& input : inputs) {
    MOREL_CHECK(input.dtype() != DType::Bool, Type, "argument ", nb::len(variables),
                " has dtype Bool, which cannot be differentiated: it must be a tensor of numbers");
    variables.append(nb::steal(wrap(make_input(input))));
  }
  const nb::tuple given(variables);
  nb::object output = nb::steal(PyObject_Call(fn.ptr(), given.ptr(), nullptr));
  if (!output) throw_python_error();
  for (const Tensor& weight : weights) {
    const Tensor handle = detach(weight);
    handle->grad = weight->grad;
    variables.append(nb::steal(wrap(handle)));
  }
  return nb::make_tuple(variables, output);
}

Values values_of(const std::vector<Tensor>& tensors) {
  Values out;
  for (const Tensor& tensor : tensors) out.push_back(tensor);
  return out;
}

nb::list with_zeros(const Values& derivatives, const std::vector<Tensor>& of) {
  nb::list out;
  for (size_t i = 0; i < of.size(); ++i) out.append(nb::steal(from_value(gradient_or_zeros(derivatives[i], of[i]))));
  return out;
}

// What moves at the variables where cotangents come to the outputs of a trace.
nb::list pull_back(const std::vector<Tensor>& outputs, const std::vector<Tensor>& cotangents,
                   const std::vector<Tensor>& variables) {
  const Values seeds = values_of(cotangents);
  return with_zeros(backward(outputs, {seeds.data(), seeds.size()}, variables, true), variables);
}

// How the outputs of a trace move with its variables.
nb::list push_forward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& variables,
                      const std::vector<Tensor>& tangents) {
  const Values moves = values_of(tangents);
  return with_zeros(morel::push_forward(outputs, variables, {moves.data(), moves.size()}), outputs);
}

// Links fresh handles of `outputs` to a node whose backward calls `fn(*cotangents)` and gets one gradient (or None) per
// input.
nb::tuple custom_backward(std::string name, nb::list inputs, nb::list outputs, nb::handle fn) {
  if (GraphScope::current()) return graph_custom_backward(inputs, nb::cast<std::vector<Tensor>>(outputs), fn);
  std::vector<Tensor> sources, results;
  std::vector<Type> types;
  for (nb::handle input : inputs) {
    sources.push_back(is_tensor(input.ptr()) ? Tensor(unwrap(input.ptr())) : Tensor());
  }
  for (nb::handle output : outputs) {
    results.push_back(detach(Tensor(unwrap(output.ptr()))));
    types.push_back({results.back().dtype(), results.back().shape()});
  }
  const size_t count = sources.size();
  const auto backward = [callback = hold(fn), types, count, name](std::span<const Value> cotangents) {
    const nb::gil_scoped_acquire lock;
    nb::list given;
    for (size_t i = 0; i < cotangents.size(); ++i) {
      const Value cotangent =
          cotangents[i].is_none() ? Value(Tensor::full(types[i].shape, types[i].dtype, 0)) : cotangents[i];
      given.append(nb::steal(from_value(cotangent)));
    }
    nb::object result = nb::steal(PyObject_Call(callback.get(), nb::tuple(given).ptr(), nullptr));
    if (!result) throw_python_error();
    if (!PyTuple_Check(result.ptr()) && !PyList_Check(result.ptr())) result = nb::make_tuple(result);
    MOREL_CHECK(nb::len(result) <= count, Value, "For '", name, "', the backward function returned ", nb::len(result),
                " gradients for ", count, " inputs");
    Values out;
    for (nb::handle gradient : result)
      out.push_back(is_tensor(gradient.ptr()) ? Value(Tensor(unwrap(gradient.ptr()))) : Value());
    return out;
  };
  record_function(name, sources, results, backward);
  nb::list out;
  for (const Tensor& tensor : results) out.append(nb::steal(wrap(tensor)));
  return nb::tuple(out);
}

struct HookHandle {
  Tensor tensor;
  std::shared_ptr<GradHook> hook;
};

}  // namespace

void bind_autograd(nb::module_& module) {
  module.def("value_and_grad", &value_and_grad, nb::arg("fn"), nb::arg("positions"), nb::arg("weights").none(),
             nb::arg("has_aux"), nb::arg("args"), nb::arg("kwargs"), nb::arg("sens").none() = nb::none());
  module.def("trace", &trace, nb::arg("fn"), nb::arg("inputs"), nb::arg("weights"), nb::arg("scopes"));
  module.def("pull_back", &pull_back, nb::arg("outputs"), nb::arg("cotangents"), nb::arg("variables"));
  module.def("push_forward", &push_forward, nb::arg("outputs"), nb::arg("variables"), nb::arg("tangents"));
  module.def("custom_backward", &custom_backward, nb::arg("name"), nb::arg("inputs"), nb::arg("outputs"),
             nb::arg("fn"));
  module.def("grad_depth", &grad_depth);
  module.def("grad_enabled", [] { return grad_depth() > 0; });
  module.def("any_tracked", [](nb::args args) {
    if (grad_depth() == 0) return false;
    std::vector<Tensor> tensors;
    collect(args, tensors);
    for (const Tensor& tensor : tensors)
      if (requires_grad(tensor.get())) return true;
    return false;
  });
  // Runs fn(*args, **kwargs) without recording.
  module.def("without_grad", [](nb::handle fn, nb::args args, nb::kwargs kwargs) {
    const GradDepth pause(0);
    nb::object out = nb::steal(PyObject_Call(fn.ptr(), args.ptr(), kwargs.ptr()));
    if (!out) throw_python_error();
    return out;
  });
  module.def(
      "pause_grad", [] { return set_grad_depth(0); }, "Stops recording; returns what resume_grad takes.");
  module.def("resume_grad", [](int depth) { set_grad_depth(depth); });
  nb::class_<HookHandle>(module, "TensorHook").def("remove", [](HookHandle& self) {
    remove_hook(self.tensor, self.hook);
  });
  module.def("register_hook", [](const Tensor& tensor, nb::handle fn) {
    HookHandle handle{tensor, make_hook(fn)};
    add_hook(tensor, handle.hook);
    return handle;
  });
}

}  // namespace morel::bind
