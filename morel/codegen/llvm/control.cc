#include "morel/codegen/llvm/control.h"

#include <llvm/IR/IRBuilder.h>

namespace morel::codegen {

using llvm::BasicBlock;
using llvm::Value;

Value* ControlBuilder::i64(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
BasicBlock* ControlBuilder::block(const char* name) { return BasicBlock::Create(b_.getContext(), name, function_); }
Value* ControlBuilder::smaller(Value* x, Value* y) { return b_.CreateSelect(b_.CreateICmpSLT(x, y), x, y); }
Value* ControlBuilder::at(Value* base, Value* offset) { return b_.CreateGEP(b_.getInt8Ty(), base, offset); }
Value* ControlBuilder::at(Value* base, Value* idx, int64_t size) { return at(base, b_.CreateNSWMul(idx, i64(size))); }

void ControlBuilder::if_then(Value* condition, const std::function<void()>& then) {
  BasicBlock *inside = block("then"), *done = block("done");
  b_.CreateCondBr(condition, inside, done);
  b_.SetInsertPoint(inside);
  then();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

Values ControlBuilder::choose(Value* condition, const std::function<Values()>& then,
                              const std::function<Values()>& otherwise) {
  BasicBlock *left = block("then"), *right = block("else"), *done = block("done");
  b_.CreateCondBr(condition, left, right);
  b_.SetInsertPoint(left);
  const Values x = then();
  BasicBlock* left_end = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(right);
  const Values y = otherwise();
  BasicBlock* right_end = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  Values out;
  for (size_t i = 0; i < x.size(); ++i) {
    llvm::PHINode* phi = b_.CreatePHI(x[i]->getType(), 2);
    phi->addIncoming(x[i], left_end), phi->addIncoming(y[i], right_end);
    out.push_back(phi);
  }
  return out;
}

void ControlBuilder::while_loop(Value* begin, Value* end, const std::function<Value*(Value*)>& body) {
  BasicBlock *before = b_.GetInsertBlock(), *head = block("loop"), *inside = block("body"), *done = block("done");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  b_.CreateCondBr(b_.CreateICmpSLT(i, end), inside, done);
  b_.SetInsertPoint(inside);
  Value* next = body(i);
  i->addIncoming(next, b_.GetInsertBlock());
  b_.CreateBr(head);
  b_.SetInsertPoint(done);
}

Values ControlBuilder::step_loop(Value* end, int64_t step, const Values& start,
                                 const std::function<Values(Value*, const Values&)>& body) {
  BasicBlock *before = b_.GetInsertBlock(), *inside = block("step"), *done = block("done");
  b_.CreateBr(inside);
  b_.SetInsertPoint(inside);
  llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
  i->addIncoming(i64(0), before);
  std::vector<llvm::PHINode*> phis;
  Values carried;
  for (Value* value : start) {
    phis.push_back(b_.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, before);
    carried.push_back(phis.back());
  }
  const Values next = body(i, carried);
  Value* following = b_.CreateNSWAdd(i, i64(step));
  BasicBlock* last = b_.GetInsertBlock();
  i->addIncoming(following, last);
  for (size_t k = 0; k < phis.size(); ++k) phis[k]->addIncoming(next[k], last);
  b_.CreateCondBr(b_.CreateICmpSLT(following, end), inside, done);
  b_.SetInsertPoint(done);
  return next;
}

}  // namespace morel::codegen
