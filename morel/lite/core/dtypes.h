// Included in front of every source of a library for one device (cmake/lite.cmake): visit_dtype knows only the element
// types that such a library is compiled for, so that nothing of the others is.
#pragma once

#define visit_dtype visit_every_dtype
#include "morel/tensor/dtype.h"
#undef visit_dtype

namespace morel {

[[noreturn]] void raise_not_compiled(DType dtype);

template <class F>
decltype(auto) visit_dtype(DType dtype, F&& fn) {
  switch (dtype) {
#define X(enumerator, name, short_name, type, kind)                                                                    \
  case DType::enumerator:                                                                                              \
    if constexpr (MOREL_DTYPE_MASK >> static_cast<int>(DType::enumerator) & 1) return fn(TypeTag<type>{});             \
    else break;
    MOREL_DTYPES(X)
#undef X
  }
  raise_not_compiled(dtype);
}

}  // namespace morel
