// How a kernel of the table is called: arguments in the order of the operator's schema (defaults filled in), outputs
// already allocated (contiguous) with the inferred types. Kernels read arguments by position, since they know nothing
// of the registry; so the on-device runtime can link them alone.
#pragma once

#include <span>

#include "morel/kernels/epilogue.h"
#include "morel/tensor/value.h"

namespace morel {

// What a kernel made of constant arguments before its first call (KernelEntry::prepare): packed weights, say. It holds
// for calls whose other arguments have the same types and layouts.
class Prepared {
 public:
  virtual ~Prepared() = default;
};

struct KernelCall {
  std::span<const Value> args;
  std::span<Tensor> outs;
  const Epilogue* epilogue = nullptr;  // only for operators that say so (kEpilogue)
  const Prepared* prepared = nullptr;  // what this kernel's `prepare` returned

  bool has(size_t idx) const { return !args[idx].is_none(); }
  Tensor tensor(size_t idx) const { return args[idx].tensor(); }
  // Argument idx as a contiguous tensor (a copy when it is not).
  Tensor contiguous(size_t idx) const;
  // Same, converted to `dtype`.
  Tensor contiguous(size_t idx, DType dtype) const;
  int64_t integer(size_t idx) const { return args[idx].integer(); }
  double number(size_t idx) const { return args[idx].number(); }
  bool flag(size_t idx) const { return args[idx].boolean(); }
  const Ints& ints(size_t idx) const { return args[idx].ints(); }
  const std::string& str(size_t idx) const { return args[idx].str(); }
};

using KernelFn = void (*)(const KernelCall& call);

}  // namespace morel
