// Code of the JIT against the interpreter, bit for bit; its cache on disk; forks. Skipped where libmorel_llvm.so is not
// built. Tests that need a process of their own run this program again.
#include "morel/runtime/jit.h"

#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "morel/codegen/llvm/disk_cache.h"
#include "morel/loops/library.h"
#include "morel/ops/registry.h"
#include "morel/runtime/loop_kernel.h"
#include "tests/cpp/loops_programs.h"

namespace morel::loops {
namespace {

namespace fs = std::filesystem;

Program plus_constant(double constant) {
  return elementwise("plus.f32", {DType::Float32}, DType::Float32, [&](Args a) { return a[0] + constant; });
}

// Nothing of the tests goes into the user's cache, and nothing of earlier runs into the tests. (Child processes are
// told what to use.)
class OwnCache : public testing::Environment {
 public:
  void SetUp() override {
    if (std::getenv("MOREL_TEST_REPORT")) return;
    folder_ = fs::temp_directory_path() / ("morel_jit_test_" + std::to_string(getpid()));
    setenv("MOREL_CACHE_DIR", folder_.c_str(), /*overwrite=*/1);
  }
  void TearDown() override {
    if (folder_.empty()) return;
    std::error_code error;
    do fs::remove_all(folder_, error);
    while (error == std::errc::directory_not_empty);  // the thread in the background writes its last kernel
    EXPECT_FALSE(error) << error.message();
  }

