// Trials: calls that were recorded on plain tensors, made again in a simulated world with every way to lay out their
// operands, and compared with what the plain call gave. This is how the tests know that no rule is wrong.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "morel/dist/sharding.h"
#include "morel/ops/opdef.h"

namespace morel::dist {

struct RecordedCall {
  const OpDef* op;
  Args args;    // as they were before
  Values outs;  // of an operator in place, argument 0 as it was afterwards
};
// The calls that `fn` makes: composites as such, or the calls that they are made of.
std::vector<RecordedCall> record_calls(const std::function<void()>& fn, bool of_composites);

struct Trial {
  int64_t cases = 0;
  int64_t exact = 0;      // cases in which nothing that sums is cut: equal bit for bit
  int64_t gathering = 0;  // cases in which pieces had to be put together
  bool derived = true;    // every entry that took part says how its axes go
  std::vector<std::string> failures;
};
// All layouts of a tensor of `rank` axes: copies, cut along any axes in any order, parts of a sum.
std::vector<const Sharding*> all_shardings(const Mesh* mesh, size_t rank, bool with_parts);
// Tries the call with all combinations of layouts of its operands, or `limit` of them chosen at random. The world must
// have the mesh, all of it in this process.
Trial try_shardings(const RecordedCall& call, const Mesh* mesh, int64_t limit);

}  // namespace morel::dist
