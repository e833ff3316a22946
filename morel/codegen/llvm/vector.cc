#include "morel/codegen/llvm/vector.h"

#include <cmath>
#include <numeric>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "morel/base/error.h"
#include "morel/codegen/llvm/helpers.h"

namespace morel::codegen {

using llvm::Align;
using llvm::FixedVectorType;
using llvm::Type;
using llvm::Value;
using llvm::Intrinsic::ID;
using loops::ExprNode;
using loops::ReduceOp;
using loops::ScalarOp;
namespace Intrinsic = llvm::Intrinsic;

// ------------------------------------------------------------------------------------------------ types, constants

Type* VectorBuilder::scalar_type(DType dtype) {
  switch (real_dtype(compute_dtype(dtype))) {
    case DType::Bool: return b_.getInt1Ty();
    case DType::Float32: return b_.getFloatTy();
    case DType::Float64: return b_.getDoubleTy();
    default: return b_.getIntNTy(static_cast<unsigned>(8 * size_of(dtype)));
  }
}
Type* VectorBuilder::vector_type(DType dtype) {
  return FixedVectorType::get(scalar_type(dtype), static_cast<unsigned>(lanes_));
}
Type* VectorBuilder::integer(int bits) {
  return FixedVectorType::get(b_.getIntNTy(static_cast<unsigned>(bits)), static_cast<unsigned>(lanes_));
}
Value* VectorBuilder::bits32(uint32_t value) { return llvm::ConstantInt::get(integer(32), value); }

Value* VectorBuilder::number(double value, DType dtype) {
  Type* type = vector_type(dtype);
  if (dtype == DType::Bool) return llvm::ConstantInt::get(type, value != 0.0);
  if (is_integral(dtype)) {
    const int bits = static_cast<int>(8 * size_of(dtype));
    if (value >= std::ldexp(1.0, bits - is_signed_int(dtype))) {  // saturates
      const llvm::APInt largest = is_signed_int(dtype) ? llvm::APInt::getSignedMaxValue(static_cast<unsigned>(bits))
                                                       : llvm::APInt::getMaxValue(static_cast<unsigned>(bits));
      return llvm::ConstantInt::get(type, largest);
    }
    const uint64_t whole =
        dtype == DType::UInt64 ? static_cast<uint64_t>(value) : static_cast<uint64_t>(static_cast<int64_t>(value));
    return llvm::ConstantInt::get(type, llvm::APInt(64, whole).trunc(static_cast<unsigned>(bits)));
  }
  if (real_dtype(dtype) == DType::Float64) return llvm::ConstantFP::get(type, value);
  return llvm::ConstantFP::get(type, llvm::APFloat(static_cast<float>(value)));
}

Vector VectorBuilder::constant(std::complex<double> value, DType dtype) {
  if (dtype == DType::Bool) return {number(value != 0.0, dtype)};
  return {number(value.real(), dtype), is_complex(dtype) ? number(value.imag(), dtype) : nullptr};
}

Vector VectorBuilder::positions(Value* first) {
  std::vector<llvm::Constant*> steps;
  for (int l = 0; l < lanes_; ++l) steps.push_back(b_.getInt64(static_cast<uint64_t>(l)));
  return {b_.CreateAdd(splat(first).re, llvm::ConstantVector::get(steps))};
}
Vector VectorBuilder::splat(Value* value) { return {b_.CreateVectorSplat(static_cast<unsigned>(lanes_), value)}; }

Vector VectorBuilder::first_lane(const Vector& x) {
  const std::vector<int> zeros(static_cast<size_t>(lanes_), 0);
  return {b_.CreateShuffleVector(x.re, zeros), x.im ? b_.CreateShuffleVector(x.im, zeros) : nullptr};
}

Value* VectorBuilder::below(int64_t first, Value* count) {
  const int bits = lanes_ > 16 ? 8 : 32;
  static_assert(loops::num_lanes < 128);
  std::vector<llvm::Constant*> steps;
  for (int64_t l = 0; l < lanes_; ++l)
    steps.push_back(
        llvm::ConstantInt::get(b_.getIntNTy(static_cast<unsigned>(bits)), static_cast<uint64_t>(first + l)));
  Value* limit = splat(b_.CreateTrunc(count, b_.getIntNTy(static_cast<unsigned>(bits)))).re;
  return b_.CreateICmpSLT(llvm::ConstantVector::get(steps), limit);
}

Value* VectorBuilder::any(Value* bits) { return b_.CreateOrReduce(bits); }

Vector VectorBuilder::select(Value* bits, const Vector& x, const Vector& y) {
  return {b_.CreateSelect(bits, x.re, y.re), x.im ? b_.CreateSelect(bits, x.im, y.im) : nullptr};
}

Vector VectorBuilder::upper_half(const Vector& x, int width) {
  std::vector<int> mask(static_cast<size_t>(lanes_), -1);
  for (int l = 0; l < width / 2; ++l) mask[static_cast<size_t>(l)] = l + width / 2;
  return {b_.CreateShuffleVector(x.re, mask), x.im ? b_.CreateShuffleVector(x.im, mask) : nullptr};
}

// ------------------------------------------------------------------------------------------------ memory

Value* VectorBuilder::allocate(int64_t bytes, const char* name) {
  llvm::IRBuilder<> head(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  llvm::AllocaInst* out =
      head.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(bytes)), nullptr, name);
  out->setAlignment(Align(64));
  return out;
}

