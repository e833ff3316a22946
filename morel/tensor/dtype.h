// Element types. One X-macro table holds every fact about them: name, C++ type, size, kind.
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace morel {

// Storage-only types: arithmetic happens in float.
struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

enum class DTypeKind : uint8_t { Bool, Int, UInt, Float, Complex };

//  X(enumerator, name, short name, C++ type, kind)
#define MOREL_DTYPES(X)                                                                                                \
  X(Bool, "Bool", "bool", bool, Bool)                                                                                  \
  X(Int8, "Int8", "i8", int8_t, Int)                                                                                   \
  X(Int16, "Int16", "i16", int16_t, Int)                                                                               \
  X(Int32, "Int32", "i32", int32_t, Int)                                                                               \
  X(Int64, "Int64", "i64", int64_t, Int)                                                                               \
  X(UInt8, "UInt8", "u8", uint8_t, UInt)                                                                               \
  X(UInt16, "UInt16", "u16", uint16_t, UInt)                                                                           \
  X(UInt32, "UInt32", "u32", uint32_t, UInt)                                                                           \
  X(UInt64, "UInt64", "u64", uint64_t, UInt)                                                                           \
  X(Float16, "Float16", "f16", ::morel::Float16, Float)                                                                \
  X(BFloat16, "BFloat16", "bf16", ::morel::BFloat16, Float)                                                            \
  X(Float32, "Float32", "f32", float, Float)                                                                           \
  X(Float64, "Float64", "f64", double, Float)                                                                          \
  X(Complex64, "Complex64", "c64", std::complex<float>, Complex)                                                       \
  X(Complex128, "Complex128", "c128", std::complex<double>, Complex)

enum class DType : uint8_t {
#define X(enumerator, name, short_name, type, kind) enumerator,
  MOREL_DTYPES(X)
#undef X
};

struct DTypeInfo {
  std::string_view name;        // as MindSpore prints it: "Float32"
  std::string_view short_name;  // in messages and kernel names: "f32"
  uint8_t size;                 // bytes of an element
  DTypeKind kind;
};

inline constexpr DTypeInfo dtype_table[] = {
#define X(enumerator, name, short_name, type, kind) {name, short_name, sizeof(type), DTypeKind::kind},
    MOREL_DTYPES(X)
#undef X
};
inline constexpr int num_dtypes = sizeof(dtype_table) / sizeof(dtype_table[0]);

constexpr const DTypeInfo& info(DType dtype) { return dtype_table[static_cast<int>(dtype)]; }
constexpr int64_t size_of(DType dtype) { return info(dtype).size; }
constexpr bool is_float(DType dtype) { return info(dtype).kind == DTypeKind::Float; }
constexpr bool is_complex(DType dtype) { return info(dtype).kind == DTypeKind::Complex; }
constexpr bool is_integral(DType dtype) {
  return info(dtype).kind == DTypeKind::Int || info(dtype).kind == DTypeKind::UInt;
}
constexpr bool is_signed_int(DType dtype) { return info(dtype).kind == DTypeKind::Int; }
constexpr bool is_half(DType dtype) { return dtype == DType::Float16 || dtype == DType::BFloat16; }
constexpr bool is_differentiable(DType dtype) { return is_float(dtype) || is_complex(dtype); }
// The type in which values of `dtype` are computed: halves in float32, all others in themselves.
constexpr DType compute_dtype(DType dtype) { return is_half(dtype) ? DType::Float32 : dtype; }
// complex64 -> float32, complex128 -> float64, others themselves.
constexpr DType real_dtype(DType dtype) {
  return dtype == DType::Complex64 ? DType::Float32 : dtype == DType::Complex128 ? DType::Float64 : dtype;
}

template <class T>
struct DTypeOf;
#define X(enumerator, name, short_name, type, kind)                                                                    \
  template <>                                                                                                          \
  struct DTypeOf<type> {                                                                                               \
    static constexpr DType value = DType::enumerator;                                                                  \
  };
MOREL_DTYPES(X)
#undef X
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

template <class T>
struct TypeTag {
  using type = T;
};
// Calls fn(TypeTag<T>{}) with the C++ type of `dtype`.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& fn) {
  switch (dtype) {
#define X(enumerator, name, short_name, type, kind)                                                                    \
  case DType::enumerator: return fn(TypeTag<type>{});
    MOREL_DTYPES(X)
#undef X
  }
  __builtin_unreachable();
}

// Round to nearest even; infinities, NaN and denormals kept.
inline float to_float(BFloat16 value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float out;
  std::memcpy(&out, &bits, 4);
  return out;
}
inline BFloat16 to_bfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return {static_cast<uint16_t>(bits >> 16)};
}
float to_float(Float16 value);
Float16 to_float16(float value);

// The common type of two array operands (NumPy-like lattice, floats win over integers without widening: int64 + float16
// gives float16, as MindSpore has it).
DType promote(DType a, DType b);

}  // namespace morel
