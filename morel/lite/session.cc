#include "morel/lite/session.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "morel/kernels/tensor_view.h"
#include "morel/lite/step.h"
#include "morel/tensor/allocator.h"
#include "morel/tensor/memory_plan.h"

namespace morel::lite {
namespace {

Ref<Storage> storage_over(const void* data, size_t bytes) {
  return make_ref<Storage>(
      const_cast<void*>(data), bytes, Device{}, [](void*, size_t, void*) {}, nullptr);
}

}  // namespace

struct Session::Part {
  const Function* function = nullptr;
  std::vector<Tensor> tensors;                    // of the values
  std::vector<std::unique_ptr<BoundStep>> steps;  // null for those with bodies
};

// Finds places in the arena and makes tensors and steps, function by function.
class Session::Binder {
 public:
  Binder(Session& session, Bytes weights, std::span<const int64_t> symbols)
      : session_(session), plan_(session.plan_), weights_(weights), sizes_(plan_, symbols) {
    std::string why;
    MOREL_CHECK(serves(plan_, sizes_, symbols, why), Value, "the model cannot be resized so: ", why);
    const std::vector<int64_t> planned = planned_symbols(plan_);
    is_planned_ = std::equal(symbols.begin(), symbols.end(), planned.begin(), planned.end());
    offsets_.resize(plan_.functions.size());
    arena_bytes_.resize(plan_.functions.size());
    for (size_t i = plan_.functions.size(); i-- > 0;) place(i);
    session_.arena_bytes_ = static_cast<size_t>(arena_bytes_[0]);
    arena_ = Storage::allocate(session_.arena_bytes_);
    session_.parts_.resize(plan_.functions.size());
    bind(0, 0, {});
    const Part& model = session_.parts_[0];
    for (const int32_t input : model.function->inputs)
      session_.inputs_.push_back(model.tensors[static_cast<size_t>(input)]);
    for (const int32_t output : model.function->outputs)
      session_.outputs_.push_back(model.tensors[static_cast<size_t>(output)]);
  }

 private:
  // Offsets of a function's buffers: those of the file, or planned again for other sizes.
  void place(size_t idx) {
    const Function& function = plan_.functions[idx];
    std::vector<int64_t>& offsets = offsets_[idx];
    if (is_planned_) {
      for (const Buffer& buffer : function.buffers) offsets.push_back(buffer.offset);
      arena_bytes_[idx] = function.arena_bytes;
      return check_workspaces(function);
    }
    std::vector<BufferLife> lives;
    for (const Buffer& buffer : function.buffers) {
      const bool planned = buffer.home == Home::Arena;
      const int64_t bytes = planned ? sizes_(buffer.bytes) : 0;
      MOREL_CHECK(bytes >= 0, Value, "a buffer has ", bytes, " bytes");
      lives.push_back({static_cast<size_t>(bytes), buffer.first, buffer.last});
    }
    for (const Step& step : function.steps)
      for (const int32_t body : step.bodies) {
        size_t& bytes = lives[static_cast<size_t>(step.workspace)].bytes;
        bytes = std::max(bytes, static_cast<size_t>(arena_bytes_[static_cast<size_t>(body)]));
      }
    const MemoryPlan plan = plan_memory(lives);
    for (size_t i = 0; i < lives.size(); ++i)
      offsets.push_back(function.buffers[i].home == Home::Arena ? static_cast<int64_t>(plan.offsets[i])
                                                                : function.buffers[i].offset);
    arena_bytes_[idx] = static_cast<int64_t>(plan.arena_bytes);
  }

  void check_workspaces(const Function& function) const {
    for (const Step& step : function.steps)
      for (const int32_t body : step.bodies)
        MOREL_CHECK(sizes_(function.buffers[static_cast<size_t>(step.workspace)].bytes) >=
                        arena_bytes_[static_cast<size_t>(body)],
                    Value, "the arena of a body of '", function.name, "' does not fit");
  }