Value* VectorBuilder::call(const std::string& name, std::span<Value* const> args) {
  std::vector<Type*> types;
  for (Value* arg : args) types.push_back(arg->getType());
  llvm::FunctionCallee callee = function_->getParent()->getOrInsertFunction(
      name, llvm::FunctionType::get(b_.getVoidTy(), types, /*isVarArg=*/false));
  llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
  return b_.CreateCall(callee, llvm::ArrayRef<Value*>(args.data(), args.size()));
}

namespace {
int storage_bits(DType storage) {
  return storage == DType::Bool ? 8 : static_cast<int>(8 * size_of(real_dtype(storage)));
}
bool stored_as_bits(DType storage) { return storage == DType::Bool || is_half(storage); }
}  // namespace

Value* VectorBuilder::loaded(DType storage, Value* bits) {
  if (storage == DType::Bool) return b_.CreateIsNotNull(bits);
  if (storage == DType::Float16) return from_f16(bits);
  return storage == DType::BFloat16 ? from_bf16(bits) : bits;
}
Value* VectorBuilder::stored(DType storage, Value* x) {
  if (storage == DType::Bool) return b_.CreateZExt(x, integer(8));
  if (storage == DType::Float16) return to_f16(x);
  return storage == DType::BFloat16 ? to_bf16(x) : x;
}

// Buffers need no alignment, not even that of their elements.
Vector VectorBuilder::load(DType storage, Value* place) {
  if (is_complex(storage)) {
    Type* both = FixedVectorType::get(scalar_type(storage), static_cast<unsigned>(2 * lanes_));
    Value* pairs = b_.CreateAlignedLoad(both, place, Align(1));
    std::vector<int> even, odd;
    for (int l = 0; l < lanes_; ++l) even.push_back(2 * l), odd.push_back(2 * l + 1);
    return {b_.CreateShuffleVector(pairs, even), b_.CreateShuffleVector(pairs, odd)};
  }
  Type* type = stored_as_bits(storage) ? integer(storage_bits(storage)) : vector_type(storage);
  return {loaded(storage, b_.CreateAlignedLoad(type, place, Align(1)))};
}

void VectorBuilder::store(DType storage, Value* place, const Vector& x) {
  if (is_complex(storage)) {
    std::vector<int> mix;
    for (int l = 0; l < lanes_; ++l) mix.push_back(l), mix.push_back(lanes_ + l);
    b_.CreateAlignedStore(b_.CreateShuffleVector(x.re, x.im, mix), place, Align(1));
  } else {
    b_.CreateAlignedStore(stored(storage, x.re), place, Align(1));
  }
}

