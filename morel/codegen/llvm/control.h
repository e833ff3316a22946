// Control flow of LLVM's IR in the shapes that loops need. Where a function takes functions, they write the code
// inside.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace llvm {
class BasicBlock;
class Function;
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace morel::codegen {

using Values = std::vector<llvm::Value*>;

class ControlBuilder {
 public:
  ControlBuilder(llvm::IRBuilderBase& builder, llvm::Function* function) : b_(builder), function_(function) {}

  llvm::Value* i64(int64_t value);
  llvm::BasicBlock* block(const char* name);  // new, without a predecessor
  llvm::Value* smaller(llvm::Value* x, llvm::Value* y);
  // base + offset bytes; base + idx elements of `size` bytes
  llvm::Value* at(llvm::Value* base, llvm::Value* offset);
  llvm::Value* at(llvm::Value* base, int64_t offset) { return at(base, i64(offset)); }
  llvm::Value* at(llvm::Value* base, llvm::Value* idx, int64_t size);

  void if_then(llvm::Value* condition, const std::function<void()>& then);
  // condition ? then() : otherwise(), where at most one is evaluated.
  Values choose(llvm::Value* condition, const std::function<Values()>& then, const std::function<Values()>& otherwise);
  // for (i = begin; i < end; i = body(i))
  void while_loop(llvm::Value* begin, llvm::Value* end, const std::function<llvm::Value*(llvm::Value*)>& body);
  // for (i = 0; ...; i += step) with end > 0; `carried` values go from step to step.
  Values step_loop(llvm::Value* end, int64_t step, const Values& start,
                   const std::function<Values(llvm::Value*, const Values&)>& body);

 protected:
  llvm::IRBuilderBase& b_;
  llvm::Function* function_;
};

}  // namespace morel::codegen
