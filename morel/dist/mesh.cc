#include "morel/dist/mesh.h"

#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

#include "morel/base/error.h"

namespace morel::dist {
namespace {

void check(const Numbers& shape, const std::vector<std::string>& names, const std::vector<int>& ranks) {
  MOREL_CHECK(!shape.empty(), Value, "a mesh needs at least one axis");
  MOREL_CHECK(names.size() == shape.size(), Value, "a mesh of ", shape.size(), " axes needs as many names, but got ",
              names.size());
  int64_t size = 1;
  for (const int64_t axis : shape) {
    MOREL_CHECK(axis > 0, Value, "the axes of a mesh must have positive sizes, but got ", axis);
    size *= axis;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    MOREL_CHECK(!names[i].empty(), Value, "the names of mesh axes must not be empty");
    for (size_t j = 0; j < i; ++j)
      MOREL_CHECK(names[i] != names[j], Value, "two axes of a mesh have the name '", names[i], "'");
  }
  MOREL_CHECK(static_cast<int64_t>(ranks.size()) == size, Value, "a mesh of ", size, " processes is given ",
              ranks.size(), " ranks");
  std::vector<int> sorted(ranks);
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    MOREL_CHECK(sorted[i] >= 0, Value, "ranks must not be negative, but got ", sorted[i]);
    MOREL_CHECK(i == 0 || sorted[i] != sorted[i - 1], Value, "rank ", sorted[i], " is in the mesh twice");
  }
}

}  // namespace

const Mesh* Mesh::get(const Numbers& shape, const std::vector<std::string>& names, std::vector<int> ranks) {
  if (ranks.empty()) {
    ranks.resize(static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  using Key = std::tuple<std::vector<int64_t>, std::vector<std::string>, std::vector<int>>;
  static std::mutex mutex;
  static std::map<Key, const Mesh*>& meshes = *new std::map<Key, const Mesh*>;
  const std::lock_guard lock(mutex);
  const Mesh*& slot = meshes[{{shape.begin(), shape.end()}, names, ranks}];
  if (slot) return slot;
  check(shape, names, ranks);
  auto* mesh = new Mesh;
  mesh->shape_ = shape;
  mesh->names_ = names;
  mesh->ranks_ = std::move(ranks);
  mesh->strides_.resize(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) mesh->strides_[axis] = stride;
  return slot = mesh;
}

int Mesh::axis(std::string_view name) const {
  for (size_t i = 0; i < names_.size(); ++i)
    if (names_[i] == name) return static_cast<int>(i);
  raise(ErrorKind::Value, "the mesh ", to_string(*this), " has no axis '", name, "'");
}

int64_t Mesh::coordinate(int position, int axis) const {
  return position / strides_[static_cast<size_t>(axis)] % axis_size(axis);
}

int64_t Mesh::index_along(int position, const Axes& axes) const {
  int64_t index = 0;
  for (const int axis : axes) index = index * axis_size(axis) + coordinate(position, axis);
  return index;
}

int64_t Mesh::size_along(const Axes& axes) const {
  int64_t size = 1;
  for (const int axis : axes) size *= axis_size(axis);
  return size;
}

std::vector<int> Mesh::group(int position, const Axes& axes) const {
  int64_t first = position;
  for (const int axis : axes) first -= coordinate(position, axis) * strides_[static_cast<size_t>(axis)];
  std::vector<int> out{static_cast<int>(first)};
  for (const int axis : axes) {
    std::vector<int> wider;
    for (const int member : out)
      for (int64_t i = 0; i < axis_size(axis); ++i)
        wider.push_back(member + static_cast<int>(i * strides_[static_cast<size_t>(axis)]));
    out = std::move(wider);
  }
  return out;
}

int Mesh::position_of(int rank) const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  return found == ranks_.end() ? -1 : static_cast<int>(found - ranks_.begin());
}

std::string to_string(const Mesh& mesh) {
  std::string out = "(";
  for (int axis = 0; axis < mesh.num_axes(); ++axis)
    out += cat(axis ? ", " : "", mesh.names()[static_cast<size_t>(axis)], "=", mesh.axis_size(axis));
  return out + ")";
}

}  // namespace morel::dist
