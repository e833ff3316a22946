#include "morel/lite/mcu/text.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "morel/codegen/c/scalar.h"

namespace morel::lite {

std::string memory_type(DType dtype) { return dtype == DType::Float16 ? "uint16_t" : codegen::c_storage_type(dtype); }

namespace {

std::string element_text(DType dtype, const std::byte* at) {
  std::string out;
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T>) {
      T value;
      std::memcpy(&value, at, sizeof value);
      out = codegen::c_literal(value, dtype);
    } else if constexpr (std::is_integral_v<T>) {
      T value;
      std::memcpy(&value, at, sizeof value);
      if constexpr (sizeof(T) < 8) out = std::to_string(value);
      else
        out = value == std::numeric_limits<T>::min() && value != 0 ? "INT64_MIN"
                                                                   : cat(value, std::is_signed_v<T> ? "ll" : "ull");
    } else if constexpr (sizeof(T) == 2) {
      uint16_t bits;
      std::memcpy(&bits, at, sizeof bits);
      out = std::to_string(bits);
    }
  });
  MOREL_CHECK(!out.empty(), NotImplemented, "there is no C for elements of type ", info(dtype).name);
  return out;
}

}  // namespace

std::string array_text(const std::string& qualifiers, const std::string& name, DType dtype, Bytes bytes) {
  const size_t item = static_cast<size_t>(size_of(dtype)), count = bytes.size() / item;
  std::string out =
      qualifiers + memory_type(dtype) + " " + name + "[" + std::to_string(std::max<size_t>(count, 1)) + "] = {";
  size_t column = 200;
  for (size_t i = 0; i < count; ++i) {
    const std::string element = element_text(dtype, bytes.data() + i * item) + ",";
    column += element.size() + 1;
    if (column > 118) out += "\n  ", column = element.size() + 2;
    else out += " ";
    out += element;
  }
  return out + (count ? "\n};\n" : "0};\n");
}

std::string braces(const std::vector<int64_t>& numbers, size_t count) {
  std::string out = "{";
  for (size_t i = 0; i < std::max(count, numbers.size()); ++i)
    out += (i ? ", " : "") + std::to_string(i < numbers.size() ? numbers[i] : 0);
  return out + "}";
}

}  // namespace morel::lite