bool VectorBuilder::can_mask(DType storage) const { return target_.masks && size_of(storage) <= 8; }
void VectorBuilder::load_some(DType storage, Value* to, Value* from, Value* bits) {
  Type* type = integer(static_cast<int>(8 * size_of(storage)));
  Value* some = b_.CreateMaskedLoad(type, from, Align(1), bits, llvm::Constant::getNullValue(type));
  b_.CreateAlignedStore(some, to, Align(1));
}
void VectorBuilder::store_some(DType storage, Value* to, Value* from, Value* bits) {
  Type* type = integer(static_cast<int>(8 * size_of(storage)));
  b_.CreateMaskedStore(b_.CreateAlignedLoad(type, from, Align(1)), to, Align(1), bits);
}

void VectorBuilder::stream_line(Value* to, Value* from) {
  Type* type = FixedVectorType::get(b_.getFloatTy(), 16);
  llvm::StoreInst* store = b_.CreateAlignedStore(b_.CreateAlignedLoad(type, from, Align(1)), to, Align(64));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
}

Vector VectorBuilder::load_one(DType storage, Value* place) {
  Type* type =
      stored_as_bits(storage) ? b_.getIntNTy(static_cast<unsigned>(storage_bits(storage))) : scalar_type(storage);
  const auto part = [&](int64_t offset) {
    return splat(b_.CreateAlignedLoad(type, b_.CreateConstGEP1_64(b_.getInt8Ty(), place, static_cast<uint64_t>(offset)),
                                      Align(1)))
        .re;
  };
  if (is_complex(storage)) return {part(0), part(size_of(storage) / 2)};
  return {loaded(storage, part(0))};
}

void VectorBuilder::store_one(DType storage, Value* place, const Vector& x) {
  const auto part = [&](Value* value, int64_t offset) {
    b_.CreateAlignedStore(b_.CreateExtractElement(value, uint64_t{0}),
                          b_.CreateConstGEP1_64(b_.getInt8Ty(), place, static_cast<uint64_t>(offset)), Align(1));
  };
  if (is_complex(storage)) part(x.re, 0), part(x.im, size_of(storage) / 2);
  else part(stored(storage, x.re), 0);
}

// ------------------------------------------------------------------------------------------------ half types

Value* VectorBuilder::from_bf16(Value* bits) {
  return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(bits, integer(32)), bits32(16)), vector_type(DType::Float32));
}
Value* VectorBuilder::to_bf16(Value* x) {
  Value* bits = b_.CreateBitCast(x, integer(32));
  Value* upper = b_.CreateLShr(bits, bits32(16));
  Value* even = b_.CreateAdd(b_.CreateAnd(upper, bits32(1)), bits32(0x7fff));
  Value* rounded = b_.CreateLShr(b_.CreateAdd(bits, even), bits32(16));
  return b_.CreateTrunc(b_.CreateSelect(is_nan(x), b_.CreateOr(upper, bits32(0x40)), rounded), integer(16));
}

