// A reduction along a row: its lanes lie in memory between blocks; within a block they are in registers. The order is
// that of loops/program.h.
#pragma once

#include <vector>

#include "morel/codegen/llvm/control.h"
#include "morel/codegen/llvm/vector.h"
#include "morel/loops/program.h"

namespace morel::codegen {

inline bool is_arg(loops::ReduceOp op) { return op == loops::ReduceOp::ArgMin || op == loops::ReduceOp::ArgMax; }

class RowReduction : ControlBuilder {
 public:
  RowReduction(const ControlBuilder& control, VectorBuilder& ops, loops::ReduceOp op, DType dtype);

  void start();
  // Adds a block of m elements at `x`, the first of which is element j of the row. Less than all lanes are the rest of
  // a row; what lies behind it, up to whole vectors, may be read.
  void add(llvm::Value* x, llvm::Value* m, llvm::Value* j);
  Vector fold();  // in all lanes of the result

 private:
  size_t count() const { return static_cast<size_t>(loops::num_lanes / ops_.lanes()); }  // vectors of all lanes
  bool called() const { return is_complex(dtype_) && op_ == loops::ReduceOp::Prod; }     // helpers do the work
  // Vector v of the lanes at `base`.
  llvm::Value* place(llvm::Value* base, size_t v, DType dtype);
  Vector load(llvm::Value* base, size_t v) { return ops_.load(dtype_, place(base, v, dtype_)); }
  void add_whole(llvm::Value* x, llvm::Value* whole, llvm::Value* j);
  std::vector<Vector> sums(llvm::Value* x, llvm::Value* whole);
  std::vector<Vector> extremes(llvm::Value* x, llvm::Value* whole);
  void add_positions(llvm::Value* x, llvm::Value* whole, llvm::Value* j);
  void keep_better(size_t v, const Vector& next, const Vector& index, llvm::Value* inside);

  VectorBuilder& ops_;
  const loops::ReduceOp op_;
  const DType dtype_;
  llvm::Value* lanes_;
  llvm::Value* index_ = nullptr;  // positions of the lanes' values: ArgMin, ArgMax
};

}  // namespace morel::codegen
