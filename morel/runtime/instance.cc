#include "morel/runtime/instance.h"

#include <algorithm>

#include "morel/base/poison.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/frame.h"

namespace morel {
namespace {

// Idle frames that an instance keeps: as many threads run it at once without making new ones.
constexpr size_t max_idle_frames = 4;

template <class F>
void for_each_slot(const Operand& operand, F&& fn) {
  if (operand.is_slot()) fn(operand.slot);
  for (const Operand& item : operand.items) for_each_slot(item, fn);
}
template <class F>
void for_each_slot(const Step& step, F&& fn) {
  for (const Operand& operand : step.args) for_each_slot(operand, fn);
  if (step.epilogue) for_each_slot(step.epilogue->inputs, fn);
}

bool is_control(const Step& step) { return step.op->control != Control::None && step.op->control != Control::Fused; }

size_t bytes_of(const Layout& layout, DType dtype) {
  if (num_elements(layout.shape) == 0) return 0;
  Dim last = 0;
  for (size_t i = 0; i < layout.shape.size(); ++i) last += (layout.shape[i] - 1) * layout.strides[i];
  return static_cast<size_t>(static_cast<int64_t>(last + 1) * size_of(dtype));
}

bool same_layout(const TensorImpl& tensor, const Place& place) {
  const Layout& layout = tensor.layout;
  return tensor.dtype == place.dtype && layout.shape == place.layout.shape &&
         (layout.strides == place.layout.strides ||
          (tensor.contiguous && place.layout.strides == contiguous_strides(place.layout.shape)));
}

}  // namespace

Value evaluate(const Operand& operand, SymbolValues symbols) {
  const Value& constant = operand.constant;
  if (constant.tag() == Value::Tag::Size) return evaluate(constant.dim(), symbols);
  if (constant.tag() == Value::Tag::Ints) return evaluate(constant.ints(), symbols);
  if (operand.items.empty()) return constant;
  Value::List list;
  for (const Operand& item : operand.items) list.push_back(evaluate(item, symbols));
  return Value(std::move(list));
}

// Finds layouts, homes, lifetimes and the plan, one after the other.
class InstanceBuilder {
 public:
  InstanceBuilder(Instance& instance, std::span<const Value> parameters, std::span<const size_t> workspace)
      : instance_(instance),
        executor_(instance.executor_),
        places_(instance.places_),
        buffers_(instance.buffers_),
        steps_(instance.steps_) {
    places_.resize(executor_.num_slots());
    meta_.resize(executor_.num_slots());
    steps_.resize(executor_.steps().size());
    add_outside(parameters);
    find_tensor_slots();
    for (size_t i = 0; i < steps_.size(); ++i) add_step(i);
    find_homes();
    find_lifetimes();
    for (size_t i = 0; i < steps_.size(); ++i) reuse_inputs(i);
    plan(workspace);
  }

 private:
  static size_t at(int32_t idx) { return static_cast<size_t>(idx); }
  Buffer& buffer_of(int32_t place) { return buffers_[at(places_[at(place)].buffer)]; }

  // A place lies in a buffer: a new one where `buffer` is -1.
  void put(int32_t place, Layout layout, DType dtype, int32_t buffer) {
    meta_[at(place)] = Tensor::symbolic(layout, dtype, {});
    Place& info = places_[at(place)];
    info = {std::move(layout), dtype, buffer};
    if (buffer < 0) {
      info.buffer = static_cast<int32_t>(buffers_.size());
      Buffer& made = buffers_.emplace_back();
      made.self = place;
      made.bytes = bytes_of(info.layout, dtype);
      made.first = made.last = step_;
    }
    buffer_of(place).places.push_back(place);
  }