// float16 denormals become normal by a multiplication with a power of two, which is exact.
Value* VectorBuilder::from_f16(Value* half) {
  Type* floats = vector_type(DType::Float32);
  if (target_.half) {
    Type* halves = FixedVectorType::get(b_.getHalfTy(), static_cast<unsigned>(lanes_));
    return b_.CreateFPExt(b_.CreateBitCast(half, halves), floats);
  }
  Value* wide = b_.CreateZExt(half, integer(32));
  Value* magnitude = b_.CreateShl(b_.CreateAnd(wide, bits32(0x7fff)), bits32(13));
  Value* scaled = b_.CreateBitCast(b_.CreateFMul(b_.CreateBitCast(magnitude, floats), number(0x1p112, DType::Float32)),
                                   integer(32));
  Value* bits = b_.CreateSelect(b_.CreateICmpUGE(magnitude, bits32(0x0f800000)),
                                b_.CreateOr(magnitude, bits32(0x7f800000)), scaled);
  Value* sign = b_.CreateShl(b_.CreateAnd(wide, bits32(0x8000)), bits32(16));
  return b_.CreateBitCast(b_.CreateOr(bits, sign), floats);
}
// Results below 2^-14 are rounded by an addition that moves the last float16 bit to the last bit of the sum.
Value* VectorBuilder::to_f16(Value* x) {
  if (target_.half) {
    Type* halves = FixedVectorType::get(b_.getHalfTy(), static_cast<unsigned>(lanes_));
    return b_.CreateBitCast(b_.CreateFPTrunc(x, halves), integer(16));
  }
  Type* floats = vector_type(DType::Float32);
  Value* all = b_.CreateBitCast(x, integer(32));
  Value* bits = b_.CreateAnd(all, bits32(0x7fffffff));
  Value* sign = b_.CreateAnd(b_.CreateLShr(all, bits32(16)), bits32(0x8000));
  Value* even = b_.CreateAnd(b_.CreateLShr(bits, bits32(13)), bits32(1));
  Value* normal = b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(bits, bits32(0xfffu - 0x38000000u)), even), bits32(13));
  Value* sum = b_.CreateFAdd(b_.CreateBitCast(bits, floats), number(0.5, DType::Float32));
  Value* small = b_.CreateSub(b_.CreateBitCast(sum, integer(32)), bits32(0x3f000000));
  Value* out = b_.CreateSelect(b_.CreateICmpULT(bits, bits32(0x38800000)), small, normal);
  out = b_.CreateSelect(b_.CreateICmpUGE(bits, bits32(0x477ff000)), bits32(0x7c00), out);
  Value* payload = b_.CreateOr(b_.CreateAnd(b_.CreateLShr(bits, bits32(13)), bits32(0x3ff)), bits32(0x7e00));
  out = b_.CreateSelect(b_.CreateICmpUGT(bits, bits32(0x7f800000)), payload, out);
  return b_.CreateTrunc(b_.CreateOr(out, sign), integer(16));
}
Vector VectorBuilder::round_to(DType half, const Vector& x) {
  return {half == DType::Float16 ? from_f16(to_f16(x.re)) : from_bf16(to_bf16(x.re))};
}

// ------------------------------------------------------------------------------------------------ conversions

Value* VectorBuilder::float_to_integer(DType from, DType to, Value* x) {
  // Out of range, the hardware's answer counts (scalar.h): `freeze` keeps LLVM from choosing another.
  const auto convert = [&](Value* value, int bits) { return b_.CreateFreeze(b_.CreateFPToSI(value, integer(bits))); };
  if (to == DType::UInt64) {
    Value* limit = number(0x1p63, from);
    Value* large =
        b_.CreateXor(convert(b_.CreateFSub(x, limit), 64), llvm::ConstantInt::get(integer(64), uint64_t{1} << 63));
    return b_.CreateSelect(b_.CreateFCmpOGE(x, limit), large, convert(x, 64));
  }
  if (to == DType::UInt32) return b_.CreateTrunc(convert(x, 64), integer(32));
  if (size_of(to) < 4) return b_.CreateTrunc(convert(x, 32), vector_type(to));
  return convert(x, static_cast<int>(8 * size_of(to)));
}

Value* VectorBuilder::cast_real(DType from, DType to, Value* x) {
  if (from == to) return x;
  Type* type = vector_type(to);
  if (is_float(from)) {
    if (to == DType::Bool) return b_.CreateFCmpUNE(x, number(0, from));
    return is_float(to) ? b_.CreateFPCast(x, type) : float_to_integer(from, to, x);
  }
  if (to == DType::Bool) return b_.CreateIsNotNull(x);
  const bool negative = is_signed_int(from);
  if (is_float(to)) return negative ? b_.CreateSIToFP(x, type) : b_.CreateUIToFP(x, type);
  return b_.CreateIntCast(x, type, negative);
}

Vector VectorBuilder::cast(DType from, DType to, const Vector& x) {
  const DType part = real_dtype(from);
  if (to == DType::Bool && is_complex(from)) return {b_.CreateOr(cast_real(part, to, x.re), cast_real(part, to, x.im))};
  Value* re = cast_real(part, real_dtype(to), x.re);
  if (!is_complex(to)) return {re};
  return {re, is_complex(from) ? cast_real(part, real_dtype(to), x.im) : number(0, to)};
}

// ------------------------------------------------------------------------------------------------ operators

