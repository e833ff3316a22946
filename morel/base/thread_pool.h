// The one thread pool of the process. Loops, GEMM, convolutions and optimisers all split their work here; libraries
// below us (oneDNN, OpenBLAS) are always called single-threaded from a task.
//
// Rules: how work is cut into tasks depends on shapes alone, never on the number of threads, so results do not depend
// on it. Tasks are taken dynamically, so a core that is busy with something else takes fewer of them. Workers spin for
// a few microseconds and then sleep. A parallel call inside a task runs inline.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace morel {

int num_threads();
// n >= 1; the calling thread counts as one of them. Waits for a running parallel call of another thread; refused inside
// a task. Default: MOREL_NUM_THREADS, OMP_NUM_THREADS or the number of CPUs in the affinity mask.
void set_num_threads(int n);

using TaskFn = void (*)(void* context, int64_t task);
// Runs fn(context, t) for t in [0, n); returns when all are done. Tasks are started in order of t. When tasks throw,
// those not yet started are skipped and the exception of the lowest t is rethrown here. A second thread that calls
// while the workers are busy with the first one's tasks runs its own tasks itself.
void run_tasks(int64_t n, TaskFn fn, void* context);

template <class F>
void parallel_tasks(int64_t n, F&& fn) {
  if (n == 1) return fn(int64_t{0});
  using Fn = std::remove_reference_t<F>;
  run_tasks(
      n, [](void* context, int64_t task) { (*static_cast<Fn*>(context))(task); },
      const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
}

// fn(begin, end) over consecutive pieces of [0, n) of `grain` elements each (the last one may be shorter).
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& fn) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  if (n <= grain) return fn(int64_t{0}, n);
  parallel_tasks((n + grain - 1) / grain, [&](int64_t task) {
    const int64_t begin = task * grain;
    fn(begin, begin + grain < n ? begin + grain : n);
  });
}

// True inside a task, where a parallel call would run inline.
bool in_task();

// Libraries below us keep settings per thread (the OpenMP thread count, say). `fn` runs once in every worker, present
// or future, before its next task, and once in any other thread that calls init_this_thread(). At most 16 of them.
void add_thread_initializer(void (*fn)());
void init_this_thread();

// Called around blocking work (parallel calls, long kernels) so that the embedding program can let others run; the
// Python layer releases the interpreter lock here. Never called in a worker, inside a task or nested in another scope,
// so `enter` need only ask whether this thread holds the lock at all. Both null by default.
struct BlockingHooks {
  void* (*enter)();
  void (*leave)(void*);
};
void set_blocking_hooks(BlockingHooks hooks);

class BlockingScope {
 public:
  BlockingScope();
  ~BlockingScope();
  BlockingScope(const BlockingScope&) = delete;
  BlockingScope& operator=(const BlockingScope&) = delete;

 private:
  void (*leave_)(void*) = nullptr;  // null: nothing to undo
  void* state_ = nullptr;
};

}  // namespace morel