  // Binds a function whose arena starts at `base` of the whole one; `given` are tensors of the caller.
  void bind(size_t idx, int64_t base, std::span<const Tensor> given) {
    Part& part = session_.parts_[idx];
    const Function& function = plan_.functions[idx];
    part.function = &function;
    for (size_t i = 0; i < function.buffers.size(); ++i) add_storage(function, i, idx == 0, given);
    for (const Value& value : function.values) part.tensors.push_back(tensor_of(function, idx, value, base, given));
    const std::vector<bool> is_read = read_buffers(function);
    const Scope scope{function, part.tensors, sizes_, is_read};
    for (const Step& step : function.steps) {
      if (step.bodies.empty()) {
        part.steps.push_back(bind_named(step, scope));
        continue;
      }
      part.steps.push_back(nullptr);
      const int64_t workspace = base + offsets_[idx][static_cast<size_t>(step.workspace)];
      const std::vector<Tensor> operands = operands_of(step, scope);
      for (const int32_t body : step.bodies) bind(static_cast<size_t>(body), workspace, operands);
      check_results(step, scope);
    }
    storages_.erase(&function);
  }

  static std::unique_ptr<BoundStep> bind_named(const Step& step, const Scope& scope) {
    try {
      return bind_step(step, scope);
    } catch (Error& error) {
      if (!step.place.empty()) error.append("\nin a step made from " + step.place);
      throw;
    }
  }

  // What the bodies of a step take: a loop's state lies where its results do.
  static std::vector<Tensor> operands_of(const Step& step, const Scope& scope) {
    std::vector<Tensor> out;
    for (size_t i = step.kind == StepKind::If ? 1 : 0; i < step.args.size(); ++i)
      out.push_back(scope.at(step.args[i].value));
    if (step.kind != StepKind::While) return out;
    for (size_t i = 0; i < step.outs.size(); ++i) {
      const Tensor& state = scope.at(step.outs[i]);
      MOREL_CHECK(state.shape() == out[i].shape() && state.dtype() == out[i].dtype(), Value, "part ", i,
                  " of a loop's state changes its type");
      out[i] = state;
    }
    return out;
  }

  void check_results(const Step& step, const Scope& scope) const {
    for (const int32_t body : step.bodies) {
      const Part& part = session_.parts_[static_cast<size_t>(body)];
      const bool is_condition = step.kind == StepKind::While && body == step.bodies[0];
      for (size_t i = 0; i < part.function->outputs.size(); ++i) {
        const Tensor& result = part.tensors[static_cast<size_t>(part.function->outputs[i])];
        const bool fits = is_condition ? result.size() == 1 && !is_complex(result.dtype())
                                       : result.shape() == scope.at(step.outs[i]).shape() &&
                                             result.dtype() == scope.at(step.outs[i]).dtype();
        MOREL_CHECK(fits, Value, "result ", i, " of '", part.function->name, "' is ",
                    describe(result.dtype(), result.shape()));
      }
    }
    if (step.kind != StepKind::If) return;
    const Tensor& condition = scope.at(step.args[0].value);
    MOREL_CHECK(condition.size() == 1 && !is_complex(condition.dtype()), Value, "a condition is ",
                describe(condition.dtype(), condition.shape()));
  }

  static std::vector<bool> read_buffers(const Function& function) {
    std::vector<bool> out(function.buffers.size());
    const auto read = [&](int32_t value) {
      out[static_cast<size_t>(function.values[static_cast<size_t>(value)].buffer)] = true;
    };
    for (const Step& step : function.steps)
      for (const Arg& arg : step.args) for_each_value(arg, read);
    for (const int32_t output : function.outputs) read(output);
    return out;
  }

  // Storages outside of the arena.
  void add_storage(const Function& function, size_t idx, bool is_model, std::span<const Tensor> given) {
    const Buffer& buffer = function.buffers[idx];
    const size_t bytes = static_cast<size_t>(sizes_(buffer.bytes));
    std::vector<Ref<Storage>>& storages = storages_[&function];
    switch (buffer.home) {
      case Home::Arena: storages.push_back(arena_); return;
      case Home::Constant: storages.push_back(storage_over(weights_.data() + buffer.offset, bytes)); return;
      case Home::Variable:
        storages.push_back(Storage::allocate(bytes));
        if (bytes) std::memcpy(storages.back()->data(), weights_.data() + buffer.offset, bytes);
        return;
      case Home::Input: break;
    }
    storages.push_back(is_model ? Storage::allocate(bytes) : given[static_cast<size_t>(buffer.index)]->storage);
  }