Value* VectorBuilder::is_nan(Value* x) { return b_.CreateFCmpUNO(x, x); }
Value* VectorBuilder::is_inf(DType dtype, Value* x, bool finite) {
  Value* magnitude = b_.CreateUnaryIntrinsic(Intrinsic::fabs, x);
  Value* infinity = number(HUGE_VAL, dtype);
  return finite ? b_.CreateFCmpOLT(magnitude, infinity) : b_.CreateFCmpOEQ(magnitude, infinity);
}

Vector VectorBuilder::apply(const ExprNode& node, std::span<const Vector> args, bool uniform) {
  const DType from = node.args[0].dtype();
  switch (node.op) {
    case ScalarOp::Cast: return cast(from, node.dtype, args[0]);
    case ScalarOp::Bitcast: return {b_.CreateBitCast(args[0].re, vector_type(node.dtype))};
    case ScalarOp::RoundTo: return round_to(static_cast<DType>(node.index), args[0]);
    case ScalarOp::Select:
    case ScalarOp::SelectRare: return select(args[0].re, args[1], args[2]);
    case ScalarOp::Fma:
      if (target_.fma)
        return {b_.CreateIntrinsic(Intrinsic::fma, {args[0].re->getType()}, {args[0].re, args[1].re, args[2].re})};
      return {b_.CreateFAdd(b_.CreateFMul(args[0].re, args[1].re), args[2].re)};
    default: break;
  }
  const bool product =
      is_complex(from) && (node.op == ScalarOp::Div || node.op == ScalarOp::Abs || node.op == ScalarOp::Sqrt);
  const bool integer_power = node.op == ScalarOp::Pow && is_integral(from);
  const bool remainder = node.op == ScalarOp::Rem && is_float(from);
  if (is_complex(from) && node.op == ScalarOp::Mul) return complex_product(node, args, uniform);
  if (is_math_function(node.op) || product || integer_power || remainder)
    return call_function(node.op, from, node.dtype, args, uniform);
  if (node.op == ScalarOp::Mod && is_float(from)) {
    Value* rest = call_function(ScalarOp::Rem, from, from, args, uniform).re;
    Value* zero = number(0, from);
    Value* other = b_.CreateXor(b_.CreateFCmpOLT(rest, zero), b_.CreateFCmpOLT(args[1].re, zero));
    Value* moves = b_.CreateAnd(b_.CreateFCmpUNE(rest, zero), other);
    return {b_.CreateSelect(moves, b_.CreateFAdd(rest, args[1].re), rest)};
  }
  return args.size() == 1 ? unary(node, from, args[0]) : binary(node, from, args[0], args[1]);
}

// Two products and their sum for each part, unless both parts are NaN, which may stand for an infinity (C11, Annex G).
Vector VectorBuilder::complex_product(const ExprNode& node, std::span<const Vector> args, bool uniform) {
  const Vector &x = args[0], &y = args[1];
  const Vector plain{b_.CreateFSub(b_.CreateFMul(x.re, y.re), b_.CreateFMul(x.im, y.im)),
                     b_.CreateFAdd(b_.CreateFMul(x.re, y.im), b_.CreateFMul(x.im, y.re))};
  if (uniform) return call_function(node.op, node.dtype, node.dtype, args, true);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* special = llvm::BasicBlock::Create(b_.getContext(), "special", function_);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(b_.getContext(), "done", function_);
  b_.CreateCondBr(any(b_.CreateAnd(is_nan(plain.re), is_nan(plain.im))), special, done);
  b_.SetInsertPoint(special);
  const Vector careful = call_function(node.op, node.dtype, node.dtype, args, false);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  const auto merge = [&](Value* usual, Value* other) {
    llvm::PHINode* phi = b_.CreatePHI(usual->getType(), 2);
    phi->addIncoming(usual, before), phi->addIncoming(other, special);
    return phi;
  };
  Value* re = merge(plain.re, careful.re);
  return {re, merge(plain.im, careful.im)};
}

