// Running sums, sorting and selection along an axis.
#include "morel/runtime/opencl/support.h"

namespace morel::opencl {
namespace {

// A work-item runs along a line; float32 sums are kept in float64, as on the CPU.
constexpr const char* running_source = R"C(
#define SCAN(name, start, step)                                                                     \
  KERNEL name(TENSOR(const T, x), TENSOR(T, y), const int64_t lines, const int64_t n, const int64_t inner) { \
    const int64_t line = get_global_id(0);                                                          \
    if (line >= lines) return;                                                                      \
    const int64_t first = line / inner * n * inner + line % inner;                                  \
    WIDE total = start;                                                                             \
    for (int64_t i = 0; i < n; ++i) {                                                               \
      total = total step LOAD(x + x_at + first + i * inner);                                        \
      STORE(y + y_at + first + i * inner, total);                                                   \
    }                                                                                               \
  }
SCAN(running_sum, 0, +)
SCAN(running_product, 1, *)
)C";

// Running extremum and where it was last; NaN stays.
constexpr const char* extremum_source = R"C(
KERNEL running_extremum(TENSOR(const T, x), TENSOR(T, values), TENSOR(int64_t, indices), const int64_t lines,
                        const int64_t n, const int64_t inner, const int64_t largest) {
  const int64_t line = get_global_id(0);
  if (line >= lines) return;
  const int64_t first = line / inner * n * inner + line % inner;
  x += x_at + first, values += values_at + first, indices += indices_at + first;
  int64_t best = 0;
  for (int64_t i = 0; i < n; ++i) {
    const A value = LOAD(x + i * inner), top = LOAD(x + best * inner);
    if (value != value || (top == top && (largest ? value >= top : value <= top))) best = i;
    values[i * inner] = x[best * inner];
    indices[i * inner] = best;
  }
}
)C";

// A work-item finds the place of one element: how many of its line come before it. That is stable and needs no memory.
constexpr const char* rank_source = R"C(
#define IS_NAN(x) ((x) != (x))
/* Whether the element x at i comes before y at j; NaN is the largest. */
MOREL_INLINE bool goes_first(A x, int64_t i, A y, int64_t j, int descending) {
  const bool less = x < y || (IS_NAN(y) && !IS_NAN(x)), more = x > y || (IS_NAN(x) && !IS_NAN(y));
  return (descending ? more : less) || (!less && !more && i < j);
}
KERNEL place(TENSOR(const T, x), TENSOR(T, values), TENSOR(int64_t, indices), const int64_t count, const int64_t n,
             const int64_t inner, const int64_t kept, const int64_t descending) {
  const int64_t item = get_global_id(0);
  if (item >= count) return;
  const int64_t at = item / inner % n, outer = item / inner / n, column = item % inner;
  x += x_at + outer * n * inner + column;
  const A own = LOAD(x + at * inner);
  int64_t rank = 0;
  for (int64_t j = 0; j < n; ++j) rank += goes_first(LOAD(x + j * inner), j, own, at, descending);
  if (rank >= kept) return;
  const int64_t to = (outer * kept + rank) * inner + column;
  values[values_at + to] = x[at * inner];
  indices[indices_at + to] = at;
}
)C";

void place(const KernelCall& call, const char* name, int64_t axis, int64_t kept, bool descending) {
  const Tensor input = dense(call.tensor(0));
  check_real(name, input.dtype());
  const Lines lines = lines_around(input.shape(), axis);
  OpenClDevice& device = active_device();
  device.launch(device.kernel(rank_source, input.dtype(), "place"), input.size(), input, call.outs[0], call.outs[1],
                static_cast<int64_t>(input.size()), lines.n, lines.inner, kept, int64_t{descending});
}

// args: input, axis, descending; outs: values, indices.
void sort(const KernelCall& call) {
  place(call, "Sort", call.integer(1), lines_around(call.tensor(0).shape(), call.integer(1)).n, call.flag(2));
}

// args: input, k, dim, largest, sorted (always); outs: values, indices.
void topk(const KernelCall& call) {
  place(call, "TopK", call.has(2) ? call.integer(2) : -1, call.integer(1), call.flag(3));
}

// args: input, axis, dtype.
void running(const KernelCall& call, const char* name) {
  const Tensor& out = call.outs[0];
  check_real("CumSum", out.dtype());
  const Tensor input = dense(call.tensor(0), out.dtype());
  const Lines lines = lines_around(input.shape(), call.integer(1));
  static const std::string narrow = std::string("#define WIDE A\n") + running_source,
                           wide = std::string("#define WIDE double\n") + running_source;
  OpenClDevice& device = active_device();
  const std::string& source = out.dtype() == DType::Float32 ? wide : narrow;
  device.launch(device.kernel(source.c_str(), out.dtype(), name), lines.outer * lines.inner, input, out,
                lines.outer * lines.inner, lines.n, lines.inner);
}
void cumsum(const KernelCall& call) { running(call, "running_sum"); }
void cumprod(const KernelCall& call) { running(call, "running_product"); }

// args: input, axis; outs: values, indices.
void extremum(const KernelCall& call, bool largest) {
  const Tensor input = dense(call.tensor(0));
  const Lines lines = lines_around(input.shape(), call.integer(1));
  OpenClDevice& device = active_device();
  device.launch(device.kernel(extremum_source, input.dtype(), "running_extremum"), lines.outer * lines.inner, input,
                call.outs[0], call.outs[1], lines.outer * lines.inner, lines.n, lines.inner, int64_t{largest});
}
void cummax(const KernelCall& call) { extremum(call, true); }
void cummin(const KernelCall& call) { extremum(call, false); }

}  // namespace

std::span<const KernelEntry> sort_kernels() {
  static constexpr KernelEntry entries[] = {{"sort", sort},       {"topk", topk},     {"cumsum", cumsum},
                                            {"cumprod", cumprod}, {"cummax", cummax}, {"cummin", cummin}};
  return entries;
}

}  // namespace morel::opencl