  Tensor tensor_of(const Function& function, size_t idx, const Value& value, int64_t base,
                   std::span<const Tensor> given) {
    const size_t at = static_cast<size_t>(value.buffer);
    const Buffer& buffer = function.buffers[at];
    Layout layout = layout_of(value, sizes_, sizes_(buffer.bytes));
    const int64_t item = size_of(value.dtype);
    if (buffer.home == Home::Arena) {
      layout.offset += (base + offsets_[idx][at]) / item;
    } else if (buffer.home == Home::Input && idx > 0) {
      const Tensor& outer = given[static_cast<size_t>(buffer.index)];
      MOREL_CHECK(outer.dtype() == value.dtype && sizes_(buffer.bytes) <= bytes_of(outer), Value, "input ",
                  buffer.index, " of '", function.name, "' is ", describe(outer.dtype(), outer.shape()));
      layout.offset += outer->layout.offset;
    }
    return Tensor::from_storage(storages_[&function][at], std::move(layout), value.dtype);
  }

  // From the first element on; of strides that are not negative.
  static int64_t bytes_of(const Tensor& tensor) {
    int64_t last = tensor.size() ? 1 : 0;
    for (int64_t i = 0; i < tensor.rank() && last; ++i)
      last += (tensor.dim(i) - 1) * std::max<int64_t>(tensor.strides()[static_cast<size_t>(i)], 0);
    return last * size_of(tensor.dtype());
  }

  Session& session_;
  const Plan& plan_;
  Bytes weights_;
  SizeValues sizes_;
  bool is_planned_ = false;
  std::vector<std::vector<int64_t>> offsets_;  // of the functions' buffers
  std::vector<int64_t> arena_bytes_;
  Ref<Storage> arena_;
  std::unordered_map<const Function*, std::vector<Ref<Storage>>> storages_;
};

Session::Session(const Plan& plan, Bytes weights, std::vector<int64_t> symbols) : plan_(plan) {
  Binder(*this, weights, symbols);
}
Session::~Session() = default;

void Session::run() {
  size_t demand = 0;
  {
    const Workspace temporaries(workspace_ ? workspace_->data() : nullptr, workspace_ ? workspace_->bytes() : 0);
    run(parts_[0]);
    demand = temporaries.demand();
  }
  if (demand > (workspace_ ? workspace_->bytes() : 0)) workspace_ = Storage::allocate(demand);
}

void Session::run(const Part& part) {
  for (size_t i = 0; i < part.steps.size(); ++i) {
    const Step& step = part.function->steps[i];
    try {
      if (part.steps[i]) part.steps[i]->run();
      else if (step.kind == StepKind::If) run_if(part, i);
      else run_while(part, i);
    } catch (Error& error) {
      const std::string place = "\nin a step made from " + step.place;
      if (!step.place.empty() && error.message().find(place) == std::string::npos) error.append(place);
      throw;
    }
  }
}

void Session::run_if(const Part& part, size_t idx) {
  const Step& step = part.function->steps[idx];
  const bool condition = is_true(part.tensors[static_cast<size_t>(step.args[0].value)]);
  const Part& body = parts_[static_cast<size_t>(step.bodies[condition ? 0 : 1])];
  run(body);
  for (size_t i = 0; i < step.outs.size(); ++i)
    kernels::copy_tensor(part.tensors[static_cast<size_t>(step.outs[i])],
                         body.tensors[static_cast<size_t>(body.function->outputs[i])]);
}

// The results of a body do not lie where its state does (the converter sees to it), so they are copied one by one.
void Session::run_while(const Part& part, size_t idx) {
  const Step& step = part.function->steps[idx];
  const Part &condition = parts_[static_cast<size_t>(step.bodies[0])],
             &body = parts_[static_cast<size_t>(step.bodies[1])];
  const auto state = [&](size_t i) { return part.tensors[static_cast<size_t>(step.outs[i])]; };
  for (size_t i = 0; i < step.outs.size(); ++i)
    kernels::copy_tensor(state(i), part.tensors[static_cast<size_t>(step.args[i].value)]);
  for (;;) {
    run(condition);
    if (!is_true(condition.tensors[static_cast<size_t>(condition.function->outputs[0])])) return;
    run(body);
    for (size_t i = 0; i < step.outs.size(); ++i)
      kernels::copy_tensor(state(i), body.tensors[static_cast<size_t>(body.function->outputs[i])]);
  }
}

}  // namespace morel::lite