// Through memory: a function of libm takes one element at a time.
Vector VectorBuilder::call_function(ScalarOp op, DType from, DType to, std::span<const Vector> args, bool uniform) {
  std::vector<Value*> operands;
  const auto place = [&](size_t i) {
    if (!scratch_[i]) scratch_[i] = allocate(16 * lanes_, "scratch");
    return scratch_[i];
  };
  for (size_t i = 0; i < args.size(); ++i) {
    operands.push_back(place(i));
    store(from, operands.back(), args[i]);
  }
  operands.push_back(place(2));
  operands.push_back(b_.getInt64(uniform ? 1 : static_cast<uint64_t>(lanes_)));
  call(helper_name(op, from), operands);
  return uniform ? load_one(to, place(2)) : load(to, place(2));
}

Vector VectorBuilder::unary(const ExprNode& node, DType from, const Vector& x) {
  const auto intrinsic = [&](ID id) { return Vector{b_.CreateUnaryIntrinsic(id, x.re)}; };
  switch (node.op) {
    case ScalarOp::Neg:
      if (is_integral(from)) return {b_.CreateNeg(x.re)};
      return {b_.CreateFNeg(x.re), x.im ? b_.CreateFNeg(x.im) : nullptr};
    case ScalarOp::Abs:
      if (is_float(from)) return intrinsic(Intrinsic::fabs);
      if (!is_signed_int(from)) return x;
      return {b_.CreateSelect(b_.CreateICmpSLT(x.re, number(0, from)), b_.CreateNeg(x.re), x.re)};
    case ScalarOp::Not:
    case ScalarOp::BitNot: return {b_.CreateNot(x.re)};
    case ScalarOp::Sqrt: return intrinsic(Intrinsic::sqrt);
    case ScalarOp::Floor: return intrinsic(Intrinsic::floor);
    case ScalarOp::Ceil: return intrinsic(Intrinsic::ceil);
    case ScalarOp::Trunc: return intrinsic(Intrinsic::trunc);
    case ScalarOp::Round: return intrinsic(Intrinsic::nearbyint);
    case ScalarOp::IsNan: return {x.im ? b_.CreateOr(is_nan(x.re), is_nan(x.im)) : is_nan(x.re)};
    case ScalarOp::IsInf:
    case ScalarOp::IsFinite: {
      const bool finite = node.op == ScalarOp::IsFinite;
      const DType part = real_dtype(from);
      Value* re = is_inf(part, x.re, finite);
      if (!x.im) return {re};
      Value* im = is_inf(part, x.im, finite);
      return {finite ? b_.CreateAnd(re, im) : b_.CreateOr(re, im)};
    }
    case ScalarOp::Real: return {x.re};
    case ScalarOp::Imag: return {x.im};
    case ScalarOp::Conj: return {x.re, b_.CreateFNeg(x.im)};
    default: raise(ErrorKind::Internal, "internal error: no LLVM code for loop operator '", op_name(node.op), "'");
  }
}

Vector VectorBuilder::binary(const ExprNode& node, DType from, const Vector& x, const Vector& y) {
  const ScalarOp op = node.op;
  if (op >= ScalarOp::Eq && op <= ScalarOp::Ge) return {compare(op, from, x, y)};
  switch (op) {
    case ScalarOp::MakeComplex: return {x.re, y.re};
    case ScalarOp::And:
    case ScalarOp::BitAnd: return {b_.CreateAnd(x.re, y.re)};
    case ScalarOp::Or:
    case ScalarOp::BitOr: return {b_.CreateOr(x.re, y.re)};
    case ScalarOp::Xor:
    case ScalarOp::BitXor: return {b_.CreateXor(x.re, y.re)};
    case ScalarOp::Min:
    case ScalarOp::Max: return {extreme(op, from, x.re, y.re)};
    default: break;
  }
  if (is_integral(from)) return {integer_binary(op, from, x.re, y.re)};
  return {float_binary(op, from, x.re, y.re), x.im ? float_binary(op, from, x.im, y.im) : nullptr};
}

Value* VectorBuilder::integer_binary(ScalarOp op, DType dtype, Value* x, Value* y) {
  switch (op) {
    case ScalarOp::Add: return b_.CreateAdd(x, y);
    case ScalarOp::Sub: return b_.CreateSub(x, y);
    case ScalarOp::Mul: return b_.CreateMul(x, y);
    case ScalarOp::Shl:
    case ScalarOp::Shr: return shift(op, dtype, x, y);
    default: return division(op, dtype, x, y);
  }
}

