// Programs of every kind that the loop IR has, and the comparison of compiled code with the interpreter.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/loops/program.h"
#include "morel/loops/rewrite.h"

namespace morel::loops {

// ------------------------------------------------------------------------------------------------ test programs

template <class Rule>
inline Program elementwise(const std::string& name, std::vector<DType> inputs, DType output, Rule rule) {
  ProgramBuilder builder(name);
  std::vector<Expr> args;
  for (DType dtype : inputs) args.push_back(builder.input(dtype));
  builder.store(builder.output(output), rule(args));
  return builder.finish();
}

using Args = const std::vector<Expr>&;

inline std::string suffix(DType dtype) { return "." + std::string(info(dtype).short_name); }

inline Program softmax(DType dtype) {
  ProgramBuilder builder("softmax" + suffix(dtype));
  const Expr x = builder.input(dtype);
  const int64_t out = builder.output(dtype);
  const Expr largest = builder.max(x);
  const Expr e = exp(x - largest);
  const Expr total = builder.sum(e);
  builder.store(out, e / total);
  return builder.finish();
}

// Keeps the exponentials in the output between the passes.
inline Program softmax_stored(DType dtype) {
  ProgramBuilder builder("softmax_stored" + suffix(dtype));
  const Expr x = builder.input(dtype);
  const int64_t e = builder.output(dtype), out = builder.output(dtype);
  const Expr stored = builder.store(e, exp(x - builder.max(x)));
  builder.store(out, stored / builder.sum(stored));
  return builder.finish();
}

inline Program layer_norm(DType dtype) {
  ProgramBuilder builder("layer_norm" + suffix(dtype));
  const Expr x = builder.input(dtype), gamma = builder.input(dtype), beta = builder.input(dtype);
  const Expr epsilon = builder.param(compute_dtype(dtype));
  const int64_t out = builder.output(dtype), mean_out = builder.output(DType::Float32);
  const Expr length = cast(builder.row_length(), compute_dtype(dtype));
  const Expr mean = builder.sum(x) / length;
  const Expr difference = x - mean;
  const Expr variance = builder.sum(difference * difference) / length;
  const Expr scale = 1.0 / sqrt(variance + epsilon);
  builder.store(out, difference * scale * gamma + beta);
  builder.store_row(mean_out, cast(mean, DType::Float32));
  return builder.finish();
}

inline Program reduction(ReduceOp op, DType dtype, ProgramKind kind) {
  ProgramBuilder builder(
      std::string(kind == ProgramKind::Rows ? "rows_" : "columns_") + std::string(reduce_name(op)) + suffix(dtype),
      kind);
  const Expr x = builder.input(dtype);
  const Expr value = builder.reduce(op, x);
  builder.store_row(builder.output(value.dtype() == compute_dtype(dtype) ? dtype : value.dtype()), value);
  return builder.finish();
}

inline Program column_norm() {
  ProgramBuilder builder("column_norm.f32", ProgramKind::Columns);
  const Expr x = builder.input(DType::Float32);
  const int64_t out = builder.output(DType::Float32), means = builder.output(DType::Float32);
  const Expr length = cast(builder.row_length(), DType::Float32);
  const Expr mean = builder.sum(x) / length;
  const Expr variance = builder.sum((x - mean) * (x - mean)) / length;
  builder.store(out, (x - mean) / sqrt(variance + 1e-5));
  builder.store_row(means, mean);
  return builder.finish();
}

inline void add_elementwise(std::vector<Program>& out) {
  using D = DType;
  for (D t : {D::Float32, D::Float64, D::Float16, D::BFloat16}) {
    const std::string s = suffix(t);
    out.push_back(elementwise("add" + s, {t, t}, t, [](Args a) { return a[0] + a[1]; }));
    out.push_back(
        elementwise("gelu" + s, {t}, t, [](Args a) { return 0.5 * a[0] * (1.0 + erf(a[0] * 0.7071067811865476)); }));
    out.push_back(elementwise("logaddexp" + s, {t, t}, t, [](Args a) {
      const Expr m = max(a[0], a[1]);
      return where(isinf(m), m, m + log1p(exp(-abs(a[0] - a[1]))));
    }));
    out.push_back(elementwise("less" + s, {t, t}, D::Bool, [](Args a) { return a[0] < a[1] || isnan(a[0]); }));
    out.push_back(elementwise("select" + s, {D::Bool, t, t}, t, [](Args a) { return where(a[0], a[1], a[2]); }));
    out.push_back(elementwise("division" + s, {t, t}, t, [](Args a) {
      return floor_div(a[0], a[1]) + mod(a[0], a[1]) * trunc_div(a[1], a[0]) - rem(a[0], a[1]);
    }));
    out.push_back(elementwise("rounding" + s, {t}, t, [](Args a) {
      return floor(a[0]) + ceil(a[0]) * trunc(a[0]) - round(a[0]) + min(a[0], sqrt(abs(a[0])));
    }));
  }
  for (D t : {D::Int8, D::Int16, D::Int32, D::Int64, D::UInt8, D::UInt16, D::UInt32, D::UInt64}) {
    const std::string s = suffix(t);
    out.push_back(
        elementwise("arithmetic" + s, {t, t}, t, [](Args a) { return (a[0] + a[1]) * a[0] - a[1] + abs(-a[0]); }));
    out.push_back(elementwise("division" + s, {t, t}, t, [](Args a) {
      return bit_xor(floor_div(a[0], a[1]), mod(a[0], a[1])) + bit_and(trunc_div(a[0], a[1]), bit_not(rem(a[0], a[1])));
    }));
    out.push_back(elementwise("shift" + s, {t, t}, t, [](Args a) {
      return bit_or(shl(a[0], a[1]), shr(a[0], a[1])) + pow(a[0], bit_and(a[1], constant(7.0, a[1].dtype())));
    }));
    out.push_back(elementwise("to_f32" + s, {t}, D::Float32, [](Args a) { return cast(a[0], D::Float32); }));
    out.push_back(elementwise("compare" + s, {t, t}, D::Bool,
                              [](Args a) { return logical_xor(a[0] <= a[1], a[0] != max(a[1], min(a[0], a[1]))); }));
  }
  for (D t : {D::Complex64, D::Complex128}) {
    const std::string s = suffix(t);
    out.push_back(elementwise("complex" + s, {t, t}, t,
                              [](Args a) { return a[0] * a[1] + exp(a[0]) / a[1] - conj(sqrt(a[1])); }));
    out.push_back(elementwise("complex_parts" + s, {t}, t,
                              [](Args a) { return make_complex(imag(a[0]), abs(a[0]) + real(a[0])); }));
  }
  out.push_back(elementwise("bits.f32", {D::Float32}, D::Int32,
                            [](Args a) { return bit_and(bitcast(a[0], D::Int32), constant(0x7fffffff, D::Int32)); }));
  out.push_back(elementwise("position.i64", {D::Int64}, D::Int64, [](Args a) { return a[0] + inner_index(); }));
  out.push_back(elementwise("to_f16.f32", {D::Float32}, D::Float16, [](Args a) { return a[0]; }));
  out.push_back(elementwise("round_f16.f32", {D::Float32}, D::Float32,
                            [](Args a) { return cast(a[0], D::Float16) + cast(a[0], D::BFloat16); }));
}

inline std::vector<Program> test_programs() {
  using D = DType;
  std::vector<Program> out;
  add_elementwise(out);
  for (D t : {D::Float32, D::Float64, D::Float16, D::BFloat16}) {
    out.push_back(softmax(t));
    out.push_back(softmax_stored(t));
    out.push_back(layer_norm(t));
  }
  for (ProgramKind kind : {ProgramKind::Rows, ProgramKind::Columns}) {
    for (D t : {D::Float32, D::Float64, D::Float16, D::BFloat16, D::Int32, D::Int64, D::UInt8, D::Int16}) {
      for (ReduceOp op :
           {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max, ReduceOp::ArgMin, ReduceOp::ArgMax}) {
        out.push_back(reduction(op, t, kind));
      }
    }
    out.push_back(reduction(ReduceOp::Any, D::Bool, kind));
    out.push_back(reduction(ReduceOp::All, D::Bool, kind));
    out.push_back(reduction(ReduceOp::Sum, D::Complex64, kind));
  }
  out.push_back(column_norm());
  return out;
}

// ------------------------------------------------------------------------------------------------ data and comparison

enum class LayoutKind { Contiguous, Strided, Broadcast };

struct Operands {
  std::vector<std::vector<std::byte>> memory;
  std::vector<char*> pointers;
  std::vector<int64_t> row_strides, strides;
};

inline double sample(std::mt19937_64& random, DType dtype) {
  if (dtype == DType::Bool) return static_cast<double>(random() & 1);
  if (is_integral(dtype))
    return static_cast<double>(static_cast<int64_t>(random() % 40)) - (is_signed_int(dtype) ? 20 : 0);
  const uint64_t pick = random() % 64;
  if (pick == 0) return INFINITY;
  if (pick == 1) return NAN;
  if (pick == 2) return -0.0;
  return std::normal_distribution<double>(0, 3)(random);
}

inline void write(DType dtype, char* to, double real, double imaginary) {
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T value;
    if constexpr (std::is_same_v<T, Float16>) value = to_float16(static_cast<float>(real));
    else if constexpr (std::is_same_v<T, BFloat16>) value = to_bfloat16(static_cast<float>(real));
    else if constexpr (std::is_same_v<T, std::complex<float>>)
      value = T(static_cast<float>(real), static_cast<float>(imaginary));
    else if constexpr (std::is_same_v<T, std::complex<double>>) value = T(real, imaginary);
    else value = static_cast<T>(real);
    std::memcpy(to, &value, sizeof value);
  });
}

