// Distributed tensors: a Tensor of the whole's shape and dtype whose data are Shards. Everything that takes a Tensor
// takes them; plain tensors in the same call count as copies on all processes. All processes of the mesh make the same
// calls in the same order.
#pragma once

#include <vector>

#include "morel/dist/redistribute.h"
#include "morel/ops/opdef.h"

namespace morel::dist {

class Shards final : public RefCounted {
 public:
  Shards(const Sharding* sharding, std::vector<Tensor> parts, bool copied_view = false)
      : sharding(sharding), parts(std::move(parts)), copied_view(copied_view) {}
  const Sharding* const sharding;
  const std::vector<Tensor> parts;  // at the positions of the mesh that this process stands for
  const bool copied_view;           // would be a view, but had to be moved: must not be changed in place
};

// Null for other tensors.
inline const Shards* shards_of(const Tensor& tensor) { return static_cast<const Shards*>(tensor->shards.get()); }
const Sharding* sharding_of(const Tensor& tensor);  // ValueError for other tensors

// A tensor of `shape` with these parts, which must have the sizes that the sharding gives them.
Tensor from_parts(const Sharding* sharding, const Shape& shape, DType dtype, std::vector<Tensor> parts);
// Of parts of any sizes that fit together: a cut axis is as long as its pieces together.
Shape shape_of_parts(const Sharding* sharding, std::span<const Tensor> parts);
// Of a tensor that every process has: each takes its pieces.
Tensor distribute(const Tensor& full, const Sharding* sharding);
// A call without tensors (zeros, random numbers, ...): every process makes its part of the result, with the same
// numbers for every sharding.
Tensor create(const OpDef& op, std::span<const Value> args, const Sharding* sharding);

// These have gradients.
Tensor redistribute(const Tensor& tensor, const Sharding* sharding);
Tensor full_tensor(const Tensor& tensor);  // plain
std::vector<Tensor> to_parts(const Tensor& tensor);

// What was moved by all processes since the last call of it, in elements; and by how many plans.
struct Traffic {
  int64_t elements = 0, moves = 0;
};
Traffic take_traffic();

}  // namespace morel::dist
