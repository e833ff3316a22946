// Fused attention, forward and backward, against the textbook formulas in double precision.
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/attention.h"

namespace morel::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

enum class Mask { None, BoolFull, BoolKeys, FloatHeads, HalfFull };
enum class Layout { HeadsFirst, RowsFirst };  // [B,H,S,D] and [B,S,H,D] in memory

struct Case {
  int64_t batch, heads, kv_heads, queries, keys, size, value_size;
  bool is_causal = false;
  int64_t causal_offset = 0;
  Mask mask = Mask::None;
  Layout layout = Layout::HeadsFirst;
  DType dtype = DType::Float32;
};

// A [B,H,S,D] array in the case's dtype and layout, and its values as doubles.
class Operand {
 public:
  Operand(const Case& c, int64_t heads, int64_t rows, int64_t size, uint32_t seed)
      : dtype_(c.dtype),
        batch_(c.batch),
        heads_(heads),
        rows_(rows),
        size_(size),
        bytes_(c.batch * heads * rows * size * size_of(c.dtype)) {
    view_.data = bytes_.data();
    view_.batch_stride = heads * rows * size;
    view_.head_stride = c.layout == Layout::HeadsFirst ? rows * size : size;
    view_.row_stride = c.layout == Layout::HeadsFirst ? size : heads * size;
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (int64_t idx = 0; idx < batch_ * heads_ * rows_ * size_; ++idx) put(idx, seed ? normal(random) : 1e30f);
  }
  const HeadsView& view() const { return view_; }
  double at(int64_t b, int64_t h, int64_t row, int64_t column) const {
    const int64_t idx = b * view_.batch_stride + h * view_.head_stride + row * view_.row_stride + column;
    switch (dtype_) {
      case DType::Float16: return to_float(reinterpret_cast<const Float16*>(bytes_.data())[idx]);
      case DType::BFloat16: return to_float(reinterpret_cast<const BFloat16*>(bytes_.data())[idx]);
      default: return reinterpret_cast<const float*>(bytes_.data())[idx];
    }
  }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  void put(int64_t idx, float value) {
    switch (dtype_) {
      case DType::Float16: reinterpret_cast<Float16*>(bytes_.data())[idx] = to_float16(value); return;
      case DType::BFloat16: reinterpret_cast<BFloat16*>(bytes_.data())[idx] = to_bfloat16(value); return;
      default: reinterpret_cast<float*>(bytes_.data())[idx] = value;
    }
  }
  DType dtype_;
  int64_t batch_, heads_, rows_, size_;
  std::vector<char> bytes_;
  HeadsView view_;
};

struct Problem {
  explicit Problem(const Case& c)
      : query(c, c.heads, c.queries, c.size, 1),
        key(c, c.kv_heads, c.keys, c.size, 2),
        value(c, c.kv_heads, c.keys, c.value_size, 3),
        out_grad(c, c.heads, c.queries, c.value_size, 4),
        out(c, c.heads, c.queries, c.value_size, 0),
        query_grad(c, c.heads, c.queries, c.size, 0),
        key_grad(c, c.kv_heads, c.keys, c.size, 0),
        value_grad(c, c.kv_heads, c.keys, c.value_size, 0),
        logsumexp(c.batch * c.heads * c.queries) {
    attention = {.dtype = c.dtype,
                 .batch = c.batch,
                 .heads = c.heads,
                 .kv_heads = c.kv_heads,
                 .queries = c.queries,
                 .keys = c.keys,
                 .size = c.size,
                 .value_size = c.value_size,
                 .query = query.view(),
                 .key = key.view(),
                 .value = value.view(),
                 .scale = 0.3f,
                 .is_causal = c.is_causal,
                 .causal_offset = c.causal_offset};
    make_mask(c);
  }

  void make_mask(const Case& c) {
    std::mt19937 random(9);
    const int64_t count = c.batch * c.heads * c.queries * c.keys;
    const int64_t full[4] = {c.heads * c.queries * c.keys, c.queries * c.keys, c.keys, 1};
    mask_values.assign(count, 0.0);
    if (c.mask == Mask::None) return;
    const bool is_bool = c.mask == Mask::BoolFull || c.mask == Mask::BoolKeys;
    attention.mask_dtype = is_bool ? DType::Bool : c.mask == Mask::HalfFull ? DType::BFloat16 : DType::Float32;
    for (int axis = 0; axis < 4; ++axis) attention.mask_strides[axis] = full[axis];
    if (c.mask == Mask::BoolKeys) attention.mask_strides[1] = attention.mask_strides[2] = 0;
    if (c.mask == Mask::FloatHeads) attention.mask_strides[0] = 0;
    mask_bytes.resize(count * size_of(attention.mask_dtype));
    std::vector<double> stored(count);
    for (int64_t idx = 0; idx < count; ++idx) {
      const float number = static_cast<float>(random() % 64) / 16.0f - 2.0f;
      if (is_bool) {
        mask_bytes[idx] = random() % 3 != 0;
        stored[idx] = mask_bytes[idx] ? 0.0 : -infinity;
      } else if (c.mask == Mask::HalfFull) {
        reinterpret_cast<BFloat16*>(mask_bytes.data())[idx] = to_bfloat16(number);
        stored[idx] = number;
      } else {
        reinterpret_cast<float*>(mask_bytes.data())[idx] = number;
        stored[idx] = number;
      }
    }
    attention.mask = mask_bytes.data();
    for (int64_t idx = 0; idx < count; ++idx) {
      const int64_t j = idx % c.keys, i = idx / c.keys % c.queries, h = idx / c.keys / c.queries % c.heads,
                    b = idx / c.keys / c.queries / c.heads;
      const int64_t* strides = attention.mask_strides;
      mask_values[idx] = stored[b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3]];
    }
  }

  void run() {
    attention_forward(attention, out.view(), logsumexp.data());
    attention_backward(attention, out.view(), logsumexp.data(), out_grad.view(), query_grad.view(), key_grad.view(),
                       value_grad.view());
  }

  Operand query, key, value, out_grad, out, query_grad, key_grad, value_grad;
  std::vector<float> logsumexp;
  std::vector<char> mask_bytes;
  std::vector<double> mask_values;
  Attention attention;
};

