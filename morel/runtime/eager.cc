#include "morel/runtime/eager.h"

#include <atomic>
#include <utility>
#include <vector>

#include "morel/kernels/table.h"
#include "morel/ops/call.h"
#include "morel/runtime/device.h"
#include "morel/runtime/graph_scope.h"
#include "morel/runtime/tape.h"
#include "morel/tensor/generator.h"

namespace morel {
namespace {

bool any_requires_grad(std::span<const Value> args) {
  for (const Value& arg : args) {
    if (arg.is_tensor()) {
      if (requires_grad(arg.tensor_impl())) return true;
    } else if (arg.is_list()) {
      if (any_requires_grad(arg.list())) return true;
    }
  }
  return false;
}

// Numbers of the default generator for arguments that are left to it.
void fill_random(const OpDef& op, Args& args) {
  if (!op.has(kRandom)) return;
  for (size_t i = 0; i < args.size(); ++i)
    if ((op.schema.args[i].kinds & kRng) && args[i].is_none()) args[i] = default_generator().next();
}

// A view of `input`, known to the tape as one.
Tensor view_of(const Tensor& input, Layout layout) {
  Tensor out = input.with_layout(std::move(layout));
  if (grad_depth() > 0) {
    out->base = input->base ? input->base : input.impl();
    out->grad_version = out->storage->version();
  }
  return out;
}

Tensor execute_view(const OpDef& op, std::span<const Value> args) {
  const Tensor input = args[0].tensor();
  const ArgView view(op, args);
  std::optional<Layout> layout = op.view(view, input->layout);
  if (layout) return view_of(input, std::move(*layout));
  const Tensor copy = contiguous(input);
  return copy.with_layout(*op.view(view, copy->layout));
}

Values execute_views(const OpDef& op, std::span<const Value> args) {
  const Tensor input = args[0].tensor();
  Values outs;
  for (Layout& layout : op.views(ArgView(op, args), input->layout)) outs.push_back(view_of(input, std::move(layout)));
  return outs;
}

ExecutionLayer* layer = nullptr;

KernelFn kernel_of(const OpDef& op, Device device) {
  if (!device.is_cpu()) [[unlikely]] {
    const KernelFn kernel = device_runtime(device).find_kernel(op.name);
    MOREL_CHECK(kernel, NotImplemented, "For '", display_name(op), "', there is no kernel for ", to_string(device),
                "; move the tensors with .to(\"CPU\")");
    return kernel;
  }
  // Never destroyed: threads may use it while the process ends.
  static std::vector<std::atomic<KernelFn>>& table = *new std::vector<std::atomic<KernelFn>>(registry().ops().size());
  std::atomic<KernelFn>& slot = table[static_cast<size_t>(op.id)];
  KernelFn kernel = slot.load(std::memory_order_relaxed);
  if (!kernel) {
    const KernelEntry* entry = find_kernel(op.name);
    MOREL_CHECK(entry, Internal, "operator ", op.name, " has no kernel in the table");
    kernel = entry->kernel;
    slot.store(kernel, std::memory_order_relaxed);
  }
  return kernel;
}

std::optional<Strides> strides_of(const OpDef& op, std::span<const Value> args, size_t idx, const Shape& shape) {
  return op.strides ? op.strides(ArgView(op, args), idx, shape) : std::nullopt;
}

Values values_of(std::span<Tensor> tensors) {
  Values out;
  for (Tensor& tensor : tensors) out.push_back(std::move(tensor));
  return out;
}

// Operators whose results are contiguous.
Values execute_dense(const OpDef& op, std::span<const Value> args, Device device) {
  SmallVector<Tensor, 2> outs;
  for (const Type& type : op.infer(ArgView(op, args))) outs.push_back(Tensor::empty(type.shape, type.dtype, device));
  execute_into(op, args, {outs.data(), outs.size()});
  return values_of({outs.data(), outs.size()});
}

Values execute_kernel(const OpDef& op, std::span<const Value> args, Device device) {
  const KernelFn kernel = kernel_of(op, device);
  if (op.has(kInPlace)) {
    if (op.infer) op.infer(ArgView(op, args));  // for its checks
    kernel({args, {}});
    return {args[0]};
  }
  SmallVector<Tensor, 2> outs;
  const Types types = op.data_dependent ? Types() : op.infer(ArgView(op, args));
  outs.resize(static_cast<size_t>(op.data_dependent));  // allocated by the kernel
  for (size_t i = 0; i < types.size(); ++i) {
    const Type& type = types[i];
    const auto strides = strides_of(op, args, i, type.shape);
    outs.push_back(strides ? Tensor::empty_strided(type.shape, *strides, type.dtype, device)
                           : Tensor::empty(type.shape, type.dtype, device));
  }
  kernel({args, {outs.data(), outs.size()}});
  return values_of({outs.data(), outs.size()});
}

}  // namespace

Values execute_composite(const OpDef& op, std::span<const Value> args) {
  const Syms results = op.compose(Call(EagerBuilder::instance(), op, args));
  Values out;
  for (const Sym& result : results) {
    // A rule may return a number or pass an argument through.
    out.push_back(result.value().is_number() ? Value(call("full", {Ints{}, result.value()})[0]) : result.value());
  }
  return out;
}

namespace {

Values execute_on(Device device, const OpDef& op, std::span<const Value> args) {
  if (op.loop) return {execute_elementwise(op, args)};
  if (op.view) return {execute_view(op, args)};
  if (op.views) return execute_views(op, args);
  if (op.reduce || op.rows) return execute_dense(op, args, device);
  // What has no kernel there may still be what its definition says.
  const bool defined = op.kernel && op.compose && !device.is_cpu() && !device_runtime(device).find_kernel(op.name);
  if (op.kernel && !defined) return execute_kernel(op, args, device);
  return execute_composite(op, args);
}

}  // namespace

EagerBuilder& EagerBuilder::instance() {
  static EagerBuilder builder;
  return builder;
}

Values EagerBuilder::emit(const OpDef& op, std::span<const Value> args) { return call_op(op, args); }

ExecutionLayer* set_execution_layer(ExecutionLayer* next) { return std::exchange(layer, next); }

Values execute(const OpDef& op, std::span<const Value> args) {
  if (layer && layer->takes(op, args)) return layer->execute(op, args);
  if (!has_devices()) [[likely]]
    return execute_on(Device{}, op, args);
  const DeviceScope scope(device_of(op, args));
  return execute_on(current_device(), op, args);
}

SmallVector<Layout, 2> result_layouts(const OpDef& op, std::span<const Value> args, std::span<const Type> types) {
  SmallVector<Layout, 2> out;
  for (size_t i = 0; i < types.size(); ++i) {
    const Shape& shape = types[i].shape;
    const auto strides = op.loop ? elementwise_strides(op, args, shape) : strides_of(op, args, i, shape);
    out.push_back({shape, strides ? *strides : contiguous_strides(shape), 0});
  }
  return out;
}

void execute_into(const OpDef& op, std::span<const Value> args, std::span<Tensor> outs, const Epilogue* epilogue) {
  if (op.loop) return elementwise_into(op, args, outs[0]);
  if (op.reduce) return reduce_into(op, args, outs[0]);
  if (op.rows) return rows_into(op, args, outs);
  kernel_of(op, outs.empty() ? Device{} : outs[0].device())({args, outs, epilogue});
}

Values call_op(const OpDef& op, std::span<const Value> given) {
  if (GraphScope* scope = GraphScope::current()) [[unlikely]]
    return scope->call(op, given);
  Args args = complete_args(op, given);
  fill_random(op, args);
  const std::span<const Value> all(args.data(), args.size());
  const bool track = grad_depth() > 0 && !op.has(kNoGrad) && any_requires_grad(all);
  if (!track) {
    const GradDepth pause(op.has(kNoGrad) ? 0 : grad_depth());
    Values outs = execute(op, all);
    if (op.has(kInPlace)) mark_changed(args[0].tensor());
    return outs;
  }
  if (op.compose && !op.grad) {
    if (!has_devices()) [[likely]]
      return execute_composite(op, all);
    const DeviceScope scope(device_of(op, all));
    return execute_composite(op, all);
  }
  Values outs;
  {
    const GradDepth pause(op.compose ? 0 : grad_depth());
    outs = execute(op, all);
  }
  if (op.has(kInPlace)) {
    record_in_place(op, all, args[0].tensor());
  } else {
    record(op, all, {outs.data(), outs.size()});
  }
  return outs;
}

namespace {

// The operands of an in-place call that a gradient may read, as they are before what shares memory with the target is
// overwritten. `saved`: a bit for each.
Args kept_operands(const Args& args, const Tensor& target, uint32_t saved) {
  Args out(args);
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_tensor() || !(saved >> i & 1) || args[i].tensor()->storage.get() != target->storage.get()) continue;
    const Tensor original = execute(find_op("clone"), {&args[i], 1})[0].tensor();
    original->grad = args[i].tensor()->grad;
    out[i] = original;
  }
  return out;
}

}  // namespace

