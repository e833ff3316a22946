#include "morel/kernels/table.h"

#include <string_view>
#include <unordered_map>

namespace morel {

const KernelEntry* find_kernel(std::string_view name) {
  static const auto* table = [] {
    auto* made = new std::unordered_map<std::string_view, const KernelEntry*>;
    for (const auto family :
         {attention_kernels(), conv_kernels(), index_kernels(), matmul_kernels(), norm_kernels(), optim_kernels(),
          output_kernels(), pool_kernels(), random_kernels(), shape_kernels(), sort_kernels()})
      for (const KernelEntry& entry : family)
        if (entry.kernel) made->emplace(entry.name, &entry);
    return made;
  }();
  const auto found = table->find(name);
  return found == table->end() ? nullptr : found->second;
}

}  // namespace morel
