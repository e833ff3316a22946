// The kernel table of OpenCL: operator name -> kernel, one list per family (table_*.cc), as kernels/table.h has it for
// the CPU. What is in no list is not supported there.
#pragma once

#include <span>
#include <string_view>

#include "morel/kernels/table.h"

namespace morel::opencl {

KernelFn find_kernel(std::string_view name);  // null when absent

std::span<const KernelEntry> conv_kernels();
std::span<const KernelEntry> index_kernels();
std::span<const KernelEntry> matmul_kernels();
std::span<const KernelEntry> optim_kernels();
std::span<const KernelEntry> pool_kernels();
std::span<const KernelEntry> random_kernels();
std::span<const KernelEntry> shape_kernels();
std::span<const KernelEntry> sort_kernels();

}  // namespace morel::opencl