// A row store writes one element per row (per inner position in Columns programs).
inline bool once_per_row(const Program& program, int64_t buffer) {
  for (const Statement& s : program.statements) {
    if (s.kind == Statement::Kind::StoreRow && s.target == buffer) return true;
  }
  return false;
}

inline Operands make_operands(const Program& program, int64_t rows, int64_t n, LayoutKind kind, uint64_t seed) {
  Operands out;
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    const int64_t size = size_of(buffer.dtype);
    int64_t stride = kind == LayoutKind::Strided ? size * (2 + static_cast<int64_t>(i)) : size;
    int64_t row_stride = stride * n + (kind == LayoutKind::Strided ? size : 0);
    if (buffer.role == BufferRole::Input && kind == LayoutKind::Broadcast) {
      if (i % 2 == 0) stride = 0, row_stride = size;
      else row_stride = 0;
    }
    if (buffer.per_row) stride = 0, row_stride = size;
    if (once_per_row(program, static_cast<int64_t>(i)) && program.kind == ProgramKind::Rows) row_stride = size;
    out.memory.emplace_back(std::max<int64_t>(64, (rows + 1) * (std::abs(row_stride) + size) + (n + 1) * stride + 64),
                            std::byte{0x5a});
    out.strides.push_back(stride);
    out.row_strides.push_back(row_stride);
    char* base = reinterpret_cast<char*>(out.memory.back().data());
    out.pointers.push_back(base);
    if (buffer.role == BufferRole::Output) continue;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < n; ++j)
        write(buffer.dtype, base + r * row_stride + j * stride, sample(random, buffer.dtype),
              sample(random, real_dtype(buffer.dtype)));
    }
  }
  return out;
}

