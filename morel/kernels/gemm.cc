#include "morel/kernels/gemm.h"

#include <algorithm>
#include <complex>
#include <type_traits>
#include <utility>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/gemm_block.h"
#include "morel/kernels/gemm_onednn.h"

namespace morel {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

const void* at(const void* base, DType dtype, int64_t element) {
  return static_cast<const char*>(base) + element * size_of(dtype);
}
void* at(void* base, DType dtype, int64_t element) { return static_cast<char*>(base) + element * size_of(dtype); }

// ---- staging: matrices that the block kernels cannot take as they are, copied to their type
// ---------------------------------

template <class S, class T>
void copy_to_stage(const S* source, int64_t row, int64_t col, int64_t rows, int64_t cols, T* target) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) target[i * cols + j] = static_cast<T>(source[i * row + j * col]);
  }
}

template <class S, class T>
void copy_from_stage(const T* source, S* target, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      const T value = source[i * cols + j];
      if constexpr (std::is_same_v<S, bool>) {
        target[i * row + j * col] = value != T(0);
      } else {
        target[i * row + j * col] = static_cast<S>(value);
      }
    }
  }
}

// Calls fn(TypeTag<S>, TypeTag<T>) for element type `dtype` (for complex types that of a plane) and its block type.
template <class F>
void visit_stage_types(DType dtype, F&& fn) {
  visit_dtype(real_dtype(dtype), [&]<class S>(TypeTag<S> element) {
    if constexpr (std::is_floating_point_v<S>) {
      fn(element, element);
    } else if constexpr (std::is_integral_v<S>) {
      fn(element, TypeTag<std::conditional_t<sizeof(S) == 8, uint64_t, uint32_t>>{});
    }
  });
}

struct Matrix {
  const void* data;
  int64_t row, col;
};

// `rows` x `cols` elements of `dtype` as a matrix of the block type. `plane`: 0 real, 1 imaginary part.
Matrix stage(ScratchSlot slot, DType dtype, const void* source, int64_t row, int64_t col, int64_t rows, int64_t cols,
             int plane) {
  if (row == 1 && col != 1) {  // keep the order in memory
    const Matrix turned = stage(slot, dtype, source, col, row, cols, rows, plane);
    return {turned.data, turned.col, turned.row};
  }
  const int64_t size = rows * cols * size_of(block_dtype(dtype));
  char* target = static_cast<char*>(gemm_scratch(slot, 2 * size)) + plane * size;
  if (is_half(dtype)) {
    for (int64_t i = 0; i < rows; ++i) {
      float* line = reinterpret_cast<float*>(target) + i * cols;
      if (col == 1) {
        widen_halves(dtype, at(source, dtype, i * row), line, cols);
      } else {
        for (int64_t j = 0; j < cols; ++j) widen_halves(dtype, at(source, dtype, i * row + j * col), line + j, 1);
      }
    }
  } else {
    const int64_t step = is_complex(dtype) ? 2 : 1;
    visit_stage_types(dtype, [&]<class S, class T>(TypeTag<S>, TypeTag<T>) {
      copy_to_stage(static_cast<const S*>(source) + plane, row * step, col * step, rows, cols,
                    reinterpret_cast<T*>(target));
    });
  }
  return {target, cols, 1};
}

void unstage(DType dtype, const void* source, void* target, int64_t row, int64_t col, int64_t rows, int64_t cols,
             int plane) {
  if (is_half(dtype)) {
    for (int64_t i = 0; i < rows; ++i) {
      const float* line = static_cast<const float*>(source) + i * cols;
      if (col == 1) {
        narrow_halves(dtype, line, at(target, dtype, i * row), cols);
      } else {
        for (int64_t j = 0; j < cols; ++j) narrow_halves(dtype, line + j, at(target, dtype, i * row + j * col), 1);
      }
    }
    return;
  }
  const int64_t step = is_complex(dtype) ? 2 : 1;
  visit_stage_types(dtype, [&]<class S, class T>(TypeTag<S>, TypeTag<T>) {
    copy_from_stage(static_cast<const T*>(source), static_cast<S*>(target) + plane, row * step, col * step, rows, cols);
  });
}

// One block whose matrices are staged; long sums in stretches, so that the staged blocks stay small.
class StagedBlock {
 public:
  StagedBlock(DType dtype, const GemmBlock& block, int64_t c_col)
      : dtype_(dtype), g_(block), c_col_(c_col), kernel_(gemm_block_kernel(block_dtype(dtype))) {}

