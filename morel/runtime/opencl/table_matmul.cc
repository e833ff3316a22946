// Matrix products: a group computes a tile of 16 x 16 results, with tiles of the operands in local memory.
#include "morel/runtime/opencl/support.h"

namespace morel::opencl {
namespace {

constexpr size_t max_batch_axes = 6;
constexpr int64_t tile = 16;

constexpr const char* source = R"C(
#define TILE 16
#define PART (TILE * TILE / MOREL_LANES)
typedef struct {
  int64_t m, n, k, a_row, a_col, b_row, b_col, c_row, c_col, size[6], a[6], b[6], c[6];
} product_args;
KERNEL product(TENSOR(const T, a), TENSOR(const T, b), TENSOR(const T, bias), TENSOR(T, c), const product_args p) {
  __local A left[TILE][TILE + 1], right[TILE][TILE + 1];
  a += a_at, b += b_at, c += c_at;
  const int64_t columns = (p.n + TILE - 1) / TILE, rows = (p.m + TILE - 1) / TILE;
  int64_t rest = get_group_id(0);
  const int64_t column = rest % columns * TILE;
  rest /= columns;
  const int64_t row = rest % rows * TILE;
  rest /= rows;
  for (int axis = 5; axis >= 0; --axis) {
    const int64_t at = rest % p.size[axis];
    rest /= p.size[axis];
    a += at * p.a[axis], b += at * p.b[axis], c += at * p.c[axis];
  }
  const int x = get_local_id(0) % TILE, y = get_local_id(0) / TILE * PART;
  A sum[PART];
  for (int i = 0; i < PART; ++i) sum[i] = 0;
  for (int64_t depth = 0; depth < p.k; depth += TILE) {
    for (int i = y; i < y + PART; ++i) {
      left[i][x] = row + i < p.m && depth + x < p.k ? LOAD(a + (row + i) * p.a_row + (depth + x) * p.a_col) : 0;
      right[i][x] = depth + i < p.k && column + x < p.n ? LOAD(b + (depth + i) * p.b_row + (column + x) * p.b_col) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < TILE; ++k)
      for (int i = 0; i < PART; ++i) sum[i] = MULTIPLY_ADD(left[y + i][k], right[k][x], sum[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (column + x >= p.n) return;
  const A start = bias ? LOAD(bias + bias_at + column + x) : 0;
  for (int i = 0; i < PART && row + y + i < p.m; ++i)
    STORE(c + (row + y + i) * p.c_row + (column + x) * p.c_col, sum[i] + start);
}
)C";

struct Product {
  int64_t m, n, k, a_row, a_col, b_row, b_col, c_row, c_col;
  int64_t size[max_batch_axes] = {1, 1, 1, 1, 1, 1}, a[max_batch_axes] = {}, b[max_batch_axes] = {},
          c[max_batch_axes] = {};
};

void run(const Product& product, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out) {
  if (out.size() == 0) return;
  check_real("MatMul", out.dtype());
  int64_t groups = (product.m + tile - 1) / tile * ((product.n + tile - 1) / tile);
  for (const int64_t size : product.size) groups *= size;
  OpenClDevice& device = active_device();
  device.launch_groups(device.kernel(source, out.dtype(), "product"), groups, a, b, bias, out, product);
}

int64_t stride_from_end(const Tensor& tensor, size_t idx) { return tensor.strides()[tensor.shape().size() - idx]; }

// args: input [..., m, k], mat2 [..., k, n]; outs: [..., m, n].
void matrix_product(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor a = typed(call.tensor(0), out.dtype()), b = typed(call.tensor(1), out.dtype());
  const size_t rank = out.shape().size(), batch_axes = rank - 2;
  MOREL_CHECK(batch_axes <= max_batch_axes, NotImplemented, "For 'MatMul', tensors of more than ", max_batch_axes + 2,
              " dimensions are not supported on ", to_string(current_device()));
  Product product{out.shape()[rank - 2], out.shape()[rank - 1],   a.dim(a.rank() - 1),
                  stride_from_end(a, 2), stride_from_end(a, 1),   stride_from_end(b, 2),
                  stride_from_end(b, 1), stride_from_end(out, 2), stride_from_end(out, 1)};
  const auto stride_at = [&](const Tensor& tensor, size_t axis) -> int64_t {
    const size_t shift = rank - tensor.shape().size();
    return axis < shift || tensor.shape()[axis - shift] == 1 ? Dim(0) : tensor.strides()[axis - shift];
  };
  for (size_t axis = 0; axis < batch_axes; ++axis) {
    const size_t at = max_batch_axes - batch_axes + axis;
    product.size[at] = out.shape()[axis];
    product.a[at] = stride_at(a, axis), product.b[at] = stride_at(b, axis), product.c[at] = stride_at(out, axis);
  }
  run(product, a, b, Tensor(), out);
}

// args: input [..., k], weight [n, k], bias [n] or None; outs: [..., n].
void dense_layer(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor x = dense(call.tensor(0), out.dtype()), weight = typed(call.tensor(1), out.dtype());
  const int64_t n = weight.dim(0), k = weight.dim(1);
  const Tensor bias = call.has(2) ? dense(call.tensor(2), out.dtype()) : Tensor();
  run({n ? out.size() / n : 0, n, k, k, 1, weight.strides()[1], weight.strides()[0], n, 1}, x, weight, bias, out);
}

}  // namespace

std::span<const KernelEntry> matmul_kernels() {
  static constexpr KernelEntry entries[] = {{"matrix_product", matrix_product}, {"dense", dense_layer}};
  return entries;
}

}  // namespace morel::opencl
