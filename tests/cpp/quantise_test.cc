// Numbers as int8 and as fixed point.
#include "morel/transform/quantise.h"

#include <cmath>

#include "ops_support.h"

namespace morel::testing {
namespace {

TEST(Quantise, FixedPointIsTheNumber) {
  for (const double number : {1e-9, 0.00123, 0.25, 0.5, 0.99999999999, 1.0, 3.7, 1000.0}) {
    const FixedPoint fixed = fixed_point_of(number);
    EXPECT_GE(fixed.multiplier, 1 << 30) << number;
    EXPECT_NEAR(std::ldexp(fixed.multiplier, fixed.shift - 31) / number, 1, 0x1p-30) << number;
  }
  EXPECT_EQ(fixed_point_of(1e-12).multiplier, 0);
  EXPECT_THROW(fixed_point_of(1e12), Error);
}

TEST(Quantise, TypesHoldTheirRangeAndZero) {
  for (const Range range : {Range{-1, 1}, Range{0, 6}, Range{0.5, 2}, Range{-3, -1}, Range{-1e-3, 100}}) {
    const Int8Type type = int8_type_of(range);
    const auto back = [&](double x) { return type.scale * (quantised(x, type) - type.zero_point); };
    EXPECT_EQ(back(0), 0);
    EXPECT_NEAR(back(range.low), range.low, type.scale);
    EXPECT_NEAR(back(range.high), range.high, type.scale);
  }
  EXPECT_EQ(int8_type_of({0, 0}).zero_point, 0);
}

}  // namespace
}  // namespace morel::testing
