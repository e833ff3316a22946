// Reading and writing at computed places: take, index_select, embedding, gather_nd, advanced indexing, gather_elements
// and their gradients and scatter forms. Everything about indices (negative ones, range checks, broadcasting) happens
// in resolve_indices; the rest moves rows.
//
// Order is part of the result: where several indices name one place, they act in the order of the indices, for any
// number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "morel/kernels/copy.h"

namespace morel::kernels {

// An integer array (Int8..Int64, UInt8..UInt32) broadcast to the shape of the call: strides in elements, 0 where
// broadcast.
struct IndexArray {
  const void* data;
  DType dtype;
  std::span<const int64_t> strides;
};

// How index values are read and what errors say.
struct IndexRule {
  const char* name;             // of the operator, for messages
  bool allows_negative = true;  // -1 is the last
  int64_t first_axis = 0;       // axis of the indexed array that arrays[0] refers to, for messages
};

// For each position of `shape`: the row in an array whose leading axes are `axis_sizes` (row-major), from one index
// array per axis. IndexError names the first bad index, its position, its axis and the size.
std::vector<int64_t> resolve_indices(const IndexRule& rule, std::span<const int64_t> shape,
                                     std::span<const IndexArray> arrays, std::span<const int64_t> axis_sizes);
// gather_nd: one dense array [count, axis_sizes.size()] holds an index tuple per row.
std::vector<int64_t> resolve_tuples(const IndexRule& rule, const void* data, DType dtype, int64_t count,
                                    std::span<const int64_t> axis_sizes);

// Dense arrays [outer, rows, inner].
struct RowsShape {
  DType dtype;
  int64_t outer;
  int64_t rows;
  int64_t inner;
};

// out[o, i, :] = input[o, positions[i], :]
void gather_rows(void* out, const void* input, const RowsShape& shape, std::span<const int64_t> positions);

enum class ScatterOp : uint8_t { Set, Add, Sub, Mul, Div, Max, Min };
// target[o, positions[i], :] op= source[o, i, :]; source dense [outer, positions.size(), inner], or one element for all
// when `is_scalar`. Add and Sub of half types sum in float32 and round once. Bool: Add is or, Mul is and.
void scatter_rows(void* target, const RowsShape& shape, std::span<const int64_t> positions, const void* source,
                  ScatterOp op, bool is_scalar = false);
// target = 0, then Add: the gradient of gather_rows (embedding, take, index).
void gather_rows_backward(void* target, const RowsShape& shape, std::span<const int64_t> positions, const void* grad);

// out[p] = input[p with p[axis] replaced by index[p]]; `index` has out's shape, input is at least as long on the other
// axes.
void gather_elements(const IndexRule& rule, const View& out, const ConstView& input, const ConstView& index,
                     int64_t axis);
// target[p with p[axis] replaced by index[p]] op= source[p]; source strides may be 0 (a scalar). Nothing is written
// when an index is bad.
void scatter_elements(const IndexRule& rule, const View& target, const ConstView& index, const ConstView& source,
                      int64_t axis, ScatterOp op);

}  // namespace morel::kernels
