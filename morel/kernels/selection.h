// What of the kernels a library has: everything, but in a library for one device (cmake/lite.cmake) what its models
// name.
#pragma once

#include <cstdint>
#include <string_view>

#include "morel/base/error.h"
#include "morel/tensor/dtype.h"

namespace morel {

struct SelectedKernel {
  std::string_view name;  // of a kernel, or of a part that several are built on (KernelEntry::part)
  uint32_t dtypes;        // of its operands and its first result, a bit each
};

constexpr uint32_t selected_dtypes([[maybe_unused]] std::string_view name) {
#ifdef MOREL_SELECTED_KERNELS  // written by tools/lite_size.py
  constexpr SelectedKernel kernels[] = {MOREL_SELECTED_KERNELS};
  for (const SelectedKernel& kernel : kernels)
    if (kernel.name == name) return kernel.dtypes;
  return 0;
#else
  return ~0u;
#endif
}
constexpr bool is_selected(std::string_view name) { return selected_dtypes(name) != 0; }
constexpr bool is_selected(std::string_view name, DType dtype) {
  return selected_dtypes(name) >> static_cast<int>(dtype) & 1;
}

// visit_dtype for those of `dtypes`; fn returns nothing.
template <uint32_t dtypes, class F>
void visit_selected(DType dtype, F&& fn) {
  visit_dtype(dtype, [&](auto tag) {
    constexpr DType of_tag = dtype_of<typename decltype(tag)::type>;
    if constexpr (dtypes >> static_cast<int>(of_tag) & 1) fn(tag);
    else raise(ErrorKind::NotImplemented, "this kernel is compiled without ", info(of_tag).name);
  });
}

}  // namespace morel
