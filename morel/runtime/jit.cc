// One thread compiles, in order of demand. A lock guards its queue and is never held while LLVM works, so a fork needs
// to wait for nobody: the child starts a thread of its own, or, where LLVM was at work at the moment of the fork and
// its own locks may be held for ever, compiles nothing any more. When the process ends, the thread stops at the end of
// the kernel that it has in hand, before LLVM's own objects are destroyed.
#include "morel/runtime/jit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "morel/loops/library.h"
#include "morel/loops/rewrite.h"

#ifdef __linux__
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace morel {
namespace {

using codegen::JitInterface;

// Work after which a program is compiled: elements, of which each call counts for a few.
constexpr int64_t call_work = 64;
constexpr int64_t worth_compiling = 4096;

enum class JitMode { Off, Later, Now };

JitMode choose_mode() {
  const char* setting = std::getenv("MOREL_JIT");
  const std::string_view text(setting ? setting : "");
  if (text == "off" || text == "0" || loops::active_isa() < 0) return JitMode::Off;
  return text == "now" ? JitMode::Now : JitMode::Later;
}
JitMode mode() {
  static const JitMode chosen = choose_mode();
  return chosen;
}

void stop_at_exit();

std::atomic<const JitInterface*> loaded{nullptr};
std::atomic<bool> unusable{false};  // forked while LLVM was at work

// LLVM registers destructors with __cxa_atexit, which would run while the thread is at work. libmorel_llvm.so defines
// that function to do nothing; RTLD_DEEPBIND makes the libraries that are loaded with it (no others) find that
// definition first. Sanitizers refuse the flag; with them exit waits for the kernel at hand, which catches most cases.
#if defined(RTLD_DEEPBIND) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr int open_flags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
constexpr bool exit_waits = false;
#else
constexpr int open_flags = RTLD_NOW | RTLD_LOCAL;
constexpr bool exit_waits = true;
#endif

const JitInterface* open_library() {
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&jit_compile), &self) == 0 || !self.dli_fname) return nullptr;
  std::string path(self.dli_fname);
  path.replace(path.rfind('/') + 1, std::string::npos, "libmorel_llvm.so");
  void* library = dlopen(path.c_str(), open_flags);
  if (!library && std::getenv("MOREL_JIT_VERBOSE")) std::fprintf(stderr, "morel jit: %s\n", dlerror());
  if (!library) return nullptr;
  using Entry = const JitInterface* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, codegen::jit_interface_symbol));
  if (!entry) return nullptr;
  if (exit_waits) std::atexit(stop_at_exit);  // runs before what LLVM registered while it was loaded
  loaded.store(entry(), std::memory_order_release);
  return entry();
}

const JitInterface* library() {
  static const JitInterface* const opened = open_library();
  return opened;
}

// ------------------------------------------------------------------------------------------------ the thread

void yield_to_others() {
#ifdef __linux__
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10);
#endif
}

class Compiler {
 public:
  void add(std::shared_ptr<LateLoop> loop) {
    std::lock_guard guard(lock_);
    if (off_) return;
    queue_.push_back(std::move(loop));
    if (!running_) start();
    changed_.notify_all();
  }
  // No compilation starts any more.
  void stop(bool wait) {
    std::unique_lock guard(lock_);
    off_ = true;
    changed_.notify_all();
    if (wait) changed_.wait(guard, [&] { return !busy_; });
  }

  void before_fork() { lock_.lock(); }
  void after_fork_in_parent() { lock_.unlock(); }
  // What the child needs of the parent's.
  Compiler* after_fork_in_child() {
    Compiler* made = new Compiler;
    made->off_ = off_ || busy_;
    if (busy_) unusable.store(true, std::memory_order_relaxed);
    if (!made->off_) made->queue_ = std::move(queue_);
    made->parent_ = this;
    return made;
  }

 private:
  void start() {
    // Signals belong to the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, signal);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([this] { work(); }).detach();
      running_ = true;
    } catch (const std::exception&) {
      off_ = true;  // no thread is to be had: programs stay interpreted
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void work() {
#ifdef __linux__
    pthread_setname_np(pthread_self(), "morel-jit");
#endif
    std::unique_lock guard(lock_);
    for (;;) {
      changed_.wait(guard, [&] { return off_ || !queue_.empty(); });
      if (off_) return;
      const std::shared_ptr<LateLoop> next = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      guard.unlock();
      library();
      yield_to_others();  // but not while it holds the loader's lock, for which others may have to wait
      next->compile();
      guard.lock();
      busy_ = false;
      if (!loaded.load(std::memory_order_relaxed)) off_ = true;  // there is no compiler
      changed_.notify_all();
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<LateLoop>> queue_;
  bool running_ = false, busy_ = false, off_ = false;
  Compiler* parent_ = nullptr;  // of a forked process, kept reachable for leak checkers
};

// Never destroyed: its thread may wait in it until the process ends.
constinit std::atomic<Compiler*> current{nullptr};

Compiler& compiler() {
  Compiler* found = current.load(std::memory_order_acquire);
  if (!found) {
    auto made = std::make_unique<Compiler>();
    if (current.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) {
      found = made.release();
      std::atexit(stop_at_exit);
    }
  }
  return *found;
}

void stop_at_exit() {
  if (Compiler* found = current.load(std::memory_order_acquire)) found->stop(exit_waits);
}

[[maybe_unused]] const int fork_handlers = pthread_atfork(
    [] {
      if (Compiler* found = current.load(std::memory_order_acquire)) found->before_fork();
    },
    [] {
      if (Compiler* found = current.load(std::memory_order_acquire)) found->after_fork_in_parent();
    },
    [] {
      if (Compiler* found = current.load(std::memory_order_acquire)) current.store(found->after_fork_in_child());
    });

}  // namespace

loops::LoopFn jit_compile(const loops::Program& program) {
  if (mode() == JitMode::Off || unusable.load(std::memory_order_relaxed)) return nullptr;
  const JitInterface* found = library();
  return found ? found->compile(program) : nullptr;
}

codegen::JitStats jit_stats() {
  const JitInterface* found = loaded.load(std::memory_order_acquire);
  return found ? found->stats() : codegen::JitStats{};
}

loops::Program for_this_machine(loops::Program program) {
#if defined(__x86_64__)
  if (loops::active_isa() == 0) {
    loops::Rewriter split(
        [](const loops::Expr& x) { return x->op == loops::ScalarOp::Fma ? x->args[0] * x->args[1] + x->args[2] : x; });
    for (loops::Statement& statement : program.statements) statement.value = split(statement.value);
  }
#endif
  return program;
}

void LateLoop::run(const loops::LoopArgs& args) {
  loops::LoopFn compiled = compiled_.load(std::memory_order_acquire);
  if (!compiled) {
    count(args.rows * args.n);
    compiled = compiled_.load(std::memory_order_acquire);
  }
  if (compiled) compiled(&args);
  else loops::interpret(program_, args);
}

bool LateLoop::want(int64_t elements) {
  if (!is_compiled()) count(elements);
  return is_compiled();
}

void LateLoop::count(int64_t elements) {
  const int64_t more = elements + call_work;
  const int64_t before = work_.fetch_add(more, std::memory_order_relaxed);
  if (mode() == JitMode::Now) {
    if (before == 0) compile();
  } else if (before < worth_compiling && before + more >= worth_compiling && mode() == JitMode::Later) {
    compiler().add(shared_from_this());
  }
}

void LateLoop::compile() { compiled_.store(jit_compile(program_), std::memory_order_release); }

}  // namespace morel
