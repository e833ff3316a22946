// The index structure of calls (ops/axes.h), as text.
#include "morel/ops/axes.h"

#include "morel/ops/call.h"
#include "ops_support.h"

namespace morel::testing {
namespace {

std::string axes_of(std::string_view name, std::initializer_list<Value> given) {
  const OpDef& op = *registry().find(name);
  const Args args = complete_args(op, {given.begin(), given.size()});
  const Types outs = result_types(op, {args.data(), args.size()});
  return to_string(axis_map(op, {args.data(), args.size()}, {outs.data(), outs.size()}));
}

Value::List list_of(std::initializer_list<Value> items) {
  Value::List out;
  for (const Value& item : items) out.push_back(item);
  return out;
}

TEST(Axes, ElementwiseOperandsBroadcast) {
  EXPECT_EQ(axes_of("add", {sample({4, 3}), sample({3})}), "a b, b -> a b");
  EXPECT_EQ(axes_of("add", {sample({4, 1}), sample({5, 1, 3})}), "b 1, a 1 c -> a b c");
}

TEST(Axes, ProductsReduceWhatTheResultLacks) {
  EXPECT_EQ(axes_of("matrix_product", {sample({2, 4, 3}), sample({3, 5})}), "a b c, c d -> a b d");
  EXPECT_EQ(axes_of("dense", {sample({7, 3}), sample({5, 3}), sample({5})}), "a b, c b, c -> a c");
}

TEST(Axes, ReductionsAndRowsFollowTheirAxis) {
  EXPECT_EQ(axes_of("sum", {sample({4, 3, 2}), 1}), "a b c -> a c");
  EXPECT_EQ(axes_of("sum", {sample({4, 3, 2}), Ints{0, 2}, true}), "a b c -> 1 b 1");
  EXPECT_EQ(axes_of("argmax", {sample({4, 3}), 1}), "a [b] -> a");
  EXPECT_EQ(axes_of("log_softmax", {sample({4, 3}), 0}), "[a] b -> [a] b");
  EXPECT_EQ(axes_of("layer_norm_rows", {sample({4, 3}), sample({3}), sample({3}), 1e-5}),
            "a [b], [b], [b] -> a [b], a 1, a 1");
}

TEST(Axes, NamedAxesAreWhole) {
  EXPECT_EQ(axes_of("topk", {sample({4, 3}), 2, 1}), "a [b] -> a [c], a [d]");
  EXPECT_EQ(axes_of("topk", {sample({4, 3}), 2}), "a [b] -> a [c], a [d]");
  EXPECT_EQ(axes_of("cumsum", {sample({4, 3}), 0}), "[a] b -> [c] b");
  EXPECT_EQ(axes_of("concat", {list_of({sample({4, 3}), sample({4, 5})}), 1}), "a [b], a [c] -> a [d]");
  EXPECT_EQ(axes_of("pad_axes", {sample({4, 3}), Ints{0, 1}, Ints{0, 0}}), "a [b] -> a [c]");
  const Tensor index = convert(tensor({4, 2}, std::vector<double>(8, 0)), DType::Int64);
  EXPECT_EQ(axes_of("gather_elements", {sample({4, 3}), 1, index}), "a [b], a [c] -> a [d]");
}

TEST(Axes, GroupsAreAnIndexOfConvolutions) {
  const Ints one{1, 1}, none{0, 0, 0, 0};
  EXPECT_EQ(axes_of("convolution", {sample({2, 6, 5, 5}), sample({9, 2, 3, 3}), sample({9}), one, none, one, 3}),
            "a (b c) [d] [e], (b f) c [g] [h], (b f) -> a (b f) [i] [j]");
}

TEST(Axes, ViewsSplitAndMerge) {
  EXPECT_EQ(axes_of("reshape", {sample({4, 6}), Ints{4, 2, 3}}), "c (b a) -> c b a");
  EXPECT_EQ(axes_of("reshape", {sample({4, 2, 3}), Ints{24}}), "c b a -> (c b a)");
  EXPECT_EQ(axes_of("transpose", {sample({4, 3, 2}), Ints{2, 0, 1}}), "a b c -> c a b");
  EXPECT_EQ(axes_of("narrow", {sample({4, 3}), 1, 0, 2}), "a [b] -> a [c]");
  EXPECT_EQ(axes_of("broadcast_to", {sample({3}), Ints{4, 3}}), "a -> b a");
}

TEST(Axes, IndicesStandWhereTheIndexedAxesWere) {
  const Tensor rows = convert(tensor({2, 5}, std::vector<double>(10, 0)), DType::Int64);
  EXPECT_EQ(axes_of("take_axis", {sample({4, 3, 2}), rows, 1}), "a [b] c, d e -> a d e c");
  EXPECT_EQ(axes_of("index", {sample({4, 3, 2}), list_of({Value(), rows})}), "a [b] c, d e -> a d e c");
}

TEST(Axes, WhatAnEntryDoesNotSayIsWhole) {
  EXPECT_EQ(axes_of("as_strided_scatter", {sample({4}), sample({2}), Ints{2}, Ints{1}, 0}), "[a], [b] -> [c]");
}

}  // namespace
}  // namespace morel::testing
