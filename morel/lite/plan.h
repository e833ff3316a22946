// Plan: a model as a device runs it, as plain tables. A function is a list of steps over values; a value is a layout in
// a buffer; buffers lie in the arena, in the weights of the file or with the caller. No step needs a rule of an
// operator: it names a kernel (kernels/table.h) or loop programs compiled ahead of time (loops/library.h).
//
// Sizes may be expressions over symbols (sizes of the model's inputs), so one plan serves other batch sizes; a plan
// without symbols holds numbers only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "morel/loops/program.h"
#include "morel/loops/signature.h"
#include "morel/tensor/dtype.h"

namespace morel::lite {

// A number, or expression `expr` of the plan.
struct Size {
  int64_t number = 0;
  int32_t expr = -1;
  bool operator==(const Size&) const = default;
};
using Sizes = std::vector<Size>;

// A polynomial: the sum of `factor` times the product of its atoms.
struct SizeAtom {
  int32_t symbol = -1;  // negative: floor(a / b)
  Size a, b;
};
struct SizeTerm {
  int64_t factor = 0;
  std::vector<SizeAtom> atoms;
};
struct SizeExpr {
  std::vector<SizeTerm> terms;  // refers to expressions before it only
};

// Size `axis` of input `input`; `value` is what the offsets of the file are planned for.
struct Symbol {
  int32_t input = 0, axis = 0;
  int64_t value = 0;
};
// What must hold for the symbols' values.
struct Guard {
  enum class Kind : uint8_t { Zero, NotZero, NotNegative } kind{};
  Size size;
};

enum class Home : uint8_t {
  Input,     // the caller's tensor `index`
  Constant,  // bytes `offset` of the weights
  Variable,  // the same, but steps change it: the model keeps a copy of its own
  Arena,     // bytes `offset` of the function's arena, from step `first` to step `last`, both included
};
struct Buffer {
  Home home = Home::Arena;
  int32_t index = 0;
  Size bytes;
  int64_t offset = 0;
  int32_t first = 0, last = 0;
};

// x = scale * (q - zero_point), along `axis` (negative: one for all).
struct Quantisation {
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  int32_t axis = -1;
};
struct Value {
  std::string name;  // of inputs, outputs and weights; may be empty
  DType dtype = DType::Float32;
  Sizes shape, strides;  // in elements
  Size offset;           // of the first element from the start of the buffer, in elements
  int32_t buffer = -1;
  std::optional<Quantisation> quantisation;
};

// An argument of a kernel, in the order of the operator's schema.
struct Arg {
  enum class Tag : uint8_t { None, Bool, Int, Float, DType, Complex, Str, Ints, Floats, List, Value, Number };
  Tag tag = Tag::None;
  Size size;                   // Bool, Int; DType: its number
  int32_t value = -1;          // Value; Number: its one element, or all of them as integers where it has an axis
  std::vector<double> floats;  // Float, Complex, Floats
  std::string text;            // Str
  Sizes sizes;                 // Ints
  std::vector<Arg> items;      // List
};

// Calls fn(value) for each value that an argument names, also within lists.
template <class F>
void for_each_value(const Arg& arg, F&& fn) {
  if (arg.tag == Arg::Tag::Value || arg.tag == Arg::Tag::Number) fn(arg.value);
  for (const Arg& item : arg.items) for_each_value(item, fn);
}

enum class StepKind : uint8_t {
  Kernel,       // of the kernel table; `args` in the order of its schema; without `outs` it changes args[0] in place
  Elementwise,  // loop program `name`: signature.inputs.size() operands, which broadcast to outs[0], then parameters
  Rows,         // the same with loop programs `name`, `name`.across and `name`.columns along `axis`
  Reduce,       // loop programs `name`.<in>.<out>.rows and .columns: args[0] over `axes`
  Copy,         // outs[0] = args[0], broadcast and converted
  If,           // outs = bodies[args[0] ? 0 : 1](args[1], ...)
  While,        // outs = the first outs.size() of args; while bodies[0](outs, other args): outs = bodies[1](the same)
};
struct Step {
  StepKind kind{};
  std::string name;
  std::vector<Arg> args;
  std::vector<int32_t> outs;
  std::vector<int32_t> bodies;                   // functions, each of one step only
  int32_t workspace = -1;                        // the buffer in which bodies have their arenas
  loops::LoopSignature signature;                // Elementwise, Rows: what the program reads and writes
  bool has_across = false, has_columns = false;  // Rows
  int32_t axis = -1;                             // Rows
  std::vector<int32_t> axes;                     // Reduce, sorted
  loops::ReduceOp reduce{};                      // Reduce
  std::string place;                             // the user's line, for messages
};

struct Function {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<Value> values;
  std::vector<int32_t> inputs, outputs;  // values
  std::vector<Step> steps;
  int64_t arena_bytes = 0;  // for the symbols' values
};

struct Plan {
  std::vector<Symbol> symbols;
  std::vector<SizeExpr> exprs;
  std::vector<Guard> guards;
  std::vector<Function> functions;  // the model is the first; bodies come after the functions that use them
};

}  // namespace morel::lite