Value* VectorBuilder::float_binary(ScalarOp op, DType, Value* x, Value* y) {
  switch (op) {
    case ScalarOp::Add: return b_.CreateFAdd(x, y);
    case ScalarOp::Sub: return b_.CreateFSub(x, y);
    case ScalarOp::Mul: return b_.CreateFMul(x, y);
    case ScalarOp::Div: return b_.CreateFDiv(x, y);
    case ScalarOp::FloorDiv: return b_.CreateUnaryIntrinsic(Intrinsic::floor, b_.CreateFDiv(x, y));
    case ScalarOp::TruncDiv: return b_.CreateUnaryIntrinsic(Intrinsic::trunc, b_.CreateFDiv(x, y));
    default: raise(ErrorKind::Internal, "internal error: no LLVM code for loop operator '", loops::op_name(op), "'");
  }
}

Value* VectorBuilder::compare(ScalarOp op, DType dtype, const Vector& x, const Vector& y) {
  using llvm::CmpInst;
  if (is_complex(dtype)) {
    const bool same = op == ScalarOp::Eq;
    Value* re = same ? b_.CreateFCmpOEQ(x.re, y.re) : b_.CreateFCmpUNE(x.re, y.re);
    Value* im = same ? b_.CreateFCmpOEQ(x.im, y.im) : b_.CreateFCmpUNE(x.im, y.im);
    return same ? b_.CreateAnd(re, im) : b_.CreateOr(re, im);
  }
  const int idx = static_cast<int>(op) - static_cast<int>(ScalarOp::Eq);
  constexpr CmpInst::Predicate floats[] = {CmpInst::FCMP_OEQ, CmpInst::FCMP_UNE, CmpInst::FCMP_OLT,
                                           CmpInst::FCMP_OLE, CmpInst::FCMP_OGT, CmpInst::FCMP_OGE};
  constexpr CmpInst::Predicate signs[] = {CmpInst::ICMP_EQ,  CmpInst::ICMP_NE,  CmpInst::ICMP_SLT,
                                          CmpInst::ICMP_SLE, CmpInst::ICMP_SGT, CmpInst::ICMP_SGE};
  constexpr CmpInst::Predicate naturals[] = {CmpInst::ICMP_EQ,  CmpInst::ICMP_NE,  CmpInst::ICMP_ULT,
                                             CmpInst::ICMP_ULE, CmpInst::ICMP_UGT, CmpInst::ICMP_UGE};
  if (is_float(dtype)) return b_.CreateFCmp(floats[idx], x.re, y.re);
  return b_.CreateICmp(is_signed_int(dtype) ? signs[idx] : naturals[idx], x.re, y.re);
}

// y < x || y is NaN ? y : x
Value* VectorBuilder::extreme(ScalarOp op, DType dtype, Value* x, Value* y) {
  Value* better = compare(op == ScalarOp::Min ? ScalarOp::Lt : ScalarOp::Gt, dtype, {y}, {x});
  Value* out = b_.CreateSelect(better, y, x);
  const auto* limit = llvm::dyn_cast<llvm::Constant>(y);
  const auto* value = limit ? llvm::dyn_cast_or_null<llvm::ConstantFP>(limit->getSplatValue()) : nullptr;
  if (!is_float(dtype) || (value && !value->isNaN())) return out;
  return b_.CreateSelect(is_nan(y), y, out);
}

