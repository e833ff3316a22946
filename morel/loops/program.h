// A loop program: one kernel over a (rows x n) rectangle. Outer dimensions are the runtime's business: it coalesces
// axes and calls the kernel once per remaining outer index (and once per task when it splits the work).
//
// Statements run in stages; a stage is one pass over the inner axis of a row. A statement lies in the first stage
// after all reductions that it reads. `Rows` programs reduce along the inner axis (softmax, layer_norm, sum of the last
// axis); a program without reductions is an elementwise kernel; `Columns` programs reduce along the rows, for each
// inner position (sum of a leading axis), in order of the rows.
//
// Order of a Rows reduction (a promise): a row is cut into blocks of 1024 elements, whose last n % 64 elements form a
// block of their own. Within a block element j goes to lane j % 64; the lanes of a block start at the identity and are
// added to the lanes of the row, block after block; those are then combined pairwise (l with l + 32, then + 16, ... +
// 1). So interpreter, C and LLVM agree bitwise, and the error of a long sum grows with n / 1024 instead of n / 64.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "morel/loops/expr.h"

namespace morel::loops {

inline constexpr int num_lanes = 64;
inline constexpr int64_t block_size = 1024;  // elements a kernel treats at a time

enum class ProgramKind : uint8_t { Rows, Columns };
enum class ReduceOp : uint8_t {
  Sum,
  Prod,
  Min,
  Max,
  Any,
  All,
  ArgMin,
  ArgMax
};  // Arg*: first position; int64 result; NaN wins
enum class BufferRole : uint8_t { Input, Output };

struct Buffer {
  DType dtype;
  BufferRole role;
  bool per_row = false;  // an input of one element for each row (stride 0 along n)
  bool scratch = false;  // an output that nobody reads after the call: rows may share it
};

struct Statement {
  enum class Kind : uint8_t { Reduce, Store, StoreRow } kind;
  Expr value;
  ReduceOp reduce{};  // Reduce
  // Reduce: register. Store: buffer, every inner position. StoreRow: buffer, once after its stage: for each row at
  // position 0 of the inner axis; in a Columns program for each inner position at row 0.
  int64_t target = 0;
  int stage = 0;
};

struct Program {
  std::string name;  // unique: operator and dtypes, e.g. "add.f32", "softmax.bf16"
  ProgramKind kind = ProgramKind::Rows;
  std::vector<Buffer> buffers;
  int num_params = 0;
  int num_regs = 0;
  std::vector<Statement> statements;  // ordered by stage
};

// What a compiled kernel (or the interpreter) receives. Strides are in bytes; a row-scalar buffer has stride 0 along n,
// a buffer that all rows share has row_stride 0. Output buffers may be read back by later stages of the same row.
struct LoopArgs {
  int64_t rows;
  int64_t n;
  char* const* pointers;
  const int64_t* row_strides;
  const int64_t* strides;
  const double* params;
  // The outputs are larger than the caches and nobody reads them soon: compiled kernels store past the caches.
  bool stream = false;
};
using LoopFn = void (*)(const LoopArgs*);

// Collects statements; the `rows` rules of operators are written with it.
class ProgramBuilder {
 public:
  // A rule written for rows also gives a Columns program that works `across`: its rows are then positions of one row,
  // and inner positions are different rows.
  explicit ProgramBuilder(std::string name, ProgramKind kind = ProgramKind::Rows, bool across = false);
  Expr input(DType dtype);                      // declares the next input buffer and loads it
  Expr row_input(DType dtype);                  // the same, of one element for each row
  int64_t output(DType dtype);                  // declares the next output buffer
  int64_t scratch(DType dtype);                 // a buffer for values between stages
  Expr position();                              // int64 position in the row
  Expr param(DType dtype);                      // declares the next run-time parameter
  Expr reduce(ReduceOp op, const Expr& value);  // Min and Max of booleans are All and Any
  Expr sum(const Expr& value) { return reduce(ReduceOp::Sum, value); }
  Expr max(const Expr& value) { return reduce(ReduceOp::Max, value); }
  Expr store(int64_t output, const Expr& value);  // returns the stored value read back (rounded to the output's type)
  void store_row(int64_t output, const Expr& value);
  Expr row_length();  // number of elements a reduction of this program sees, float64
  // From here to end_call() a rule becomes part of this program: what it declares as inputs and parameters are these
  // values, and what it stores becomes a value.
  void begin_call(std::vector<Expr> inputs, std::vector<Expr> params);
  std::vector<Expr> end_call();  // the rule's outputs in order, rounded to their types
  Program finish();              // assigns stages, expands math, shares equal sub-expressions, verifies

 private:
  struct Call {
    std::vector<Expr> inputs, params;
    size_t next_input = 0, next_param = 0;
    std::vector<DType> dtypes;  // of the outputs
    std::vector<Expr> outputs;
  };
  int64_t add_output(DType dtype);
  Expr record(int64_t output, const Expr& value);  // an output of the call

  Program program_;
  bool across_;
  std::optional<Call> call_;
};

DType reduce_dtype(ReduceOp op, DType value);  // type of the register
std::string_view reduce_name(ReduceOp op);
// Whether the output may be stored over the input (same pointer, same strides): the input is not read after the store.
bool can_store_over(const Program& program, int64_t input, int64_t output);

// Verifier: raises Internal with the statement's text when a rule of this header does not hold.
void verify(const Program& program);
// Text form, one statement a line.
std::string print(const Program& program);
// The oracle: runs the program element by element in the same order.
void interpret(const Program& program, const LoopArgs& args);

}  // namespace morel::loops
