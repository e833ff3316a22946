// The loop IR: builder, verifier, printer, and compiled C against the interpreter. The C compiler of the machine is
// called at run time; where there is none, those tests are skipped.
#include <functional>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/loops/program.h"
#include "tests/cpp/loops_compile.h"
#include "tests/cpp/loops_programs.h"

namespace morel::loops {
namespace {

TEST(Compiled, EqualsInterpreter) {
  if (!has_c_compiler()) GTEST_SKIP() << "no C compiler";
  const std::vector<Program> programs = test_programs();
  for (const IsaFlags& isa : isas()) {
    SCOPED_TRACE(isa.name);
    const Compiled compiled(programs, isa);
    ASSERT_TRUE(compiled.good());
    for (const Program& program : programs) {
      for (int64_t n : {5, 40, 1500}) compare_in_place(program, compiled[program.name], n);
      const Program oracle = isa.fma ? program : without_fma(program);
      // GCC 12 contracts complex products where the machine has fma, so the library compiles them for SSE4 only.
      const double tolerance = isa.fma && is_complex(program.buffers[0].dtype) ? 1e-5 : 0;
      for (int64_t n : {0, 1, 31, 32, 33, 1000, 1024, 2100}) {
        for (LayoutKind kind : {LayoutKind::Contiguous, LayoutKind::Strided, LayoutKind::Broadcast}) {
          for (int64_t rows : {1, 3}) compare(program, oracle, compiled[program.name], tolerance, rows, n, kind);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------ builder, verifier,
// text

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Expr, OperandsMustAgree) {
  const Expr x = load(0, DType::Float32), i = load(1, DType::Int32), b = load(2, DType::Bool);
  EXPECT_EQ(error_of([&] { x + i; }), "internal error: operands of 'add' differ: Float32 and Int32");
  EXPECT_EQ(error_of([&] { i / i; }), "internal error: loop operator 'div' has no meaning for Int32");
  EXPECT_EQ(error_of([&] { exp(i); }), "internal error: loop operator 'exp' has no meaning for Int32");
  EXPECT_EQ(error_of([&] { b + b; }), "internal error: loop operator 'add' has no meaning for Bool");
  EXPECT_EQ(error_of([&] { where(x, x, x); }), "internal error: loop operator 'select' has no meaning for Float32");
  EXPECT_EQ((x + 1.0).dtype(), DType::Float32);
  EXPECT_EQ(load(0, DType::BFloat16).dtype(), DType::Float32);
  EXPECT_EQ(max(b, b)->op, ScalarOp::Or);
  EXPECT_EQ(abs(load(0, DType::Complex64)).dtype(), DType::Float32);
  EXPECT_EQ((Expr(2.0) * Expr(3.0))->value.real(), 6.0);
}

TEST(Program, StagesAndText) {
  EXPECT_EQ(print(softmax(DType::Float64)),
            "rows softmax.f64(in0: f64, out1: f64)\n"
            "  0: r0 = max in0\n"
            "  %0 = exp(sub(in0, r0))\n"
            "  1: r1 = sum %0\n"
            "  2: out1 = div(%0, r1)\n");
  const Program stored = softmax_stored(DType::Float64);
  EXPECT_EQ(print(stored),
            "rows softmax_stored.f64(in0: f64, out1: f64, out2: f64)\n"
            "  0: r0 = max in0\n"
            "  1: out1 = exp(sub(in0, r0))\n"
            "  1: r1 = sum out1\n"
            "  2: out2 = div(out1, r1)\n");
  EXPECT_TRUE(can_store_over(stored, 0, 1));
  EXPECT_TRUE(can_store_over(softmax(DType::Float64), 0, 1));
  ProgramBuilder builder("late");
  const Expr x = builder.input(DType::Float32);
  const int64_t out = builder.output(DType::Float32), other = builder.output(DType::Float32);
  const Expr y = builder.store(out, x + 1.0);
  builder.store(other, x * builder.sum(y));
  EXPECT_FALSE(can_store_over(builder.finish(), 0, out));
}

TEST(Program, VerifierNamesTheStatement) {
  const auto bad = [](const std::function<void(Program&)>& change) {
    Program program = softmax(DType::Float64);
    change(program);
    return error_of([&] { verify(program); });
  };
  const std::string head = "internal error: loop program 'softmax.f64', statement ";
  EXPECT_EQ(bad([](Program&) {}), "");
  EXPECT_EQ(bad([](Program& p) { p.statements[0].value = load(7, DType::Float64); }),
            head + "0: buffer 7 is not declared");
  EXPECT_EQ(bad([](Program& p) { p.statements[0].value = load(0, DType::Int32); }),
            head + "0: a load of buffer 0 has type Int32");
  EXPECT_EQ(bad([](Program& p) { p.statements[1].stage = 0; }), head + "1: register 0 is read in its own stage");
  EXPECT_EQ(bad([](Program& p) { p.statements[2].target = 0; }), head + "2: buffer 0 is not an output");
  EXPECT_EQ(bad([](Program& p) { p.statements.pop_back(); }), head + "2: output 1 is never stored");
  EXPECT_EQ(bad([](Program& p) { p.statements[2].value = cast(p.statements[2].value, DType::Float32); }),
            head + "2: a Float32 value is stored to an output of type Float64");
  EXPECT_EQ(bad([](Program& p) { p.statements.push_back(p.statements.back()); }), head + "3: output 1 is stored twice");
  EXPECT_EQ(bad([](Program& p) { p.statements[0].value = param(0, DType::Float64); }),
            head + "0: parameter 0 is not declared");
}

}  // namespace
}  // namespace morel::loops
