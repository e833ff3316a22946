// Sharding: how a tensor lies on a mesh (MindSpore's Layout, JAX's NamedSharding). Every tensor axis has an ordered
// list of mesh axes along which it is cut, the first one into the largest pieces; mesh axes in no list hold copies;
// along the `partial` ones every process has a full-size part, and the tensor is their sum (or maximum, ...). Interned.
//
// An axis of n elements that is cut along a mesh axis of p gives pieces of ceil(n / p); the last ones may be shorter or
// empty. A second mesh axis cuts each piece in the same way, so every list's pieces lie within those of its beginning.
#pragma once

#include <optional>

#include "morel/dist/mesh.h"
#include "morel/loops/program.h"
#include "morel/tensor/tensor.h"

namespace morel::dist {

// A part of an array: first index and size along every axis.
struct Box {
  Numbers start, size;
  bool operator==(const Box&) const = default;
  bool is_empty() const;
  int64_t num_elements() const;
};
Box intersection(const Box& a, const Box& b);

using AxisLists = SmallVector<Axes, 6>;

class Sharding {
 public:
  // `partial` must be in ascending order and in no list. `combine`: Sum, Prod, Min, Max, Any, All.
  static const Sharding* get(const Mesh* mesh, const AxisLists& axes, const Axes& partial = {},
                             loops::ReduceOp combine = loops::ReduceOp::Sum);
  static const Sharding* replicated(const Mesh* mesh, size_t rank);

  const Mesh& mesh() const { return *mesh_; }
  size_t rank() const { return axes_.size(); }
  const Axes& axes(size_t tensor_axis) const { return axes_[tensor_axis]; }
  const AxisLists& axis_lists() const { return axes_; }
  const Axes& partial() const { return partial_; }
  loops::ReduceOp combine() const { return combine_; }
  bool is_partial(int mesh_axis) const;
  int tensor_axis_of(int mesh_axis) const;  // the tensor axis that it cuts; -1
  bool is_replicated() const;               // copies everywhere
  // The same with other parts of it.
  const Sharding* without_partial() const { return get(mesh_, axes_); }
  const Sharding* with_partial(const Axes& partial, loops::ReduceOp combine) const {
    return get(mesh_, axes_, partial, combine);
  }

  // What the process at `position` has of a tensor of this shape.
  Box box(int position, const Shape& shape) const;
  Shape local_shape(int position, const Shape& shape) const;

 private:
  Sharding() = default;
  const Mesh* mesh_ = nullptr;
  AxisLists axes_;
  Axes partial_;
  loops::ReduceOp combine_ = loops::ReduceOp::Sum;
};

std::string_view combine_name(loops::ReduceOp combine);    // "sum"
loops::ReduceOp combine_from_name(std::string_view name);  // ValueError for another text
std::string to_string(const Sharding& sharding);           // "[dp, mp+cp, -], partial sum over tp"

}  // namespace morel::dist
