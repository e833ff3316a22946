// Groups of processes by name, and the collective operations of scripts that move whole tensors themselves (MindSpore's
// communication.comm_func, mint.distributed). All are made of World::exchange; parts are combined in the order of
// ranks, so the bits of a sum do not depend on the transport.
#pragma once

#include <string>
#include <vector>

#include "morel/dist/redistribute.h"

namespace morel::dist {

struct ClusterOptions {
  int rank = 0, size = 1;
  std::string scheduler_host;
  int scheduler_port = 0;
  std::string host;  // of this machine, as others reach it
  int64_t timeout_ms = 0;
};
// Connects this process with the others; from then on world() is theirs. All draw the same random numbers afterwards:
// those of rank 0.
void connect(const ClusterOptions& options);
void disconnect();

// Ranks of a group in the order of the group; the world's for its own names. ValueError for unknown ones.
const std::vector<int>& group_ranks(const std::string& name);
void add_group(const std::string& name, std::vector<int> ranks);
void remove_group(const std::string& name);
bool has_group(const std::string& name);

// -- collectives over `ranks`, of which this process is one; ValueError at all of them where the calls do not agree
// (agreement.h) --
Tensor all_reduce(const Tensor& tensor, loops::ReduceOp combine, const std::vector<int>& ranks);
// Along axis 0.
Tensor all_gather(const Tensor& tensor, const std::vector<int>& ranks);
Tensor reduce_scatter(const Tensor& tensor, loops::ReduceOp combine, const std::vector<int>& ranks);
Tensor broadcast(const Tensor& tensor, int source, const std::vector<int>& ranks);
// Tensor i goes to process i of the group; `shapes` of what comes from each. `in_pairs`: processes that neither send
// nor receive anything need not call.
std::vector<Tensor> all_to_all(const std::vector<Tensor>& tensors, const std::vector<Shape>& shapes, DType dtype,
                               const std::vector<int>& ranks, bool in_pairs = false);
void barrier(const std::vector<int>& ranks);
void send(const Tensor& tensor, int rank);
Tensor receive(const Shape& shape, DType dtype, int rank);

}  // namespace morel::dist
