#include "morel/kernels/scan.h"

#include <algorithm>
#include <complex>
#include <vector>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/selection.h"

namespace morel::kernels {
namespace {

constexpr int64_t task_elements = 16384;
// Lines at least twice as long are cut in blocks where there are fewer lines than `many_lines`.
constexpr int64_t block_length = 16384;
constexpr int64_t many_lines = 16;
// Columns that are scanned side by side when the axis is not the last one.
constexpr int64_t column_strip = 64;

// In what a running sum of T is kept.
template <class T>
struct Accumulator {
  using type = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
};
template <>
struct Accumulator<float> {
  using type = double;
};
template <>
struct Accumulator<Float16> {
  using type = float;
};
template <>
struct Accumulator<BFloat16> {
  using type = float;
};
template <>
struct Accumulator<std::complex<float>> {
  using type = std::complex<double>;
};

template <class A, class T>
A widen(const T& value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return to_float(value);
  } else {
    return static_cast<A>(value);
  }
}
template <class T, class A>
T narrow(const A& value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(value);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(value);
  } else {
    return static_cast<T>(value);
  }
}

struct Plus {
  static constexpr std::string_view kernel = "cumsum";
  static constexpr int identity = 0;
  template <class A>
  A operator()(const A& x, const A& y) const {
    return x + y;
  }
};
struct Times {
  static constexpr std::string_view kernel = "cumprod";
  static constexpr int identity = 1;
  template <class A>
  A operator()(const A& x, const A& y) const {
    return x * y;
  }
};

// Walks `n` elements of a line from `state`; with reverse, the pointers are at its last element and the step is
// negative.
template <class T, class A, class Op>
A scan_run(T* out, const T* input, int64_t n, int64_t step, bool exclusive, A state, Op op) {
  for (int64_t idx = 0; idx < n; ++idx) {
    const A next = op(state, widen<A>(input[idx * step]));
    out[idx * step] = narrow<T>(exclusive ? state : next);
    state = next;
  }
  return state;
}

template <class T, class Op>
class Scan {
 public:
  using A = typename Accumulator<T>::type;
  Scan(void* out, const void* input, const ScanShape& shape, const ScanOptions& options)
      : out_(static_cast<T*>(out)), input_(static_cast<const T*>(input)), shape_(shape), options_(options) {}

  void run() const {
    const int64_t lines = shape_.outer * shape_.inner;
    if (shape_.inner > 1) return run_columns();
    if (lines < many_lines && shape_.n >= 2 * block_length) {
      for (int64_t line = 0; line < lines; ++line) run_long(line);
      return;
    }
    parallel_for(lines, std::max<int64_t>(1, task_elements / shape_.n), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) run_part(line, 0, shape_.n, A(Op::identity));
    });
  }

 private:
  // Elements [begin, end) of a contiguous line, counted in the direction of the scan.
  A run_part(int64_t line, int64_t begin, int64_t end, A state) const {
    const int64_t first = line * shape_.n + (options_.reverse ? shape_.n - 1 - begin : begin),
                  step = options_.reverse ? -1 : 1;
    return scan_run(out_ + first, input_ + first, end - begin, step, options_.exclusive, state, Op{});
  }
  void run_long(int64_t line) const {
    const int64_t blocks = (shape_.n + block_length - 1) / block_length;
    std::vector<A> totals(blocks, A(Op::identity));
    parallel_tasks(blocks, [&](int64_t block) {
      const int64_t begin = block * block_length, end = std::min(shape_.n, begin + block_length);
      A total(Op::identity);
      for (int64_t idx = begin; idx < end; ++idx) {
        total = Op{}(total, widen<A>(input_[line * shape_.n + (options_.reverse ? shape_.n - 1 - idx : idx)]));
      }
      totals[block] = total;
    });
    A state(Op::identity);
    for (A& total : totals) {
      const A next = Op{}(state, total);
      total = state;
      state = next;
    }
    parallel_tasks(blocks, [&](int64_t block) {
      run_part(line, block * block_length, std::min(shape_.n, (block + 1) * block_length), totals[block]);
    });
  }
  // Rows of `inner` elements: a strip of columns keeps its own states.
  void run_columns() const {
    const int64_t strips = (shape_.inner + column_strip - 1) / column_strip;
    const int64_t grain = std::max<int64_t>(1, task_elements / (shape_.n * std::min(shape_.inner, column_strip)));
    parallel_for(shape_.outer * strips, grain, [&](int64_t begin, int64_t end) {
      A states[column_strip];
      for (int64_t task = begin; task < end; ++task) {
        const int64_t column = task % strips * column_strip, width = std::min(column_strip, shape_.inner - column);
        std::fill_n(states, width, A(Op::identity));
        for (int64_t step = 0; step < shape_.n; ++step) {
          const int64_t row = options_.reverse ? shape_.n - 1 - step : step;
          const int64_t offset = (task / strips * shape_.n + row) * shape_.inner + column;
          for (int64_t idx = 0; idx < width; ++idx) {
            const A next = Op{}(states[idx], widen<A>(input_[offset + idx]));
            out_[offset + idx] = narrow<T>(options_.exclusive ? states[idx] : next);
            states[idx] = next;
          }
        }
      }
    });
  }

  T* out_;
  const T* input_;
  ScanShape shape_;
  ScanOptions options_;
};

