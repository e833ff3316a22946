// Sorting and what follows from it, along one axis of dense arrays [outer, n, inner].
//
// Every value becomes an unsigned key of the same order (float bits: sign-magnitude to biased), so one integer sort
// serves all dtypes. -0 equals +0, NaN equals NaN and comes after every number (first when descending, as MindSpore and
// PyTorch have it). All orders are stable. Complex numbers are not supported.
#pragma once

#include <cstdint>
#include <vector>

#include "morel/tensor/dtype.h"

namespace morel::kernels {

struct SortShape {
  DType dtype;
  int64_t outer;
  int64_t n;
  int64_t inner;
};

// values (may be null) and indices (may be null): [outer, n, inner]; argsort is sort without values.
void sort(const void* input, const SortShape& shape, bool descending, void* values, int64_t* indices);

// The k largest (or smallest) along the axis, best first, equal ones by index: [outer, k, inner].
void topk(const void* input, const SortShape& shape, int64_t k, bool largest, void* values, int64_t* indices);

// The distinct elements of a flat array: input[firsts[j]] is the j-th one (firsts: where it occurs first), inverse[i]
// its number for element i, counts[j] how often it occurs.
struct Distinct {
  std::vector<int64_t> firsts;
  std::vector<int64_t> inverse;
  std::vector<int64_t> counts;
};
enum class DistinctOrder : uint8_t { Sorted, FirstSeen };
Distinct unique(const void* input, DType dtype, int64_t n, DistinctOrder order);
// Only neighbours that are equal are joined.
Distinct unique_consecutive(const void* input, DType dtype, int64_t n);

// For each value the first place in its ascending sequence where it could be inserted, left of equal elements or right
// of them. sequences [outer, n] or, shared by all, [n]; values [outer, m]; sorter (may be null): indices that sort the
// sequences.
struct SearchShape {
  DType dtype;
  int64_t outer;
  int64_t n;
  int64_t m;
  bool is_shared;
};
void searchsorted(const void* sequences, const void* values, const SearchShape& shape, bool right,
                  const int64_t* sorter, int64_t* out);

}  // namespace morel::kernels
