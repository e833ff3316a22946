// Plan files: what is written is read back, and nothing that is damaged or wrong gets through.
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "morel/lite/archive.h"
#include "morel/lite/container.h"
#include "morel/lite/sizes.h"
#include "morel/lite/verify.h"

namespace morel::lite {
namespace {

Value value_of(std::string name, Sizes shape, Sizes strides, int32_t buffer) {
  Value out;
  out.name = std::move(name);
  out.shape = std::move(shape);
  out.strides = std::move(strides);
  out.buffer = buffer;
  return out;
}

Arg arg_of(int32_t value) {
  Arg out;
  out.tag = Arg::Tag::Value;
  out.value = value;
  return out;
}

// y = (x + w) reshaped, for x of [s0, 4]; twice its elements are expression 1.
Plan sample_plan() {
  Plan plan;
  plan.symbols = {{0, 0, 3}};
  SizeAtom s0, half;
  s0.symbol = 0;
  plan.exprs.push_back({{{1, {s0}}}});
  half.a = {0, 0};
  half.b = {2, -1};
  plan.exprs.push_back({{{16, {s0}}, {-1, {half, s0}}, {3, {half}}}});
  plan.exprs.push_back({{{16, {s0}}}});
  plan.guards = {{Guard::Kind::NotNegative, {0, 0}}};
  Function f;
  f.name = "main";
  Buffer input, weight, arena;
  input.home = Home::Input;
  input.bytes = {0, 2};
  weight.home = Home::Constant;
  weight.bytes = {16, -1};
  weight.offset = 64;
  arena.bytes = {0, 2};
  f.buffers = {input, weight, arena};
  f.values = {value_of("x", {{0, 0}, {4, -1}}, {{4, -1}, {1, -1}}, 0), value_of("w", {{4, -1}}, {{1, -1}}, 1),
              value_of("y", {{0, 0}, {4, -1}}, {{4, -1}, {1, -1}}, 2)};
  f.values[1].quantisation = Quantisation{{0.5f, 1, 2, 3}, {0, 1, 2, 3}, 0};
  f.inputs = {0};
  f.outputs = {2};
  Step add;
  add.kind = StepKind::Elementwise;
  add.name = "add.f32";
  add.args = {arg_of(0), arg_of(1)};
  add.outs = {2};
  add.signature.inputs = {DType::Float32, DType::Float32};
  add.signature.outputs = {{DType::Float32, false}};
  f.steps = {add};
  f.arena_bytes = 64;
  plan.functions = {f};
  return plan;
}

std::vector<std::byte> sample_file(const Plan& plan) {
  std::vector<std::byte> weights(128);
  const float numbers[] = {1, 2, 3, 4};
  std::memcpy(weights.data() + 64, numbers, sizeof numbers);
  return write_plan(plan, weights);
}

std::string error_of(Bytes file) {
  try {
    read_plan(file, "x.ms");
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::Internal) << error.message();
    return error.message();
  }
  return "";
}

TEST(LitePlan, IsReadAsItWasWritten) {
  const std::vector<std::byte> file = sample_file(sample_plan());
  const PlanFile model = read_plan(file, "x.ms");
  EXPECT_EQ(model.weights.size(), 128u);
  EXPECT_EQ((model.weights.data() - file.data()) % static_cast<ptrdiff_t>(page_bytes), 0);
  EXPECT_EQ(model.plan.functions[0].steps[0].name, "add.f32");
  EXPECT_EQ(model.plan.functions[0].values[1].quantisation->zero_points[3], 3);
  EXPECT_EQ(write_plan(model.plan, model.weights), file);
}

TEST(LitePlan, SizesAreEvaluated) {
  const Plan plan = sample_plan();
  const int64_t symbols[] = {5};
  const SizeValues sizes(plan, symbols);
  EXPECT_EQ(sizes({0, 0}), 5);
  EXPECT_EQ(sizes({0, 1}), 16 * 5 - 2 * 5 + 3 * 2);
  EXPECT_EQ(sizes({7, -1}), 7);
  const int64_t huge[] = {int64_t{1} << 47};
  EXPECT_THROW(SizeValues(plan, huge), Error);
}

TEST(LitePlan, EveryTruncationIsNoticed) {
  const std::vector<std::byte> file = sample_file(sample_plan());
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string error = error_of(Bytes(file).first(size));
    ASSERT_TRUE(error.starts_with("x.ms: byte ")) << size << ": " << error;
  }
}

