#include "morel/dist/sharding.h"

#include <map>
#include <mutex>
#include <tuple>

#include "morel/base/error.h"

namespace morel::dist {

using loops::ReduceOp;

bool Box::is_empty() const {
  return std::any_of(size.begin(), size.end(), [](int64_t n) { return n == 0; });
}

int64_t Box::num_elements() const {
  int64_t count = 1;
  for (const int64_t n : size) count *= n;
  return count;
}

Box intersection(const Box& a, const Box& b) {
  Box out = a;
  for (size_t axis = 0; axis < a.start.size(); ++axis) {
    out.start[axis] = std::max(a.start[axis], b.start[axis]);
    const int64_t end = std::min(a.start[axis] + a.size[axis], b.start[axis] + b.size[axis]);
    out.size[axis] = std::max<int64_t>(0, end - out.start[axis]);
  }
  return out;
}

namespace {

void check(const Mesh& mesh, const AxisLists& lists, const Axes& partial) {
  Axes seen;
  const auto use = [&](int axis) {
    MOREL_CHECK(axis >= 0 && axis < mesh.num_axes(), Value, "the mesh ", to_string(mesh), " has no axis ", axis);
    MOREL_CHECK(std::find(seen.begin(), seen.end(), axis) == seen.end(), Value, "the mesh axis '",
                mesh.names()[static_cast<size_t>(axis)], "' is used twice in one layout");
    seen.push_back(axis);
  };
  for (const Axes& list : lists)
    for (const int axis : list) use(axis);
  for (const int axis : partial) use(axis);
}

}  // namespace

const Sharding* Sharding::get(const Mesh* mesh, const AxisLists& axes, const Axes& partial, ReduceOp combine) {
  if (partial.empty()) combine = ReduceOp::Sum;
  std::vector<int> key;
  for (const Axes& list : axes) {
    key.insert(key.end(), list.begin(), list.end());
    key.push_back(-1);
  }
  key.insert(key.end(), partial.begin(), partial.end());
  using Key = std::tuple<const Mesh*, ReduceOp, std::vector<int>>;
  static std::mutex mutex;
  static std::map<Key, const Sharding*>& shardings = *new std::map<Key, const Sharding*>;
  const std::lock_guard lock(mutex);
  const Sharding*& slot = shardings[{mesh, combine, std::move(key)}];
  if (slot) return slot;
  check(*mesh, axes, partial);
  auto* sharding = new Sharding;
  sharding->mesh_ = mesh;
  sharding->axes_ = axes;
  sharding->partial_ = partial;
  sharding->combine_ = combine;
  return slot = sharding;
}

const Sharding* Sharding::replicated(const Mesh* mesh, size_t rank) { return get(mesh, AxisLists(rank)); }

bool Sharding::is_partial(int mesh_axis) const {
  return std::find(partial_.begin(), partial_.end(), mesh_axis) != partial_.end();
}

int Sharding::tensor_axis_of(int mesh_axis) const {
  for (size_t axis = 0; axis < axes_.size(); ++axis)
    if (std::find(axes_[axis].begin(), axes_[axis].end(), mesh_axis) != axes_[axis].end())
      return static_cast<int>(axis);
  return -1;
}

bool Sharding::is_replicated() const {
  return partial_.empty() && std::all_of(axes_.begin(), axes_.end(), [](const Axes& list) { return list.empty(); });
}

Box Sharding::box(int position, const Shape& shape) const {
  Box out;
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    int64_t start = 0, size = shape[axis];
    for (const int mesh_axis : axes_[axis]) {
      const int64_t pieces = mesh_->axis_size(mesh_axis), piece = (size + pieces - 1) / pieces;
      const int64_t before = std::min(size, piece * mesh_->coordinate(position, mesh_axis));
      start += before;
      size = std::min(piece, size - before);
    }
    out.start.push_back(start);
    out.size.push_back(size);
  }
  return out;
}

Shape Sharding::local_shape(int position, const Shape& shape) const {
  const Box local = box(position, shape);
  return Shape(local.size.begin(), local.size.end());
}

namespace {
constexpr std::pair<ReduceOp, std::string_view> combine_names[] = {{ReduceOp::Sum, "sum"}, {ReduceOp::Prod, "prod"},
                                                                   {ReduceOp::Min, "min"}, {ReduceOp::Max, "max"},
                                                                   {ReduceOp::Any, "any"}, {ReduceOp::All, "all"}};
}  // namespace

std::string_view combine_name(ReduceOp combine) {
  for (const auto& [op, name] : combine_names)
    if (op == combine) return name;
  return "?";
}

ReduceOp combine_from_name(std::string_view name) {
  for (const auto& [op, text] : combine_names)
    if (text == name) return op;
  raise(ErrorKind::Value, "parts can be combined by 'sum', 'prod', 'min', 'max', 'any' and 'all', but not by '", name,
        "'");
}

std::string to_string(const Sharding& sharding) {
  const auto& names = sharding.mesh().names();
  std::string out = "[";
  for (size_t axis = 0; axis < sharding.rank(); ++axis) {
    if (axis) out += ", ";
    if (sharding.axes(axis).empty()) out += "-";
    for (size_t i = 0; i < sharding.axes(axis).size(); ++i)
      out += (i ? "+" : "") + names[static_cast<size_t>(sharding.axes(axis)[i])];
  }
  out += "]";
  for (size_t i = 0; i < sharding.partial().size(); ++i)
    out += (i ? ", " : cat(", partial ", combine_name(sharding.combine()), " over ")) +
           names[static_cast<size_t>(sharding.partial()[i])];
  return out;
}

}  // namespace morel::dist
