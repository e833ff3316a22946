// Arrays made from a rule: ranges and the identity. All outputs are dense.
#pragma once

#include <cstdint>

#include "morel/tensor/dtype.h"

namespace morel::kernels {

// out[i] = start + i * step. Integer dtypes use the int64 version (wraps around), others the double one, each element
// computed from its own index, in double, and rounded once.
void arange(void* out, DType dtype, int64_t n, double start, double step);
void arange(void* out, DType dtype, int64_t n, int64_t start, int64_t step);
// n points from start to stop, both included; computed from the nearer end, so that the last one is exactly `stop`.
void linspace(void* out, DType dtype, int64_t n, double start, double stop);
// Ones where column - row == diagonal, zeros elsewhere, for `batch` matrices.
void eye(void* out, DType dtype, int64_t batch, int64_t rows, int64_t columns, int64_t diagonal);

}  // namespace morel::kernels
