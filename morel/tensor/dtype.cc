#include "morel/tensor/dtype.h"

namespace morel {

float to_float(Float16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  uint32_t magnitude = static_cast<uint32_t>(value.bits & 0x7fffu) << 13;
  float out;
  if (magnitude >= 0x0f800000u) {  // infinity, NaN
    magnitude += 0x70000000u;
    std::memcpy(&out, &magnitude, 4);
  } else {  // the exponent bias differs by 112; the product also normalises denormals
    std::memcpy(&out, &magnitude, 4);
    out *= 0x1p112f;
  }
  uint32_t bits;
  std::memcpy(&bits, &out, 4);
  bits |= sign;
  std::memcpy(&out, &bits, 4);
  return out;
}

Float16 to_float16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  bits &= 0x7fffffffu;
  uint32_t out;
  if (bits > 0x7f800000u) {
    out = 0x7e00u;
  } else if (bits >= 0x477ff000u) {  // rounds to 65536 or more
    out = 0x7c00u;
  } else if (bits < 0x38800000u) {  // denormal in half precision: let float addition do the rounding
    float magnitude;
    std::memcpy(&magnitude, &bits, 4);
    magnitude += 0.5f;
    std::memcpy(&out, &magnitude, 4);
    out -= 0x3f000000u;
  } else {
    bits += 0xc8000fffu + ((bits >> 13) & 1u);  // rebias by -112, round to nearest even
    out = bits >> 13;
  }
  return {static_cast<uint16_t>(sign | out)};
}

namespace {

DType promote_integers(DType a, DType b) {
  const DTypeInfo &x = info(a), &y = info(b);
  if (x.kind == y.kind) return x.size >= y.size ? a : b;
  const DType signed_one = x.kind == DTypeKind::Int ? a : b, unsigned_one = x.kind == DTypeKind::Int ? b : a;
  if (size_of(signed_one) > size_of(unsigned_one)) return signed_one;
  switch (size_of(unsigned_one)) {
    case 1: return DType::Int16;
    case 2: return DType::Int32;
    case 4: return DType::Int64;
    default: return DType::Float32;  // no integer type holds both int64 and uint64
  }
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  const DTypeInfo &x = info(a), &y = info(b);
  if (x.kind == DTypeKind::Bool) return b;
  if (y.kind == DTypeKind::Bool) return a;
  if (is_complex(a) || is_complex(b)) {
    const bool wide = a == DType::Complex128 || b == DType::Complex128 || a == DType::Float64 || b == DType::Float64;
    return wide ? DType::Complex128 : DType::Complex64;
  }
  if (is_float(a) && is_float(b)) {
    if (x.size == y.size) return DType::Float32;  // float16 with bfloat16
    return x.size > y.size ? a : b;
  }
  if (is_float(a)) return a;
  if (is_float(b)) return b;
  return promote_integers(a, b);
}

}  // namespace morel