  void run() {
    const int planes = is_complex(dtype_) ? 2 : 1;
    const int64_t size = g_.m * g_.n * size_of(block_dtype(dtype_));
    char* c = static_cast<char*>(gemm_scratch(ScratchSlot::StagedC, 2 * size));
    for (int plane = 0; plane < planes; ++plane) {
      c_[plane] = c + plane * size;
      if (g_.beta != 0) load_c(plane);
      if (g_.bias) bias_[plane] = stage(ScratchSlot::StagedBias, dtype_, g_.bias, 0, 1, 1, g_.n, plane).data;
    }
    constexpr int64_t stretch = 1024;
    for (int64_t begin = 0; begin == 0 || begin < g_.k; begin += stretch) {
      add_stretch(begin, std::min(stretch, g_.k - begin), planes);
    }
    for (int plane = 0; plane < planes; ++plane) unstage(dtype_, c_[plane], g_.c, g_.c_row, c_col_, g_.m, g_.n, plane);
  }

 private:
  void load_c(int plane) {
    if (is_half(dtype_) && c_col_ == 1) {
      for (int64_t i = 0; i < g_.m; ++i) {
        widen_halves(dtype_, at(g_.c, dtype_, i * g_.c_row), static_cast<float*>(c_[plane]) + i * g_.n, g_.n);
      }
      return;
    }
    if (is_half(dtype_)) {
      for (int64_t idx = 0; idx < g_.m * g_.n; ++idx) {
        const int64_t element = idx / g_.n * g_.c_row + idx % g_.n * c_col_;
        widen_halves(dtype_, at(g_.c, dtype_, element), static_cast<float*>(c_[plane]) + idx, 1);
      }
      return;
    }
    const int64_t step = is_complex(dtype_) ? 2 : 1;
    visit_stage_types(dtype_, [&]<class S, class T>(TypeTag<S>, TypeTag<T>) {
      copy_to_stage(static_cast<const S*>(g_.c) + plane, g_.c_row * step, c_col_ * step, g_.m, g_.n,
                    static_cast<T*>(c_[plane]));
    });
  }

  void add_stretch(int64_t begin, int64_t k, int planes) {
    Matrix a[2], b[2];
    for (int plane = 0; plane < planes; ++plane) {
      a[plane] =
          stage(ScratchSlot::StagedA, dtype_, at(g_.a, dtype_, begin * g_.a_col), g_.a_row, g_.a_col, g_.m, k, plane);
      b[plane] =
          stage(ScratchSlot::StagedB, dtype_, at(g_.b, dtype_, begin * g_.b_row), g_.b_row, g_.b_col, k, g_.n, plane);
    }
    const bool first = begin == 0, last = begin + k >= g_.k;
    const double beta = first ? g_.beta : 1;
    if (planes == 1) return multiply(a[0], b[0], k, 0, g_.alpha, beta, last);
    multiply(a[0], b[0], k, 0, g_.alpha, beta, last);
    multiply(a[1], b[1], k, 0, -g_.alpha, 1, false);
    multiply(a[0], b[1], k, 1, g_.alpha, beta, last);
    multiply(a[1], b[0], k, 1, g_.alpha, 1, false);
  }

  void multiply(const Matrix& a, const Matrix& b, int64_t k, int plane, double alpha, double beta, bool last) {
    GemmBlock block = g_;
    block.k = k;
    block.a = a.data;
    block.a_row = a.row;
    block.a_col = a.col;
    block.b = b.data;
    block.b_row = b.row;
    block.b_col = b.col;
    block.c = c_[plane];
    block.c_row = g_.n;
    block.alpha = alpha;
    block.beta = beta;
    block.bias = last ? bias_[plane] : nullptr;
    block.relu = last && g_.relu;
    kernel_(block);
  }

  DType dtype_;
  const GemmBlock& g_;
  int64_t c_col_;
  GemmBlockFn kernel_;
  void* c_[2] = {};
  const void* bias_[2] = {};
};

// ---- cutting
// ----------------------------------------------------------------------------------------------------------------

// Smaller items of a batch are left to an epilogue together.
constexpr int64_t epilogue_elements = 16384;

// Tiles of a product, decided by its shape alone.
struct Plan {
  bool thin = false;
  int64_t tile_m = 0, tile_n = 0;
  int64_t tiles_m = 1, tiles_n = 1;
  int64_t items_per_task = 1;  // batch items that one task computes, when an item is a single small tile
};

constexpr int64_t task_work = int64_t{3} << 20;  // multiply-adds that are worth a task: about 40 us
constexpr int64_t max_tasks = 64;

