// The kernel table of the CPU: operator name -> kernel. One list per family (kernels/table_*.cc), gathered in table.cc.
#pragma once

#include <span>
#include <string_view>

#include "morel/kernels/call.h"

namespace morel {

struct KernelEntry {
  std::string_view name;
  KernelFn kernel;
};

KernelFn find_kernel(std::string_view name);  // null when absent

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
