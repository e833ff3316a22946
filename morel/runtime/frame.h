// Frame: the tensors of an instance, bound to its steps, for one run at a time. A run moves the arena to memory that it
// takes from the allocator and gives back; nothing else is allocated but what outlives it.
#pragma once

#include "morel/runtime/instance.h"
#include "morel/tensor/allocator.h"

namespace morel {

class Frame {
 public:
  explicit Frame(const Instance& instance);
  Values run(std::span<const Value> parameters);

 private:
  struct Number {  // an argument that is a number, read from a tensor
    size_t arg;
    int32_t place;
    uint32_t kinds;
  };
  struct Call {
    Args args;
    SmallVector<Tensor, 2> outs;
    SmallVector<Number, 1> numbers;
    // Of the loop that follows a kernel.
    Value::List inputs;
    SmallVector<Tensor, 2> results;
  };

  void bind_epilogue(const Step& step, const BoundStep& bound_step, Call& call) const;
  Value bound(const Operand& operand, const Value& constant) const;
  Value value_of(int32_t place, std::span<const Value> parameters) const;
  Value unbound(const Operand& operand, const Value& constant, std::span<const Value> parameters) const;
  void attach(const Buffer& buffer, const Ref<Storage>& storage, int64_t offset);
  void detach(const Buffer& buffer);
  void start(std::span<const Value> parameters);
  void finish();
  void mark(const std::vector<int32_t>& buffers, void (*change)(const void*, size_t)) const;
  void run_step(size_t idx, std::span<const Value> parameters);
  void run_kernel(size_t idx, const Epilogue* epilogue = nullptr);
  void run_in_workspace(size_t idx, const Epilogue* epilogue);
  void run_with_epilogue(size_t idx);
  void run_fused(const Step& step, Call& call);
  void run_one_by_one(const Step& step, std::span<const Value> inputs, std::span<Tensor> outs);
  void run_control(size_t idx, std::span<const Value> parameters);

  const Instance& instance_;
  const Executor& executor_;
  Ref<Storage> arena_;
  ArenaBlock memory_;            // where the arena lies during a run
  std::vector<Tensor> tensors_;  // of the places
  std::vector<Value> given_;     // by control flow, for its slots
  std::vector<Call> calls_;      // of the steps
  std::vector<size_t> found_;    // of a trial: the bytes of temporaries of the steps
  int64_t arena_users_ = 0;      // references to arena_ while nothing escapes
};

}  // namespace morel
