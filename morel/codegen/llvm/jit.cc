#include "morel/codegen/llvm/jit.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>

#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include "morel/base/error.h"
#include "morel/codegen/llvm/disk_cache.h"
#include "morel/codegen/llvm/emit.h"
#include "morel/codegen/llvm/helpers.h"
#include "morel/loops/library.h"

namespace morel::codegen {
namespace {

namespace orc = llvm::orc;
using loops::LoopFn;
using loops::Program;

void check(llvm::Error error) {
  if (error) raise(ErrorKind::Internal, "internal error: LLVM: ", llvm::toString(std::move(error)));
}
template <class T>
T check(llvm::Expected<T> value) {
  if (!value) check(value.takeError());
  return std::move(*value);
}

// A program that cannot be compiled stays interpreted, silently unless somebody asks why.
void complain(const std::exception& error) {
  if (std::getenv("MOREL_JIT_VERBOSE")) std::fprintf(stderr, "morel jit: %s\n", error.what());
}

// The instruction sets of the library compiled ahead of time, so that both compute the same.
LlvmTarget target_of(int isa) {
#if defined(__x86_64__)
  if (isa == 2)
    return {"avx512", "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512cd,+fma,+f16c,+bmi2", 64, true, true, true};
  if (isa == 1) return {"avx2", "+avx2,+fma,+f16c,+bmi2", 32, true, true, false};
  return {"sse4", "+sse4.2", 16, false, false, false};
#else
  return {"generic", "", 16, true, true, false};
#endif
}

// Every build of this library has its own kernels on disk: nobody must remember to count up a version.
std::string own_version() {
  Dl_info self;
  struct stat facts;
  if (dladdr(reinterpret_cast<void*>(&own_version), &self) == 0 || ::stat(self.dli_fname, &facts) != 0)
    raise(ErrorKind::Internal, "internal error: the library of the JIT does not know its own file");
  return cat(facts.st_size, " bytes of ", facts.st_mtim.tv_sec, ".", facts.st_mtim.tv_nsec);
}

class Jit {
 public:
  Jit() : target_(target_of(loops::active_isa())) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    jit_ = check(orc::LLJITBuilder().setJITTargetMachineBuilder(machine_builder()).create());
    orc::SymbolMap symbols;
    for (const Helper& helper : helpers()) {
      symbols[jit_->mangleAndIntern(helper.name)] = {orc::ExecutorAddr::fromPtr(helper.address),
                                                     llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
    check(jit_->getMainJITDylib().define(orc::absoluteSymbols(std::move(symbols))));
    version_ = "LLVM " LLVM_VERSION_STRING ", " + jit_->getTargetTriple().str() + " " + target_.name + ", " +
               own_version() + "\n";
  }

  LoopFn compile(const Program& program) {
    const std::string key = key_of(program);
    std::unique_lock lock(mutex_);
    auto [it, fresh] = kernels_.try_emplace(key);
    Kernel& kernel = it->second;  // stays where it is
    if (!fresh) {
      done_.wait(lock, [&] { return kernel.done; });
      ++stats_.memory_hits;
      return kernel.function;
    }
    lock.unlock();
    LoopFn function = nullptr;
    bool from_disk = false;
    try {
      function = make(program, key, from_disk);
    } catch (const std::exception& error) {
      complain(error);
    }
    lock.lock();
    kernel.function = function;
    kernel.done = true;
    if (function) ++(from_disk ? stats_.disk_hits : stats_.compiled);
    done_.notify_all();
    return function;
  }

  JitStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  struct Kernel {
    LoopFn function = nullptr;
    bool done = false;
  };

  orc::JITTargetMachineBuilder machine_builder() const {
    orc::JITTargetMachineBuilder builder{llvm::Triple(llvm::sys::getProcessTriple())};
#if defined(__x86_64__)
    builder.setCPU("x86-64");
#endif
    std::vector<std::string> features;
    for (size_t at = 0; at < target_.features.size();) {
      const size_t end = std::min(target_.features.find(',', at), target_.features.size());
      features.push_back(target_.features.substr(at, end - at));
      at = end + 1;
    }
    builder.addFeatures(features);
    builder.setRelocationModel(llvm::Reloc::PIC_);
    builder.setCodeModel(llvm::CodeModel::Small);  // LLVM's choice for JITs is Large, whose constants take two steps
    builder.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
    builder.getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
    return builder;
  }

  // What the code depends on. The name is left out: programs of the same content share their code.
  std::string key_of(const Program& program) const {
    Program nameless = program;
    nameless.name.clear();
    std::string key = version_ + loops::print(nameless);
    for (const loops::Buffer& buffer : program.buffers) key += buffer.per_row ? 'r' : '-';
    return key;
  }

  LoopFn make(const Program& program, const std::string& key, bool& from_disk) {
    const std::string symbol = "morel_loop_" + std::to_string(stable_hash(key));
    std::optional<std::string> object = disk_.read(key);
    from_disk = object.has_value();
    if (!object) {
      object = object_code(program, symbol);
      disk_.write(key, *object);
    }
    check(jit_->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(*object, symbol)));
    return check(jit_->lookup(symbol)).toPtr<LoopFn>();
  }

  std::string object_code(const Program& program, const std::string& symbol) const {
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::TargetMachine> machine = check(machine_builder().createTargetMachine());
    const std::unique_ptr<llvm::Module> module = llvm_module(program, symbol, target_, context);
    module->setTargetTriple(machine->getTargetTriple().str());
    module->setDataLayout(machine->createDataLayout());
    std::string problem;
    llvm::raw_string_ostream stream(problem);
    MOREL_CHECK(!llvm::verifyModule(*module, &stream), Internal, "internal error: bad LLVM code for ", program.name,
                ": ", problem);
    const auto object = check(orc::SimpleCompiler(*machine)(*module));
    return object->getBuffer().str();
  }

  const LlvmTarget target_;
  const DiskCache disk_;
  std::unique_ptr<orc::LLJIT> jit_;
  std::string version_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::unordered_map<std::string, Kernel> kernels_;
  JitStats stats_;
};

// Never destroyed: its code may run until the process ends.
Jit& jit() {
  static Jit* const made = new Jit;
  return *made;
}

LoopFn compile(const Program& program) {
  try {
    return jit().compile(program);
  } catch (const std::exception& error) {
    complain(error);
    return nullptr;
  }
}

constexpr JitInterface interface {
  compile, [] { return jit().stats(); }
};

}  // namespace
}  // namespace morel::codegen

extern "C" __attribute__((visibility("default"))) const morel::codegen::JitInterface* morel_jit_interface_1() {
  return &morel::codegen::interface;
}

// Hides libc's function from LLVM and the libraries that come with it, whose static objects must outlive a thread that
// compiles while the process ends (runtime/jit.cc).
extern "C" __attribute__((visibility("default"))) int __cxa_atexit(void (*)(void*), void*, void*) noexcept { return 0; }