  void add_outside(std::span<const Value> parameters) {
    int32_t slot = 0;
    const auto add = [&](const TensorImpl* tensor, const Node& node, Home home, int32_t index) {
      const Shape wanted = evaluate(node.types[0].shape, instance_.symbols_);
      MOREL_CHECK(tensor->layout.shape == wanted, Value, "the compiled function ", executor_.graph().name,
                  " reads a tensor of shape ", to_string(tensor->layout.shape), ", which had ", to_string(wanted),
                  " when it was compiled");
      Layout layout = tensor->layout;
      layout.offset = 0;
      if (tensor->contiguous) layout.strides = contiguous_strides(layout.shape);
      put(slot, std::move(layout), tensor->dtype, -1);
      Buffer& buffer = buffer_of(slot++);
      buffer.home = home;
      buffer.index = index;
      if (home == Home::Capture) buffer.places.clear();
    };
    const auto &given = executor_.parameters(), &captures = executor_.captures();
    MOREL_ASSERT(parameters.size() == given.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].is_list()) ++slot;  // a sequence, which only control flow reads
      else add(parameters[i].tensor_impl(), *given[i], Home::Parameter, static_cast<int32_t>(i));
    }
    for (size_t i = 0; i < captures.size(); ++i)
      add(captures[i]->captured.get(), *captures[i], Home::Capture, static_cast<int32_t>(i));
  }

  void find_tensor_slots() {
    read_by_kernels_.resize(executor_.num_slots());
    for (const Step& step : executor_.steps())
      if (!is_control(step)) for_each_slot(step, [&](int32_t slot) { read_by_kernels_[at(slot)] = true; });
  }

  Value meta(const Operand& operand, const Value& constant) const {
    if (operand.is_slot()) return meta_[at(operand.slot)];
    if (operand.items.empty()) return constant;
    Value::List list;
    for (size_t i = 0; i < operand.items.size(); ++i) list.push_back(meta(operand.items[i], constant.list()[i]));
    return Value(std::move(list));
  }

  void add_step(size_t idx) {
    const Step& step = executor_.steps()[idx];
    BoundStep& bound = steps_[idx];
    step_ = static_cast<int32_t>(idx);
    for (const Type& general : step.node->types)
      bound.types.push_back({general.dtype, evaluate(general.shape, instance_.symbols_)});
    for (const Operand& operand : step.args) bound.args.push_back(evaluate(operand, instance_.symbols_));
    for (size_t k = 0; k < bound.types.size(); ++k) bound.outs.push_back(step.first_out + static_cast<int32_t>(k));
    if (is_control(step)) return add_control(step, bound);
    Args args;
    for (size_t k = 0; k < step.args.size(); ++k) args.push_back(meta(step.args[k], bound.args[k]));
    const std::span<const Value> all(args.data(), args.size());
    if (step.op->view || step.op->views) return add_views(step, bound, all);
    if (step.op->has(kInPlace)) {
      bound.action = Action::InPlace;
      const int32_t target = step.args[0].slot, out = bound.outs[0];
      places_[at(out)] = places_[at(target)];
      places_[at(out)].same_as = target;
      meta_[at(out)] = meta_[at(target)];
      return;
    }
    if (step.epilogue) return add_with_epilogue(step, bound, all);
    bound.action = step.loop ? Action::Fused : Action::Call;
    const std::span<const Type> types(bound.types.data(), bound.types.size());
    SmallVector<Layout, 2> layouts;
    if (step.loop) {
      const Value::List& operands = args[1].list();
      for (Layout& layout : step.loop->layouts({operands.data(), operands.size()}, types))
        layouts.push_back(std::move(layout));
    } else {
      layouts = result_layouts(*step.op, all, types);
    }
    for (size_t k = 0; k < layouts.size(); ++k) put(bound.outs[k], std::move(layouts[k]), bound.types[k].dtype, -1);
  }

  int32_t new_place(Layout layout, DType dtype, int32_t buffer) {
    const int32_t place = static_cast<int32_t>(places_.size());
    places_.emplace_back();
    meta_.emplace_back();
    put(place, std::move(layout), dtype, buffer);
    return place;
  }

  // The kernel writes what only its epilogue reads to where the epilogue writes, where that allows it.
  void add_with_epilogue(const Step& step, BoundStep& bound, std::span<const Value> args) {
    bound.action = Action::Epilogue;
    const StepEpilogue& epilogue = *step.epilogue;
    Types types;
    for (const Type& general : epilogue.types)
      types.push_back({general.dtype, evaluate(general.shape, instance_.symbols_)});
    const SmallVector<Layout, 2> layouts = result_layouts(*step.op, args, {types.data(), types.size()});
    const Shape shape = evaluate(step.loop->parameter(epilogue.product).shape, instance_.symbols_);
    const Layout seen = shape == types[0].shape ? layouts[0] : Layout{shape, contiguous_strides(shape), 0};
    Value::List inputs = meta(epilogue.inputs, evaluate(epilogue.inputs, instance_.symbols_)).list();
    inputs[epilogue.product] = Tensor::symbolic(seen, types[0].dtype, {});
    const size_t count = bound.outs.size() - epilogue.outputs.size();
    const std::span<const Type> results(bound.types.data(), count);
    int32_t home = -1;  // buffer of a result of the loop
    size_t k = 0;
    for (Layout& layout : step.loop->layouts({inputs.data(), inputs.size()}, results)) {
      const bool fits = results[k].dtype == types[0].dtype && layout.shape == seen.shape &&
                        layout.strides == seen.strides && step.loop->can_store_over(epilogue.product, k);
      put(bound.outs[k], std::move(layout), results[k].dtype, -1);
      if (fits && home < 0) home = places_[at(bound.outs[k])].buffer;
      ++k;
    }
    bound.kernel_outs.assign(types.size(), -1);
    for (const uint32_t output : epilogue.outputs) {
      bound.kernel_outs[output] = bound.outs[k];
      put(bound.outs[k++], layouts[output], types[output].dtype, -1);
    }
    for (size_t i = 0; i < types.size(); ++i)
      if (bound.kernel_outs[i] < 0) bound.kernel_outs[i] = new_place(layouts[i], types[i].dtype, i == 0 ? home : -1);
    bound.product = new_place(seen, types[0].dtype, places_[at(bound.kernel_outs[0])].buffer);
  }

  void add_control(const Step& step, BoundStep& bound) {
    bound.action = Action::Control;
    for (size_t k = 0; k < bound.outs.size(); ++k) {
      if (!read_by_kernels_[at(bound.outs[k])]) continue;
      const Shape& shape = bound.types[k].shape;
      put(bound.outs[k], {shape, contiguous_strides(shape), 0}, bound.types[k].dtype, -1);
      buffer_of(bound.outs[k]).home = Home::Control;
    }
  }

  void add_views(const Step& step, BoundStep& bound, std::span<const Value> args) {
    const ArgView view(*step.op, args);
    const Place input = places_[at(step.args[0].slot)];
    if (step.op->views) {
      std::vector<Layout> layouts = step.op->views(view, input.layout);
      for (size_t k = 0; k < layouts.size(); ++k) put(bound.outs[k], std::move(layouts[k]), input.dtype, input.buffer);
      return;
    }
    if (std::optional<Layout> layout = step.op->view(view, input.layout))
      return put(bound.outs[0], std::move(*layout), input.dtype, input.buffer);
    const Shape& shape = input.layout.shape;
    const int32_t out = bound.outs[0], copy = new_place({shape, contiguous_strides(shape), 0}, input.dtype, -1);
    put(out, *step.op->view(view, places_[at(copy)].layout), input.dtype, places_[at(copy)].buffer);
    bound.action = Action::Copy;
    bound.outs = {copy};
  }

  // What leaves the run, or what control flow may keep, is allocated by itself.
  void find_homes() {
    const auto make_own = [&](int32_t slot) {
      if (places_[at(slot)].buffer < 0) return;
      Buffer& buffer = buffer_of(slot);
      if (buffer.home == Home::Arena) buffer.home = Home::Own;
    };
    for (const Step& step : executor_.steps())
      if (is_control(step)) for_each_slot(step, make_own);
    for (const Operand& result : executor_.results()) for_each_slot(result, make_own);
  }

  void find_lifetimes() {
    for (size_t i = 0; i < steps_.size(); ++i)
      for_each_slot(executor_.steps()[i], [&](int32_t slot) {
        if (places_[at(slot)].buffer >= 0) buffer_of(slot).last = static_cast<int32_t>(i);
      });
    for (const Operand& result : executor_.results())
      for_each_slot(result, [&](int32_t slot) {
        if (places_[at(slot)].buffer >= 0) buffer_of(slot).last = static_cast<int32_t>(steps_.size());
      });
  }

  // A loop may write its result over an operand that nobody reads later.
  void reuse_inputs(size_t idx) {
    const BoundStep& bound = steps_[idx];
    const Step& step = executor_.steps()[idx];
    if (bound.action != Action::Fused && (bound.action != Action::Call || !(step.op->loop || step.op->rows))) return;
    std::vector<int32_t> inputs;  // slots of the loop's inputs, -1 for numbers
    for (size_t k = 0; k < step.args.size(); ++k) {
      const Operand& operand = step.args[k];
      const ArgSpec& spec = step.op->schema.args[k];
      if (step.loop) {
        for (const Operand& item : operand.items) inputs.push_back(item.slot);
      } else if (spec.is_tensor_like() || spec.kinds & kNumber) {
        inputs.push_back(operand.number_kinds ? -1 : operand.slot);
      }
    }
    for (size_t k = 0; k < bound.outs.size(); ++k) {
      if (buffer_of(bound.outs[k]).home != Home::Arena) continue;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] < 0 || !may_share(step, inputs[i], bound.outs[k], static_cast<int32_t>(idx))) continue;
        if (!can_store_over(step, i, inputs.size(), k)) continue;
        merge(bound.outs[k], places_[at(inputs[i])].buffer);
        break;
      }
    }
  }

  // Whether the loop itself allows it.
  bool can_store_over(const Step& step, size_t input, size_t num_inputs, size_t result) const {
    if (step.loop) return step.loop->can_store_over(input, result);
    const auto allows = [&](const loops::Program& program) {
      return loops::can_store_over(program, static_cast<int64_t>(input), static_cast<int64_t>(num_inputs + result));
    };
    if (step.op->loop) return true;
    if (step.op->columns) return false;
    const auto lead = std::ranges::find_if(step.args, [](const Operand& operand) { return operand.is_slot(); });
    const DType dtype = places_[at(lead->slot)].dtype;
    return allows(rows_program(*step.op, dtype)) &&
           (!can_go_across(*step.op) || allows(across_program(*step.op, dtype)));
  }

  // Whether the operand dies at this step and lies exactly as the result.
  bool may_share(const Step& step, int32_t slot, int32_t out, int32_t idx) {
    const Place &from = places_[at(slot)], &to = places_[at(out)];
    const Buffer& buffer = buffer_of(slot);
    if (buffer.home != Home::Arena || buffer.last != idx || buffer.first == idx) return false;
    if (from.layout.offset != 0 || from.dtype != to.dtype || from.layout.shape != to.layout.shape ||
        from.layout.strides != to.layout.strides || buffer.bytes < buffer_of(out).bytes)
      return false;
    bool alone = true;  // no operand reads the buffer in another order
    for_each_slot(step, [&](int32_t other) { alone &= other == slot || places_[at(other)].buffer != from.buffer; });
    return alone;
  }

  void merge(int32_t out, int32_t into) {
    Buffer& old = buffer_of(out);
    Buffer& target = buffers_[at(into)];
    target.last = old.last;
    for (const int32_t place : old.places) {
      places_[at(place)].buffer = into;
      target.places.push_back(place);
    }
    for (Place& place : places_)
      if (place.same_as >= 0) place.buffer = places_[at(place.same_as)].buffer;
    old.places.clear();
    old.bytes = 0;
    old.last = old.first;
  }

  void plan(std::span<const size_t> workspace) {
    std::vector<BufferLife> lives;
    std::vector<Buffer*> planned;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      Buffer& buffer = buffers_[i];
      const int32_t idx = static_cast<int32_t>(i);
      if (buffer.home == Home::Arena) {
        lives.push_back({buffer.bytes, buffer.first, buffer.last});
        planned.push_back(&buffer);
        if (can_poison && buffer.bytes) {
          steps_[at(buffer.first)].begun.push_back(idx);
          steps_[at(buffer.last)].ended.push_back(idx);
        }
        continue;
      }
      instance_.loose_.push_back(idx);
      if (buffer.home == Home::Parameter || buffer.home == Home::Capture) {
        if (!buffer.places.empty()) instance_.outside_.push_back(idx);
        continue;
      }
      if (buffer.home == Home::Own) steps_[at(buffer.first)].started.push_back(idx);
      if (at(buffer.last) < steps_.size()) steps_[at(buffer.last)].finished.push_back(idx);
    }
    for (size_t i = 0; i < workspace.size(); ++i)
      if (workspace[i]) lives.push_back({workspace[i], static_cast<int32_t>(i), static_cast<int32_t>(i)});
    const MemoryPlan plan = plan_memory(lives);
    for (size_t i = 0; i < planned.size(); ++i) planned[i]->offset = plan.offsets[i];
    for (size_t i = planned.size(); i < lives.size(); ++i) {
      BoundStep& step = steps_[at(lives[i].first)];
      step.workspace = plan.offsets[i];
      step.workspace_bytes = lives[i].bytes;
    }
    instance_.arena_bytes_ = plan.arena_bytes;
    instance_.lower_bound_ = plan.lower_bound;
  }

  Instance& instance_;
  const Executor& executor_;
  std::vector<Place>& places_;
  std::vector<Buffer>& buffers_;
  std::vector<BoundStep>& steps_;
  std::vector<Tensor> meta_;  // of the places: tensors without data
  std::vector<bool> read_by_kernels_;
  int32_t step_ = 0;
};

