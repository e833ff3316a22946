#include "morel/tensor/scalar.h"

#include <cstring>

namespace morel {

void store_scalar(const Value& value, DType dtype, void* out) {
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T element{};
    if constexpr (std::is_same_v<T, Float16>) {
      element = to_float16(static_cast<float>(value.number()));
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      element = to_bfloat16(static_cast<float>(value.number()));
    } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      element = T(value.complex());
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      element = value.tag() == Value::Tag::Float ? static_cast<T>(value.number()) : static_cast<T>(value.integer());
    } else if constexpr (std::is_same_v<T, bool>) {
      element = value.number() != 0;
    } else {
      element = static_cast<T>(value.number());
    }
    std::memcpy(out, &element, sizeof(T));
  });
}

}  // namespace morel
