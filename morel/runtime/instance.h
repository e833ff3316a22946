// Instance: an executor's steps for one signature. Everything that depends on the sizes of the parameters is found here
// once: evaluated arguments, the layouts of all values and where they lie. Frames (runtime/frame.h) run it.
#pragma once

#include <atomic>
#include <mutex>

#include "morel/runtime/step.h"
#include "morel/tensor/memory_plan.h"

namespace morel {

class Frame;

// What the memory of a value belongs to.
enum class Home : uint8_t {
  Parameter,  // the caller's tensor
  Capture,    // the captured tensor
  Arena,      // planned
  Own,        // allocated by each run: it outlives the run, or control flow may keep it
  Control,    // whatever control flow gave
};

// Memory that one value and its views share.
struct Buffer {
  Home home = Home::Arena;
  int32_t self = -1;                 // the place of the value itself
  int32_t index = 0;                 // of the parameter or capture
  size_t bytes = 0;                  // Arena and Own
  int32_t first = 0;                 // step that makes it
  int32_t last = 0;                  // last step that reads it
  size_t offset = 0;                 // in the arena
  std::vector<int32_t> places = {};  // that a frame has tensors for: all but captures themselves
};

// A value that steps read or write: a slot, or (behind those) the contiguous copy that a view was made of.
struct Place {
  Layout layout = {};  // its offset counts from the start of the buffer
  DType dtype = DType::Float32;
  int32_t buffer = -1;   // -1: only control flow reads it, so it may be anything
  int32_t same_as = -1;  // the place that an in-place operator gave back
};

enum class Action : uint8_t { None, Copy, Call, InPlace, Fused, Epilogue, Control };

// What depends on the signature of a step.
struct BoundStep {
  Action action = Action::None;
  Args args;                          // constants
  Types types;                        // of the results
  std::vector<int32_t> outs;          // places that it writes, or gets from control flow
  std::vector<int32_t> started;       // Own buffers that begin here
  std::vector<int32_t> finished;      // Own and Control buffers that nobody reads later
  std::vector<int32_t> begun, ended;  // Arena buffers that are used from here on, and that are not any more
  std::vector<int32_t> kernel_outs;   // Epilogue: places that the kernel writes
  int32_t product = -1;               // and where the loop reads its result
  // Temporaries of the kernel: their place in the arena.
  size_t workspace = 0, workspace_bytes = 0;
};

// An argument as far as it does not change between runs of an instance.
Value evaluate(const Operand& operand, SymbolValues symbols);

class Instance {
 public:
  // symbols: the values of the whole graph's sizes; without them they are found in its parameters. workspace: bytes of
  // temporaries of each step, as a first run has found them; without it this is a trial.
  Instance(const Executor& executor, std::span<const Value> parameters, SymbolValues symbols,
           std::span<const size_t> workspace = {});
  ~Instance();
  bool fits(std::span<const Value> parameters, SymbolValues symbols) const;
  Values run(std::span<const Value> parameters) const;

  const Executor& executor() const { return executor_; }
  SymbolValues symbols() const { return symbols_; }
  const std::vector<BoundStep>& steps() const { return steps_; }
  const std::vector<Place>& places() const { return places_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  // Those that are not in the arena, and that a run binds when it starts.
  const std::vector<int32_t>& loose() const { return loose_; }
  const std::vector<int32_t>& outside() const { return outside_; }
  bool is_trial() const { return is_trial_.load(std::memory_order_relaxed); }
  // What a run has found. Thread-safe.
  std::vector<size_t> workspace() const;
  void note_workspace(std::span<const size_t> bytes) const;
  size_t arena_bytes() const { return arena_bytes_; }
  size_t lower_bound() const { return lower_bound_; }  // of the arena: see MemoryPlan

 private:
  friend class InstanceBuilder;
  std::unique_ptr<Frame> take_frame() const;
  void give_back(std::unique_ptr<Frame> frame) const;

  const Executor& executor_;
  Numbers symbols_;  // values of the whole graph's sizes
  std::vector<BoundStep> steps_;
  std::vector<Place> places_;
  std::vector<Buffer> buffers_;
  std::vector<int32_t> loose_, outside_;
  size_t arena_bytes_ = 0, lower_bound_ = 0;
  mutable std::atomic<bool> is_trial_;  // until a run has found no temporaries
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Frame>> frames_;  // idle ones
  mutable std::vector<size_t> workspace_;
};

}  // namespace morel