bool is_thin(const Gemm& p) {
  const bool has_kernel = is_float(p.dtype);
  const bool runs = p.b_col == 1 || p.b_row == 1;
  if (!has_kernel || !runs || p.c_col != 1 || p.m > thin_rows) return false;
  // With contiguous columns the block kernel would pack B, which costs as much as several rows.
  if (p.m > 4 && gemm_onednn_multiplies_bfloat16() && p.dtype == DType::BFloat16) return false;
  return p.m == 1 || (p.m <= 8 && p.b_col != 1) || p.k * p.n * size_of(p.dtype) >= (int64_t{1} << 19);
}

Plan plan_tiles(const Gemm& p, int64_t items) {
  Plan plan;
  plan.thin = is_thin(p);
  const int64_t item_work = p.m * p.n * std::max<int64_t>(p.k, 1);
  if (plan.thin) {
    // The cost is that of reading B: tasks of about 1 MiB, in whole runs of columns.
    const int64_t bytes = p.k * p.n * size_of(p.dtype);
    const int64_t pieces = std::clamp<int64_t>(bytes >> 20, 1, max_tasks);
    plan.tile_m = p.m;
    const int64_t unit = p.b_col == 1 ? 1024 : 128;
    plan.tile_n = std::min(p.n, ceil_div(ceil_div(p.n, pieces), unit) * unit);
  } else {
    // Every cut makes one of A and B pass through the caches once more: eight tasks at least where they are worth it,
    // more only from tiles that stay large.
    const int64_t affordable = std::clamp<int64_t>(items * item_work / task_work, 1, max_tasks);
    plan.tile_m = p.m;
    plan.tile_n = p.n;
    for (;;) {
      const int64_t tasks = items * ceil_div(p.m, plan.tile_m) * ceil_div(p.n, plan.tile_n);
      const bool large = plan.tile_m * plan.tile_n > 256 * 512 || plan.tile_m > 768;
      if (!(tasks < std::min<int64_t>(affordable, 8) || (tasks < affordable && large))) break;
      const bool can_cut_n = plan.tile_n > 96, can_cut_m = plan.tile_m > 48;
      if (!can_cut_n && !can_cut_m) break;
      if (can_cut_m && (!can_cut_n || 2 * plan.tile_m > plan.tile_n)) {
        plan.tile_m = ceil_div(ceil_div(plan.tile_m, 2), 24) * 24;
      } else {
        plan.tile_n = ceil_div(ceil_div(plan.tile_n, 2), 48) * 48;
      }
    }
  }
  plan.tiles_m = ceil_div(p.m, plan.tile_m);
  plan.tiles_n = ceil_div(p.n, plan.tile_n);
  if (plan.tiles_m * plan.tiles_n == 1) {
    plan.items_per_task =
        std::clamp<int64_t>(task_work / std::max<int64_t>(item_work, 1), ceil_div(items, max_tasks), items);
  }
  return plan;
}

class Runner {
 public:
  Runner(const Gemm& problem, int64_t items) : p_(problem), items_(items), plan_(plan_tiles(problem, items)) {
    const bool block_type = p_.dtype == DType::Float32 || p_.dtype == DType::Float64 || p_.dtype == DType::Int32 ||
                            p_.dtype == DType::Int64;
    if (plan_.thin) {
      kernel_ = gemm_thin_kernel(p_.dtype);
    } else {
      onednn_ = gemm_onednn_kernel(p_, plan_.tile_m, plan_.tile_n);
      if (block_type && p_.c_col == 1) kernel_ = gemm_block_kernel(p_.dtype);
    }
  }

  void run() {
    const int64_t tiles = plan_.tiles_m * plan_.tiles_n;
    if (tiles == 1) {
      const bool alone = items_ <= plan_.items_per_task;
      parallel_for(items_, plan_.items_per_task,
                   [&](int64_t begin, int64_t end) { run_items(begin, end, alone ? nullptr : p_.epilogue); });
      if (alone) run_epilogue(p_.epilogue, items_ * p_.m * p_.n);
      return;
    }
    parallel_tasks(items_ * tiles, [&](int64_t task) {
      const int64_t tile = task % tiles;
      const Epilogue::Part part = run_tile(task / tiles, tile / plan_.tiles_n, tile % plan_.tiles_n);
      if (p_.epilogue) p_.epilogue->run(part);
    });
  }

 private:
  void run_items(int64_t begin, int64_t end, const Epilogue* epilogue) const {
    const int64_t size = p_.m * p_.n, together = std::max<int64_t>(1, epilogue_elements / size);
    for (int64_t item = begin, next = begin; item < end; ++item) {
      run_tile(item, 0, 0);
      if (!epilogue || (item + 1 < end && item + 1 - next < together)) continue;
      epilogue->run({next * size, 1, 0, (item + 1 - next) * size});
      next = item + 1;
    }
  }

