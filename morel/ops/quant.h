// How operators on int8 are called.
#pragma once

#include <string_view>

namespace morel {

class Registry;
void register_quant(Registry& registry);

// The last arguments of operators that `int8` of others names: how sums of products become int8 again (quant.cc).
inline constexpr std::string_view int8_results =
    ", multiplier: Tensor, shift: Tensor, input_zero: int, output_zero: int";

}  // namespace morel
