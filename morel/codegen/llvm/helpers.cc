#include "morel/codegen/llvm/helpers.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "morel/loops/scalar.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace morel::codegen {
namespace {

using loops::num_lanes;
using loops::ReduceOp;
using loops::ScalarOp;
namespace scalar = loops::scalar;

// ------------------------------------------------------------------------------------------------ functions

template <ScalarOp op, class T>
void unary(const T* x, T* out, int64_t m) {
  for (int64_t i = 0; i < m; ++i) {
    if constexpr (op == ScalarOp::Sqrt) out[i] = std::sqrt(x[i]);
    else out[i] = scalar::math(op, x[i]);
  }
}
template <class T>
void complex_abs(const std::complex<T>* x, T* out, int64_t m) {
  for (int64_t i = 0; i < m; ++i) out[i] = std::abs(x[i]);
}
template <ScalarOp op, class T>
void binary(const T* x, const T* y, T* out, int64_t m) {
  for (int64_t i = 0; i < m; ++i) {
    if constexpr (op == ScalarOp::Pow) out[i] = scalar::pow(x[i], y[i]);
    else if constexpr (op == ScalarOp::Mul) out[i] = x[i] * y[i];
    else if constexpr (op == ScalarOp::Div) out[i] = x[i] / y[i];
    else if constexpr (op == ScalarOp::Rem) out[i] = scalar::rem(x[i], y[i]);
    else out[i] = std::atan2(x[i], y[i]);
  }
}

class Table {
 public:
  Table() {
    add_math<float>(), add_math<double>(), add_math<std::complex<float>>(), add_math<std::complex<double>>();
    add_complex<float>(), add_complex<double>();
    add_integer<int8_t>(), add_integer<int16_t>(), add_integer<int32_t>(), add_integer<int64_t>();
    add_integer<uint8_t>(), add_integer<uint16_t>(), add_integer<uint32_t>(), add_integer<uint64_t>();
    add_positions<int8_t>(), add_positions<int16_t>(), add_positions<int32_t>(), add_positions<int64_t>();
    add_positions<uint8_t>(), add_positions<uint16_t>(), add_positions<uint32_t>(), add_positions<uint64_t>();
    add_positions<float>(), add_positions<double>();
    add_copies();
  }
  std::span<const Helper> all() const { return helpers_; }

 private:
  template <class F>
  void add(std::string name, F* function) {
    helpers_.push_back({std::move(name), reinterpret_cast<void*>(function)});
  }
  template <class T>
  void add_math() {
    [this]<size_t... i>(std::index_sequence<i...>) {
      (add_unary<static_cast<ScalarOp>(static_cast<size_t>(ScalarOp::Exp) + i), T>(), ...);
    }
    (std::make_index_sequence<static_cast<size_t>(ScalarOp::Lgamma) - static_cast<size_t>(ScalarOp::Exp) + 1>());
    add(helper_name(ScalarOp::Pow, dtype_of<T>), binary<ScalarOp::Pow, T>);
    if constexpr (scalar::is_float_v<T>) {
      add(helper_name(ScalarOp::Rem, dtype_of<T>), binary<ScalarOp::Rem, T>);
      add(helper_name(ScalarOp::Atan2, dtype_of<T>), binary<ScalarOp::Atan2, T>);
    }
  }
  template <ScalarOp op, class T>
  void add_unary() {
    add(helper_name(op, dtype_of<T>), unary<op, T>);
  }
  template <class R>
  void add_complex();
  template <class T>
  void add_integer() {
    add(helper_name(ScalarOp::Pow, dtype_of<T>), binary<ScalarOp::Pow, T>);
  }
  template <class T>
  void add_positions();
  void add_copies();

