#include "morel/dist/process_group.h"

#include <dlfcn.h>

#include <map>
#include <numeric>

#include "morel/base/error.h"
#include "morel/dist/agreement.h"
#include "morel/dist/gloo/gloo_world.h"
#include "morel/runtime/eager.h"
#include "morel/tensor/generator.h"

namespace morel::dist {

using loops::ReduceOp;

namespace {

GlooEntry gloo_entry() {
  Dl_info self;
  MOREL_ASSERT(dladdr(reinterpret_cast<void*>(&connect), &self) != 0 && self.dli_fname);
  std::string path(self.dli_fname);
  path.replace(path.rfind('/') + 1, std::string::npos, "libmorel_gloo.so");
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  MOREL_CHECK(library, NotImplemented, "several processes need libmorel_gloo.so, which cannot be opened: ", dlerror());
  const auto entry = reinterpret_cast<GlooEntry>(dlsym(library, gloo_symbol));
  MOREL_ASSERT(entry);
  return entry;
}

std::map<std::string, std::vector<int>>& groups() {
  static auto& all = *new std::map<std::string, std::vector<int>>;
  return all;
}
constexpr std::string_view world_names[] = {"hccl_world_group", "nccl_world_group", "mccl_world_group",
                                            "gloo_world_group"};

// The tensors at `ranks` as one distributed along a mesh of one axis.
const Mesh* line(const std::vector<int>& ranks) {
  check_processes();
  return Mesh::get({static_cast<int64_t>(ranks.size())}, {"group"}, ranks);
}

Tensor moved(const Sharding* from, const Sharding* to, const Shape& shape, const Tensor& part) {
  std::vector<Tensor> out = redistribute(plan(from, to, shape), shape, part.dtype(), {part});
  MOREL_CHECK(!out.empty(), Value, "this process is not in the group");
  return out[0].get() == part.get()
             ? execute(find_op("clone"), {&static_cast<const Value&>(Value(part)), 1})[0].tensor()
             : contiguous(out[0]);
}

AxisLists first_axis(size_t rank) {
  AxisLists lists(rank);
  lists[0] = {0};
  return lists;
}

Message outgoing(const Tensor& tensor, int rank) {
  return {rank, tensor.data(), static_cast<size_t>(tensor.size() * size_of(tensor.dtype()))};
}

}  // namespace

void connect(const ClusterOptions& options) {
  MOREL_CHECK(options.rank >= 0 && options.rank < options.size, Value, "the rank ", options.rank, " is not one of ",
              options.size, " processes");
  if (options.size > 1) {
    const std::chrono::milliseconds timeout(options.timeout_ms);
    GlooOptions gloo{options.rank, options.size, options.host, nullptr, timeout};
    gloo.store = std::make_shared<StoreClient>(options.scheduler_host, options.scheduler_port, timeout);
    set_world(std::unique_ptr<World>(gloo_entry()(gloo)));
  }
  const Tensor state = Tensor::empty({2}, DType::Int64);
  state.as<int64_t>()[0] = default_generator().seed();
  state.as<int64_t>()[1] = default_generator().offset();
  const Tensor common = broadcast(state, 0, group_ranks(std::string(world_names[0])));
  default_generator().set_seed(common.as<int64_t>()[0]);
  default_generator().set_offset(common.as<int64_t>()[1]);
}

void disconnect() {
  groups().clear();
  set_world(nullptr);
}

bool has_group(const std::string& name) {
  return groups().count(name) ||
         std::find(std::begin(world_names), std::end(world_names), name) != std::end(world_names);
}

const std::vector<int>& group_ranks(const std::string& name) {
  MOREL_CHECK(has_group(name), Value, "there is no group '", name, "'; create_group makes one");
  if (const auto found = groups().find(name); found != groups().end()) return found->second;
  std::vector<int>& world_ranks = groups()[name];
  world_ranks.resize(static_cast<size_t>(world().size()));
  std::iota(world_ranks.begin(), world_ranks.end(), 0);
  return world_ranks;
}

void add_group(const std::string& name, std::vector<int> ranks) {
  MOREL_CHECK(!has_group(name), Value, "the group '", name, "' exists already");
  for (const int rank : ranks)
    MOREL_CHECK(rank >= 0 && rank < world().size(), Value, "rank ", rank, " of the group '", name, "' is not one of ",
                world().size(), " processes");
  line(ranks);  // its checks
  groups()[name] = std::move(ranks);
}

void remove_group(const std::string& name) {
  MOREL_CHECK(groups().erase(name), Value, "there is no group '", name, "' to destroy");
}

Tensor all_reduce(const Tensor& tensor, ReduceOp combine, const std::vector<int>& ranks) {
  const Mesh* mesh = line(ranks);
  agree("all_reduce", tensor, static_cast<int64_t>(combine), ranks);
  const Sharding* whole = Sharding::replicated(mesh, tensor.shape().size());
  return moved(whole->with_partial({0}, combine), whole, tensor.shape(), tensor);
}

Tensor all_gather(const Tensor& tensor, const std::vector<int>& ranks) {
  MOREL_CHECK(tensor.rank() > 0, Value, "a tensor without dimensions cannot be gathered along one; reshape it to (1,)");
  Shape shape = tensor.shape();
  shape[0] *= static_cast<int64_t>(ranks.size());
  const Sharding* cut = Sharding::get(line(ranks), first_axis(shape.size()));
  agree("all_gather", tensor, 0, ranks);
  return moved(cut, Sharding::replicated(line(ranks), shape.size()), shape, tensor);
}

Tensor reduce_scatter(const Tensor& tensor, ReduceOp combine, const std::vector<int>& ranks) {
  MOREL_CHECK(tensor.rank() > 0 && tensor.dim(0) % static_cast<int64_t>(ranks.size()) == 0, Value,
              "reduce_scatter cuts axis 0 into ", ranks.size(), " equal pieces, but the tensor is ",
              describe(tensor.dtype(), tensor.shape()));
  const Sharding* cut = Sharding::get(line(ranks), first_axis(tensor.shape().size()));
  const Sharding* whole = Sharding::replicated(line(ranks), tensor.shape().size());
  agree("reduce_scatter", tensor, static_cast<int64_t>(combine), ranks);
  return moved(whole->with_partial({0}, combine), cut, tensor.shape(), tensor);
}

Tensor broadcast(const Tensor& tensor, int source, const std::vector<int>& ranks) {
  MOREL_CHECK(std::find(ranks.begin(), ranks.end(), source) != ranks.end(), Value, "rank ", source,
              " is not in the group");
  agree("broadcast", tensor, source, ranks);
  std::vector<Message> sends, receives;
  const Tensor data = contiguous(tensor);
  if (world().rank() == source) {
    for (const int rank : ranks)
      if (rank != source) sends.push_back(outgoing(data, rank));
    world().exchange(sends, receives);
    return data;
  }
  const Tensor out = Tensor::empty(tensor.shape(), tensor.dtype());
  receives.push_back(outgoing(out, source));
  world().exchange(sends, receives);
  return out;
}

std::vector<Tensor> all_to_all(const std::vector<Tensor>& tensors, const std::vector<Shape>& shapes, DType dtype,
                               const std::vector<int>& ranks, bool in_pairs) {
  MOREL_CHECK(tensors.size() == ranks.size() && shapes.size() == ranks.size(), Value, "all_to_all in a group of ",
              ranks.size(), " processes takes as many tensors and shapes, but got ", tensors.size(), " and ",
              shapes.size());
  std::vector<Tensor> given, out;
  std::vector<Message> sends, receives;
  Parcels parcels{.sent = {}, .expected = {}, .dtype = dtype};
  for (const Tensor& tensor : tensors) parcels.sent.push_back(tensor.size());
  for (const Shape& shape : shapes) parcels.expected.push_back(num_elements(shape));
  if (in_pairs) agree_in_pairs("batch_isend_irecv", parcels, ranks);
  else agree("all_to_all", parcels, ranks);
  for (size_t i = 0; i < ranks.size(); ++i) {
    given.push_back(contiguous(convert(tensors[i], dtype)));
    out.push_back(ranks[i] == world().rank() ? given[i] : Tensor::empty(shapes[i], dtype));
    if (ranks[i] == world().rank()) continue;
    if (given[i].size() > 0) sends.push_back(outgoing(given[i], ranks[i]));
    if (out[i].size() > 0) receives.push_back(outgoing(out[i], ranks[i]));
  }
  world().exchange(sends, receives);
  return out;
}

void barrier(const std::vector<int>& ranks) { agree("barrier", Tensor::empty({}, DType::Int32), 0, ranks); }

void send(const Tensor& tensor, int rank) {
  MOREL_CHECK(rank != world().rank(), Value, "rank ", rank, " cannot send to itself");
  const Tensor data = contiguous(tensor);
  agree_in_pairs("send", {.sent = {data.size()}, .expected = {0}, .dtype = data.dtype()}, {rank});
  const Message message = outgoing(data, rank);
  world().exchange({&message, 1}, {});
}

Tensor receive(const Shape& shape, DType dtype, int rank) {
  MOREL_CHECK(rank != world().rank(), Value, "rank ", rank, " cannot receive from itself");
  const Tensor out = Tensor::empty(shape, dtype);
  agree_in_pairs("recv", {.sent = {0}, .expected = {out.size()}, .dtype = dtype}, {rank});
  const Message message = outgoing(out, rank);
  world().exchange({}, {&message, 1});
  return out;
}

}  // namespace morel::dist
