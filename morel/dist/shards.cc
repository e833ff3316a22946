#include "morel/dist/shards.h"

#include "morel/base/error.h"
#include "morel/dist/layer.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/tape.h"

namespace morel::dist {
namespace {

Traffic traffic;

// The tensor of these parts, without checks.
Tensor make(const Sharding* sharding, const Shape& shape, DType dtype, std::vector<Tensor> parts) {
  use_layer();
  Tensor out = Tensor::from_storage(Storage::allocate(0), {shape, contiguous_strides(shape), 0}, dtype);
  out->shards = Ref<RefCounted>(new Shards(sharding, std::move(parts)));
  return out;
}

void check_rank(const Sharding* sharding, size_t rank) {
  MOREL_CHECK(sharding->rank() == rank, Value, "the layout ", to_string(*sharding), " is for tensors of ",
              sharding->rank(), " dimensions, but this one has ", rank);
}

// Results that the tape does not link yet; records `backward` where a gradient flows to the input.
void record_identity(std::string name, const Tensor& input, std::span<Tensor> outs,
                     std::function<Values(std::span<const Value>)> backward) {
  if (grad_depth() > 0 && requires_grad(input.get())) record_function(std::move(name), {&input, 1}, outs, backward);
}

std::vector<Tensor> copies_of_views(std::vector<Tensor> parts, const Shards& source) {
  for (Tensor& part : parts)
    for (const Tensor& old : source.parts)
      if (part->storage == old->storage) part = execute(find_op("clone"), std::array<Value, 1>{part})[0].tensor();
  return parts;
}

}  // namespace

const Sharding* sharding_of(const Tensor& tensor) {
  MOREL_CHECK(tensor->shards, Value, "this tensor is not distributed: ", describe(tensor.dtype(), tensor.shape()));
  return shards_of(tensor)->sharding;
}

Tensor from_parts(const Sharding* sharding, const Shape& shape, DType dtype, std::vector<Tensor> parts) {
  check_rank(sharding, shape.size());
  const std::vector<int>& here = world().positions(sharding->mesh());
  MOREL_CHECK(parts.size() == here.size(), Value, "this process stands for ", here.size(), " parts of the mesh ",
              to_string(sharding->mesh()), ", but got ", parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const Shape wanted = sharding->local_shape(here[i], shape);
    MOREL_CHECK(parts[i].shape() == wanted && parts[i].dtype() == dtype, Value, "the layout ", to_string(*sharding),
                " of ", describe(dtype, shape), " has ", describe(dtype, wanted), " at position ", here[i],
                ", but got ", describe(parts[i].dtype(), parts[i].shape()));
  }
  return make(sharding, shape, dtype, std::move(parts));
}

Shape shape_of_parts(const Sharding* sharding, std::span<const Tensor> parts) {
  MOREL_CHECK(!parts.empty(), Value, "this process has no part of the mesh ", to_string(sharding->mesh()));
  check_rank(sharding, parts[0].shape().size());
  Shape shape = parts[0].shape();
  for (size_t axis = 0; axis < shape.size(); ++axis) shape[axis] *= sharding->mesh().size_along(sharding->axes(axis));
  return shape;
}

Tensor distribute(const Tensor& full, const Sharding* sharding) {
  if (full->shards) return redistribute(full, sharding);
  check_rank(sharding, full.shape().size());
  const Sharding* whole = Sharding::replicated(&sharding->mesh(), sharding->rank());
  std::vector<Tensor> parts(world().positions(sharding->mesh()).size(), full);
  parts = redistribute(plan(whole, sharding, full.shape()), full.shape(), full.dtype(), std::move(parts));
  for (Tensor& part : parts)
    if (part->storage == full->storage) part = execute(find_op("clone"), std::array<Value, 1>{part})[0].tensor();
  Tensor out = make(sharding, full.shape(), full.dtype(), std::move(parts));
  record_identity("distribute", full, {&out, 1}, [](std::span<const Value> cotangents) -> Values {
    const Tensor given = cotangents[0].tensor();
    return {given->shards ? full_tensor(given) : given};
  });
  return out;
}

Tensor redistribute(const Tensor& tensor, const Sharding* sharding) {
  const Shards* shards = shards_of(tensor);
  const Sharding* from = sharding_of(tensor);
  check_rank(sharding, tensor.shape().size());
  const Plan& way = plan(from, sharding, tensor.shape());
  note_traffic(way);
  std::vector<Tensor> parts = redistribute(way, tensor.shape(), tensor.dtype(), shards->parts);
  Tensor out = make(sharding, tensor.shape(), tensor.dtype(), copies_of_views(std::move(parts), *shards));
  record_identity("redistribute", tensor, {&out, 1}, [from](std::span<const Value> cotangents) -> Values {
    const Tensor given = cotangents[0].tensor();
    // Parts of a sum have the cotangent of the sum.
    return {distribute(given, from->without_partial())};
  });
  return out;
}

Tensor full_tensor(const Tensor& tensor) {
  const Sharding* from = sharding_of(tensor);
  const Sharding* whole = Sharding::replicated(&from->mesh(), from->rank());
  const Plan& way = plan(from, whole, tensor.shape());
  note_traffic(way);
  std::vector<Tensor> parts = redistribute(way, tensor.shape(), tensor.dtype(), shards_of(tensor)->parts);
  MOREL_CHECK(!parts.empty(), Value, "this process has no part of the mesh ", to_string(from->mesh()));
  Tensor out = copies_of_views(std::move(parts), *shards_of(tensor))[0];
  record_identity("full_tensor", tensor, {&out, 1}, [from](std::span<const Value> cotangents) -> Values {
    return {distribute(cotangents[0].tensor(), from->without_partial())};
  });
  return out;
}

std::vector<Tensor> to_parts(const Tensor& tensor) {
  const Sharding* from = sharding_of(tensor);
  const Shape shape = tensor.shape();
  const DType dtype = tensor.dtype();
  std::vector<Tensor> outs;
  for (const Tensor& part : shards_of(tensor)->parts) outs.push_back(part.with_layout(part->layout));
  const auto backward = [from, shape, dtype](std::span<const Value> cotangents) -> Values {
    const Sharding* sharding = from->without_partial();
    const std::vector<int>& here = world().positions(sharding->mesh());
    std::vector<Tensor> parts;
    for (size_t i = 0; i < here.size(); ++i)
      parts.push_back(cotangents[i].is_none() ? Tensor::full(sharding->local_shape(here[i], shape), dtype, 0)
                                              : cotangents[i].tensor());
    return {from_parts(sharding, shape, dtype, std::move(parts))};
  };
  record_identity("to_local", tensor, outs, backward);
  return outs;
}

void note_traffic(const Plan& plan) {
  traffic.elements += plan.moved();
  traffic.moves += plan.moved() > 0;
}
Traffic take_traffic() { return std::exchange(traffic, {}); }

Tensor make_distributed(const Sharding* sharding, const Type& type, std::vector<Tensor> parts) {
  return make(sharding, type.shape, type.dtype, std::move(parts));
}

}  // namespace morel::dist