 private:
  fs::path folder_;
};
[[maybe_unused]] testing::Environment* const own_cache = testing::AddGlobalTestEnvironment(new OwnCache);

bool has_jit() {
  static const bool found = jit_compile(plus_constant(1)) != nullptr;
  return found;
}

#define NEEDS_JIT()                                                                                                    \
  if (!has_jit()) GTEST_SKIP() << "no libmorel_llvm.so, or MOREL_JIT=off"

void expect_same_as_interpreter(const Program& made, std::initializer_list<int64_t> lengths) {
  const Program program = for_this_machine(made);
  const LoopFn compiled = jit_compile(program);
  ASSERT_NE(compiled, nullptr) << program.name << "\n" << print(program);
  for (int64_t n : {5, 40, 1500}) compare_in_place(program, compiled, n);
  for (int64_t n : lengths) {
    for (LayoutKind kind : {LayoutKind::Contiguous, LayoutKind::Strided, LayoutKind::Broadcast}) {
      for (int64_t rows : {1, 3}) compare(program, program, compiled, 0, rows, n, kind);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Jit, EqualsInterpreter) {
  NEEDS_JIT();
  const std::vector<Program> programs = test_programs();
  const size_t step = std::getenv("MOREL_TEST_REPORT") ? 3 : 1;  // inside other tests some of them will do
  for (size_t i = 0; i < programs.size(); i += step) {
    const Program& program = programs[i];
    expect_same_as_interpreter(program, {0, 1, 7, 31, 32, 33, 1000, 1024, 2100});
    if (HasFatalFailure()) return;
  }
}

// Of the registry's programs, every one of float32 and a third of the others: they differ in little but their types.
TEST(Jit, RegistryEqualsInterpreter) {
  NEEDS_JIT();
  const bool every = std::getenv("MOREL_TEST_ALL") != nullptr;
  for (const Program& program : ahead_of_time_programs()) {
    const bool common = program.name.find(".f32") != std::string::npos;
    if (!every && !common && std::hash<std::string>()(program.name) % 3 != 0) continue;
    expect_same_as_interpreter(program, {0, 33, 1100});
    if (HasFatalFailure()) return;
  }
}

TEST(Jit, RowsOfOneElement) {
  NEEDS_JIT();
  ProgramBuilder builder("scaled.f32");
  const Expr x = builder.input(DType::Float32), factor = builder.row_input(DType::Float32);
  builder.store(builder.output(DType::Float32), x * exp(factor));
  const Program program = for_this_machine(builder.finish());
  const LoopFn compiled = jit_compile(program);
  ASSERT_NE(compiled, nullptr);
  const std::vector<float> in = {1, 2, 3, 4, 5, 6}, factors = {0, 1};
  std::vector<float> expected(6), actual(6);
  const int64_t row_strides[] = {12, 4, 12}, strides[] = {4, 0, 4};
  for (std::vector<float>* out : {&expected, &actual}) {
    char* pointers[] = {(char*)in.data(), (char*)factors.data(), (char*)out->data()};
    const LoopArgs args{2, 3, pointers, row_strides, strides, nullptr};
    if (out == &expected) interpret(program, args);
    else compiled(&args);
  }
  EXPECT_EQ(expected, actual);
  EXPECT_EQ(actual[2], 3);
}

// Past the caches, wherever the output begins; an operand that is one number is not fetched ahead.
TEST(Jit, StoresPastTheCaches) {
  NEEDS_JIT();
  const Program program =
      for_this_machine(elementwise("scaled_sum.f32", {DType::Float32, DType::Float32}, DType::Float32,
                                   [](Args args) { return args[0] * args[1] + 1.0; }));
  const LoopFn compiled = jit_compile(program);
  ASSERT_NE(compiled, nullptr);
  std::vector<float> in(5000);
  std::iota(in.begin(), in.end(), 0.0F);
  const int64_t row_strides[] = {0, 0, 0}, strides[] = {4, 0, 4};
  for (const int64_t n : {1, 100, 128, 129, 4990}) {
    for (int64_t offset = 0; offset < 9; offset += 4) {
      std::vector<float> expected(5000, -1), actual(5000, -1);
      for (std::vector<float>* out : {&expected, &actual}) {
        char* pointers[] = {(char*)in.data(), (char*)(in.data() + 3), (char*)(out->data() + offset)};
        const LoopArgs args{1, n, pointers, row_strides, strides, nullptr, out == &actual};
        if (out == &expected) interpret(program, args);
        else compiled(&args);
      }
      EXPECT_EQ(expected, actual) << n << " " << offset;
    }
  }
}

TEST(Jit, CountsWhatItFinds) {
  NEEDS_JIT();
  const codegen::JitStats before = jit_stats();
  Program program = plus_constant(0.123);
  const LoopFn first = jit_compile(program);
  program.name = "another";  // names do not count
  EXPECT_EQ(jit_compile(program), first);
  EXPECT_NE(jit_compile(plus_constant(0.124)), first);
  const codegen::JitStats after = jit_stats();
  EXPECT_EQ(after.compiled + after.disk_hits, before.compiled + before.disk_hits + 2);
  EXPECT_EQ(after.memory_hits, before.memory_hits + 1);
}

TEST(Jit, ManyThreads) {
  NEEDS_JIT();
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 6; ++i) good += jit_compile(plus_constant(1000 + (i + t) % 6)) != nullptr;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 24);
}

// ------------------------------------------------------------------------------------------------ in the background

std::vector<float> run_once(const LateKernel& kernel, int64_t n) {
  std::vector<float> in(static_cast<size_t>(n)), out(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) in[static_cast<size_t>(i)] = static_cast<float>(i) * 0.01f;
  char* pointers[] = {(char*)in.data(), (char*)out.data()};
  const int64_t row_strides[] = {0, 0}, strides[] = {4, 4};
  kernel({1, n, pointers, row_strides, strides, nullptr});
  return out;
}

bool becomes_compiled(const LateKernel& kernel) {
  for (int i = 0; i < 1000 && !kernel.is_compiled(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return kernel.is_compiled();
}

Program gelu_like(double constant) {
  return elementwise("gelu_like.f32", {DType::Float32}, DType::Float32,
                     [&](Args a) { return a[0] * (erf(a[0]) + constant); });
}

TEST(Background, TakesOverWithTheSameResult) {
  NEEDS_JIT();
  const LateKernel kernel(gelu_like(2));
  const std::vector<float> few = run_once(kernel, 100);
  EXPECT_FALSE(kernel.is_compiled());  // so little is not worth compiling
  const std::vector<float> before = run_once(kernel, 10000);
  EXPECT_TRUE(becomes_compiled(kernel));
  EXPECT_EQ(run_once(kernel, 10000), before);
  EXPECT_EQ(run_once(kernel, 100), few);
}

TEST(Background, ForkedChildrenCompileToo) {
  NEEDS_JIT();
  const LateKernel before(gelu_like(3));
  const std::vector<float> expected = run_once(before, 10000);
  ASSERT_TRUE(becomes_compiled(before));
  const pid_t child = fork();
  if (child == 0) {
    const LateKernel fresh(gelu_like(4));
    const std::vector<float> interpreted = run_once(fresh, 10000);
    const bool good =
        run_once(before, 10000) == expected && becomes_compiled(fresh) && run_once(fresh, 10000) == interpreted;
    _exit(good ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A child forked while LLVM works, and exit while it works.
TEST(Background, ForkAndExitUnderWay) {
  NEEDS_JIT();
  for (int i = 0; i < 8; ++i) {
    const LateKernel kernel(gelu_like(100 + i));
    const std::vector<float> expected = run_once(kernel, 10000);
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * i));
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      const bool good =
          run_once(kernel, 10000) == expected && run_once(LateKernel(gelu_like(200 + i)), 10000).size() > 0;
#ifdef MOREL_SANITIZE_address
      _exit(good ? 0 : 1);  // what only the parent's thread knew counts as a leak
#endif
      std::exit(good ? 0 : 1);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

// ------------------------------------------------------------------------------------------------ the cache on disk

// What a process of its own prints: compiles three programs and says what it found.
TEST(Child, Compile) {
  const char* report = std::getenv("MOREL_TEST_REPORT");
  if (!report) GTEST_SKIP() << "runs only inside other tests";
  for (int i = 0; i < 3; ++i) expect_same_as_interpreter(plus_constant(10 + i), {100});
  const codegen::JitStats stats = jit_stats();
  std::ofstream(report) << stats.compiled << " " << stats.disk_hits;
}

// Ends while the thread in the background opens LLVM or compiles.
TEST(Child, Exit) {
  if (!std::getenv("MOREL_TEST_REPORT")) GTEST_SKIP() << "runs only inside other tests";
  for (int i = 0; i < 4; ++i) run_once(LateKernel(gelu_like(300 + i)), 10000);
  std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(std::getenv("MOREL_TEST_SLEEP"))));
}

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS_JIT();
    folder_ = fs::temp_directory_path() / ("morel_jit_" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  using Settings = std::map<std::string, std::string>;  // empty values remove a variable

  pid_t start(const std::string& report, Settings settings) {
    settings["MOREL_TEST_REPORT"] = (folder_ / report).string();
    settings.try_emplace("MOREL_CACHE_DIR", (folder_ / "cache").string());
    std::vector<std::string> variables;
    for (char** at = environ; *at; ++at) {
      const std::string text(*at);
      if (!settings.contains(text.substr(0, text.find('=')))) variables.push_back(text);
    }
    for (const auto& [name, value] : settings)
      if (!value.empty()) variables.push_back(name + "=" + value);
    std::vector<char*> environment;
    for (std::string& text : variables) environment.push_back(text.data());
    environment.push_back(nullptr);
    std::string program = fs::read_symlink("/proc/self/exe").string(), filter = "--gtest_filter=" + filter_,
                brief = "--gtest_brief=1";
    char* args[] = {program.data(), filter.data(), brief.data(), nullptr};
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child, program.c_str(), nullptr, nullptr, args, environment.data()), 0);
    return child;
  }
  static int wait(pid_t child) {
    int status = 1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }
  // Compiled kernels and those found on disk.
  std::pair<int, int> result(const std::string& report) {
    std::pair<int, int> out{-1, -1};
    std::ifstream(folder_ / report) >> out.first >> out.second;
    return out;
  }
  std::pair<int, int> run(const Settings& settings = {}) {
    EXPECT_EQ(wait(start("report", settings)), 0);
    return result("report");
  }
  std::vector<fs::path> files() {
    std::vector<fs::path> out;
    if (!fs::exists(folder_ / "cache")) return out;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache"))
      if (entry.is_regular_file()) out.push_back(entry.path());
    return out;
  }

  using Pair = std::pair<int, int>;
  fs::path folder_;
  std::string filter_ = "Child.Compile";
};

TEST_F(Cache, ServesTheNextProcess) {
  EXPECT_EQ(run(), Pair(3, 0));
  EXPECT_EQ(files().size(), 3u);
  EXPECT_EQ(run(), Pair(0, 3));
  EXPECT_EQ(run({{"MOREL_ISA", "sse4"}}), Pair(3, 0));
}

TEST_F(Cache, ReplacesBadFiles) {
  EXPECT_EQ(run(), Pair(3, 0));
  std::vector<fs::path> all = files();
  ASSERT_EQ(all.size(), 3u);
  const auto size = fs::file_size(all[0]);
  {
    std::fstream file(all[0], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size) - 100);
    file.put('\x5a').put('\xa5');
  }
  fs::resize_file(all[1], size / 2);
  fs::resize_file(all[2], 0);
  EXPECT_EQ(run(), Pair(3, 0));
  EXPECT_EQ(run(), Pair(0, 3));
  EXPECT_EQ(files().size(), 3u);
}

TEST_F(Cache, DoesNotTrustOthersFiles) {
  EXPECT_EQ(run(), Pair(3, 0));
  fs::permissions(files()[0], fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(run(), Pair(1, 2));
  EXPECT_EQ(run(), Pair(0, 3));
}

TEST_F(Cache, DoesWithoutAFolder) {
  std::ofstream(folder_ / "file") << "a file where a folder is wanted";
  EXPECT_EQ(run({{"MOREL_CACHE_DIR", (folder_ / "file").string()}}), Pair(3, 0));
  EXPECT_EQ(run({{"MOREL_CACHE_DIR", "/proc/morel"}}), Pair(3, 0));  // cannot be written, by root either
  EXPECT_EQ(run({{"MOREL_CACHE_DIR", ""}, {"XDG_CACHE_HOME", ""}, {"HOME", ""}}), Pair(3, 0));
  EXPECT_TRUE(files().empty());
  const Settings home = {{"MOREL_CACHE_DIR", ""}, {"XDG_CACHE_HOME", ""}, {"HOME", folder_.string()}};
  EXPECT_EQ(run(home), Pair(3, 0));
  EXPECT_TRUE(fs::exists(folder_ / ".cache/morel/jit"));
  EXPECT_EQ(run(home), Pair(0, 3));
}

TEST_F(Cache, ReadOnlyFolder) {
  EXPECT_EQ(run(), Pair(3, 0));
  const fs::path jit = folder_ / "cache/jit";
  fs::remove(files()[0]);
  fs::permissions(jit, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(run(), Pair(1, 2));
  fs::permissions(jit, fs::perms::owner_all);
}

TEST_F(Cache, ProcessesAtTheSameTime) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) children.push_back(start("report" + std::to_string(i), {}));
  for (pid_t child : children) EXPECT_EQ(wait(child), 0);
  for (int i = 0; i < 4; ++i) {
    const auto [compiled, found] = result("report" + std::to_string(i));
    EXPECT_EQ(compiled + found, 3);
  }
  EXPECT_EQ(files().size(), 3u);  // no temporary ones
  EXPECT_EQ(run(), Pair(0, 3));
}

TEST_F(Cache, ExitUnderWay) {
  filter_ = "Child.Exit";
  for (int delay = 0; delay < 120; delay += 8) {
    const pid_t child = start("report", {{"MOREL_TEST_SLEEP", std::to_string(delay)}});
    EXPECT_EQ(wait(child), 0) << "after " << delay << " ms";
  }
}

TEST(DiskCache, KeepsTheNewest) {
  const fs::path folder = fs::temp_directory_path() / ("morel_disk_cache_" + std::to_string(getpid()));
  const std::string before = std::getenv("MOREL_CACHE_DIR");
  setenv("MOREL_CACHE_DIR", folder.c_str(), 1);
  const codegen::DiskCache cache;
  setenv("MOREL_CACHE_DIR", before.c_str(), 1);
  EXPECT_EQ(cache.read("key 0"), std::nullopt);
  for (int i = 0; i < 10; ++i) cache.write("key " + std::to_string(i), "content " + std::to_string(i));
  EXPECT_EQ(cache.read("key 3"), "content 3");
  cache.remove_old_files(10);
  EXPECT_EQ(cache.read("key 0"), "content 0");
  const auto now = fs::file_time_type::clock::now();
  int age = 0;
  for (const auto& entry : fs::directory_iterator(folder / "jit"))
    fs::last_write_time(entry.path(), now - std::chrono::hours(age++));
  cache.write("key 5", "new");
  cache.remove_old_files(8);
  int left = 0;
  for (int i = 0; i < 10; ++i) left += cache.read("key " + std::to_string(i)).has_value();
  EXPECT_EQ(left, 4);
  EXPECT_EQ(cache.read("key 5"), "new");
  fs::remove_all(folder);
}

// The lower instruction sets of this machine.
TEST_F(Cache, OtherInstructionSets) {
  filter_ = "Jit.EqualsInterpreter";
  for (const char* isa : {"sse4", "avx2"}) {
    EXPECT_EQ(wait(start("report", {{"MOREL_ISA", isa}})), 0) << isa;
  }
}

TEST_F(Cache, SwitchedOff) {
  filter_ = "Jit.CountsWhatItFinds:Background.*";
  EXPECT_EQ(wait(start("report", {{"MOREL_JIT", "off"}})), 0);  // they skip
  EXPECT_EQ(wait(start("report", {{"MOREL_KERNELS", "interp"}})), 0);
}

}  // namespace
}  // namespace morel::loops