template <class Op>
void scan(void* out, const void* input, const ScanShape& shape, const ScanOptions& options) {
  MOREL_CHECK(shape.dtype != DType::Bool, Type, "For '", Op::kernel,
              "', Bool is not supported; cast to an integer type first.");
  if (shape.outer * shape.n * shape.inner == 0) return;
  visit_selected<selected_dtypes(Op::kernel)>(shape.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, bool>) Scan<T, Op>(out, input, shape, options).run();
  });
}

template <bool IsMax>
void extremum(const char* name, void* values, int64_t* indices, const void* input, const ScanShape& shape) {
  MOREL_CHECK(!is_complex(shape.dtype), Type, "For '", name, "', complex numbers have no order, but got ",
              info(shape.dtype).name, ".");
  if (shape.outer * shape.n * shape.inner == 0) return;
  visit_dtype(shape.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex(dtype_of<T>)) {
      using W = std::conditional_t<is_half(dtype_of<T>), float, T>;
      parallel_for(shape.outer * shape.inner, std::max<int64_t>(1, task_elements / shape.n),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t line = begin; line < end; ++line) {
                       const int64_t start = line / shape.inner * shape.n * shape.inner + line % shape.inner;
                       int64_t best = 0;
                       for (int64_t idx = 0; idx < shape.n; ++idx) {
                         const W x = widen<W>(static_cast<const T*>(input)[start + idx * shape.inner]);
                         const W top = widen<W>(static_cast<const T*>(input)[start + best * shape.inner]);
                         if (x != x || (top == top && (IsMax ? x >= top : x <= top))) best = idx;
                         static_cast<T*>(values)[start + idx * shape.inner] =
                             static_cast<const T*>(input)[start + best * shape.inner];
                         if (indices) indices[start + idx * shape.inner] = best;
                       }
                     }
                   });
    }
  });
}

}  // namespace

void cumsum(void* out, const void* input, const ScanShape& shape, const ScanOptions& options) {
  scan<Plus>(out, input, shape, options);
}
void cumprod(void* out, const void* input, const ScanShape& shape, const ScanOptions& options) {
  scan<Times>(out, input, shape, options);
}
void cummax(void* values, int64_t* indices, const void* input, const ScanShape& shape) {
  extremum<true>("cummax", values, indices, input, shape);
}
void cummin(void* values, int64_t* indices, const void* input, const ScanShape& shape) {
  extremum<false>("cummin", values, indices, input, shape);
}

}  // namespace morel::kernels