// FloorDiv, Mod, TruncDiv, Rem of integers: by 0 gives 0, and the least integer by -1 wraps around.
Value* VectorBuilder::division(ScalarOp op, DType dtype, Value* x, Value* y) {
  const bool negative = is_signed_int(dtype);
  Value *zero = number(0, dtype), *one = number(1, dtype);
  Value* by_zero = b_.CreateICmpEQ(y, zero);
  Value* by_minus_one = negative ? b_.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(y->getType())) : nullptr;
  Value* safe = b_.CreateSelect(negative ? b_.CreateOr(by_zero, by_minus_one) : by_zero, one, y);
  const auto quotient = [&] {
    Value* out = negative ? b_.CreateSDiv(x, safe) : b_.CreateUDiv(x, safe);
    if (negative) out = b_.CreateSelect(by_minus_one, b_.CreateNeg(x), out);
    return b_.CreateSelect(by_zero, zero, out);
  };
  // x modulo 1 is 0, which is also the answer for 0 and -1.
  const auto remainder = [&] { return negative ? b_.CreateSRem(x, safe) : b_.CreateURem(x, safe); };
  if (op == ScalarOp::TruncDiv || (op == ScalarOp::FloorDiv && !negative)) return quotient();
  Value* rest = remainder();
  if (op == ScalarOp::Rem || !negative) return rest;
  Value* other = b_.CreateXor(b_.CreateICmpSLT(rest, zero), b_.CreateICmpSLT(y, zero));
  Value* moves = b_.CreateAnd(b_.CreateICmpNE(rest, zero), other);
  if (op == ScalarOp::Mod) return b_.CreateSelect(moves, b_.CreateAdd(rest, y), rest);
  Value* whole = quotient();
  return b_.CreateSelect(moves, b_.CreateSub(whole, one), whole);
}

// A count outside of [0, bits) shifts everything out.
Value* VectorBuilder::shift(ScalarOp op, DType dtype, Value* x, Value* y) {
  const int bits = static_cast<int>(8 * size_of(dtype));
  Value* inside = b_.CreateICmpULT(y, number(bits, dtype));
  if (op == ScalarOp::Shl || !is_signed_int(dtype)) {
    Value* count = b_.CreateSelect(inside, y, number(0, dtype));
    Value* out = op == ScalarOp::Shl ? b_.CreateShl(x, count) : b_.CreateLShr(x, count);
    return b_.CreateSelect(inside, out, number(0, dtype));
  }
  return b_.CreateAShr(x, b_.CreateSelect(inside, y, number(bits - 1, dtype)));
}

// ------------------------------------------------------------------------------------------------ reductions

Vector VectorBuilder::identity(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Any: return constant(0.0, dtype);
    case ReduceOp::Prod:
    case ReduceOp::All: return constant(1.0, dtype);
    default: break;
  }
  const bool least = op == ReduceOp::Min || op == ReduceOp::ArgMin;
  return constant(loops::constant(least ? HUGE_VAL : -HUGE_VAL, dtype)->value, dtype);
}

Vector VectorBuilder::combine(ReduceOp op, DType dtype, const Vector& x, const Vector& y) {
  if (op == ReduceOp::Any) return {b_.CreateOr(x.re, y.re)};
  if (op == ReduceOp::All) return {b_.CreateAnd(x.re, y.re)};
  if (op == ReduceOp::Min || op == ReduceOp::Max)
    return {extreme(op == ReduceOp::Min ? ScalarOp::Min : ScalarOp::Max, dtype, x.re, y.re)};
  if (op == ReduceOp::Prod && is_complex(dtype)) {
    const Vector both[] = {x, y};
    const loops::Expr product = loops::binary(ScalarOp::Mul, loops::load(0, dtype), loops::load(1, dtype));
    return complex_product(*product.get(), both, false);
  }
  const ScalarOp scalar = op == ReduceOp::Sum ? ScalarOp::Add : ScalarOp::Mul;
  if (is_integral(dtype)) return {integer_binary(scalar, dtype, x.re, y.re)};
  return {float_binary(scalar, dtype, x.re, y.re), x.im ? float_binary(scalar, dtype, x.im, y.im) : nullptr};
}

Value* VectorBuilder::beyond(ReduceOp op, DType dtype, const Vector& x, const Vector& y) {
  const bool least = op == ReduceOp::Min || op == ReduceOp::ArgMin;
  return compare(least ? ScalarOp::Lt : ScalarOp::Gt, dtype, x, y);
}

Value* VectorBuilder::before(ReduceOp op, DType dtype, const Vector& x, const Vector& y) {
  Value* out = beyond(op, dtype, x, y);
  if (!is_float(dtype)) return out;
  return b_.CreateOr(out, b_.CreateAnd(is_nan(x.re), b_.CreateNot(is_nan(y.re))));
}

}  // namespace morel::codegen
