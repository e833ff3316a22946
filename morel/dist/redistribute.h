// Redistribution: how a tensor gets from one sharding to another. A plan has at most three steps: parts are combined
// (reduce-scatter, or all-reduce), pieces move (all-gather, all-to-all, or a slice of what is there), and parts are
// made (a value on one process, zeros on the others). Every process receives what it lacks and nothing else, whatever
// the order of mesh axes and however uneven the pieces, so no step through a larger tensor is needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "morel/dist/sharding.h"
#include "morel/dist/world.h"
#include "morel/tensor/tensor.h"

namespace morel::dist {

// What position `to` gets from position `from`, in indices of the whole tensor.
struct Transfer {
  int from, to;
  Box box;
};

struct Step {
  const Sharding* source;
  const Sharding* target;
  std::optional<loops::ReduceOp>
      combine;  // the transfers to one position cover the same box and are combined, in order
  std::vector<std::vector<Transfer>> transfers;  // for each receiving position; none: what combines to nothing
  int64_t moved = 0;                             // elements that go from one process to another
  std::string_view name() const;                 // "all_gather"
};

struct Plan {
  std::vector<Step> steps;
  int64_t moved() const;
};

// Kept for ever once made.
const Plan& plan(const Sharding* from, const Sharding* to, const Shape& shape);
std::string to_string(const Plan& plan);  // "reduce_scatter 24, all_gather 16"

// Runs it: the parts at the positions that this process stands for, in and out. A part may be a view of what was given.
std::vector<Tensor> redistribute(const Plan& plan, const Shape& shape, DType dtype, std::vector<Tensor> parts);

// a combined with b, in the dtype in which halves are added.
Tensor combined(loops::ReduceOp combine, const Tensor& a, const Tensor& b);
// What nothing combines to: 0 of sums, the smallest number of maxima.
Tensor identities(const Shape& shape, DType dtype, loops::ReduceOp combine);
// The part of `tensor` within `box`, where it begins at `start` of the whole array. A view.
Tensor part_of(const Tensor& tensor, const Numbers& start, const Box& box);

}  // namespace morel::dist
