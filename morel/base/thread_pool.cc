// One parallel call at a time owns the workers. Its description (`Region`) lies in the pool, guarded by `gate_`: a word
// that holds a "closed" bit and the number of workers inside. A worker enters by counting itself in and looks whether
// the gate was open; the owner closes the gate and waits until nobody is inside before it returns or describes new
// work.
#include "morel/base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "morel/base/error.h"

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/futex.h>
#endif

namespace morel {
namespace {

constexpr auto spin_time = std::chrono::microseconds(20);

using Word = std::atomic<uint32_t>;

#ifdef __linux__
static_assert(sizeof(Word) == sizeof(uint32_t));
void sleep_while(Word& word, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake(Word& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}
#else
void sleep_while(Word& word, uint32_t value) { word.wait(value); }
void wake(Word& word, int) { word.notify_all(); }
#endif

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Whether `done` became true within the spin time. The clock costs about as much as a pause: look at it every 16.
template <class Done>
bool spin_until(Done&& done) {
  const auto end = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

constexpr int max_initializers = 16;
std::atomic<void (*)()> initializers[max_initializers];
std::atomic<int> num_initializers{0};
std::mutex initializers_lock;

constinit thread_local int initializers_run = 0;
constinit thread_local bool inside_task = false;
constinit thread_local bool inside_blocking_scope = false;

struct TaskMark {
  bool before = std::exchange(inside_task, true);
  ~TaskMark() { inside_task = before; }
};

void run_inline(int64_t n, TaskFn fn, void* context) {
  for (int64_t task = 0; task < n; ++task) fn(context, task);
}

struct Region {
  TaskFn fn = nullptr;
  void* context = nullptr;
  int64_t n = 0;
  alignas(64) std::atomic<int64_t> next{0};
  // The exception of the lowest task: every task below a failing one was started before it, so which one is rethrown
  // does not depend on the number of threads.
  std::mutex error_lock;
  std::exception_ptr error;
  int64_t error_task = 0;

  void describe(int64_t count, TaskFn task_fn, void* task_context) {
    fn = task_fn;
    context = task_context;
    n = count;
    next.store(0, std::memory_order_relaxed);
  }

  void take_tasks() noexcept {
    TaskMark mark;
    for (;;) {
      const int64_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= n) return;
      try {
        fn(context, task);
      } catch (...) {
        std::lock_guard guard(error_lock);
        if (!error || task < error_task) {
          error = std::current_exception();
          error_task = task;
        }
        next.store(n, std::memory_order_relaxed);
      }
    }
  }
};

class Pool {
 public:
  // Runs all tasks, or returns false at once when another thread owns the workers.
  bool try_run(int64_t n, TaskFn fn, void* context, int threads);
  // Stops the workers; the next parallel call starts as many as are wanted then.
  void stop_workers();
  // In the child of a fork: the workers exist no more.
  void orphan() { orphaned_.store(true, std::memory_order_relaxed); }

  Pool* previous = nullptr;  // keeps the pools of a forked process's ancestors reachable for leak checkers

 private:
  static constexpr uint32_t closed = 1u << 31;
  static constexpr uint32_t owner_sleeps = 1u << 30;
  static constexpr uint32_t count_mask = owner_sleeps - 1;

  void start_workers(int count);
  void work();
  void help();
  void wait_for_epoch(uint32_t seen);
  void wait_until_empty();

  std::mutex owner_;  // held for the whole of a parallel call
  std::vector<std::thread> workers_;
  int start_failed_at_ = 0;  // the system refused this many workers: do not ask at every call
  std::atomic<bool> stop_{false};
  std::atomic<bool> orphaned_{false};
  alignas(64) Word epoch_{0};
  alignas(64) Word sleepers_{0};
  alignas(64) Word gate_{closed};
  alignas(64) Region region_;
};

bool Pool::try_run(int64_t n, TaskFn fn, void* context, int threads) {
  std::unique_lock owner(owner_, std::try_to_lock);
  if (!owner) return false;
  start_workers(threads - 1);
  region_.describe(n, fn, context);
  gate_.fetch_and(~closed, std::memory_order_release);
  // Sequentially consistent with the sleeper's count-then-look in wait_for_epoch: one of the two sees the other.
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  if (const uint32_t sleepers = sleepers_.load(std::memory_order_seq_cst)) {
    wake(epoch_, static_cast<int>(std::min<int64_t>(n - 1, sleepers)));
  }
  region_.take_tasks();
  gate_.fetch_or(closed, std::memory_order_acq_rel);
  wait_until_empty();
  if (std::exception_ptr error = std::exchange(region_.error, nullptr)) {
    owner.unlock();
    std::rethrow_exception(std::move(error));
  }
  return true;
}

void Pool::wait_until_empty() {
  const auto empty = [&] { return (gate_.load(std::memory_order_acquire) & count_mask) == 0; };
  if (empty() || spin_until(empty)) return;
  gate_.fetch_or(owner_sleeps, std::memory_order_acq_rel);
  for (;;) {
    const uint32_t gate = gate_.load(std::memory_order_acquire);
    if ((gate & count_mask) == 0) break;
    MOREL_CHECK(!orphaned_.load(std::memory_order_relaxed), Runtime,
                "the process was forked inside a parallel task: the child cannot finish the parent's parallel call");
    sleep_while(gate_, gate);
  }
  gate_.fetch_and(~owner_sleeps, std::memory_order_relaxed);
}

void Pool::start_workers(int count) {
  if (static_cast<int>(workers_.size()) >= count || count == start_failed_at_) return;
  // Signals belong to the program's own threads (Ctrl-C must reach the one that waits for it).
  sigset_t all, before;
  sigfillset(&all);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, signal);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    workers_.reserve(count);
    while (static_cast<int>(workers_.size()) < count) workers_.emplace_back([this] { work(); });
  } catch (const std::exception&) {
    start_failed_at_ = count;  // fewer workers are slower but right
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Pool::stop_workers() {
  std::lock_guard owner(owner_);
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  wake(epoch_, static_cast<int>(workers_.size()));
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  start_failed_at_ = 0;
  stop_.store(false, std::memory_order_relaxed);
}

void Pool::work() {
#ifdef __linux__
  pthread_setname_np(pthread_self(), "morel-worker");
#endif
  init_this_thread();
  // The call that started this worker may be under way already: look before waiting.
  for (;;) {
    const uint32_t seen = epoch_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    help();
    wait_for_epoch(seen);
  }
}

void Pool::help() {
  // A late worker may count itself in after the gate closed, even while the next call is being described: it then looks
  // at nothing but the gate.
  if (!(gate_.fetch_add(1, std::memory_order_acq_rel) & closed)) {
    init_this_thread();
    region_.take_tasks();
  }
  const uint32_t before = gate_.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & count_mask) == 1 && (before & owner_sleeps)) wake(gate_, 1);
}

void Pool::wait_for_epoch(uint32_t seen) {
  const auto changed = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
  if (spin_until(changed)) return;
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (epoch_.load(std::memory_order_seq_cst) == seen) sleep_while(epoch_, seen);
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

// Never destroyed: the workers sleep until the process ends, so nothing can hang at exit. A plain pointer and not a
// function-local static, whose guard could be held by another thread at a fork.
constinit std::atomic<Pool*> current_pool{nullptr};

Pool& pool() {
  Pool* found = current_pool.load(std::memory_order_acquire);
  if (!found) {
    auto made = std::make_unique<Pool>();
    if (current_pool.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) found = made.release();
  }
  return *found;
}

// The child of a fork has none of the workers, and whatever lock of the old pool was held at the fork stays held: it
// gets a new pool.
void after_fork_in_child() {
  Pool* old = current_pool.load(std::memory_order_relaxed);
  if (!old) return;
  old->orphan();
  Pool* made = new Pool;
  made->previous = old;
  current_pool.store(made, std::memory_order_relaxed);
}
[[maybe_unused]] const int fork_handler = pthread_atfork(nullptr, nullptr, after_fork_in_child);

int positive_from_environment(const char* name) {
  const char* text = std::getenv(name);
  const long value = text ? std::strtol(text, nullptr, 10) : 0;  // OMP_NUM_THREADS may be a list: the first counts
  return value > 0 ? static_cast<int>(std::min(value, 1024L)) : 0;
}

int default_num_threads() {
  for (const char* name : {"MOREL_NUM_THREADS", "OMP_NUM_THREADS"}) {
    if (const int n = positive_from_environment(name)) return n;
  }
#ifdef __linux__
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) return std::max(1, CPU_COUNT(&cpus));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

constinit std::atomic<int> wanted_threads{0};  // 0: not asked for yet

constinit std::atomic<void* (*)()> blocking_enter{nullptr};
constinit std::atomic<void (*)(void*)> blocking_leave{nullptr};

}  // namespace

int num_threads() {
  int n = wanted_threads.load(std::memory_order_relaxed);
  if (n == 0) [[unlikely]] {
    int unset = 0;
    n = default_num_threads();
    if (!wanted_threads.compare_exchange_strong(unset, n, std::memory_order_relaxed)) n = unset;
  }
  return n;
}

void set_num_threads(int n) {
  MOREL_CHECK(n >= 1, Value, "the number of threads must be at least 1, got ", n, ".");
  MOREL_CHECK(!inside_task, Runtime, "the number of threads cannot change inside a parallel task.");
  BlockingScope scope;  // waits for a running parallel call, whose thread may want the embedding program's lock
  const int before = num_threads();
  wanted_threads.store(n, std::memory_order_relaxed);
  if (n < before && current_pool.load(std::memory_order_acquire)) pool().stop_workers();
}

bool in_task() { return inside_task; }

void run_tasks(int64_t n, TaskFn fn, void* context) {
  if (n <= 0) return;
  const int threads = num_threads();
  if (n == 1 || threads == 1 || inside_task) return run_inline(n, fn, context);
  BlockingScope scope;
  if (pool().try_run(n, fn, context, threads)) return;
  TaskMark mark;
  run_inline(n, fn, context);
}

void add_thread_initializer(void (*fn)()) {
  std::lock_guard guard(initializers_lock);
  const int idx = num_initializers.load(std::memory_order_relaxed);
  MOREL_ASSERT(idx < max_initializers);
  initializers[idx].store(fn, std::memory_order_relaxed);
  num_initializers.store(idx + 1, std::memory_order_release);
}

void init_this_thread() {
  const int wanted = num_initializers.load(std::memory_order_acquire);
  while (initializers_run < wanted) initializers[initializers_run++].load(std::memory_order_relaxed)();
}

void set_blocking_hooks(BlockingHooks hooks) {
  MOREL_CHECK(!hooks.enter == !hooks.leave, Value, "both blocking hooks must be given, or none.");
  blocking_leave.store(hooks.leave, std::memory_order_relaxed);
  blocking_enter.store(hooks.enter, std::memory_order_release);
}

BlockingScope::BlockingScope() {
  if (inside_blocking_scope || inside_task) return;
  const auto enter = blocking_enter.load(std::memory_order_acquire);
  if (!enter) return;
  leave_ = blocking_leave.load(std::memory_order_relaxed);
  state_ = enter();
  inside_blocking_scope = true;
}

BlockingScope::~BlockingScope() {
  if (!leave_) return;
  inside_blocking_scope = false;
  leave_(state_);
}

}  // namespace morel
