#include "morel/lite/converter/function.h"

#include <algorithm>

#include "morel/lite/sizes.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/reduce.h"
#include "morel/tensor/memory_plan.h"

namespace morel::lite {
namespace {

template <class... Text>
[[noreturn]] void refuse(const OpDef& op, const Text&... text) {
  raise(ErrorKind::NotImplemented, "For '", display_name(op), "', a model for devices cannot hold ", text...);
}

// Elements from the start of the buffer up to the last one.
Dim extent_of(const Layout& layout) {
  Dim last = layout.offset + 1;
  for (size_t i = 0; i < layout.shape.size(); ++i) {
    if (layout.shape[i].identical(0)) return 0;
    if (!layout.strides[i].is_symbolic() && layout.strides[i] < 0) continue;
    last += (layout.shape[i] - 1) * layout.strides[i];
  }
  return last;
}

bool identical(std::span<const Dim> a, std::span<const Dim> b) {
  return std::ranges::equal(a, b, [](Dim x, Dim y) { return x.identical(y); });
}

}  // namespace

FunctionConverter::FunctionConverter(Shared& shared)
    : shared_(shared), index_(static_cast<int32_t>(shared.plan.functions.size())) {
  shared_.plan.functions.emplace_back();
}

// ---- values ----

FunctionConverter::Entry FunctionConverter::add_value(const Layout& layout, DType dtype, int32_t buffer,
                                                      std::string name) {
  Value made;
  made.name = std::move(name);
  made.dtype = dtype;
  made.shape = shared_.sizes({layout.shape.data(), layout.shape.size()});
  made.strides = shared_.sizes({layout.strides.data(), layout.strides.size()});
  made.offset = shared_.sizes(layout.offset);
  made.buffer = buffer;
  function().values.push_back(std::move(made));
  all_.push_back({Tensor::symbolic(layout, dtype, {}), static_cast<int32_t>(all_.size())});
  return all_.back();
}

int32_t FunctionConverter::add_buffer(const Layout& layout, DType dtype, Home home, int32_t index) {
  Buffer made;
  made.home = home;
  made.index = index;
  made.bytes = shared_.sizes(extent_of(layout) * size_of(dtype));
  made.first = made.last = -1;
  function().buffers.push_back(made);
  return static_cast<int32_t>(function().buffers.size()) - 1;
}

FunctionConverter::Entry FunctionConverter::add_in_arena(Layout layout, DType dtype) {
  const int32_t buffer = add_buffer(layout, dtype, Home::Arena);
  return add_value(layout, dtype, buffer);
}

Buffer& FunctionConverter::buffer_of(int32_t value) {
  return function().buffers[static_cast<size_t>(function().values[static_cast<size_t>(value)].buffer)];
}

const FunctionConverter::Entry& FunctionConverter::entry_of(const morel::Value& value) const {
  return entries_.at(node_of(value))[value.output()];
}

void FunctionConverter::mark_written(int32_t value) {
  Buffer& buffer = buffer_of(value);
  if (buffer.home == Home::Constant) buffer.home = Home::Variable;
  if (buffer.home == Home::Input) written_inputs_[static_cast<size_t>(buffer.index)] = true;
}

void FunctionConverter::add_input(const Node& node, const Layout& layout, std::string name) {
  const int32_t index = static_cast<int32_t>(function().inputs.size());
  const DType dtype = node.types[0].dtype;
  const Entry entry = add_value(layout, dtype, add_buffer(layout, dtype, Home::Input, index), std::move(name));
  function().inputs.push_back(entry.idx);
  entries_[&node] = {entry};
  written_inputs_.push_back(false);
}

void FunctionConverter::add_captures(const Graph& graph) {
  for (const Ref<Node>& capture : graph.captures) {
    MOREL_CHECK(capture->captured, Runtime, "graph ", graph.name, " cannot be converted: a tensor that it captures, ",
                to_string(capture->types[0]), ", was not given");
    const Tensor& tensor = capture->captured;
    const WeightTable::Place& place = shared_.weights.add(tensor);
    const int32_t buffer = add_buffer(place.layout, tensor.dtype(), Home::Constant);
    function().buffers.back().offset = place.offset;
    entries_[capture.get()] = {add_value(place.layout, tensor.dtype(), buffer, shared_.weights.name_of(tensor))};
  }
}

FunctionConverter::Entry FunctionConverter::copied(const Entry& entry, DType dtype) {
  const Entry out = add_in_arena(dense(entry.meta.shape()), dtype);
  Step step;
  step.kind = StepKind::Copy;
  step.name = "copy";
  step.args = {value_arg(entry)};
  step.outs = {out.idx};
  push(std::move(step));
  return out;
}

// ---- whole functions ----

void FunctionConverter::convert_model(const Graph& graph, const ConvertOptions& options) {
  function().name = graph.name;
  const auto name = [](const std::vector<std::string>& given, size_t idx, const char* prefix) {
    return idx < given.size() ? given[idx] : cat(prefix, idx);
  };
  for (size_t i = 0; i < graph.parameters.size(); ++i)
    add_input(*graph.parameters[i], dense(graph.parameters[i]->types[0].shape), name(options.inputs, i, "input"));
  add_captures(graph);
  add_nodes(graph);
  for (size_t i = 0; i < graph.results.size(); ++i) {
    Entry entry = entry_of(graph.results[i]);
    const bool is_output = std::ranges::count(function().outputs, entry.idx) > 0;
    if (is_output || buffer_of(entry.idx).home != Home::Arena || !entry.meta.is_contiguous())
      entry = copied(entry, entry.meta.dtype());
    function().values[static_cast<size_t>(entry.idx)].name = name(options.outputs, i, "output");
    function().outputs.push_back(entry.idx);
  }
  finish();
}

std::vector<bool> FunctionConverter::convert_body(const Graph& graph, std::span<const Layout> operands, size_t state) {
  function().name = graph.name;
  for (size_t i = 0; i < graph.parameters.size(); ++i) add_input(*graph.parameters[i], operands[i], "");
  add_captures(graph);
  add_nodes(graph);
  for (size_t i = 0; i < graph.results.size(); ++i) {
    Entry entry = entry_of(graph.results[i]);
    // What lies in another part of the state may be overwritten before it is read.
    if (i < state && entry.idx != function().inputs[i] && buffer_of(entry.idx).home == Home::Input)
      entry = copied(entry, entry.meta.dtype());
    function().outputs.push_back(entry.idx);
  }
  finish();
  return written_inputs_;
}

void FunctionConverter::finish() {
  Function& f = function();
  const int32_t end = static_cast<int32_t>(f.steps.size());
  for (const int32_t output : f.outputs) buffer_of(output).last = end;
  for (Buffer& buffer : f.buffers) {
    buffer.first = std::max(buffer.first, 0);
    buffer.last = std::max(buffer.last, buffer.first);
  }
  reuse_operands();
  plan_arena();
}

// ---- arguments ----

// A tensor where the schema has a number: rules see some number of its kind.
morel::Value FunctionConverter::meta_of(const morel::Value& value, const ArgSpec& spec) const {
  if (value.tag() == morel::Value::Tag::Node) {
    const Entry& entry = entry_of(value);
    if (spec.is_tensor_like() || spec.kinds & kRng) return entry.meta;
    if (entry.meta.dtype() == DType::Bool) return true;
    return is_integral(entry.meta.dtype()) ? morel::Value(1) : morel::Value(1.0);
  }
  return map_inputs(value, [&](const morel::Value& item) -> morel::Value { return entry_of(item).meta; });
}

Arg FunctionConverter::value_arg(const Entry& entry) {
  Arg out;
  out.tag = Arg::Tag::Value;
  out.value = entry.idx;
  return out;
}

Arg FunctionConverter::arg_of(const morel::Value& value, const ArgSpec& spec) const {
  using Tag = morel::Value::Tag;
  Arg out;
  switch (value.tag()) {
    case Tag::None: break;
    case Tag::Bool:
      out.tag = Arg::Tag::Bool;
      out.size = {value.boolean(), -1};
      break;
    case Tag::Int:
    case Tag::Size:
      out.tag = Arg::Tag::Int;
      out.size = shared_.sizes(value.dim());
      break;
    case Tag::Float:
      out.tag = Arg::Tag::Float;
      out.floats = {value.number()};
      break;
    case Tag::DType:
      out.tag = Arg::Tag::DType;
      out.size = {static_cast<int64_t>(value.dtype()), -1};
      break;
    case Tag::Complex:
      out.tag = Arg::Tag::Complex;
      out.floats = {value.complex().real(), value.complex().imag()};
      break;
    case Tag::Str:
      out.tag = Arg::Tag::Str;
      out.text = value.str();
      break;
    case Tag::Ints:
      out.tag = Arg::Tag::Ints;
      out.sizes = shared_.sizes({value.ints().data(), value.ints().size()});
      break;
    case Tag::Floats:
      out.tag = Arg::Tag::Floats;
      out.floats.assign(value.floats().begin(), value.floats().end());
      break;
    case Tag::List:
      out.tag = Arg::Tag::List;
      for (const morel::Value& item : value.list()) out.items.push_back(arg_of(item, spec));
      break;
    case Tag::Node:
      out = value_arg(entry_of(value));
      if (!spec.is_tensor_like()) out.tag = Arg::Tag::Number;
      break;
    case Tag::Tensor:
    case Tag::Graph: raise(ErrorKind::Internal, "internal error: an argument of a node is ", to_string(value));
  }
  return out;
}

Arg FunctionConverter::operand_of(const morel::Value& value, DType dtype, bool dense_only) {
  if (value.tag() != morel::Value::Tag::Node) return arg_of(value, {});
  const Entry& entry = entry_of(value);
  const bool fits = entry.meta.dtype() == dtype && (!dense_only || entry.meta.is_contiguous());
  return value_arg(fits ? entry : copied(entry, dtype));
}

Arg FunctionConverter::parameter_of(const Call& call, size_t idx) const {
  const morel::Value& value = call.node.args[idx];
  if (value.tag() == morel::Value::Tag::Node)
    refuse(call.op, "a '", call.op.schema.args[idx].name, "' that is computed by the model");
  return arg_of(value, call.op.schema.args[idx]);
}

std::vector<FunctionConverter::Entry> FunctionConverter::entries_of(const morel::Value& list) const {
  std::vector<Entry> out;
  if (list.is_list())
    for (const morel::Value& item : list.list()) out.push_back(entry_of(item));
  return out;
}

// ---- memory ----

void FunctionConverter::push(Step step) {
  Function& f = function();
  const int32_t idx = static_cast<int32_t>(f.steps.size());
  step.place = place_;
  for (const Arg& arg : step.args) for_each_value(arg, [&](int32_t value) { buffer_of(value).last = idx; });
  for (const int32_t out : step.outs) {
    Buffer& buffer = buffer_of(out);
    if (buffer.first < 0) buffer.first = idx;
    buffer.last = idx;
  }
  f.steps.push_back(std::move(step));
}

void FunctionConverter::allow_reuse(const Call& call, size_t num_inputs) {
  const Step& step = function().steps.back();
  auto& table = reusable_[function().steps.size() - 1];
  table.assign(step.outs.size(), std::vector<bool>(num_inputs, !call.op.rows));
  if (!call.op.rows || call.op.columns) return;
  const DType dtype = call.op.rows ? step.signature.inputs[0] : DType::Float32;
  std::vector<loops::Program> programs = {rows_program(call.op, dtype)};
  if (step.has_across) programs.push_back(across_program(call.op, dtype));
  for (size_t out = 0; out < step.outs.size(); ++out)
    for (size_t i = 0; i < num_inputs; ++i)
      table[out][i] = std::ranges::all_of(programs, [&](const loops::Program& program) {
        return loops::can_store_over(program, static_cast<int64_t>(i), static_cast<int64_t>(num_inputs + out));
      });
}

// Whether the operand dies at this step and lies exactly as the result.
bool FunctionConverter::may_share(const Step& step, int32_t idx, int32_t operand, int32_t out) {
  const Entry &from = all_[static_cast<size_t>(operand)], &to = all_[static_cast<size_t>(out)];
  const Buffer &source = buffer_of(operand), &target = buffer_of(out);
  if (source.home != Home::Arena || target.home != Home::Arena || target.first != idx) return false;
  if (source.last != idx || source.first == idx || !(source.bytes == target.bytes)) return false;
  const Layout &a = from.meta->layout, &b = to.meta->layout;
  if (from.meta.dtype() != to.meta.dtype() || !a.offset.identical(0) || !b.offset.identical(0) ||
      !identical({a.shape.data(), a.shape.size()}, {b.shape.data(), b.shape.size()}) ||
      !identical({a.strides.data(), a.strides.size()}, {b.strides.data(), b.strides.size()}))
    return false;
  const Function& f = function();
  const int32_t buffer = f.values[static_cast<size_t>(operand)].buffer;
  bool alone = true;  // no operand reads the buffer in another order
  for (const Arg& arg : step.args)
    for_each_value(arg, [&](int32_t other) {
      alone &= other == operand || f.values[static_cast<size_t>(other)].buffer != buffer;
    });
  return alone;
}

void FunctionConverter::reuse_operands() {
  Function& f = function();
  for (size_t idx = 0; idx < f.steps.size(); ++idx) {
    const auto found = reusable_.find(idx);
    if (found == reusable_.end()) continue;
    const Step& step = f.steps[idx];
    for (size_t k = 0; k < step.outs.size(); ++k)
      for (size_t i = 0; i < found->second[k].size(); ++i) {
        const Arg& arg = step.args[i];
        if (!found->second[k][i] || arg.tag != Arg::Tag::Value ||
            !may_share(step, static_cast<int32_t>(idx), arg.value, step.outs[k]))
          continue;
        const int32_t old = f.values[static_cast<size_t>(step.outs[k])].buffer;
        const int32_t into = f.values[static_cast<size_t>(arg.value)].buffer;
        f.buffers[static_cast<size_t>(into)].last = f.buffers[static_cast<size_t>(old)].last;
        for (Value& value : f.values)
          if (value.buffer == old) value.buffer = into;
        Buffer& unused = f.buffers[static_cast<size_t>(old)];
        unused.bytes = {};
        unused.last = unused.first;
        break;
      }
  }
}

void FunctionConverter::plan_arena() {
  Function& f = function();
  const SizeValues sizes(shared_.plan, planned_symbols(shared_.plan));
  std::vector<BufferLife> lives;
  for (const Buffer& buffer : f.buffers)
    lives.push_back(
        {buffer.home == Home::Arena ? static_cast<size_t>(sizes(buffer.bytes)) : 0, buffer.first, buffer.last});
  const MemoryPlan plan = plan_memory(lives);
  for (size_t i = 0; i < lives.size(); ++i)
    if (f.buffers[i].home == Home::Arena) f.buffers[i].offset = static_cast<int64_t>(plan.offsets[i]);
  f.arena_bytes = static_cast<int64_t>(plan.arena_bytes);
}

// ---- control flow ----

void FunctionConverter::add_if(const Call& call) {
  Step step;
  step.kind = StepKind::If;
  step.name = "if";
  std::vector<Entry> operands = entries_of(call.node.args[3]);
  step.args = {value_arg(entry_of(call.node.args[0]))};
  std::vector<Entry>& outs = entries_[&call.node];
  for (const Type& type : call.node.types) outs.push_back(add_in_arena(dense(type.shape), type.dtype));
  for (const Entry& out : outs) step.outs.push_back(out.idx);
  add_bodies(step, call, std::move(operands), 0);
}

void FunctionConverter::add_while(const Call& call) {
  Step step;
  step.kind = StepKind::While;
  step.name = "while";
  std::vector<Entry> operands = entries_of(call.node.args[2]);
  const size_t state = operands.size();
  if (call.node.types.size() != state) refuse(call.op, "a loop that keeps its states for a gradient");
  for (const Entry& entry : operands) step.args.push_back(value_arg(entry));
  std::vector<Entry>& outs = entries_[&call.node];
  for (size_t i = 0; i < state; ++i) {
    const Type& type = call.node.types[i];
    outs.push_back(add_in_arena(dense(type.shape), type.dtype));
    step.outs.push_back(outs.back().idx);
    operands[i] = outs.back();  // where the bodies find it
  }
  for (const Entry& entry : entries_of(call.node.args[3])) operands.push_back(entry);
  add_bodies(step, call, std::move(operands), state);
}

// `operands` of the bodies, of which the first `state` are among the step's arguments already.
void FunctionConverter::add_bodies(Step& step, const Call& call, std::vector<Entry> operands, size_t state) {
  for (size_t i = state; i < operands.size(); ++i) {
    for (const Dim stride : operands[i].meta.strides())
      if (!stride.is_symbolic() && stride < 0) operands[i] = copied(operands[i], operands[i].meta.dtype());
    step.args.push_back(value_arg(operands[i]));
  }
  std::vector<Layout> layouts;
  for (const Entry& operand : operands) {
    layouts.push_back(operand.meta->layout);
    layouts.back().offset = 0;
  }
  int64_t workspace = 0;
  for (const morel::Value& arg : call.node.args) {
    if (arg.tag() != morel::Value::Tag::Graph) continue;
    const Graph& body = *static_cast<const Graph*>(arg.graph());
    FunctionConverter converter(shared_);
    const bool is_condition = step.kind == StepKind::While && step.bodies.empty();
    const std::vector<bool> written = converter.convert_body(body, layouts, is_condition ? 0 : state);
    for (size_t i = 0; i < written.size(); ++i)
      if (written[i]) mark_written(operands[i].idx);
    step.bodies.push_back(converter.index());
    workspace = std::max(workspace, converter.function().arena_bytes);
  }
  Buffer& buffer = function().buffers.emplace_back();
  buffer.bytes = {workspace, -1};
  buffer.first = buffer.last = static_cast<int32_t>(function().steps.size());
  step.workspace = static_cast<int32_t>(function().buffers.size()) - 1;
  push(std::move(step));
}

}  // namespace morel::lite
