// Mesh: processes ("ranks" of the world) arranged along named axes, in C order. Algorithms speak of positions in the
// mesh, 0 ... size() - 1; ranks()[position] is the process. Interned: equal meshes are one object, which lives for
// ever.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "morel/base/small_vector.h"

namespace morel::dist {

using Axes = SmallVector<int, 4>;  // axes of a mesh

class Mesh {
 public:
  // Without `ranks`: 0, 1, 2, ...
  static const Mesh* get(const Numbers& shape, const std::vector<std::string>& names, std::vector<int> ranks = {});

  const Numbers& shape() const { return shape_; }
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<int>& ranks() const { return ranks_; }
  int num_axes() const { return static_cast<int>(shape_.size()); }
  int size() const { return static_cast<int>(ranks_.size()); }
  int64_t axis_size(int axis) const { return shape_[static_cast<size_t>(axis)]; }
  int axis(std::string_view name) const;  // ValueError when there is none
  // Where `position` lies along `axis`.
  int64_t coordinate(int position, int axis) const;
  // Number of `position` among those that differ from it in `axes` alone; the first axis counts most.
  int64_t index_along(int position, const Axes& axes) const;
  int64_t size_along(const Axes& axes) const;
  // Those positions in that order, with itself.
  std::vector<int> group(int position, const Axes& axes) const;
  int position_of(int rank) const;  // -1 where the mesh does not have it

 private:
  Mesh() = default;
  Numbers shape_, strides_;
  std::vector<std::string> names_;
  std::vector<int> ranks_;
};

std::string to_string(const Mesh& mesh);  // "(dp=2, mp=4)"

}  // namespace morel::dist
