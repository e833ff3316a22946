// Session: a plan bound to memory and kernels for one set of sizes, ready to run again and again.
#pragma once

#include <memory>
#include <vector>

#include "morel/base/file.h"
#include "morel/lite/plan.h"
#include "morel/tensor/tensor.h"

namespace morel::lite {

class Session {
 public:
  // `weights` and `plan` stay where they are. ValueError where the plan does not serve these symbols' values.
  Session(const Plan& plan, Bytes weights, std::vector<int64_t> symbols);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void run();
  // The session's own memory: inputs are written and outputs read there. Outputs hold until the next run.
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  size_t arena_bytes() const { return arena_bytes_; }

 private:
  struct Part;  // a function
  class Binder;
  void run(const Part& part);
  void run_if(const Part& part, size_t idx);
  void run_while(const Part& part, size_t idx);

  const Plan& plan_;
  std::vector<Part> parts_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<Ref<Storage>> variables_;
  size_t arena_bytes_ = 0;
  Ref<Storage> workspace_;  // for temporaries of kernels, as much as a run needed
};

}  // namespace morel::lite