class Reference {
 public:
  Reference(const Case& c, const Problem& p)
      : c_(c),
        p_(p),
        query_grad(c.batch * c.heads * c.queries * c.size),
        key_grad(c.batch * c.kv_heads * c.keys * c.size),
        value_grad(c.batch * c.kv_heads * c.keys * c.value_size),
        out(c.batch * c.heads * c.queries * c.value_size),
        logsumexp(c.batch * c.heads * c.queries) {
    for (int64_t b = 0; b < c.batch; ++b) {
      for (int64_t h = 0; h < c.heads; ++h) {
        for (int64_t i = 0; i < c.queries; ++i) row(b, h, i);
      }
    }
  }

 private:
  void row(int64_t b, int64_t h, int64_t i) {
    const int64_t kv = h / (c_.heads / c_.kv_heads), index = (b * c_.heads + h) * c_.queries + i;
    std::vector<double> p(c_.keys, -infinity);
    double top = -infinity, sum = 0, delta = 0;
    for (int64_t j = 0; j < c_.keys; ++j) {
      if (c_.is_causal && j > i + c_.causal_offset) continue;
      double s = 0;
      for (int64_t d = 0; d < c_.size; ++d) s += p_.query.at(b, h, i, d) * p_.key.at(b, kv, j, d);
      p[j] = s * p_.attention.scale + p_.mask_values[index * c_.keys + j];
      top = std::max(top, p[j]);
    }
    for (double& x : p) {
      x = top == -infinity ? 0 : std::exp(x - top);
      sum += x;
    }
    logsumexp[index] = top + std::log(sum);
    for (int64_t j = 0; j < c_.keys; ++j) {
      p[j] = sum == 0 ? 0 : p[j] / sum;
      for (int64_t d = 0; d < c_.value_size; ++d) {
        out[index * c_.value_size + d] += p[j] * p_.value.at(b, kv, j, d);
        value_grad[((b * c_.kv_heads + kv) * c_.keys + j) * c_.value_size + d] += p[j] * p_.out_grad.at(b, h, i, d);
      }
    }
    for (int64_t d = 0; d < c_.value_size; ++d) delta += out[index * c_.value_size + d] * p_.out_grad.at(b, h, i, d);
    for (int64_t j = 0; j < c_.keys; ++j) {
      double dp = 0;
      for (int64_t d = 0; d < c_.value_size; ++d) dp += p_.out_grad.at(b, h, i, d) * p_.value.at(b, kv, j, d);
      const double ds = p[j] * (dp - delta) * p_.attention.scale;
      for (int64_t d = 0; d < c_.size; ++d) {
        query_grad[index * c_.size + d] += ds * p_.key.at(b, kv, j, d);
        key_grad[((b * c_.kv_heads + kv) * c_.keys + j) * c_.size + d] += ds * p_.query.at(b, h, i, d);
      }
    }
  }
  const Case& c_;
  const Problem& p_;

 public:
  std::vector<double> query_grad, key_grad, value_grad, out, logsumexp;
};

void expect_close(const Operand& got, const std::vector<double>& wanted, int64_t heads, int64_t rows, int64_t size,
                  double tolerance, const char* name) {
  double worst = 0;
  for (size_t idx = 0; idx < wanted.size(); ++idx) {
    const int64_t d = idx % size, row = idx / size % rows, h = idx / size / rows % heads, b = idx / size / rows / heads;
    const double error = std::abs(got.at(b, h, row, d) - wanted[idx]) / (1.0 + std::abs(wanted[idx]));
    ASSERT_FALSE(std::isnan(error)) << name << " b" << b << " h" << h << " row " << row << " d" << d;
    worst = std::max(worst, error);
  }
  EXPECT_LE(worst, tolerance) << name;
}

