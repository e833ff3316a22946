// That all processes of a group make the same collective call, of tensors that go together. It is told before anything
// of the tensors is sent, so that every process raises where they do not, and none waits for another or reads what is
// not there.
#pragma once

#include <string_view>
#include <vector>

#include "morel/tensor/tensor.h"

namespace morel::dist {

// ValueError in a simulated world, in which there are no other processes to call.
void check_processes();

// ValueError at every process of `ranks`, with what each calls, unless all give the same. `detail`: what else must be
// the same, such as the source of a broadcast.
void agree(std::string_view call, const Tensor& tensor, int64_t detail, const std::vector<int>& ranks);

// Of what each process sends to each other one and expects from it, in elements.
struct Parcels {
  std::vector<int64_t> sent, expected;  // by the place in the group
  DType dtype = DType::Float32;
};
void agree(std::string_view call, const Parcels& own, const std::vector<int>& ranks);
// The same between this process and each one that it sends to or receives from; others need not call.
void agree_in_pairs(std::string_view call, const Parcels& own, const std::vector<int>& ranks);

}  // namespace morel::dist
