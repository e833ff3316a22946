// Process-wide state: threads, random numbers, memory, blocking hooks.
#include <nanobind/stl/pair.h>

#include "morel/base/thread_pool.h"
#include "morel/kernels/output.h"
#include "morel/python/bind/bind.h"
#include "morel/tensor/allocator.h"
#include "morel/tensor/generator.h"

namespace morel::bind {
namespace {

// Lets other Python threads run while this one is in a parallel region.
void* release_interpreter() { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; }
void acquire_interpreter(void* state) {
  if (state) PyEval_RestoreThread(static_cast<PyThreadState*>(state));
}

// As Python's format.format(*tensors) does; the interpreter is held.
nb::object formatted(const std::string& format, std::span<const Value> tensors) {
  nb::list copies;  // which somebody may keep
  for (const Value& tensor : tensors) copies.append(nb::steal(wrap(call("clone", {tensor})[0].tensor())));
  return nb::str(format.c_str(), format.size()).attr("format")(*copies);
}

void print_to_python(const std::string& format, std::span<const Value> tensors) {
  const nb::gil_scoped_acquire acquired;
  nb::module_::import_("sys").attr("stdout").attr("write")(formatted(format, tensors));
}

void raise_in_python(const std::string& kind, const std::string& format, std::span<const Value> tensors) {
  const nb::gil_scoped_acquire acquired;
  const nb::object error = nb::module_::import_("builtins").attr(kind.c_str());
  PyErr_SetObject(error.ptr(), formatted(format, tensors).ptr());
  throw_python_error();
}

}  // namespace

void bind_system(nb::module_& module) {
  set_blocking_hooks({release_interpreter, acquire_interpreter});
  set_output({print_to_python, raise_in_python});
  module.def("num_threads", &num_threads);
  module.def("set_num_threads", [](int count) {
    MOREL_CHECK(count >= 1, Value, "the number of threads must be at least 1, but got ", count);
    set_num_threads(count);
  });
  module.def("set_seed", [](int64_t seed) { default_generator().set_seed(seed); });
  module.def(
      "next_random_state", [] { return default_generator().next(); },
      "(seed, offset) for one random operator call; moves on.");
  module.def("generator_state",
             [] { return std::make_pair(default_generator().seed(), default_generator().offset()); });
  module.def("set_generator_state", [](int64_t seed, int64_t offset) {
    default_generator().set_seed(seed);
    default_generator().set_offset(offset);
  });
  module.def("memory_stats", [] {
    const AllocatorStats stats = allocator_stats();
    nb::dict out;
    out["in_use"] = stats.in_use;
    out["peak_in_use"] = stats.peak_in_use;
    out["reserved"] = stats.reserved;
    out["peak_reserved"] = stats.peak_reserved;
    return out;
  });
  module.def("reset_peak_memory_stats", &reset_peak_stats);
  module.def("empty_cache", &empty_cache);
}

}  // namespace morel::bind
