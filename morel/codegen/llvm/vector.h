// Loop values as vectors of LLVM's IR: what every scalar operator is for `lanes` elements at a time. A complex value is
// two vectors, a boolean one a vector of bits. Nothing here knows of loops or programs.
#pragma once

#include <complex>
#include <span>
#include <string>
#include <unordered_map>

#include "morel/loops/expr.h"
#include "morel/loops/program.h"

namespace llvm {
class Function;
class IRBuilderBase;
class Module;
class Type;
class Value;
}  // namespace llvm

namespace morel::codegen {

// What code is generated for; chosen by the instruction set of loops/library.h.
struct LlvmTarget {
  std::string name;      // of the instruction set
  std::string features;  // as LLVM writes them
  int vector_bytes;      // of one register
  bool fma;              // else Fma is a product and a sum, as in the library compiled ahead of time
  bool half;             // conversion instructions of float16
  bool masks;            // loads and stores of some lanes
};

struct Vector {
  llvm::Value* re = nullptr;
  llvm::Value* im = nullptr;  // complex types
};

class VectorBuilder {
 public:
  // Scratch memory for calls is allocated at the head of `function`.
  VectorBuilder(llvm::IRBuilderBase& builder, llvm::Function* function, int lanes, const LlvmTarget& target)
      : b_(builder), function_(function), lanes_(lanes), target_(target) {}

  int lanes() const { return lanes_; }
  Vector constant(std::complex<double> value, DType dtype);
  Vector positions(llvm::Value* first);  // first, first + 1 ... as int64
  Vector splat(llvm::Value* value);      // of a real scalar
  Vector first_lane(const Vector& x);    // lane 0 in all lanes
  llvm::Value* any(llvm::Value* bits);   // whether one is set
  // Whether first + l < count, for first and count of at most num_lanes.
  llvm::Value* below(int64_t first, llvm::Value* count);
  // The value of an operator node. Of `uniform` operands all lanes are equal; functions are then called once.
  Vector apply(const loops::ExprNode& node, std::span<const Vector> args, bool uniform);
  Vector select(llvm::Value* bits, const Vector& x, const Vector& y);
  Vector round_to(DType half, const Vector& x);

  // Contiguous elements of a storage type at `place`, and one element.
  Vector load(DType storage, llvm::Value* place);
  void store(DType storage, llvm::Value* place, const Vector& x);
  // Elements of which only the first few may be touched; others are zeros in `to`. Where can_mask().
  bool can_mask(DType storage) const;
  void load_some(DType storage, llvm::Value* to, llvm::Value* from, llvm::Value* bits);
  void store_some(DType storage, llvm::Value* to, llvm::Value* from, llvm::Value* bits);
  void stream_line(llvm::Value* to, llvm::Value* from);  // 64 bytes to an aligned place, past the caches
  Vector load_one(DType storage, llvm::Value* place);
  void store_one(DType storage, llvm::Value* place, const Vector& x);

  Vector identity(loops::ReduceOp op, DType dtype);
  Vector combine(loops::ReduceOp op, DType dtype, const Vector& x, const Vector& y);
  // Whether x comes before y: ArgMin, ArgMax.
  llvm::Value* before(loops::ReduceOp op, DType dtype, const Vector& x, const Vector& y);
  // Whether x is beyond y, less or greater as Min and Max have it; no where one is NaN.
  llvm::Value* beyond(loops::ReduceOp op, DType dtype, const Vector& x, const Vector& y);
  Vector upper_half(const Vector& x, int width);  // lanes [width / 2, width) moved to the front

  llvm::Value* call(const std::string& name, std::span<llvm::Value* const> args);
  llvm::Value* allocate(int64_t bytes, const char* name);  // at the head of the function, aligned to 64

 private:
  llvm::Type* scalar_type(DType dtype);  // of one part
  llvm::Type* vector_type(DType dtype);  // the same for all lanes
  llvm::Type* integer(int bits);         // vector of integers
  llvm::Value* number(double value, DType dtype);
  llvm::Value* bits32(uint32_t value);
  Vector unary(const loops::ExprNode& node, DType from, const Vector& x);
  Vector binary(const loops::ExprNode& node, DType from, const Vector& x, const Vector& y);
  llvm::Value* integer_binary(loops::ScalarOp op, DType dtype, llvm::Value* x, llvm::Value* y);
  llvm::Value* float_binary(loops::ScalarOp op, DType dtype, llvm::Value* x, llvm::Value* y);
  llvm::Value* compare(loops::ScalarOp op, DType dtype, const Vector& x, const Vector& y);
  llvm::Value* extreme(loops::ScalarOp op, DType dtype, llvm::Value* x, llvm::Value* y);
  llvm::Value* division(loops::ScalarOp op, DType dtype, llvm::Value* x, llvm::Value* y);
  llvm::Value* shift(loops::ScalarOp op, DType dtype, llvm::Value* x, llvm::Value* y);
  llvm::Value* is_nan(llvm::Value* x);
  llvm::Value* is_inf(DType dtype, llvm::Value* x, bool finite);
  Vector cast(DType from, DType to, const Vector& x);
  llvm::Value* cast_real(DType from, DType to, llvm::Value* x);
  llvm::Value* float_to_integer(DType from, DType to, llvm::Value* x);
  llvm::Value* from_bf16(llvm::Value* bits);
  llvm::Value* to_bf16(llvm::Value* x);
  llvm::Value* from_f16(llvm::Value* bits);
  llvm::Value* to_f16(llvm::Value* x);
  Vector complex_product(const loops::ExprNode& node, std::span<const Vector> args, bool uniform);
  Vector call_function(loops::ScalarOp op, DType from, DType to, std::span<const Vector> args, bool uniform);
  llvm::Value* loaded(DType storage, llvm::Value* bits);  // from what lies in memory
  llvm::Value* stored(DType storage, llvm::Value* x);

  llvm::IRBuilderBase& b_;
  llvm::Function* function_;
  int lanes_;
  const LlvmTarget& target_;
  llvm::Value* scratch_[3] = {};
  std::unordered_map<const loops::ExprNode*, Vector> constants_;
};

}  // namespace morel::codegen
