// The executor: planned memory, runs that follow each other or overlap, results that are nobody else's.
#include "morel/runtime/executor.h"

#include <thread>

#include "morel/base/poison.h"
#include "morel/kernels/output.h"
#include "morel/tensor/allocator.h"
#include "morel/transform/graph_builder.h"
#include "ops_support.h"

namespace morel::testing {
namespace {

template <class F>
Ref<Graph> make(std::initializer_list<Type> parameters, F&& body) {
  auto graph = make_ref<Graph>();
  graph->name = "f";
  GraphBuilder builder(graph);
  Syms given;
  for (const Type& type : parameters) given.push_back(Sym(builder, graph->add_parameter(type)));
  for (const Sym& result : Syms(body(builder, given))) graph->results.push_back(result.value());
  verify(*graph);
  return graph;
}

Type square(int64_t n) { return {DType::Float32, {n, n}}; }

std::vector<double> numbers(const Value& value) { return elements(value.tensor()); }

// Products with elementwise operators between them: every value dies soon.
Ref<Graph> products(int64_t n, int depth) {
  return make({square(n), square(n)}, [&](Builder& b, const Syms& given) -> Syms {
    Sym x = given[0];
    for (int i = 0; i < depth; ++i) x = b("tanh", b("matmul", x, given[1]));
    return {x};
  });
}

std::vector<double> products_eagerly(const Tensor& first, const Tensor& second, int depth) {
  Value x = first;
  for (int i = 0; i < depth; ++i) x = one("tanh", {one("matmul", {x, second})});
  return numbers(x);
}

TEST(Executor, DeepGraphsNeedFewBuffers) {
  const Executor executor(products(32, 20));
  const Executor::MemoryUse use = executor.memory_use();
  EXPECT_EQ(use.lower_bound, 2u * 32 * 32 * 4);
  EXPECT_EQ(use.arena_bytes, use.lower_bound);
  EXPECT_EQ(use.own_bytes, 32u * 32 * 4);
}

TEST(Executor, ResultsOfRunsAreIndependent) {
  const Executor executor(products(8, 3));
  const Tensor a = sample({8, 8}), b = sample({8, 8});
  const Value given[] = {a, b}, swapped[] = {b, b};
  const Values first = executor.run(given);
  const std::vector<double> before = numbers(first[0]);
  const Values second = executor.run(swapped);
  EXPECT_EQ(numbers(first[0]), before);
  EXPECT_EQ(before, products_eagerly(a, b, 3));
  call("fill_", {first[0], 7.0});
  EXPECT_EQ(numbers(executor.run(given)[0]), before);
}

TEST(Executor, ViewsOfIntermediatesAndParametersMayBeReturned) {
  const auto graph = make({square(4)}, [](Builder& b, const Syms& given) -> Syms {
    const Sym y = given[0] * 2.0;
    return {b("swapaxes", y, 0, 1), b("reshape", y, Ints{16}), given[0], b("swapaxes", given[0], 0, 1)};
  });
  const Executor executor(graph);
  const Tensor x = sample({4, 4}), other = Tensor::full({4, 4}, DType::Float32, 1);
  const Value given[] = {x}, others[] = {other};
  const Values found = executor.run(given);
  executor.run(others);
  const Value doubled = one("mul", {x, 2.0});
  EXPECT_EQ(numbers(found[0]), numbers(one("swapaxes", {doubled, 0, 1})));
  EXPECT_EQ(numbers(found[1]), numbers(doubled));
  EXPECT_EQ(found[2].tensor(), x);
  EXPECT_EQ(numbers(found[3]), numbers(one("swapaxes", {x, 0, 1})));
  EXPECT_EQ(found[3].tensor()->storage.get(), x->storage.get());
}

TEST(Executor, LayoutsOfParametersMayChange) {
  const auto graph = make({square(6)}, [](Builder& b, const Syms& given) -> Syms {
    return {b("sum", b("reshape", b("exp", given[0]), Ints{4, 9}), Ints{0}, false)};
  });
  const Executor executor(graph);
  const Tensor x = sample({6, 6});
  const Tensor turned = one("swapaxes", {x, 0, 1});
  for (int round = 0; round < 3; ++round) {
    for (const Tensor& input : {x, turned}) {
      const Value given[] = {input};
      const Value wanted = one("sum", {one("reshape", {one("exp", {input}), Ints{4, 9}}), Ints{0}, false});
      EXPECT_EQ(numbers(executor.run(given)[0]), numbers(wanted));
    }
  }
}

void expect_no_more_memory_than_planned(const Executor& executor, std::span<const Value> given) {
  executor.run(given);
  executor.run(given);
  const Executor::MemoryUse use = executor.memory_use();
  reset_peak_stats();
  const AllocatorStats before = allocator_stats();
  const Values found = executor.run(given);
  const AllocatorStats after = allocator_stats();
  EXPECT_EQ(after.peak_in_use - before.in_use, static_cast<int64_t>(use.arena_bytes + use.own_bytes));
  EXPECT_EQ(after.in_use - before.in_use, static_cast<int64_t>(use.own_bytes));
  EXPECT_EQ(after.reserved, before.reserved);
}

TEST(Executor, NothingIsAllocatedButTheArenaAndResults) {
  const Value given[] = {sample({64, 64}), sample({64, 64})};
  expect_no_more_memory_than_planned(Executor(products(64, 4)), given);
}

TEST(Executor, TemporariesOfKernelsLieInTheArena) {
  const auto graph = make({square(64)}, [](Builder& b, const Syms& given) -> Syms {
    const Sym y = b("exp", given[0]);
    return {b("tanh", b("dense", b("swapaxes", y, 0, 1), y, nullptr))};  // which copies what is not contiguous
  });
  const Executor executor(graph);
  const Value given[] = {sample({64, 64})};
  const size_t before = executor.memory_use().arena_bytes;
  expect_no_more_memory_than_planned(executor, given);
  EXPECT_EQ(executor.memory_use().arena_bytes, before + 64 * 64 * 4);
}

TEST(Executor, ThreadsRunTheSameGraphAtOnce) {
  const Executor executor(products(24, 6));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Tensor a = Tensor::full({24, 24}, DType::Float32, 0.01 * (t + 1)), b = sample({24, 24});
      const Value given[] = {a, b};
      const std::vector<double> wanted = products_eagerly(a, b, 6);
      for (int round = 0; round < 50; ++round) EXPECT_EQ(numbers(executor.run(given)[0]), wanted);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Executor, AnErrorInTheMiddleLeavesNoDamage) {
  const auto graph = make({square(16), {DType::Int64, {2}}}, [](Builder& b, const Syms& given) -> Syms {
    const Sym y = b("exp", given[0]);
    return {b("matmul", b("index_select", y, 0, given[1]), y)};
  });
  const Executor executor(graph);
  const Tensor good = Tensor::full({2}, DType::Int64, 3), bad = Tensor::full({2}, DType::Int64, 99);
  const Value wrong[] = {sample({16, 16}), bad}, right[] = {sample({16, 16}), good};
  const std::vector<double> wanted = numbers(executor.run(right)[0]);
  const int64_t in_use = allocator_stats().in_use;
  for (int round = 0; round < 10; ++round) EXPECT_THROW(executor.run(wrong), Error);
  EXPECT_EQ(allocator_stats().in_use, in_use);
  EXPECT_EQ(numbers(executor.run(right)[0]), wanted);
}

TEST(Executor, ArenasOfManySizesShareMemory) {
  std::vector<std::unique_ptr<Executor>> executors;
  std::vector<Tensor> inputs;
  for (int64_t n = 256; n <= 512; n += 16) {
    executors.push_back(std::make_unique<Executor>(make({square(n)}, [](Builder& b, const Syms& given) -> Syms {
      return {b("sum", b("matmul", b("matmul", given[0], given[0]), given[0]), nullptr, false)};
    })));
    inputs.push_back(Tensor::full({n, n}, DType::Float32, 0.1));
  }
  empty_cache();
  const int64_t before = allocator_stats().reserved;
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < executors.size(); ++i) {
      const Value given[] = {inputs[i]};
      executors[i]->run(given);
    }
  }
  const int64_t largest = 2 * 512 * 512 * 4;  // two products are alive at a time
  EXPECT_LE(allocator_stats().reserved - before, 2 * largest);
}

