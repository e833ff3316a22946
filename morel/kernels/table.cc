#include "morel/kernels/table.h"

namespace morel {

const KernelEntry* find_kernel(std::string_view name) {
  for (const auto family : {attention_kernels, conv_kernels, index_kernels, matmul_kernels, norm_kernels, optim_kernels,
                            output_kernels, pool_kernels, random_kernels, shape_kernels, sort_kernels})
    for (const KernelEntry& entry : family())
      if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace morel
