// Loop programs as LLVM IR: one function of the ABI of loops::LoopFn for each.
#pragma once

#include <memory>
#include <string>

#include "morel/codegen/llvm/vector.h"
#include "morel/loops/program.h"

namespace llvm {
class LLVMContext;
}  // namespace llvm

namespace morel::codegen {

// The code follows codegen/c, whose layout of passes, chunks and blocks it shares: a pass walks the inner axis in
// chunks; contiguous operands are read and written where they lie, others through a block of `block_size` elements that
// is padded to whole vectors.
std::unique_ptr<llvm::Module> llvm_module(const loops::Program& program, const std::string& symbol,
                                          const LlvmTarget& target, llvm::LLVMContext& context);

}  // namespace morel::codegen
