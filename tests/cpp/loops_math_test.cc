// Accuracy of the float32 functions against long double libm, over a regular sample of all bit patterns. The bounds are
// those of docs/math_accuracy.md.
#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "morel/loops/program.h"
#include "tests/cpp/loops_compile.h"

namespace morel::loops {
namespace {

struct Function {
  std::string name;
  std::function<Expr(const Expr&)> rule;
  long double (*reference)(long double);
  double bound, bound_without_fma;
};

const std::vector<Function>& functions() {
#define MOREL_ROW(name, bound, other)                                                                                  \
  {                                                                                                                    \
#name, [](const Expr& x) { return name(x); }, name##l, bound, other                                                \
  }
  static const std::vector<Function> table = {
      MOREL_ROW(exp, 1.1, 1.1),   MOREL_ROW(exp2, 1, 1.1),    MOREL_ROW(expm1, 1.5, 1.5), MOREL_ROW(log, 1, 1),
      MOREL_ROW(log2, 1.4, 1.5),  MOREL_ROW(log10, 1, 1.9),   MOREL_ROW(log1p, 1.6, 1.6), MOREL_ROW(sin, 1.7, 1.7),
      MOREL_ROW(cos, 1.7, 1.7),   MOREL_ROW(tan, 2.6, 2.6),   MOREL_ROW(asin, 2.5, 2.5),  MOREL_ROW(acos, 1.3, 1.3),
      MOREL_ROW(atan, 1.5, 1.5),  MOREL_ROW(sinh, 1.7, 1.7),  MOREL_ROW(cosh, 1.5, 1.5),  MOREL_ROW(tanh, 1.5, 1.5),
      MOREL_ROW(asinh, 1.9, 1.9), MOREL_ROW(acosh, 1.8, 1.8), MOREL_ROW(atanh, 2.1, 2.1), MOREL_ROW(erf, 1.2, 1.3),
      MOREL_ROW(erfc, 3.5, 3.5),
  };
#undef MOREL_ROW
  return table;
}

// Error in units of the last place of the float next to the true value.
double ulps(float value, long double truth) {
  const float nearest = static_cast<float>(truth);
  if (std::isnan(value) || std::isnan(nearest)) return std::isnan(value) && std::isnan(nearest) ? 0 : 1e30;
  if (std::isinf(value) || std::isinf(nearest)) {
    if (value == nearest) return 0;
    // Between the largest float and infinity the distance is counted as if floats went on.
    truth = std::isinf(truth) ? std::copysign(1e30L, truth) * 1e30L : truth;
    const long double got = std::isinf(value) ? std::copysign(0x1p128L, value) : static_cast<long double>(value);
    return static_cast<double>(std::fabs(got - truth) / 0x1p104L);
  }
  if (nearest == 0 && value == 0) return std::signbit(value) == std::signbit(nearest) ? 0 : 1e30;
  int exponent;
  std::frexp(nearest, &exponent);
  return static_cast<double>(std::fabs(value - truth) / std::ldexp(1.0L, std::max(exponent - 24, -149)));
}

struct Worst {
  double error = 0;
  float x = 0, y = 0, value = 0;
  void add(double candidate, float at, float second, float got) {
    if (candidate > error) error = candidate, x = at, y = second, value = got;
  }
};

void run(LoopFn compiled, std::vector<std::vector<float>*> buffers) {
  std::vector<char*> pointers;
  for (auto* buffer : buffers) pointers.push_back(reinterpret_cast<char*>(buffer->data()));
  const std::vector<int64_t> row_strides(buffers.size(), 0), strides(buffers.size(), 4);
  const LoopArgs args{
      1, static_cast<int64_t>(buffers[0]->size()), pointers.data(), row_strides.data(), strides.data(), nullptr};
  compiled(&args);
}

std::vector<float> sample_floats() {
  const char* setting = std::getenv("MOREL_MATH_STRIDE");  // 1: all of them
  const uint64_t stride = setting ? std::strtoull(setting, nullptr, 10) : 9973;
  std::vector<float> out;
  for (uint64_t bits = 0; bits < (1ull << 32); bits += stride)
    out.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (float x : {0.0f,        -0.0f,     1.0f,          -1.0f,     INFINITY,   -INFINITY,   NAN,  1e-45f,
                  -1e-45f,     0x1p-126f, 3.4028235e38f, 88.72284f, 88.722839f, -103.97208f, 1e6f, 1.0000001f,
                  0.99999994f, 0.5f,      0.65f,         0.92f,     10.0f,      4.0f}) {
    out.push_back(x);
  }
  return out;
}

TEST(Math, UnaryWithinBounds) {
  if (!has_c_compiler()) GTEST_SKIP() << "no C compiler";
  std::vector<Program> programs;
  for (const Function& function : functions()) {
    ProgramBuilder builder(function.name + ".f32");
    const Expr x = builder.input(DType::Float32);
    builder.store(builder.output(DType::Float32), function.rule(x));
    programs.push_back(builder.finish());
  }
  const std::vector<IsaFlags> sets = isas();
  std::vector<Compiled> compiled;
  for (const IsaFlags& isa : sets) compiled.emplace_back(programs, isa);
  std::vector<float> x = sample_floats(), y(x.size());
  std::vector<long double> truth(x.size());
  for (const Function& function : functions()) {
    for (size_t i = 0; i < x.size(); ++i) truth[i] = function.reference(x[i]);
    std::printf("%-6s", function.name.c_str());
    for (size_t s = 0; s < sets.size(); ++s) {
      run(compiled[s][function.name + ".f32"], {&x, &y});
      Worst worst;
      for (size_t i = 0; i < x.size(); ++i) worst.add(ulps(y[i], truth[i]), x[i], 0, y[i]);
      std::printf("  %s %.2f at %a", sets[s].name.c_str(), worst.error, static_cast<double>(worst.x));
      EXPECT_LE(worst.error, sets[s].fma ? function.bound : function.bound_without_fma)
          << function.name << " " << sets[s].name << " at " << worst.x << ": " << worst.value;
    }
    std::printf("\n");
  }
}

Program binary_program(const std::string& name, Expr (*rule)(const Expr&, const Expr&)) {
  ProgramBuilder builder(name);
  const Expr x = builder.input(DType::Float32), y = builder.input(DType::Float32);
  builder.store(builder.output(DType::Float32), rule(x, y));
  return builder.finish();
}

void check_binary(const std::string& name, LoopFn compiled, long double (*reference)(long double, long double),
                  double bound) {
  const float special[] = {0.0f,   -0.0f,       1.0f,     -1.0f,      2.0f,       -2.0f,  3.0f,    -3.0f,
                           0.5f,   -0.5f,       INFINITY, -INFINITY,  NAN,        1e-45f, -1e-45f, 1e38f,
                           -1e38f, 16777217.0f, -5e8f,    0.9999999f, 1.0000001f, 1.5f,   -2.5f};
  std::vector<float> x, y;
  for (float a : special) {
    for (float b : special) x.push_back(a), y.push_back(b);
  }
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal(0, 20);
  for (int i = 0; i < 400000; ++i) {
    const float wild = std::bit_cast<float>(static_cast<uint32_t>(random()));
    switch (i % 4) {
      case 0: x.push_back(wild), y.push_back(std::bit_cast<float>(static_cast<uint32_t>(random()))); break;
      case 1: x.push_back(std::fabs(wild)), y.push_back(normal(random)); break;
      case 2: x.push_back(std::fabs(normal(random))), y.push_back(normal(random)); break;
      default: x.push_back(1 + normal(random) * 0x1p-20f), y.push_back(normal(random) * 1e4f); break;
    }
  }
  std::vector<float> out(x.size());
  run(compiled, {&x, &y, &out});
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) worst.add(ulps(out[i], reference(x[i], y[i])), x[i], y[i], out[i]);
  std::printf("%s %.2f at %a, %a\n", name.c_str(), worst.error, static_cast<double>(worst.x),
              static_cast<double>(worst.y));
  EXPECT_LE(worst.error, bound) << name << " at " << worst.x << ", " << worst.y << ": " << worst.value;
}

TEST(Math, BinaryWithinBounds) {
  if (!has_c_compiler()) GTEST_SKIP() << "no C compiler";
  const std::vector<Program> programs = {binary_program("pow.f32", pow), binary_program("atan2.f32", atan2)};
  for (const IsaFlags& isa : isas()) {
    const Compiled compiled(programs, isa);
    check_binary("pow " + isa.name, compiled["pow.f32"], powl, isa.fma ? 1 : 1.5);
    check_binary("atan2 " + isa.name, compiled["atan2.f32"], atan2l, 1.6);
  }
}

}  // namespace
}  // namespace morel::loops