TEST(LitePlan, EveryFlippedBitIsNoticed) {
  std::vector<std::byte> file = sample_file(sample_plan());
  const size_t body_end = header_bytes + 2 * section_entry_bytes;
  const auto flip = [&](size_t at, int bit) { file[at] ^= static_cast<std::byte>(1 << bit); };
  const auto check = [&](size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at)
      for (int bit = 0; bit < 8; ++bit) {
        flip(at, bit);
        ASSERT_NE(error_of(file), "") << "byte " << at;
        flip(at, bit);
      }
  };
  Writer writer;
  Plan plan = sample_plan();
  writer(plan);
  check(0, body_end + writer.bytes().size());  // what follows up to the weights is never read
  check(file.size() - 128, file.size());
}

// With a checksum that is right: a plan of a hostile author.
TEST(LitePlan, WhatIsDamagedIsRefusedOrWithinBounds) {
  Writer writer;
  Plan plan = sample_plan();
  writer(plan);
  const std::vector<std::byte> good = writer.bytes();
  std::mt19937 random(1);
  int refused = 0, taken = 0;
  const std::string name = "x.ms";
  const auto try_one = [&](const std::vector<std::byte>& bytes) {
    try {
      Plan read;
      Reader reader(bytes, name, 0);
      reader(read);
      reader.finish();
      verify(read, 128, name, 0);
      // Every element of every value lies within its buffer.
      const SizeValues sizes(read, planned_symbols(read));
      for (const Function& f : read.functions)
        for (const Value& value : f.values)
          layout_of(value, sizes, sizes(f.buffers[static_cast<size_t>(value.buffer)].bytes));
      ++taken;
    } catch (const Error& error) {
      EXPECT_TRUE(error.message().starts_with("x.ms: byte ")) << error.message();
      ++refused;
    }
  };
  for (size_t at = 0; at < good.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> bytes = good;
      bytes[at] ^= static_cast<std::byte>(1 << bit);
      try_one(bytes);
    }
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes = good;
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    try_one(bytes);
  }
  EXPECT_GT(refused, 10000);
  EXPECT_GT(taken, 100);  // names, for instance, may be anything
}

template <class Change>
std::string error_after(Change&& change) {
  Plan plan = sample_plan();
  change(plan);
  return error_of(sample_file(plan));
}

TEST(LitePlan, WrongPlansAreRefused) {
  EXPECT_EQ(error_after([](Plan&) {}), "");
  const auto expect = [](const std::string& error, const char* text) {
    EXPECT_TRUE(error.starts_with("x.ms: byte 96: the plan is wrong")) << error;
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  expect(error_after([](Plan& p) { p.functions[0].values[2].shape[0] = {400, -1}; }), "does not lie within its");
  expect(error_after([](Plan& p) { p.functions[0].values[2].strides[1] = {-1, -1}; }), "does not lie within its");
  expect(error_after([](Plan& p) { p.functions[0].buffers[1].offset = 128; }), "within the weights");
  expect(error_after([](Plan& p) { p.functions[0].buffers[2].offset = 64; }), "within the arena");
  expect(error_after([](Plan& p) { p.functions[0].steps[0].outs[0] = 1; }), "writes into a constant");
  expect(error_after([](Plan& p) { p.functions[0].steps[0].args[0].value = 9; }), "is not there");
  expect(error_after([](Plan& p) { p.exprs[1].terms[1].atoms[0].a.expr = 1; }), "an expression that is not there");
  expect(error_after([](Plan& p) { p.exprs[1].terms[1].atoms[0].b = {0, -1}; }), "divided by 0");
  expect(error_after([](Plan& p) { p.functions.push_back(p.functions[0]); }), "is used 0 times");
  expect(error_after([](Plan& p) { p.guards[0] = {Guard::Kind::Zero, {0, 0}}; }), "another relation");
  expect(error_after([](Plan& p) {
           Step& step = p.functions[0].steps[0];
           step.kind = StepKind::While;
           step.bodies = {0, 0};
           step.workspace = 2;
         }),
         "is not there");
}

}  // namespace
}  // namespace morel::lite
