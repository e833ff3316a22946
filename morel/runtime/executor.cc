#include "morel/runtime/executor.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "morel/runtime/instance.h"
#include "morel/tensor/device.h"

namespace morel {
namespace {

// Signatures of which an executor remembers the instance.
constexpr size_t max_instances = 64;

Operand operand_of(const Value& value, const std::unordered_map<const Node*, int32_t>& first_slot) {
  Operand out;
  if (value.tag() == Value::Tag::Node) {
    out.slot = first_slot.at(node_of(value)) + static_cast<int32_t>(value.output());
  } else if (value.is_list() && !value.list().empty()) {
    for (const Value& item : value.list()) out.items.push_back(operand_of(item, first_slot));
  } else {
    out.constant = value;
  }
  return out;
}

void check_devices(std::span<const Value> parameters, const std::vector<Ref<Node>>& captures) {
  const auto check = [](const Tensor& tensor) {
    MOREL_CHECK(tensor.device().is_cpu(), NotImplemented,
                "compiled functions run on the CPU only, but a tensor of this one is on ", to_string(tensor.device()),
                "; call the function in PyNative mode, or move its tensors and Parameters with .to(\"CPU\")");
  };
  for (const Value& value : parameters)
    if (value.is_tensor()) check(value.tensor());
  for (const Ref<Node>& capture : captures) check(capture->captured);
}

void add_epilogue(Step& step, const EpilogueParts& parts, Operand inputs) {
  step.epilogue = std::make_unique<StepEpilogue>(
      StepEpilogue{std::move(inputs), parts.product, parts.outputs, parts.producer->types});
  step.loop = std::make_unique<FusedLoop>(parts.loop);
  step.graphs.push_back(std::make_unique<Executor>(parts.loop));
}

}  // namespace

Executor::~Executor() = default;

Executor::Executor(Ref<Graph> graph) : Executor(std::move(graph), functions_) {}

Executor::Executor(Ref<Graph> graph, Functions& functions)
    : graph_(std::move(graph)), parameters_(graph_->parameters), captures_(graph_->captures) {
  for (const Ref<Node>& capture : graph_->captures)
    MOREL_CHECK(capture->captured, Runtime, "graph ", graph_->name, " cannot run: a tensor that it captures, ",
                to_string(capture->types[0]), ", was not given");
  std::unordered_map<const Node*, int32_t> first_slot;
  for (const auto* list : {&graph_->parameters, &graph_->captures, &graph_->nodes}) {
    for (const Ref<Node>& node : *list) {
      first_slot[node.get()] = static_cast<int32_t>(num_slots_);
      num_slots_ += node->types.size();
    }
  }
  std::vector<bool> read_later(num_slots_);
  const auto slot_of = [&](const Value& value) {
    return first_slot.at(node_of(value)) + static_cast<int32_t>(value.output());
  };
  for (const Value& result : graph_->results) {
    results_.push_back(operand_of(result, first_slot));
    for_each_input(result, [&](const Value& value) { read_later[static_cast<size_t>(slot_of(value))] = true; });
  }
  steps_.resize(graph_->nodes.size());
  for (size_t i = steps_.size(); i-- > 0;) {
    const Node& node = *graph_->nodes[i];
    Step& step = steps_[i];
    std::optional<EpilogueParts> parts;
    if (node.op->control == Control::Fused && producer_of(*static_cast<Graph*>(node.args[0].graph())))
      parts = split_epilogue(node);
    const Args& args = parts ? parts->args : node.args;
    step.op = parts ? parts->producer->op : node.op;
    step.node = graph_->nodes[i];
    step.first_out = first_slot[&node];
    for (size_t k = 0; k < node.types.size(); ++k) {
      const int32_t slot = step.first_out + static_cast<int32_t>(k);
      step.outs.push_back(read_later[static_cast<size_t>(slot)] ? slot : -1);
    }
    for_each_input(node, [&](const Value& value) {
      const int32_t slot = slot_of(value);
      if (read_later[static_cast<size_t>(slot)]) return;
      read_later[static_cast<size_t>(slot)] = true;
      step.freed.push_back(slot);
    });
    if (parts) add_epilogue(step, *parts, operand_of(Value(parts->operands), first_slot));
    for (size_t k = 0; k < args.size(); ++k) {
      step.args.push_back(operand_of(args[k], first_slot));
      const ArgSpec& spec = step.op->schema.args[k];
      if (!spec.is_tensor_like()) step.args.back().number_kinds = spec.kinds;
      if (args[k].tag() != Value::Tag::Graph) continue;
      const Ref<Graph> part(static_cast<Graph*>(args[k].graph()));
      if (!part->is_function) {
        step.graphs.push_back(std::unique_ptr<Executor>(new Executor(part, functions)));
        continue;
      }
      MOREL_CHECK(node.args[k + 1].list().size() == part->parameters.size(), Value, "the function ", part->name,
                  " takes ", part->parameters.size(), " operands, but a call has ", node.args[k + 1].list().size());
      const auto [found, fresh] = functions.try_emplace(part.get());
      step.function = &found->second;
      if (fresh) functions.at(part.get()).reset(new Executor(part, functions));
    }
    if (step.op->control == Control::Fused)
      step.loop = std::make_unique<FusedLoop>(Ref<Graph>(&step.graphs[0]->graph()));
  }
}

std::shared_ptr<const Instance> Executor::instance_for(std::span<const Value> parameters, SymbolValues symbols) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(instances_.begin(), instances_.end(),
                                  [&](const auto& instance) { return instance->fits(parameters, symbols); });
  if (found != instances_.end()) {
    std::rotate(instances_.begin(), found, found + 1);
  } else {
    instances_.insert(instances_.begin(), std::make_shared<const Instance>(*this, parameters, symbols));
    if (instances_.size() > max_instances) instances_.pop_back();
  }
  return instances_.front();
}

Executor::MemoryUse Executor::memory_use() const {
  std::shared_ptr<const Instance> instance;
  {
    const std::lock_guard lock(mutex_);
    if (!instances_.empty()) instance = instances_.front();
  }
  if (!instance) {
    Values declared;
    for (const Ref<Node>& parameter : graph_->parameters) {
      const Type& type = parameter->types[0];
      const Shape shape = evaluate(type.shape, graph_->sizes ? graph_->sizes->examples() : SymbolValues());
      declared.push_back(Tensor::symbolic({shape, contiguous_strides(shape), 0}, type.dtype, {}));
    }
    instance = instance_for({declared.data(), declared.size()}, {});
  }
  MemoryUse out{instance->arena_bytes(), instance->lower_bound(), 0};
  for (const Buffer& buffer : instance->buffers())
    if (buffer.home == Home::Own) out.own_bytes += buffer.bytes;
  return out;
}

// Plans again what was tried.
void Executor::settle(const std::shared_ptr<const Instance>& trial, std::span<const Value> parameters) const {
  const std::vector<size_t> workspace = trial->workspace();
  if (workspace.empty()) return;
  auto settled = std::make_shared<const Instance>(*this, parameters, trial->symbols(), workspace);
  const std::lock_guard lock(mutex_);
  const auto found = std::find(instances_.begin(), instances_.end(), trial);
  if (found != instances_.end()) *found = std::move(settled);
}

Values Executor::run(std::span<const Value> parameters, SymbolValues symbols) const {
  if (has_devices()) [[unlikely]]
    check_devices(parameters, captures_);
  const std::shared_ptr<const Instance> instance = instance_for(parameters, symbols);
  Values results = instance->run(parameters);
  if (instance->is_trial()) settle(instance, parameters);
  return results;
}

}  // namespace morel