void check(const Case& c) {
  Problem p(c);
  p.run();
  const Reference wanted(c, p);
  const double tolerance = c.dtype == DType::Float32 ? 2e-5 : c.dtype == DType::Float16 ? 4e-3 : 3e-2;
  expect_close(p.out, wanted.out, c.heads, c.queries, c.value_size, tolerance, "out");
  for (size_t idx = 0; idx < p.logsumexp.size(); ++idx) {
    if (std::isinf(wanted.logsumexp[idx])) {
      ASSERT_EQ(p.logsumexp[idx], -infinity);
    } else {
      ASSERT_NEAR(p.logsumexp[idx], wanted.logsumexp[idx], 1e-5);
    }
  }
  expect_close(p.query_grad, wanted.query_grad, c.heads, c.queries, c.size, tolerance, "query_grad");
  expect_close(p.key_grad, wanted.key_grad, c.kv_heads, c.keys, c.size, tolerance, "key_grad");
  expect_close(p.value_grad, wanted.value_grad, c.kv_heads, c.keys, c.value_size, tolerance, "value_grad");
}

TEST(KernelsAttention, PlainSizes) {
  for (const int64_t queries : {1, 15, 64, 65, 130}) {
    for (const int64_t keys : {1, 17, 128, 131, 300}) check({2, 2, 2, queries, keys, 32, 32});
  }
  for (const int64_t size : {1, 7, 16, 40, 64, 80, 128}) check({1, 2, 2, 70, 90, size, size});
  check({1, 3, 3, 33, 65, 48, 20});
}

TEST(KernelsAttention, Causal) {
  for (const int64_t queries : {1, 40, 64, 100, 200}) check({2, 2, 2, queries, queries, 32, 32, true});
  check({1, 2, 2, 90, 200, 24, 24, true, 110});  // a cache in front
  check({1, 2, 2, 90, 200, 24, 24, true, 0});
  check({1, 2, 2, 200, 90, 24, 24, true, 0});
  check({1, 2, 2, 100, 100, 24, 24, true, -30});  // the first 30 queries see nothing
  check({1, 2, 2, 150, 300, 16, 16, true, 3});
}

TEST(KernelsAttention, MasksGroupsAndLayouts) {
  for (const Mask mask : {Mask::BoolFull, Mask::BoolKeys, Mask::FloatHeads, Mask::HalfFull}) {
    for (const bool is_causal : {false, true}) {
      check({2, 4, 2, 70, 140, 32, 32, is_causal, 20, mask, Layout::RowsFirst});
      check({1, 2, 1, 20, 33, 20, 12, is_causal, 0, mask});
    }
  }
  check({2, 8, 2, 65, 65, 64, 64, true, 0, Mask::None, Layout::RowsFirst});
  check({1, 4, 1, 40, 500, 64, 64});  // few heads: the keys are split in chunks
  check({1, 16, 16, 40, 40, 64, 64, true, 0, Mask::None, Layout::RowsFirst});  // rows 4 KiB apart
}

TEST(KernelsAttention, Halves) {
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    check({1, 4, 2, 70, 150, 64, 64, false, 0, Mask::None, Layout::RowsFirst, dtype});
    check({1, 2, 2, 70, 70, 40, 40, true, 0, Mask::FloatHeads, Layout::HeadsFirst, dtype});
  }
}

TEST(KernelsAttention, SameBitsForAnyThreadCount) {
  const Case cases[] = {{1, 4, 2, 200, 500, 64, 64, true, 300}, {4, 4, 4, 100, 100, 32, 32}};
  const int before = num_threads();
  for (const Case& c : cases) {
    set_num_threads(1);
    Problem one(c);
    one.run();
    for (const int threads : {2, 3, 5}) {
      set_num_threads(threads);
      Problem many(c);
      many.run();
      EXPECT_EQ(one.out.bytes(), many.out.bytes());
      EXPECT_EQ(one.query_grad.bytes(), many.query_grad.bytes());
      EXPECT_EQ(one.key_grad.bytes(), many.key_grad.bytes());
      EXPECT_EQ(one.value_grad.bytes(), many.value_grad.bytes());
    }
  }
  set_num_threads(before);
}

TEST(KernelsAttention, NotANumberStaysInItsRow) {
  Case c{1, 1, 1, 70, 70, 16, 16, true};
  Problem p(c);
  static_cast<float*>(p.query.view().data)[5 * 16] = std::nanf("");
  p.run();
  for (int64_t row = 0; row < 70; ++row) EXPECT_EQ(std::isnan(p.out.at(0, 0, row, 3)), row == 5) << row;
  EXPECT_TRUE(std::isnan(p.query_grad.at(0, 0, 5, 0)));
  EXPECT_FALSE(std::isnan(p.query_grad.at(0, 0, 6, 0)));
}

TEST(KernelsAttention, EmptyAndUnsupported) {
  check({1, 2, 2, 5, 0, 8, 8});
  check({1, 2, 2, 0, 5, 8, 8});
  check({0, 2, 2, 5, 5, 8, 8});
  Attention attention;
  attention.dtype = DType::Float64;
  attention.heads = attention.kv_heads = 1;
  EXPECT_THROW(attention_forward(attention, {}, nullptr), Error);
}

}  // namespace
}  // namespace morel::kernels
