// The kernel table of the CPU: operator name -> kernel. One list per family (kernels/table_*.cc), gathered in table.cc.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "morel/kernels/call.h"

// A library for one device (cmake/lite.cmake) has the kernels that its models name: `selected_kernels`.
#ifdef MOREL_SELECTION
#include MOREL_SELECTION
#endif

namespace morel {

// `constants`: a bit for each argument whose values are the same in all calls. Null where it does not pay.
using PrepareFn = std::unique_ptr<Prepared> (*)(const KernelCall& call, uint64_t constants);

struct KernelEntry {
  std::string_view name;
  KernelFn kernel = nullptr;
  PrepareFn prepare = nullptr;  // may be null
  uint32_t may_skip = 0;        // a bit for each result that is left out where `outs` has no tensor for it
};

consteval bool is_selected([[maybe_unused]] std::string_view name) {
#ifdef MOREL_SELECTION
  for (const std::string_view wanted : selected_kernels)
    if (wanted == name) return true;
  return false;
#else
  return true;
#endif
}
// The list of a family. Entries that are not selected are null, so nothing refers to their functions.
template <size_t n>
consteval std::array<KernelEntry, n> kernel_list(const KernelEntry (&entries)[n]) {
  std::array<KernelEntry, n> out;
  for (size_t i = 0; i < n; ++i) out[i] = is_selected(entries[i].name) ? entries[i] : KernelEntry{entries[i].name};
  return out;
}

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
