// Included in front of every source of a library for one device (cmake/lite.cmake): what asks for the type of elements
// knows only those that such a library is compiled for, so that nothing of the others is.
#pragma once

#include "morel/base/error.h"

#define is_complex is_any_complex
#define is_half is_any_half
#define visit_dtype visit_every_dtype
#include "morel/tensor/dtype.h"
#undef is_complex
#undef is_half
#undef visit_dtype
#define visit_item_size visit_every_item_size
#include "morel/kernels/item_size.h"
#undef visit_item_size

namespace morel {

template <class F>
consteval bool is_any_compiled(F is_of_kind) {
  for (int i = 0; i < num_dtypes; ++i)
    if (MOREL_DTYPE_MASK >> i & 1 && is_of_kind(DType(i))) return true;
  return false;
}
constexpr bool is_complex(DType dtype) { return is_any_compiled(is_any_complex) && is_any_complex(dtype); }
constexpr bool is_half(DType dtype) { return is_any_compiled(is_any_half) && is_any_half(dtype); }

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

namespace kernels {

template <int64_t bytes>
inline constexpr bool has_size = is_any_compiled([](DType dtype) { return size_of(dtype) == bytes; });

template <class F>
decltype(auto) visit_item_size(int64_t size, F&& fn) {
  if constexpr (has_size<1>)
    if (size == 1) return fn(TypeTag<uint8_t>{});
  if constexpr (has_size<2>)
    if (size == 2) return fn(TypeTag<uint16_t>{});
  if constexpr (has_size<4>)
    if (size == 4) return fn(TypeTag<uint32_t>{});
  if constexpr (has_size<8>)
    if (size == 8) return fn(TypeTag<uint64_t>{});
  if constexpr (has_size<16>)
    if (size == 16) return fn(TypeTag<Bytes16>{});
  raise(ErrorKind::NotImplemented, "this library is compiled without elements of ", size, " bytes");
}

}  // namespace kernels
}  // namespace morel