inline bool equal_floats(double x, double y, double tolerance) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x == y) return tolerance > 0 || std::signbit(x) == std::signbit(y);
  return std::abs(x - y) <= tolerance * std::max(std::abs(x), std::abs(y));
}

inline bool equal_elements(DType dtype, const std::byte* x, const std::byte* y, double tolerance) {
  return visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T a, b;
    std::memcpy(&a, x, sizeof a), std::memcpy(&b, y, sizeof b);
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
      return equal_floats(to_float(a), to_float(b), tolerance * 1e5);
    else if constexpr (std::is_floating_point_v<T>) return equal_floats(a, b, tolerance);
    else if constexpr (std::is_integral_v<T>) return a == b;
    else return equal_floats(a.real(), b.real(), tolerance) && equal_floats(a.imag(), b.imag(), tolerance);
  });
}

inline void expect_equal(const Program& program, const Operands& expected, const Operands& actual, double tolerance,
                         const std::string& what) {
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const DType dtype = program.buffers[i].dtype;
    const std::vector<std::byte>&x = expected.memory[i], &y = actual.memory[i];
    if (std::memcmp(x.data(), y.data(), x.size()) == 0) continue;
    for (size_t at = 0; at + size_of(dtype) <= x.size(); at += size_of(dtype)) {
      ASSERT_TRUE(equal_elements(dtype, &x[at], &y[at], tolerance))
          << program.name << " " << what << ": element " << at / size_of(dtype) << " of buffer " << i;
    }
  }
}

inline void compare(const Program& program, const Program& oracle, LoopFn compiled, double tolerance, int64_t rows,
                    int64_t n, LayoutKind kind) {
  Operands expected = make_operands(program, rows, n, kind, 17 * n + rows);
  Operands actual = make_operands(program, rows, n, kind, 17 * n + rows);
  const std::vector<double> params(8, 1e-5);
  const auto args = [&](Operands& o) {
    return LoopArgs{rows, n, o.pointers.data(), o.row_strides.data(), o.strides.data(), params.data()};
  };
  interpret(oracle, args(expected));
  LoopArgs compiled_args = args(actual);
  compiled_args.stream = rows > 1;
  compiled(&compiled_args);
  expect_equal(program, expected, actual, tolerance, cat("rows ", rows, " n ", n, " layout ", static_cast<int>(kind)));
}

// The last output stored over the first input, and past the caches, against the same stored elsewhere.
inline void compare_in_place(const Program& program, LoopFn compiled, int64_t n) {
  const size_t last = program.buffers.size() - 1;
  if (!can_store_over(program, 0, static_cast<int64_t>(last))) return;
  Operands apart = make_operands(program, 2, n, LayoutKind::Contiguous, n), over = apart;
  for (size_t i = 0; i < over.memory.size(); ++i) over.pointers[i] = reinterpret_cast<char*>(over.memory[i].data());
  over.pointers[last] = over.pointers[0];
  const std::vector<double> params(8, 1e-5);
  for (Operands* o : {&apart, &over}) {
    const bool stream = o == &over;
    const LoopArgs args{2, n, o->pointers.data(), o->row_strides.data(), o->strides.data(), params.data(), stream};
    compiled(&args);
  }
  const size_t bytes = 2 * n * size_of(program.buffers[last].dtype);
  EXPECT_EQ(std::memcmp(apart.pointers[last], over.pointers[last], bytes), 0) << program.name << " in place, n " << n;
}

// The program as a machine without fma computes it.
inline Program without_fma(Program program) {
  Rewriter rewrite([](const Expr& x) { return x->op == ScalarOp::Fma ? x->args[0] * x->args[1] + x->args[2] : x; });
  for (Statement& statement : program.statements) statement.value = rewrite(statement.value);
  return program;
}

}  // namespace morel::loops
