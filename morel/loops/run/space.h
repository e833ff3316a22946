// The iteration space of a nested loop and how its operands lie in it: axes that every operand walks through evenly are
// merged, those left are ordered by the strides of one operand.
#pragma once

#include "morel/loops/run/elementwise.h"

namespace morel::loops {

class LoopSpace {
 public:
  // order: strides of the operand that decides about the order of the axes.
  LoopSpace(const Shape& shape, std::span<const LoopOperand> operands, const Strides& order);
  // All of it, in tasks where it is large. stream: LoopArgs::stream.
  void run(const Kernel& kernel, const double* params, bool stream) const;
  // On this thread the elements [begin + i * step, begin + i * step + n) for i < rows, counted in the order in which
  // the operand that decides about the order lies in memory, densely.
  void run_part(const Kernel& kernel, int64_t begin, int64_t rows, int64_t step, int64_t n) const;

 private:
  // Rows [begin, end) of all axes but the innermost, there [from, to).
  void run_rows(const Kernel& kernel, int64_t begin, int64_t end, int64_t from, int64_t to, const double* params,
                bool stream) const;
  void run_piece(const Kernel& kernel, int64_t begin, int64_t n) const;
  void locate(int64_t row, int64_t column, char** at) const;

  static constexpr size_t max_rank = 16;
  size_t count_, axes_ = 0;
  char* data_[max_loop_operands];
  // Of the axes, innermost first.
  int64_t sizes_[max_rank], strides_[max_rank][max_loop_operands];
};

}  // namespace morel::loops