Instance::Instance(const Executor& executor, std::span<const Value> parameters, SymbolValues symbols,
                   std::span<const size_t> workspace)
    : executor_(executor), symbols_(symbols.begin(), symbols.end()), is_trial_(workspace.empty()) {
  if (executor.graph().sizes && symbols.empty()) bind_sizes(executor.graph(), parameters, symbols_);
  InstanceBuilder(*this, parameters, workspace);
}
Instance::~Instance() = default;

bool Instance::fits(std::span<const Value> parameters, SymbolValues symbols) const {
  if (!executor_.graph().sizes && !std::equal(symbols.begin(), symbols.end(), symbols_.begin(), symbols_.end()))
    return false;
  size_t slot = 0;
  for (const Value& parameter : parameters) {
    const Place& place = places_[slot++];
    if (parameter.is_list() ? place.buffer >= 0 : place.buffer < 0 || !same_layout(*parameter.tensor_impl(), place))
      return false;
  }
  for (const Ref<Node>& capture : executor_.captures())
    if (!same_layout(*capture->captured.get(), places_[slot++])) return false;
  return true;
}

std::vector<size_t> Instance::workspace() const {
  const std::lock_guard lock(mutex_);
  return workspace_;
}

void Instance::note_workspace(std::span<const size_t> bytes) const {
  if (std::ranges::all_of(bytes, [](size_t found) { return found == 0; })) {
    is_trial_ = false;
    return;
  }
  const std::lock_guard lock(mutex_);
  workspace_.assign(bytes.begin(), bytes.end());
}

std::unique_ptr<Frame> Instance::take_frame() const {
  {
    const std::lock_guard lock(mutex_);
    if (!frames_.empty()) {
      std::unique_ptr<Frame> frame = std::move(frames_.back());
      frames_.pop_back();
      return frame;
    }
  }
  return std::make_unique<Frame>(*this);
}

void Instance::give_back(std::unique_ptr<Frame> frame) const {
  const std::lock_guard lock(mutex_);
  if (frames_.size() < max_idle_frames) frames_.push_back(std::move(frame));
}

Values Instance::run(std::span<const Value> parameters) const {
  struct Lease {
    const Instance& instance;
    std::unique_ptr<Frame> frame;
    ~Lease() { instance.give_back(std::move(frame)); }
  } const lease{*this, take_frame()};
  return lease.frame->run(parameters);
}

}  // namespace morel
