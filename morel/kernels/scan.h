// Running sums, products, maxima and minima along one axis of dense arrays [outer, n, inner].
#pragma once

#include <cstdint>

#include "morel/tensor/dtype.h"

namespace morel::kernels {

struct ScanShape {
  DType dtype;
  int64_t outer;
  int64_t n;
  int64_t inner;
};
struct ScanOptions {
  bool exclusive = false;  // element i leaves itself out
  bool reverse = false;    // from the end
};

// float32 is summed in float64 and the half types in float32, rounded once per element; integers wrap around. Lines of
// many elements are scanned in blocks of fixed length whose totals are added. Bool is not supported; out may be input.
void cumsum(void* out, const void* input, const ScanShape& shape, const ScanOptions& options);
void cumprod(void* out, const void* input, const ScanShape& shape, const ScanOptions& options);

// The largest (least) element so far and its index, the last one among equals; NaN stays once seen. Real dtypes.
void cummax(void* values, int64_t* indices, const void* input, const ScanShape& shape);
void cummin(void* values, int64_t* indices, const void* input, const ScanShape& shape);

}  // namespace morel::kernels
