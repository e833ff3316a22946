#include "morel/lite/converter/requirements.h"

#include "morel/kernels/table.h"
#include "morel/loops/library.h"

namespace morel::lite {
namespace {

// Passes over partial results reduce the type in which these are kept.
void add_reduction(const std::string& name, DType in, DType out, std::set<std::string>& names) {
  const DType partial = compute_dtype(out);
  for (const auto& [from, to] : {std::pair(in, out), {in, partial}, {partial, partial}, {partial, out}})
    for (const auto kind : {loops::ProgramKind::Rows, loops::ProgramKind::Columns})
      names.insert(loops::reduction_name(name, from, to, kind));
}

Requirements::DTypes bit(DType dtype) { return Requirements::DTypes{1} << static_cast<int>(dtype); }

Requirements::DTypes dtypes_of(const Function& function, const std::vector<Arg>& args) {
  Requirements::DTypes out = 0;
  for (const Arg& arg : args) {
    if (arg.value >= 0) out |= bit(function.values[static_cast<size_t>(arg.value)].dtype);
    out |= dtypes_of(function, arg.items);
  }
  return out;
}

void add_kernel(const Function& function, const Step& step, Requirements& out) {
  Requirements::DTypes dtypes = dtypes_of(function, step.args);
  if (!step.outs.empty()) dtypes |= bit(function.values[static_cast<size_t>(step.outs[0])].dtype);
  out.kernels[step.name] |= dtypes;
  const KernelEntry* entry = find_kernel(step.name);
  if (entry && !entry->part.empty()) out.kernels[std::string(entry->part)] |= dtypes;
}

}  // namespace

Requirements requirements(const Plan& plan) {
  Requirements out;
  for (const Function& function : plan.functions) {
    const auto dtype = [&](int32_t value) { return function.values[static_cast<size_t>(value)].dtype; };
    for (const Value& value : function.values) out.dtypes |= bit(value.dtype);
    for (const Step& step : function.steps) {
      for (const DType input : step.signature.inputs) out.dtypes |= bit(input);  // they may be numbers
      switch (step.kind) {
        case StepKind::Kernel: add_kernel(function, step, out); break;
        case StepKind::Elementwise: out.loops.insert(step.name); break;
        case StepKind::Rows:
          out.loops.insert(step.name);
          if (step.has_across) out.loops.insert(step.name + ".across");
          if (!step.has_columns) break;
          out.loops.insert(step.name + ".columns");
          add_reduction("sum", dtype(step.outs.back()), dtype(step.outs.back()), out.loops);
          break;
        case StepKind::Reduce:
          add_reduction(step.name, dtype(step.args[0].value), dtype(step.outs[0]), out.loops);
          break;
        case StepKind::Copy:
        case StepKind::If:
        case StepKind::While: break;
      }
    }
  }
  return out;
}

}  // namespace morel::lite
