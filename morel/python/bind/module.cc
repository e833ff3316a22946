// The extension module morel._core.
#include "morel/python/bind/bind.h"

NB_MODULE(_core, module) {
  using namespace morel::bind;  // NOLINT
  nanobind::set_leak_warnings(false);
  module.attr("version") = MOREL_VERSION;
  nanobind::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const morel::Error&) {
      set_python_error();
    } catch (const PythonError&) {
      set_python_error();
    }
  });
  bind_tensor(module);
  bind_size(module);
  bind_ops(module);
  bind_autograd(module);
  bind_system(module);
  bind_io(module);
  bind_onnx(module);
  bind_graph(module);
  bind_training(module);
  bind_compiled_call(module);
  bind_dist(module);
  bind_lite(module);
  bind_quantise(module);
}