  std::vector<Helper> helpers_;
};

// ------------------------------------------------------------------------------------------------ reductions

// As loops/interpret.cc has it.
template <class T>
void reduce_product(T* row, const T* x, int64_t m) {
  const int64_t whole = m / num_lanes * num_lanes;
  if (whole) {
    T block[num_lanes];
    std::fill_n(block, num_lanes, T(1));
    for (int64_t i = 0; i < whole; i += num_lanes) {
      for (int l = 0; l < num_lanes; ++l) block[l] = block[l] * x[i + l];
    }
    for (int l = 0; l < num_lanes; ++l) row[l] = row[l] * block[l];
  }
  for (int64_t i = whole; i < m; ++i) row[i - whole] = row[i - whole] * x[i];
}
template <class T>
void fold_product(T* row) {
  for (int half = num_lanes / 2; half; half /= 2) {
    for (int l = 0; l < half; ++l) row[l] = row[l] * row[l + half];
  }
}

template <class R>
void Table::add_complex() {
  using T = std::complex<R>;
  constexpr DType dtype = dtype_of<T>;
  add(helper_name(ScalarOp::Abs, dtype), complex_abs<R>);
  add(helper_name(ScalarOp::Sqrt, dtype), unary<ScalarOp::Sqrt, T>);
  add(helper_name(ScalarOp::Mul, dtype), binary<ScalarOp::Mul, T>);
  add(helper_name(ScalarOp::Div, dtype), binary<ScalarOp::Div, T>);
  add(reduce_helper_name(ReduceOp::Prod, dtype), reduce_product<T>);
  add(fold_helper_name(ReduceOp::Prod, dtype), fold_product<T>);
}

template <ReduceOp op, class T>
bool before(T x, T y) {
  return (op == ReduceOp::ArgMin ? x < y : x > y) || (scalar::is_nan(x) && !scalar::is_nan(y));
}

template <ReduceOp op, class T>
void fold_position(T* row, int64_t* index) {
  for (int half = num_lanes / 2; half; half /= 2) {
    for (int l = 0; l < half; ++l) {
      const int64_t other = index[l + half];
      if (other < 0) continue;
      const T value = row[l + half];
      const bool same = row[l] == value || (scalar::is_nan(row[l]) && scalar::is_nan(value));
      if (index[l] < 0 || before<op>(value, row[l]) || (same && other < index[l])) row[l] = value, index[l] = other;
    }
  }
  index[0] = std::max<int64_t>(index[0], 0);
}

template <class T>
void Table::add_positions() {
  constexpr DType dtype = dtype_of<T>;
  add(fold_helper_name(ReduceOp::ArgMin, dtype), fold_position<ReduceOp::ArgMin, T>);
  add(fold_helper_name(ReduceOp::ArgMax, dtype), fold_position<ReduceOp::ArgMax, T>);
}

// ------------------------------------------------------------------------------------------------ copies

template <class T>
T read(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void load(void* to, const char* from, int64_t stride, int64_t m, int64_t padded) {
  constexpr int64_t size = sizeof(T);
  T* target = static_cast<T*>(to);
  if (stride == size) {
    std::memcpy(to, from, static_cast<size_t>(m * size));
  } else if (stride == 0 && m > 0) {
    std::fill_n(target, m, read<T>(from));
  } else {
    for (int64_t i = 0; i < m; ++i) target[i] = read<T>(from + i * stride);
  }
  if (padded > m) std::memset(static_cast<char*>(to) + m * size, 0, static_cast<size_t>((padded - m) * size));
}
template <class T>
void save(char* to, int64_t stride, const void* from, int64_t m) {
  constexpr int64_t size = sizeof(T);
  if (stride == size) {
    std::memcpy(to, from, static_cast<size_t>(m * size));
    return;
  }
  const T* source = static_cast<const T*>(from);
  for (int64_t i = 0; i < m; ++i) std::memcpy(to + i * stride, source + i, sizeof(T));
}

void stream_end() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

struct Pair {
  uint64_t part[2];
};

void Table::add_copies() {
  add(load_helper_name(1), load<uint8_t>), add(save_helper_name(1), save<uint8_t>);
  add(load_helper_name(2), load<uint16_t>), add(save_helper_name(2), save<uint16_t>);
  add(load_helper_name(4), load<uint32_t>), add(save_helper_name(4), save<uint32_t>);
  add(load_helper_name(8), load<uint64_t>), add(save_helper_name(8), save<uint64_t>);
  add(load_helper_name(16), load<Pair>), add(save_helper_name(16), save<Pair>);
  add(stream_end_helper_name, stream_end);
}

std::string name_of(const char* head, std::string_view op, DType dtype) {
  return head + std::string(op) + "_" + std::string(info(dtype).short_name);
}

}  // namespace

std::span<const Helper> helpers() {
  static const Table table;
  return table.all();
}

std::string helper_name(ScalarOp op, DType dtype) { return name_of("morel_", loops::op_name(op), dtype); }
std::string reduce_helper_name(ReduceOp op, DType dtype) {
  return name_of("morel_reduce_", loops::reduce_name(op), dtype);
}
std::string fold_helper_name(ReduceOp op, DType dtype) { return name_of("morel_fold_", loops::reduce_name(op), dtype); }
std::string load_helper_name(int64_t size) { return "morel_load_" + std::to_string(size); }
std::string save_helper_name(int64_t size) { return "morel_save_" + std::to_string(size); }

}  // namespace morel::codegen
