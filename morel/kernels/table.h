// The kernel table of the CPU: operator name -> kernel. One list per family (kernels/table_*.cc), gathered in table.cc.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "morel/kernels/call.h"
#include "morel/kernels/selection.h"

namespace morel {

// `constants`: a bit for each argument whose values are the same in all calls. Null where it does not pay.
using PrepareFn = std::unique_ptr<Prepared> (*)(const KernelCall& call, uint64_t constants);

struct KernelEntry {
  std::string_view name;
  KernelFn kernel = nullptr;
  std::string_view part = {};   // what it is built on that a library for one device selects by dtype (selection.h)
  PrepareFn prepare = nullptr;  // may be null
  uint32_t may_skip = 0;        // a bit for each result that is left out where `outs` has no tensor for it
};

// Those of a family's entries that are selected: nothing refers to the functions of others.
template <const auto& entries>
inline constexpr auto selected = [] {
  constexpr auto wanted = [](const KernelEntry& entry) { return is_selected(entry.name); };
  constexpr auto count = std::ranges::count_if(entries, wanted);
  std::array<KernelEntry, static_cast<size_t>(count)> out;
  std::ranges::copy_if(entries, out.begin(), wanted);
  return out;
}();

const KernelEntry* find_kernel(std::string_view name);  // null when absent

// Families: table_<family>.cc.
std::span<const KernelEntry> attention_kernels();
std::span<const KernelEntry> conv_kernels();
std::span<const KernelEntry> index_kernels();
std::span<const KernelEntry> matmul_kernels();
std::span<const KernelEntry> norm_kernels();
std::span<const KernelEntry> optim_kernels();
std::span<const KernelEntry> output_kernels();
std::span<const KernelEntry> pool_kernels();
std::span<const KernelEntry> random_kernels();
std::span<const KernelEntry> shape_kernels();
std::span<const KernelEntry> sort_kernels();

}  // namespace morel
