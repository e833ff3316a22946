// Choosing by truth values: masked_select, nonzero, masked fill and scatter, and one_hot.
#pragma once

#include <cstdint>

#include "morel/kernels/copy.h"

namespace morel::kernels {

// How many elements are not zero (any dtype; NaN counts).
int64_t count_nonzero(const ConstView& input);
// out: dense int64 [count_nonzero(input), rank], positions in row-major order.
void nonzero(int64_t* out, const ConstView& input);

// Masks: Bool, broadcast to the other array's shape by strides.
// out: dense, the elements of input where mask is true, in row-major order; count_nonzero(mask) of them.
void masked_select(void* out, const ConstView& input, const ConstView& mask);
// target's elements where mask is true = successive elements of the dense `source` (the gradient of masked_select).
void masked_scatter(const View& target, const ConstView& mask, const void* source);
// target's elements where mask is true = *value, one element of the target's dtype.
void masked_fill(const View& target, const ConstView& mask, const void* value);

// out: dense [outer, depth, inner]: *on_value where indices [outer, inner] (Int32 or Int64, dense) equal the depth
// coordinate, else *off_value; an index outside [0, depth) gives off_value all along.
void one_hot(void* out, DType dtype, const void* indices, DType index_dtype, int64_t outer, int64_t depth,
             int64_t inner, const void* on_value, const void* off_value);

}  // namespace morel::kernels
