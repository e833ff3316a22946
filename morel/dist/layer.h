// The layer of calls on distributed tensors (ExecutionLayer of runtime/eager.h).
#pragma once

#include "morel/dist/call.h"
#include "morel/dist/shards.h"

namespace morel::dist {

// From now on calls on distributed tensors are understood; at once when there was one before.
void use_layer();
// A distributed tensor of parts that have the right sizes.
Tensor make_distributed(const Sharding* sharding, const Type& type, std::vector<Tensor> parts);
void note_traffic(const Plan& plan);
// The `rng` argument of a call that makes the part `box` of a random tensor of shape `whole` (kernels/table_random.cc).
Value random_part(const Value& rng, const Box& box, const Shape& whole);

// What happened on this thread since the last time of asking: for tests and messages.
struct CallNotes {
  int64_t calls = 0;
  bool cuts_reduction = false;  // a call that sums was cut: it may add in another order
  bool gathers = false;         // pieces had to be put together
  bool underived = false;       // an entry says nothing about its axes
};
CallNotes take_notes();

}  // namespace morel::dist
