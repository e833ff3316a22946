// Sorting and running sums of the kernel table.
#include "morel/kernels/scan.h"
#include "morel/kernels/sort.h"
#include "morel/kernels/table.h"

namespace morel {
namespace {

// [outer, n, inner] around an axis.
template <class Lines>
Lines lines_around(const Tensor& tensor, int64_t axis) {
  const Shape& shape = tensor.shape();
  if (shape.empty()) return {tensor.dtype(), 1, 1, 1};
  if (axis < 0) axis += tensor.rank();
  Lines out{tensor.dtype(), 1, tensor.dim(axis), 1};
  for (int64_t i = 0; i < axis; ++i) out.outer *= tensor.dim(i);
  for (int64_t i = axis + 1; i < tensor.rank(); ++i) out.inner *= tensor.dim(i);
  return out;
}

// args: input, axis, descending; outs: values, indices.
void sort(const KernelCall& call) {
  const Tensor input = call.contiguous(0);
  kernels::sort(input.data(), lines_around<kernels::SortShape>(input, call.integer(1)), call.flag(2),
                call.outs[0].data(), call.outs[1].as<int64_t>());
}

// args: input, k, dim, largest, sorted (always); outs: values, indices.
void topk(const KernelCall& call) {
  const Tensor input = call.contiguous(0);
  const int64_t axis = call.has(2) ? call.integer(2) : -1;
  kernels::topk(input.data(), lines_around<kernels::SortShape>(input, axis), call.integer(1), call.flag(3),
                call.outs[0].data(), call.outs[1].as<int64_t>());
}

using Scan = void (*)(void*, const void*, const kernels::ScanShape&, const kernels::ScanOptions&);
// args: input, axis, dtype.
template <Scan scan>
void running(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor input = call.contiguous(0, out.dtype());
  scan(out.data(), input.data(), lines_around<kernels::ScanShape>(input, call.integer(1)), {});
}

using ExtremumScan = void (*)(void*, int64_t*, const void*, const kernels::ScanShape&);
// args: input, axis; outs: values, indices.
template <ExtremumScan scan>
void running_extremum(const KernelCall& call) {
  const Tensor input = call.contiguous(0);
  scan(call.outs[0].data(), call.outs[1].as<int64_t>(), input.data(),
       lines_around<kernels::ScanShape>(input, call.integer(1)));
}

}  // namespace

std::span<const KernelEntry> sort_kernels() {
  static constexpr KernelEntry entries[] = {
      {"sort", sort},
      {"topk", topk},
      {"cumsum", running<kernels::cumsum>},
      {"cumprod", running<kernels::cumprod>},
      {"cummax", running_extremum<kernels::cummax>},
      {"cummin", running_extremum<kernels::cummin>},
  };
  return selected<entries>;
}

}  // namespace morel
