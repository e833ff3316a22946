#include "morel/runtime/frame.h"

#include "morel/base/poison.h"
#include "morel/runtime/control.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/tape.h"

namespace morel {
namespace {

// A tensor where the schema has a number, or the state of random numbers.
Value number_of(const Tensor& tensor, uint32_t kinds) {
  if (kinds & kRng) return Ints{tensor.as<int64_t>()[0], tensor.as<int64_t>()[1]};
  const DType dtype = tensor.dtype();
  if (dtype == DType::Bool) return *tensor.as<bool>();
  if (is_integral(dtype)) return *convert(tensor, DType::Int64).as<int64_t>();
  return *convert(tensor, DType::Float64).as<double>();
}

Ref<Storage> make_arena() {
  return make_ref<Storage>(
      nullptr, 0, Device{}, [](void*, size_t, void*) {}, nullptr);
}

}  // namespace

Frame::Frame(const Instance& instance)
    : instance_(instance), executor_(instance.executor()), arena_(make_arena()), given_(executor_.num_slots()) {
  for (const Place& place : instance.places()) {
    if (place.buffer < 0) {
      tensors_.emplace_back();
    } else if (place.same_as >= 0) {
      tensors_.push_back(tensors_[static_cast<size_t>(place.same_as)]);
    } else {
      const Buffer& buffer = instance.buffers()[static_cast<size_t>(place.buffer)];
      if (buffer.home == Home::Capture && static_cast<int32_t>(tensors_.size()) == buffer.self) {
        tensors_.push_back(executor_.captures()[static_cast<size_t>(buffer.index)]->captured);
        continue;
      }
      Layout layout = place.layout;
      const bool planned = buffer.home == Home::Arena;
      if (planned) layout.offset += static_cast<int64_t>(buffer.offset) / size_of(place.dtype);
      tensors_.push_back(Tensor::from_storage(planned ? arena_ : nullptr, std::move(layout), place.dtype));
    }
  }
  for (size_t i = 0; i < executor_.steps().size(); ++i) {
    const Step& step = executor_.steps()[i];
    const BoundStep& bound_step = instance.steps()[i];
    Call& call = calls_.emplace_back();
    if (bound_step.action == Action::None || bound_step.action == Action::Control) continue;
    for (size_t k = 0; k < step.args.size(); ++k) {
      call.args.push_back(bound(step.args[k], bound_step.args[k]));
      if (step.args[k].is_slot() && step.args[k].number_kinds)
        call.numbers.push_back({k, step.args[k].slot, step.args[k].number_kinds});
    }
    if (bound_step.action == Action::InPlace) continue;
    if (bound_step.action == Action::Epilogue) {
      bind_epilogue(step, bound_step, call);
      continue;
    }
    for (const int32_t out : bound_step.outs) call.outs.push_back(tensors_[static_cast<size_t>(out)]);
  }
  arena_users_ = arena_->use_count();
  if (instance.is_trial()) found_.resize(calls_.size());
}

void Frame::bind_epilogue(const Step& step, const BoundStep& bound_step, Call& call) const {
  const Operand& inputs = step.epilogue->inputs;
  call.inputs = bound(inputs, evaluate(inputs, instance_.symbols())).list();
  call.inputs[step.epilogue->product] = tensors_[static_cast<size_t>(bound_step.product)];
  for (const int32_t out : bound_step.kernel_outs) call.outs.push_back(tensors_[static_cast<size_t>(out)]);
  for (size_t k = 0; k + step.epilogue->outputs.size() < bound_step.outs.size(); ++k)
    call.results.push_back(tensors_[static_cast<size_t>(bound_step.outs[k])]);
}

Value Frame::bound(const Operand& operand, const Value& constant) const {
  if (operand.is_slot()) return tensors_[static_cast<size_t>(operand.slot)];
  if (operand.items.empty()) return constant;
  Value::List list;
  for (size_t i = 0; i < operand.items.size(); ++i) list.push_back(bound(operand.items[i], constant.list()[i]));
  return Value(std::move(list));
}

// The value of a place as others may keep it: never one of the frame's tensors.
Value Frame::value_of(int32_t place, std::span<const Value> parameters) const {
  const Place& info = instance_.places()[static_cast<size_t>(place)];
  const size_t idx = static_cast<size_t>(place);
  if (info.buffer < 0) return idx < parameters.size() ? parameters[idx] : given_[idx];
  if (info.same_as >= 0) return value_of(info.same_as, parameters);
  const Buffer& buffer = instance_.buffers()[static_cast<size_t>(info.buffer)];
  MOREL_ASSERT(buffer.home != Home::Arena);
  if (buffer.self == place) {
    if (buffer.home == Home::Parameter) return parameters[static_cast<size_t>(buffer.index)];
    if (buffer.home == Home::Capture) return tensors_[static_cast<size_t>(place)];
    if (buffer.home == Home::Control) return given_[static_cast<size_t>(place)];
  }
  const Tensor& tensor = tensors_[static_cast<size_t>(place)];
  return Tensor::from_storage(tensor->storage, tensor->layout, tensor.dtype());
}

Value Frame::unbound(const Operand& operand, const Value& constant, std::span<const Value> parameters) const {
  if (operand.is_slot()) return value_of(operand.slot, parameters);
  if (operand.items.empty()) return constant;
  Value::List list;
  for (size_t i = 0; i < operand.items.size(); ++i)
    list.push_back(unbound(operand.items[i], constant.list()[i], parameters));
  return Value(std::move(list));
}

// Lets the places of a buffer lie in `storage`, from element `offset` on.
void Frame::attach(const Buffer& buffer, const Ref<Storage>& storage, int64_t offset) {
  for (const int32_t place : buffer.places) {
    TensorImpl* impl = tensors_[static_cast<size_t>(place)].get();
    impl->storage = storage;
    impl->layout.offset = instance_.places()[static_cast<size_t>(place)].layout.offset + offset;
  }
}

void Frame::detach(const Buffer& buffer) {
  for (const int32_t place : buffer.places) tensors_[static_cast<size_t>(place)]->storage = nullptr;
}

// Binds what lies outside of the arena.
void Frame::start(std::span<const Value> parameters) {
  if (instance_.arena_bytes()) {
    memory_ = allocate_arena(instance_.arena_bytes());
    poison(memory_.data, memory_.bytes);
    arena_->move_to(memory_.data);
  }
  for (const int32_t idx : instance_.outside()) {
    const Buffer& buffer = instance_.buffers()[static_cast<size_t>(idx)];
    const size_t at = static_cast<size_t>(buffer.index);
    const TensorImpl* given =
        buffer.home == Home::Parameter ? parameters[at].tensor_impl() : executor_.captures()[at]->captured.get();
    attach(buffer, given->storage, given->layout.offset);
  }
}

void Frame::finish() {
  for (const int32_t idx : instance_.loose()) detach(instance_.buffers()[static_cast<size_t>(idx)]);
  given_.assign(given_.size(), Value());
  deallocate(memory_);
  memory_ = {};
  arena_->move_to(nullptr);
}

[[gnu::noinline]] void Frame::run_fused(const Step& step, Call& call) {
  const Value::List& operands = call.args[1].list();
  const std::span<const Value> inputs(operands.data(), operands.size());
  const std::span<Tensor> outs(call.outs.data(), call.outs.size());
  if (!step.loop->run(inputs, outs)) run_one_by_one(step, inputs, outs);
}

// The operators of a loop by themselves, until its code is there.
void Frame::run_one_by_one(const Step& step, std::span<const Value> inputs, std::span<Tensor> outs) {
  const Values found = step.graphs[0]->run(inputs, instance_.symbols());
  for (size_t i = 0; i < found.size(); ++i) copy_into(outs[i], found[i].tensor());
}

[[gnu::noinline]] void Frame::run_with_epilogue(size_t idx) {
  const Step& step = executor_.steps()[idx];
  Call& call = calls_[idx];
  const std::span<const Value> inputs(call.inputs.data(), call.inputs.size());
  const std::span<Tensor> results(call.results.data(), call.results.size());
  const std::optional<LoopEpilogue> epilogue = step.loop->as_epilogue(inputs, results, step.epilogue->product);
  run_in_workspace(idx, epilogue ? &*epilogue : nullptr);
  if (!epilogue) run_one_by_one(step, inputs, results);
}

void Frame::run_control(size_t idx, std::span<const Value> parameters) {
  const Step& step = executor_.steps()[idx];
  const BoundStep& bound_step = instance_.steps()[idx];
  Args args;
  for (size_t k = 0; k < step.args.size(); ++k) args.push_back(unbound(step.args[k], bound_step.args[k], parameters));
  Values outs = morel::run_control(step, {args.data(), args.size()}, instance_.symbols());
  for (size_t k = 0; k < step.outs.size(); ++k) {
    if (step.outs[k] < 0) continue;
    const size_t slot = static_cast<size_t>(step.outs[k]);
    const int32_t buffer = instance_.places()[slot].buffer;
    if (buffer >= 0) {
      if (!outs[k].tensor().is_contiguous()) outs[k] = contiguous(outs[k].tensor());
      const TensorImpl* impl = outs[k].tensor_impl();
      attach(instance_.buffers()[static_cast<size_t>(buffer)], impl->storage, impl->layout.offset);
    }
    given_[slot] = std::move(outs[k]);
  }
}

[[gnu::noinline]] void Frame::run_kernel(size_t idx, const Epilogue* epilogue) {
  const OpDef& op = *executor_.steps()[idx].op;
  Call& call = calls_[idx];
  const std::span<const Value> args(call.args.data(), call.args.size());
  switch (instance_.steps()[idx].action) {
    case Action::Copy: return copy_into(call.outs[0], args[0].tensor());
    case Action::Call:
    case Action::Epilogue: return execute_into(op, args, {call.outs.data(), call.outs.size()}, epilogue);
    case Action::InPlace: execute_into(op, args, {}); return mark_changed(args[0].tensor());
    default: break;
  }
}

// Not inline: a function that calls itself has no room on the stack for it.
[[gnu::noinline]] void Frame::run_in_workspace(size_t idx, const Epilogue* epilogue) {
  const BoundStep& step = instance_.steps()[idx];
  if (!step.workspace_bytes && !instance_.is_trial()) return run_kernel(idx, epilogue);
  const Workspace workspace(arena_->data() + step.workspace, step.workspace_bytes);
  run_kernel(idx, epilogue);
  if (instance_.is_trial()) found_[idx] = workspace.demand();
}

// Poisons parts of the arena, or makes them usable.
void Frame::mark(const std::vector<int32_t>& buffers, void (*change)(const void*, size_t)) const {
  for (const int32_t idx : buffers) {
    const Buffer& buffer = instance_.buffers()[static_cast<size_t>(idx)];
    change(arena_->data() + buffer.offset, buffer.bytes);
  }
}

void Frame::run_step(size_t idx, std::span<const Value> parameters) {
  const Step& step = executor_.steps()[idx];
  const BoundStep& bound_step = instance_.steps()[idx];
  Call& call = calls_[idx];
  for (const int32_t started : bound_step.started) {
    const Buffer& buffer = instance_.buffers()[static_cast<size_t>(started)];
    attach(buffer, Storage::allocate(buffer.bytes), 0);
  }
  mark(bound_step.begun, unpoison);
  for (const Number& number : call.numbers)
    call.args[number.arg] = number_of(tensors_[static_cast<size_t>(number.place)], number.kinds);
  switch (bound_step.action) {
    case Action::None: break;
    case Action::Control: run_control(idx, parameters); break;
    case Action::Fused: run_fused(step, call); break;
    case Action::Epilogue: run_with_epilogue(idx); break;
    default: bound_step.workspace_bytes || instance_.is_trial() ? run_in_workspace(idx, nullptr) : run_kernel(idx);
  }
  mark(bound_step.ended, poison);
  for (const int32_t finished : bound_step.finished) {
    const Buffer& buffer = instance_.buffers()[static_cast<size_t>(finished)];
    detach(buffer);
    if (buffer.home == Home::Control) given_[static_cast<size_t>(buffer.self)] = Value();
  }
}

Values Frame::run(std::span<const Value> parameters) {
  const GradDepth pause(0);
  struct Finish {
    Frame& frame;
    ~Finish() { frame.finish(); }
  } const finish{*this};
  start(parameters);
  size_t idx = 0;
  try {
    for (; idx < calls_.size(); ++idx) run_step(idx, parameters);
  } catch (Error& error) {
    const std::string& user_line = executor_.steps()[idx].node->place;
    const std::string place = "\nin a compiled graph, from " + user_line;
    if (!user_line.empty() && error.message().find(place) == std::string::npos) error.append(place);
    throw;
  }
  if (instance_.is_trial()) instance_.note_workspace(found_);
  Values out;
  for (const Operand& result : executor_.results()) out.push_back(unbound(result, result.constant, parameters));
  MOREL_CHECK(arena_->use_count() == arena_users_, Internal,
              "internal error: a tensor of a compiled graph's plan escaped; please report it");
  return out;
}

}  // namespace morel
