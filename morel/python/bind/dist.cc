// Meshes, shardings, distributed tensors and process groups for Python: morel._core.dist.
#include <functional>

#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "morel/dist/layer.h"
#include "morel/dist/process_group.h"
#include "morel/dist/store.h"
#include "morel/dist/trial.h"
#include "morel/ops/axes.h"
#include "morel/python/bind/bind.h"

namespace morel::bind {
namespace {

using namespace dist;  // NOLINT
using AxisListsIn = std::vector<std::vector<int>>;

Axes axes_of(const std::vector<int>& axes) { return Axes(axes.begin(), axes.end()); }
Shape shape_from(const std::vector<int64_t>& sizes) { return Shape(sizes.begin(), sizes.end()); }
std::vector<int> numbers(const Axes& axes) { return {axes.begin(), axes.end()}; }

const Sharding* make_sharding(const Mesh* mesh, const AxisListsIn& lists, std::vector<int> partial,
                              const std::string& combine) {
  AxisLists axes;
  for (const std::vector<int>& list : lists) axes.push_back(axes_of(list));
  std::sort(partial.begin(), partial.end());
  return Sharding::get(mesh, axes, axes_of(partial), combine_from_name(combine));
}

void bind_layouts(nb::module_& module) {
  nb::class_<Mesh>(module, "Mesh")
      .def_prop_ro("shape",
                   [](const Mesh& mesh) { return std::vector<int64_t>(mesh.shape().begin(), mesh.shape().end()); })
      .def_prop_ro("names", &Mesh::names)
      .def_prop_ro("ranks", &Mesh::ranks)
      .def("coordinate", &Mesh::coordinate)
      .def("position_of", &Mesh::position_of)
      .def("group", [](const Mesh& mesh, int position,
                       const std::vector<int>& axes) { return mesh.group(position, axes_of(axes)); })
      .def("__repr__", [](const Mesh& mesh) { return to_string(mesh); });
  module.def(
      "mesh",
      [](const std::vector<int64_t>& shape, const std::vector<std::string>& names, const std::vector<int>& ranks) {
        return Mesh::get(Numbers(shape.begin(), shape.end()), names, ranks);
      },
      nb::rv_policy::reference);
  nb::class_<Sharding>(module, "Sharding")
      .def_prop_ro("mesh", &Sharding::mesh, nb::rv_policy::reference)
      .def_prop_ro("axes",
                   [](const Sharding& sharding) {
                     AxisListsIn out;
                     for (const Axes& list : sharding.axis_lists()) out.push_back(numbers(list));
                     return out;
                   })
      .def_prop_ro("partial", [](const Sharding& sharding) { return numbers(sharding.partial()); })
      .def_prop_ro("combine", [](const Sharding& sharding) { return std::string(combine_name(sharding.combine())); })
      .def("local_shape",
           [](const Sharding& sharding, int position, const std::vector<int64_t>& shape) {
             const Shape local = sharding.local_shape(position, shape_from(shape));
             return std::vector<int64_t>(local.begin(), local.end());
           })
      .def("__repr__", [](const Sharding& sharding) { return to_string(sharding); });
  module.def("sharding", &make_sharding, nb::rv_policy::reference);
  module.def("all_shardings", [](const Mesh* mesh, size_t rank, bool with_parts) {
    nb::list out;
    for (const Sharding* sharding : all_shardings(mesh, rank, with_parts))
      out.append(nb::cast(sharding, nb::rv_policy::reference));
    return out;
  });
  module.def("explain", [](const Sharding* from, const Sharding* to, const std::vector<int64_t>& shape) {
    return to_string(plan(from, to, shape_from(shape)));
  });
  module.def("moved", [](const Sharding* from, const Sharding* to, const std::vector<int64_t>& shape) {
    return plan(from, to, shape_from(shape)).moved();
  });
}

void bind_tensors(nb::module_& module) {
  module.def(
      "sharding_of",
      [](const Tensor& tensor) -> const Sharding* { return tensor->shards ? sharding_of(tensor) : nullptr; },
      nb::rv_policy::reference);
  module.def("distribute", &distribute);
  module.def("redistribute", nb::overload_cast<const Tensor&, const Sharding*>(&dist::redistribute));
  module.def("full_tensor", &full_tensor);
  module.def("to_parts", &to_parts);
  module.def("parts_shape", [](const Sharding* sharding, const std::vector<Tensor>& parts) {
    const Shape shape = shape_of_parts(sharding, parts);
    return std::vector<int64_t>(shape.begin(), shape.end());
  });
  module.def("from_parts",
             [](const Sharding* sharding, const std::vector<int64_t>& shape, DType dtype, std::vector<Tensor> parts) {
               return from_parts(sharding, shape_from(shape), dtype, std::move(parts));
             });
  module.def("create", [](const std::string& name, const std::vector<Value>& args, const Sharding* sharding) {
    const OpDef* op = registry().find(name);
    MOREL_CHECK(op, Attribute, "there is no operator '", name, "'");
    return create(*op, args, sharding);
  });
  module.def("take_traffic", [] {
    const Traffic traffic = take_traffic();
    return std::make_tuple(traffic.elements, traffic.moves);
  });
}

void bind_processes(nb::module_& module) {
  module.def("simulate", [](int size) { set_world(simulated_world(size)); });
  module.def("world_name", [] { return std::string(world().name()); });
  module.def("world_size", [] { return world().size(); });
  module.def("local_ranks",
             [] { return std::vector<int>(world().local_ranks().begin(), world().local_ranks().end()); });
  module.def("connect", [](int rank, int size, const std::string& scheduler, int port, const std::string& host,
                           int64_t timeout_ms) {
    const nb::gil_scoped_release release;
    connect({rank, size, scheduler, port, host, timeout_ms});
  });
  module.def("disconnect", &disconnect);
  module.def("group_ranks", &group_ranks);
  module.def("has_group", &has_group);
  module.def("add_group", &add_group);
  module.def("remove_group", &remove_group);
  module.def("all_reduce", [](const Tensor& tensor, const std::string& combine, const std::vector<int>& ranks) {
    return all_reduce(tensor, combine_from_name(combine), ranks);
  });
  module.def("all_gather", &all_gather);
  module.def("reduce_scatter", [](const Tensor& tensor, const std::string& combine, const std::vector<int>& ranks) {
    return reduce_scatter(tensor, combine_from_name(combine), ranks);
  });
  module.def("broadcast", &broadcast);
  module.def(
      "all_to_all",
      [](const std::vector<Tensor>& tensors, const std::vector<std::vector<int64_t>>& shapes, DType dtype,
         const std::vector<int>& ranks, bool in_pairs) {
        std::vector<Shape> sizes;
        for (const auto& shape : shapes) sizes.push_back(shape_from(shape));
        return all_to_all(tensors, sizes, dtype, ranks, in_pairs);
      },
      nb::arg("tensors"), nb::arg("shapes"), nb::arg("dtype"), nb::arg("ranks"), nb::arg("in_pairs") = false);
  module.def("barrier", &barrier);
  module.def("send", &dist::send);
  module.def("receive", [](const std::vector<int64_t>& shape, DType dtype, int rank) {
    return receive(shape_from(shape), dtype, rank);
  });
  nb::class_<StoreServer>(module, "StoreServer")
      .def(nb::init<int>(), nb::arg("port"))
      .def_prop_ro("port", &StoreServer::port)
      .def("wait_until_done", &StoreServer::wait_until_done, nb::call_guard<nb::gil_scoped_release>());
  nb::class_<StoreClient>(module, "StoreClient")
      .def("__init__",
           [](StoreClient* self, const std::string& host, int port, int64_t timeout_ms) {
             const nb::gil_scoped_release release;
             new (self) StoreClient(host, port, std::chrono::milliseconds(timeout_ms));
           })
      .def("set", &StoreClient::set)
      .def("get", &StoreClient::get, nb::call_guard<nb::gil_scoped_release>())
      .def("add", &StoreClient::add);
}

void bind_trials(nb::module_& module) {
  nb::class_<RecordedCall>(module, "RecordedCall")
      .def_prop_ro("op", [](const RecordedCall& call) { return std::string(call.op->name); })
      .def_prop_ro("has_tensors", [](const RecordedCall& call) {
        return !tensors_of(*call.op, {call.args.data(), call.args.size()}).empty();
      });
  module.def(
      "record_calls",
      [](nb::callable fn, bool of_composites) {
        const auto run = [&] {
          const nb::object result = nb::steal(PyObject_CallNoArgs(fn.ptr()));
          if (!result) throw_python_error();
        };
        return record_calls(run, of_composites);
      },
      nb::arg("fn"), nb::arg("of_composites") = false);
  nb::class_<Trial>(module, "Trial")
      .def_ro("cases", &Trial::cases)
      .def_ro("exact", &Trial::exact)
      .def_ro("gathering", &Trial::gathering)
      .def_ro("derived", &Trial::derived)
      .def_ro("failures", &Trial::failures);
  module.def("try_shardings", &try_shardings, nb::arg("call"), nb::arg("mesh"), nb::arg("limit"));
  module.def("has_axes", [](const std::string& name) {
    const OpDef* op = registry().find(name);
    return op && has_axes(*op);
  });
}

}  // namespace

void bind_dist(nb::module_& parent) {
  nb::module_ module = parent.def_submodule("dist", "Tensors over several processes.");
  bind_layouts(module);
  bind_tensors(module);
  bind_processes(module);
  bind_trials(module);
}

}  // namespace morel::bind