  Epilogue::Part run_tile(int64_t item, int64_t tile_row, int64_t tile_col) const {
    const int64_t i = tile_row * plan_.tile_m, j = tile_col * plan_.tile_n;
    int64_t a = i * p_.a_row, b = j * p_.b_col, c = i * p_.c_row + j * p_.c_col;
    for (size_t axis = p_.batch.size(); axis-- > 0;) {
      const GemmBatchAxis& along = p_.batch[axis];
      const int64_t idx = item % along.size;
      item /= along.size;
      a += idx * along.a;
      b += idx * along.b;
      c += idx * along.c;
    }
    const GemmBlock block{.m = std::min(plan_.tile_m, p_.m - i),
                          .n = std::min(plan_.tile_n, p_.n - j),
                          .k = p_.k,
                          .a = at(p_.a, p_.dtype, a),
                          .a_row = p_.a_row,
                          .a_col = p_.a_col,
                          .b = at(p_.b, p_.dtype, b),
                          .b_row = p_.b_row,
                          .b_col = p_.b_col,
                          .c = at(p_.c, p_.dtype, c),
                          .c_row = p_.c_row,
                          .alpha = p_.alpha,
                          .beta = p_.beta,
                          .bias = p_.bias ? at(p_.bias, p_.dtype, j) : nullptr,
                          .relu = p_.activation == GemmActivation::Relu};
    if (!onednn_ || !onednn_(block)) {
      if (kernel_) kernel_(block);
      else StagedBlock(p_.dtype, block, p_.c_col).run();
    }
    return {c, block.m, p_.c_row, block.n};
  }

  const Gemm& p_;
  int64_t items_;
  Plan plan_;
  GemmOneDnnFn onednn_ = nullptr;
  GemmBlockFn kernel_ = nullptr;  // null: staged
};

// Whether some equal problem is easier, and that problem.
bool simplify(Gemm& p) {
  // Batch items that share B and follow each other in A and C are rows of one product.
  if (!p.batch.empty()) {
    const GemmBatchAxis& inner = p.batch.back();
    if (inner.size == 1 || (inner.b == 0 && inner.a == p.m * p.a_row && inner.c == p.m * p.c_row)) {
      p.m *= inner.size;
      p.batch.pop_back();
      return true;
    }
  }
  // C^T = B^T A^T when that makes C's columns contiguous, or one row of a column.
  const bool column = p.n == 1 && p.m > 1 && p.c_row == 1;
  if ((column || (p.c_col != 1 && p.c_row == 1)) && !p.bias) {
    std::swap(p.m, p.n);
    std::swap(p.a, p.b);
    std::swap(p.a_row, p.b_col);
    std::swap(p.a_col, p.b_row);
    std::swap(p.c_row, p.c_col);
    for (GemmBatchAxis& axis : p.batch) std::swap(axis.a, axis.b);
    return true;
  }
  return false;
}

void run_checked(const Gemm& problem) {
  int64_t items = 1;
  for (const GemmBatchAxis& axis : problem.batch) items *= axis.size;
  if (items == 0 || problem.m == 0 || problem.n == 0) return;
  Runner(problem, items).run();
}

}  // namespace

Gemm Gemm::contiguous(DType dtype, int64_t m, int64_t n, int64_t k, const void* a, bool transpose_a, const void* b,
                      bool transpose_b, void* c) {
  Gemm out;
  out.dtype = dtype;
  out.m = m;
  out.n = n;
  out.k = k;
  out.a = a;
  out.a_row = transpose_a ? 1 : k;
  out.a_col = transpose_a ? m : 1;
  out.b = b;
  out.b_row = transpose_b ? 1 : n;
  out.b_col = transpose_b ? k : 1;
  out.c = c;
  out.c_row = n;
  return out;
}

void gemm(const Gemm& problem) {
  MOREL_ASSERT(problem.m >= 0 && problem.n >= 0 && problem.k >= 0);
  MOREL_CHECK(problem.activation == GemmActivation::None || is_float(problem.dtype), NotImplemented,
              "an activation after a matrix product needs a floating dtype, got ", info(problem.dtype).name, ".");
  const bool maybe_simpler = !problem.batch.empty() || problem.n == 1 || problem.c_col != 1;
  if (!maybe_simpler) return run_checked(problem);
  Gemm simpler = problem;
  while (simplify(simpler)) {
  }
  run_checked(simpler);
}

}  // namespace morel
