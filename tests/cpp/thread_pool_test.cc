#include "morel/base/thread_pool.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "morel/base/error.h"

// By default ThreadSanitizer refuses threads in a forked child, which is what some of these tests are about.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace morel {
namespace {

class ThreadPoolTest : public testing::Test {
 protected:
  void SetUp() override { set_num_threads(3); }
  void TearDown() override {
    set_blocking_hooks({nullptr, nullptr});
    set_num_threads(1);
  }
};

int64_t parallel_sum(int64_t n, int64_t grain) {
  std::vector<int64_t> values(n);
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) values[i] = i;
  });
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

// Exit status of a forked child that runs `body`; -1 when it did not end in 20 s.
template <class F>
int status_of_child(F&& body) {
  const pid_t child = fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    _exit(status);
  }
  for (int i = 0; i < 2000; ++i) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
    usleep(10000);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return -1;
}

TEST_F(ThreadPoolTest, EachTaskRunsOnce) {
  for (int64_t n : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> runs(n);
    parallel_tasks(n, [&](int64_t task) { runs[task].fetch_add(1); });
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(runs[i].load(), 1) << n;
  }
}

TEST_F(ThreadPoolTest, PiecesCoverTheRange) {
  for (int64_t n : {0, 1, 5, 99, 100, 101}) {
    for (int64_t grain : {0, 1, 7, 100, 1000}) EXPECT_EQ(parallel_sum(n, grain), n * (n - 1) / 2);
  }
}

TEST_F(ThreadPoolTest, ManyShortCalls) {
  int64_t total = 0;
  for (int call = 0; call < 20000; ++call) {
    int64_t parts[4] = {};
    parallel_tasks(4, [&](int64_t task) { parts[task] = task + call; });
    total += parts[0] + parts[1] + parts[2] + parts[3];
  }
  EXPECT_EQ(total, 4 * (int64_t{20000} * 19999 / 2) + 20000 * 6);
}

TEST_F(ThreadPoolTest, CallsFarApartWakeSleepingWorkers) {
  for (int call = 0; call < 20; ++call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(parallel_sum(1000, 10), 499500);
  }
}

TEST_F(ThreadPoolTest, WorkersTakePart) {
  std::atomic<int> inside{0};
  parallel_tasks(3, [&](int64_t) {
    inside.fetch_add(1);
    while (inside.load() < 3) std::this_thread::yield();  // ends only when three threads are here at once
  });
  EXPECT_EQ(inside.load(), 3);
}

TEST_F(ThreadPoolTest, SlowWorkerIsWaitedForAsleep) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> finished{false};
  std::atomic<bool> taken{false};
  parallel_tasks(2, [&](int64_t) {
    if (std::this_thread::get_id() == caller) {
      while (!taken.load()) std::this_thread::yield();
    } else {
      taken = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      finished = true;
    }
  });
  EXPECT_TRUE(finished.load());
}

TEST_F(ThreadPoolTest, NestedCallRunsInline) {
  EXPECT_FALSE(in_task());
  std::atomic<int64_t> sum{0};
  parallel_tasks(8, [&](int64_t outer) {
    EXPECT_TRUE(in_task());
    const auto self = std::this_thread::get_id();
    parallel_tasks(8, [&](int64_t inner) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      sum += outer * 8 + inner;
    });
  });
  EXPECT_EQ(sum.load(), 64 * 63 / 2);
  EXPECT_FALSE(in_task());
}

TEST_F(ThreadPoolTest, LowestExceptionIsRethrown) {
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    for (int round = 0; round < 200; ++round) {
      try {
        parallel_tasks(100, [&](int64_t task) {
          if (task % 10 == 7) throw std::runtime_error(std::to_string(task));
        });
        FAIL() << "no exception";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "7");
      }
    }
    EXPECT_FALSE(in_task());
    EXPECT_EQ(parallel_sum(1000, 10), 499500);
  }
}

