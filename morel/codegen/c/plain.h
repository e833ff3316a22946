// Loop programs as plain C for machines with little memory and no vectors: sizes, strides and parameters are numbers in
// the text, one element is computed at a time, nothing is copied into blocks. Results are those of the program, with
// float sums in the same order.
#pragma once

#include <string>
#include <vector>

#include "morel/loops/program.h"

namespace morel::codegen {

// Where one buffer of a program lies.
struct PlainOperand {
  std::string pointer;           // C expression: an object pointer to the first element
  std::string literal;           // instead: the one value of an input
  std::vector<int64_t> strides;  // in elements, for each axis of the space; 0 where it is broadcast or one for each row
};

// The last `pass_axes` axes of the space are what one pass of the program runs over: the positions of a row, and for a
// Columns program its rows. The others are rows, and for a Columns program inner positions.
struct PlainCall {
  std::vector<int64_t> space;
  size_t pass_axes = 1;
  std::vector<PlainOperand> operands;  // one for each buffer of the program but scratch
  std::vector<double> params;
};

// Functions that the text calls: a header.
std::string plain_prelude();
// Statements, to be put into a function.
std::string plain_loops(const loops::Program& program, const PlainCall& call);

}  // namespace morel::codegen
