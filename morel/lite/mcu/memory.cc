#include "morel/lite/mcu/memory.h"

#include <algorithm>

#include "morel/tensor/memory_plan.h"

namespace morel::lite {

MemoryMap::MemoryMap(const Plan& plan, const SizeValues& sizes)
    : offsets_(plan.functions.size()), used_(plan.functions.size()), arena_bytes_(plan.functions.size()) {
  for (size_t i = plan.functions.size(); i-- > 0;) place(plan, i, sizes);  // bodies first
}

void MemoryMap::place(const Plan& plan, size_t idx, const SizeValues& sizes) {
  const Function& function = plan.functions[idx];
  const int32_t end = static_cast<int32_t>(function.steps.size());
  std::vector<BufferLife> lives;
  for (const Buffer& buffer : function.buffers) {
    const bool planned = buffer.home == Home::Arena || (buffer.home == Home::Input && idx == 0);
    const bool input = buffer.home == Home::Input;
    lives.push_back(
        {planned ? static_cast<size_t>(sizes(buffer.bytes)) : 0, input ? 0 : buffer.first, input ? 0 : buffer.last});
  }
  std::vector<bool>& used = used_[idx];
  used.assign(function.buffers.size(), false);
  const auto read = [&](int32_t value, int32_t step) {
    const size_t buffer = static_cast<size_t>(function.values[static_cast<size_t>(value)].buffer);
    used[buffer] = true;
    lives[buffer].last = std::max(lives[buffer].last, step);
  };
  for (int32_t i = 0; i < end; ++i) {
    const Step& step = function.steps[static_cast<size_t>(i)];
    for (const Arg& arg : step.args) for_each_value(arg, [&](int32_t value) { read(value, i); });
    // Loops write what they give, and read their state, whoever reads it later.
    if (step.kind != StepKind::Kernel)
      for (const int32_t out : step.outs) read(out, i);
    for (const int32_t body : step.bodies) {
      BufferLife& workspace = lives[static_cast<size_t>(step.workspace)];
      used[static_cast<size_t>(step.workspace)] = true;
      workspace.bytes = std::max(workspace.bytes, static_cast<size_t>(arena_bytes_[static_cast<size_t>(body)]));
    }
  }
  for (const int32_t output : function.outputs) read(output, end);
  for (size_t i = 0; i < lives.size(); ++i)
    if (!used[i] && function.buffers[i].home != Home::Input) lives[i].bytes = 0;
  const MemoryPlan found = plan_memory(lives);
  offsets_[idx].assign(found.offsets.begin(), found.offsets.end());
  arena_bytes_[idx] = static_cast<int64_t>(found.arena_bytes);
}

}  // namespace morel::lite