TEST_F(ThreadPoolTest, SeveralCallers) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int call = 0; call < 500; ++call) wrong += parallel_sum(200, 10) != 19900;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(ThreadPoolTest, ThreadCountChangesWhileOthersCall) {
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread caller([&] {
    while (!stop.load()) wrong += parallel_sum(200, 10) != 19900;
  });
  for (int round = 0; round < 50; ++round) {
    set_num_threads(1 + round % 4);
    EXPECT_EQ(num_threads(), 1 + round % 4);
    wrong += parallel_sum(200, 10) != 19900;
  }
  stop = true;
  caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(ThreadPoolTest, ThreadCountIsChecked) {
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(parallel_tasks(4, [](int64_t) { set_num_threads(2); }), Error);
  EXPECT_EQ(num_threads(), 3);
}

std::atomic<int> enters{0}, leaves{0};

TEST_F(ThreadPoolTest, BlockingHooksAroundParallelCallsOnly) {
  enters = leaves = 0;
  set_blocking_hooks({[]() -> void* {
                        ++enters;
                        return &enters;
                      },
                      [](void* state) {
                        EXPECT_EQ(state, &enters);
                        ++leaves;
                      }});
  parallel_tasks(1, [](int64_t) {});
  EXPECT_EQ(enters.load(), 0);
  parallel_tasks(4, [](int64_t) {
    BlockingScope nested;
    parallel_tasks(4, [](int64_t) {});
  });
  EXPECT_EQ(enters.load(), 1);
  EXPECT_EQ(leaves.load(), 1);
  {
    BlockingScope outer;
    parallel_tasks(4, [](int64_t) {});
  }
  EXPECT_EQ(enters.load(), 2);
  EXPECT_THROW(parallel_tasks(4, [](int64_t) { throw std::runtime_error("x"); }), std::runtime_error);
  EXPECT_EQ(enters.load(), 3);
  EXPECT_EQ(leaves.load(), 3);
  set_num_threads(1);
  const int before = enters.load();
  parallel_tasks(4, [](int64_t) {});
  EXPECT_EQ(enters.load(), before);
}

constinit thread_local int initialized = 0;

TEST_F(ThreadPoolTest, InitializersRunOncePerThread) {
  parallel_sum(100, 1);  // workers exist before the initializer does
  add_thread_initializer([] { ++initialized; });
  init_this_thread();
  for (int round = 0; round < 100; ++round) parallel_tasks(8, [](int64_t) { EXPECT_EQ(initialized, 1); });
  set_num_threads(2);
  set_num_threads(3);
  for (int round = 0; round < 100; ++round) parallel_tasks(8, [](int64_t) { EXPECT_EQ(initialized, 1); });
}

TEST_F(ThreadPoolTest, ForkedChildHasItsOwnWorkers) {
  EXPECT_EQ(parallel_sum(1000, 10), 499500);
  const auto body = [] {
    std::atomic<int> inside{0};
    parallel_tasks(3, [&](int64_t) {
      inside.fetch_add(1);
      while (inside.load() < 3) std::this_thread::yield();
    });
    return parallel_sum(1000, 10) == 499500 ? 0 : 1;
  };
  EXPECT_EQ(status_of_child(body), 0);
  EXPECT_EQ(status_of_child([&] { return body() + status_of_child(body); }), 0);  // a grandchild
  EXPECT_EQ(parallel_sum(1000, 10), 499500);
}

TEST_F(ThreadPoolTest, ForkWhileAnotherThreadIsInACall) {
  std::atomic<bool> stop{false}, started{false};
  std::thread caller([&] {
    parallel_tasks(3, [&](int64_t) {
      started = true;
      while (!stop.load()) std::this_thread::yield();
    });
  });
  while (!started.load()) std::this_thread::yield();
  EXPECT_EQ(status_of_child([] {
              set_num_threads(2);
              return parallel_sum(1000, 10) == 499500 ? 0 : 1;
            }),
            0);
  stop = true;
  caller.join();
}

TEST_F(ThreadPoolTest, ForkInsideATaskGivesAnError) {
  const std::thread::id caller = std::this_thread::get_id();
  const pid_t parent = getpid();
  std::atomic<bool> others_in{false};
  std::atomic<int> status{-1};
  std::string message;
  try {
    parallel_tasks(2, [&](int64_t) {
      if (std::this_thread::get_id() != caller) {
        others_in = true;
        while (status.load() == -1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return;
      }
      while (!others_in.load()) std::this_thread::yield();
      const pid_t child = fork();
      if (child == 0) return;
      int code = 0;
      waitpid(child, &code, 0);
      status = WEXITSTATUS(code);
    });
  } catch (const Error& error) {
    message = error.what();
  }
  if (getpid() != parent) _exit(message.find("forked inside") != std::string::npos ? 42 : 1);
  EXPECT_EQ(status.load(), 42);
}

TEST_F(ThreadPoolTest, ExitDoesNotHang) {
  // exit() runs static destructors while the workers spin or sleep.
  EXPECT_EXIT(
      {
        parallel_sum(1000, 10);
        std::exit(7);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace morel