// Under AddressSanitizer what the plan does not use at a time must not be touched.
TEST(Executor, DeadPartsOfTheArenaArePoisoned) {
  if (!can_poison) GTEST_SKIP() << "this build has no AddressSanitizer";
  static std::vector<std::pair<const void*, bool>>
      seen;  // of what was printed: where it lies, and whether it may be read
  seen.clear();
  const auto look = [](const std::string&, std::span<const Value> tensors) {
    const Tensor tensor = tensors[0].tensor();
    seen.emplace_back(tensor.data(), !is_poisoned(tensor.data(), static_cast<size_t>(tensor.size()) * 4));
    const char* end = static_cast<const char*>(seen[0].first) + 16 * 16 * 4;
    if (seen.size() > 1) seen.emplace_back(end, !is_poisoned(end - 4, 4));
  };
  const Output before = set_output({.print = look, .raise = nullptr});
  const Executor executor(make({square(16)}, [](Builder& b, const Syms& given) -> Syms {
    const Sym early = b("cumsum", given[0], 0);
    b("print_", Value(Value::List{early.value()}), "{}");
    const Sym small = b("sum", early, nullptr, false);
    const Sym late = b("exp", small);
    b("print_", Value(Value::List{late.value()}), "{}");
    return {b("add", late, small)};
  }));
  const Value given[] = {sample({16, 16})};
  executor.run(given);
  set_output(before);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen[0].second);   // alive
  EXPECT_TRUE(seen[1].second);   // alive
  EXPECT_FALSE(seen[2].second);  // dead by then
}

TEST(Allocator, FreedMemoryAndTheRestOfABlockArePoisoned) {
  if (!can_poison) GTEST_SKIP() << "this build has no AddressSanitizer";
  char* data = static_cast<char*>(allocate(100));
  EXPECT_FALSE(is_poisoned(data, 100));
  EXPECT_TRUE(is_poisoned(data + 100, 1));
  deallocate(data, 100);
  EXPECT_TRUE(is_poisoned(data, 1));
}

}  // namespace
}  // namespace morel::testing
