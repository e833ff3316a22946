// The memory plan: no two buffers that live at the same time overlap, and little is lost to gaps.
#include "morel/tensor/memory_plan.h"

#include <random>

#include <gtest/gtest.h>

namespace morel::testing {
namespace {

void expect_valid(const std::vector<BufferLife>& lives, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), lives.size());
  size_t end = 0;
  for (size_t i = 0; i < lives.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0u);
    if (lives[i].bytes) end = std::max(end, plan.offsets[i] + lives[i].bytes);
    for (size_t k = 0; k < i; ++k) {
      if (lives[i].first > lives[k].last || lives[k].first > lives[i].last) continue;
      EXPECT_TRUE(plan.offsets[i] + lives[i].bytes <= plan.offsets[k] ||
                  plan.offsets[k] + lives[k].bytes <= plan.offsets[i])
          << "buffers " << k << " and " << i << " overlap";
    }
  }
  EXPECT_LE(end, plan.arena_bytes);
  EXPECT_GE(plan.arena_bytes, plan.lower_bound);
}

TEST(MemoryPlan, OfNothing) {
  const MemoryPlan plan = plan_memory({});
  EXPECT_EQ(plan.arena_bytes, 0u);
  EXPECT_EQ(plan.lower_bound, 0u);
}

TEST(MemoryPlan, AChainNeedsTwoBuffers) {
  std::vector<BufferLife> lives;
  for (int32_t i = 0; i < 100; ++i) lives.push_back({1000, i, i + 1});
  const MemoryPlan plan = plan_memory(lives);
  expect_valid(lives, plan);
  EXPECT_EQ(plan.lower_bound, 2048u);
  EXPECT_EQ(plan.arena_bytes, 2048u);
}

TEST(MemoryPlan, LargeBuffersTakeTheGapsOfSmallOnes) {
  // 2 lives long; 3 fits where 0 and 1 were only if these lie next to each other.
  const std::vector<BufferLife> lives = {{64, 0, 1}, {64, 0, 1}, {64, 0, 9}, {128, 2, 9}};
  const MemoryPlan plan = plan_memory(lives);
  expect_valid(lives, plan);
  EXPECT_EQ(plan.arena_bytes, 192u);
}

// As in training: values are made on the way there and read on the way back, with short-lived ones in between.
std::vector<BufferLife> random_training(std::mt19937& random) {
  std::vector<BufferLife> lives;
  const int32_t depth = 5 + static_cast<int32_t>(random() % 60);
  for (int32_t i = 0; i < depth; ++i) {
    const size_t bytes = 64 << random() % 12;
    lives.push_back({bytes * (1 + random() % 3), i, 2 * depth - i});
    lives.push_back({bytes, i, i + 1});
    lives.push_back({bytes, 2 * depth - i, 2 * depth - i + 1 + static_cast<int32_t>(random() % 3)});
  }
  return lives;
}

TEST(MemoryPlan, RandomLifetimesDoNotOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<BufferLife> lives;
    const size_t count = 1 + random() % 80;
    for (size_t i = 0; i < count; ++i) {
      const auto first = static_cast<int32_t>(random() % 100);
      lives.push_back({random() % 5000, first, first + static_cast<int32_t>(random() % 30)});
    }
    expect_valid(lives, plan_memory(lives));
  }
}

TEST(MemoryPlan, TrainingIsNearTheLowerBound) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    const std::vector<BufferLife> lives = random_training(random);
    const MemoryPlan plan = plan_memory(lives);
    expect_valid(lives, plan);
    EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.1 * static_cast<double>(plan.lower_bound));
  }
}

}  // namespace
}  // namespace morel::testing