void check_fits(const OpDef& op, const Shape& shape, DType from, const Tensor& target) {
  MOREL_CHECK(shape == target.shape(), Value, "For '", display_name(op), "' in place, the result has shape ",
              to_string(shape), " but the tensor it is written to has ", to_string(target.shape()));
  const DType to = target.dtype();
  MOREL_CHECK(promote(from, to) == to || (is_float(from) && is_float(to)), Type, "For '", display_name(op),
              "' in place, the result has dtype ", info(from).name, ", which does not fit into a tensor of ",
              info(to).name);
}

Tensor call_in_place(const OpDef& op, std::span<const Value> given) {
  if (GraphScope* scope = GraphScope::current()) [[unlikely]]
    return scope->call_in_place(op, given);
  Args args = complete_args(op, given);
  fill_random(op, args);
  const Tensor target = args[0].tensor();
  const std::span<const Value> all(args.data(), args.size());
  const bool track = grad_depth() > 0 && any_requires_grad(all);
  if (track && op.compose && !op.grad && !op.has(kNoGrad)) {  // its parts are recorded
    const Args operands = kept_operands(args, target, ~0u);
    const Value result = call_op(op, {operands.data(), operands.size()})[0];
    check_fits(op, result.tensor().shape(), result.tensor().dtype(), target);
    const Value copied[] = {target, result};
    call_op(find_op("copy_"), copied);
    return target;
  }
  const Args recorded = track ? kept_operands(args, target, op.saves.args) : args;
  Value result;
  {
    const GradDepth pause(0);
    result = execute(op, all)[0];
  }
  check_fits(op, result.tensor().shape(), result.tensor().dtype(), target);
  if (target->shards) {
    layer->copy_into(target, result.tensor());
  } else {
    copy_into(target, result.tensor());
  }
  if (track && !op.has(kNoGrad)) {
    record_in_place(op, {recorded.data(), recorded.size()}, target);
  } else {
    mark_changed(target);
  }
  return target;
}

Values call(std::string_view name, std::initializer_list<Value> args) {
  const OpDef* op = registry().find(name);
  MOREL_CHECK(op, Attribute, "there is no operator '", name, "'");
  return call_op(*op, {args.begin(), args.size()});
}

}  // namespace morel
