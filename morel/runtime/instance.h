// Instance: an executor's steps for one signature. Everything that depends on the sizes of the parameters is found here
// once: types of the slots, evaluated arguments.
#pragma once

#include "morel/runtime/step.h"

namespace morel {

class Instance {
 public:
  Instance(const Executor& executor, std::span<const Value> parameters, SymbolValues symbols);
  bool fits(std::span<const Value> parameters, SymbolValues symbols) const;
  Values run(std::span<const Value> parameters) const;

 private:
  Values call(const Step& step, std::span<const Value> args) const;
  std::span<const Type> types_of(const Step& step) const;

  const Executor& executor_;
  std::vector<Type> signature_;  // of the parameters
  Numbers symbols_;              // values of the whole graph's sizes
  std::vector<Type> types_;      // of the slots
  std::vector<Args> args_;       // of the steps: constants; what lies in slots is filled in by a run
};

}  // namespace morel
