// Sizes as expressions: normal forms, what is assumed, and agreement with plain integers on random expressions.
#include "morel/tensor/symbolic.h"

#include <random>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/ir/parse.h"

namespace morel {
namespace {

TEST(SymbolicTest, EqualExpressionsAreIdentical) {
  const Dim a = symbol(0), b = symbol(1);
  EXPECT_TRUE(((a + 1) * b).identical(b + a * b));
  EXPECT_TRUE((a - a).identical(0));
  EXPECT_TRUE((2 * a * b * 3).identical(a * 6 * b));
  EXPECT_FALSE(a.identical(b));
  EXPECT_EQ(to_string((a + 1) * b * 2 - 3), "2*s0*s1+2*s1-3");
}

TEST(SymbolicTest, DivisionFindsExactQuotients) {
  const Dim a = symbol(0), b = symbol(1), c = symbol(2);
  EXPECT_TRUE((a * b * 12 / (b * 4)).identical(a * 3));
  EXPECT_TRUE(((a * b + b) / b).identical(a + 1));
  EXPECT_TRUE(((a + 1) * (b + c) / (a + 1)).identical(b + c));
  EXPECT_TRUE((a * b % b).identical(0));
  EXPECT_EQ(to_string((a * 4 + 7) / 4), "s0+1");
  EXPECT_EQ(to_string((a + 5) / 2), "floor(s0+1, 2)+2");
  EXPECT_EQ(to_string((a * 2 - 1) / 2), "s0-1");
  EXPECT_EQ(to_string((a * 6 + b - 7) / 3), "2*s0+floor(s1+2, 3)-3");
  EXPECT_EQ(to_string(a / b), "floor(s0, s1)");
}

TEST(SymbolicTest, WhatFollowsFromLeastSizesIsNotAssumed) {
  const auto sizes = make_ref<SymbolicSizes>();
  const SymbolicSizes::Use use(sizes.get());
  const Dim a = sizes->add(5), b = sizes->add(7);
  EXPECT_TRUE(a != 1);
  EXPECT_TRUE(a * b >= 4);
  EXPECT_TRUE(a / 2 > 0);
  EXPECT_FALSE(a + b < 3);
  EXPECT_TRUE(a == a);
  EXPECT_TRUE(sizes->guards().empty());
}

TEST(SymbolicTest, ATruthIsAssumedOnceAndChecked) {
  const auto sizes = make_ref<SymbolicSizes>();
  const SymbolicSizes::Use use(sizes.get());
  const Dim a = sizes->add(5), b = sizes->add(7);
  EXPECT_TRUE(a < b);
  EXPECT_FALSE(b <= a);
  EXPECT_FALSE(a * 2 == b);
  EXPECT_FALSE(a == 6);
  ASSERT_EQ(sizes->guards().size(), 3u);
  const auto hold = [&](int64_t x, int64_t y) {
    const int64_t values[] = {x, y};
    return sizes->hold(values);
  };
  EXPECT_TRUE(hold(5, 7));
  EXPECT_TRUE(hold(3, 100));
  EXPECT_FALSE(hold(7, 7));
  EXPECT_FALSE(hold(4, 8));
  EXPECT_FALSE(hold(6, 9));
}

TEST(SymbolicTest, EqualSizesAndNumbersArePutIn) {
  const auto sizes = make_ref<SymbolicSizes>();
  const SymbolicSizes::Use use(sizes.get());
  const Dim a = sizes->add(6), b = sizes->add(6), c = sizes->add(12), d = sizes->add(4);
  EXPECT_TRUE(a == b);
  EXPECT_TRUE(c == a * 2);
  EXPECT_TRUE((c * 5 / b).identical(10));
  EXPECT_EQ(static_cast<int64_t>(d * 3), 12);  // the number is asked for
  EXPECT_TRUE((d + 1).identical(5));
  EXPECT_EQ(sizes->guards().size(), 3u);
}

TEST(SymbolicTest, OutsideOfAGraphThereIsNoNumber) {
  EXPECT_THROW(static_cast<void>(static_cast<int64_t>(symbol(0))), Error);
  EXPECT_FALSE(symbol(0) == symbol(1));
}

// A random expression, computed with symbols and with numbers.
struct Pair {
  Dim symbolic;
  int64_t number;
};

TEST(SymbolicTest, RandomExpressionsAgreeWithNumbers) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const auto sizes = make_ref<SymbolicSizes>();
    const SymbolicSizes::Use use(sizes.get());
    std::vector<int64_t> other;
    std::vector<Pair> pool;
    for (int i = 0; i < 3; ++i) {
      const int64_t example = 2 + static_cast<int64_t>(random() % 9);
      pool.push_back({sizes->add(example), example});
    }
    for (int step = 0; step < 12; ++step) {
      const Pair a = pool[random() % pool.size()], b = pool[random() % pool.size()];
      const int64_t n = 1 + static_cast<int64_t>(random() % 4);
      if (std::abs(a.number) > 1000 || std::abs(b.number) > 1000) continue;
      switch (random() % 7) {
        case 0: pool.push_back({a.symbolic + b.symbolic, a.number + b.number}); break;
        case 1: pool.push_back({a.symbolic * n - n / 2, a.number * n - n / 2}); break;
        case 2: pool.push_back({a.symbolic * b.symbolic, a.number * b.number}); break;
        case 3: pool.push_back({a.symbolic / n, a.number / n}); break;
        case 4: pool.push_back({a.symbolic % n, a.number % n}); break;
        case 5:
          if (b.number > 0) pool.push_back({a.symbolic / b.symbolic, a.number / b.number});
          break;
        case 6: EXPECT_EQ(a.symbolic < b.symbolic, a.number < b.number); break;
      }
      EXPECT_EQ(evaluate(pool.back().symbolic, sizes->examples()), pool.back().number);
      EXPECT_EQ(pool.back().symbolic == a.symbolic, pool.back().number == a.number);
      // What was found out is put into what follows.
      EXPECT_EQ(evaluate(sizes->normal(a.symbolic), sizes->examples()), a.number);
    }
    EXPECT_TRUE(sizes->hold(sizes->examples()));
  }
}

TEST(SymbolicTest, GraphsWithSymbolsReadBack) {
  const std::string text =
      "graph f(%0: f32[s0,s1], %1: f32[3]) sizes(s0=4, s1=3) assuming(s1-3 == 0, s0-2 >= 0) {\n"
      "  %2: f32[s0,s1] = add(%0, %1)\n"
      "  %3: f32[floor(s0+1, 2)-1,s1] = strided_slice(%2, (2, 0), (s0, s1), (2, 1), 0, 0, 0, 0, 0)\n"
      "  %4: f32[3*s0] = reshape(%2, (s0*s1))\n"
      "  return %3, %4\n"
      "}\n";
  EXPECT_EQ(print(*parse(print(*parse(text)))), print(*parse(text)));
  for (const char* wrong :
       {"graph f(%0: f32[s0]) {\n return %0\n}", "graph f(%0: f32[s1]) sizes(s0=2) {\n return %0\n}",
        "graph f(%0: f32[s0]) sizes(s0=2) assuming(s0-3 == 0) {\n return %0\n}",
        "graph f(%0: f32[s0]) sizes(s0=1) {\n return %0\n}", "graph f(%0: f32[floor(s0, 0)]) {\n return %0\n}",
        "graph f(%0: f32[s99999999999999999999]) {\n return %0\n}"})
    EXPECT_THROW(parse(wrong), Error) << wrong;
}

}  // namespace
}  // namespace morel
