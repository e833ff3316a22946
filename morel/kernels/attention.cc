#include "morel/kernels/attention.h"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <vector>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"

namespace morel::kernels {

// Scores of a tile are key_block x query_tile floats (32 KiB) and lie in the first-level cache.
constexpr int64_t query_tile = 64;
constexpr int64_t key_block = 128;

struct AttentionGrads {
  const Attention* attention;
  HeadsView out_grad, query_grad, key_grad, value_grad;
  const float* logsumexp;
  const float* delta;
  float* query_sums;  // [chunks, batch, heads, queries, padded size]
  int64_t chunks, chunk_keys;
};

}  // namespace morel::kernels

#define MOREL_SIMD_FILE "morel/kernels/attention_simd.inc"
#include "morel/kernels/simd.h"

namespace morel::kernels {
namespace {

// Tasks smaller than this many multiplications are run several at once.
constexpr int64_t task_products = int64_t{1} << 19;
// The backward pass splits the keys of a head where there are fewer heads than this.
constexpr int64_t wanted_chunks = 16;

struct AlignedDelete {
  void operator()(float* data) const { ::operator delete (data, std::align_val_t{64}); }
};
using FloatBuffer = std::unique_ptr<float, AlignedDelete>;
FloatBuffer allocate_floats(int64_t count) {
  return FloatBuffer(
      static_cast<float*>(::operator new (std::max<int64_t>(count, 1) * sizeof(float), std::align_val_t{64})));
}

// A buffer that stays with the thread for its next task.
float* thread_scratch(int64_t count) {
  thread_local FloatBuffer buffer;
  thread_local int64_t capacity = 0;
  if (count > capacity) {
    buffer = nullptr;
    capacity = 0;
    buffer = allocate_floats(count);
    capacity = count;
  }
  return buffer.get();
}

void check(const Attention& attention) {
  MOREL_CHECK(attention.dtype == DType::Float32 || is_half(attention.dtype), NotImplemented,
              "fused attention supports Float32, Float16 and BFloat16, but got ", info(attention.dtype).name, ".");
  MOREL_ASSERT(attention.kv_heads > 0 && attention.heads % attention.kv_heads == 0);
  MOREL_ASSERT(!attention.mask || attention.mask_dtype == DType::Bool || attention.mask_dtype == DType::Float32 ||
               is_half(attention.mask_dtype));
}

int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

struct TileIndex {
  int64_t batch, head, query;
};
TileIndex tile_index(const Attention& attention, int64_t idx) {
  const int64_t tiles = divide_up(attention.queries, query_tile);
  return {idx / tiles / attention.heads, idx / tiles % attention.heads, idx % tiles * query_tile};
}
int64_t count_tiles(const Attention& attention) {
  return attention.batch * attention.heads * divide_up(attention.queries, query_tile);
}

bool is_dense(const HeadsView& view, int64_t heads, int64_t rows, int64_t size) {
  return view.row_stride == size && view.head_stride == rows * size && view.batch_stride == heads * rows * size;
}

}  // namespace

void attention_forward(const Attention& attention, const HeadsView& out, float* logsumexp) {
  check(attention);
  const int64_t tile_products =
      std::min(query_tile, attention.queries) * attention.keys * (attention.size + attention.value_size) + 1;
  const int64_t scratch = MOREL_SIMD_CALL(forward_scratch)(attention);
  const auto run_tile = MOREL_SIMD_CALL(attention_forward_tile);
  parallel_for(count_tiles(attention), std::max<int64_t>(1, task_products / tile_products),
               [&](int64_t begin, int64_t end) {
                 for (int64_t idx = begin; idx < end; ++idx) {
                   const TileIndex tile = tile_index(attention, idx);
                   run_tile(attention, out, logsumexp, tile.batch, tile.head, tile.query, thread_scratch(scratch));
                 }
               });
}

void attention_backward(const Attention& attention, const HeadsView& out, const float* logsumexp,
                        const HeadsView& out_grad, const HeadsView& query_grad, const HeadsView& key_grad,
                        const HeadsView& value_grad) {
  check(attention);
  if (attention.batch == 0) return;
  const int64_t rows = attention.batch * attention.heads * attention.queries,
                pairs = attention.batch * attention.kv_heads;
  const int64_t blocks = std::max<int64_t>(1, divide_up(attention.keys, key_block));
  const int64_t wanted = pairs >= wanted_chunks ? 1 : std::min(blocks, divide_up(wanted_chunks, pairs));
  const int64_t chunk_keys = divide_up(blocks, wanted) * key_block;
  const int64_t chunks = std::max<int64_t>(1, divide_up(attention.keys, chunk_keys));
  const int64_t size = MOREL_SIMD_CALL(padded_size)(attention.size);

  const FloatBuffer delta = allocate_floats(rows);
  const bool in_place = chunks == 1 && attention.dtype == DType::Float32 && size == attention.size &&
                        is_dense(query_grad, attention.heads, attention.queries, attention.size);
  const FloatBuffer sums = in_place ? nullptr : allocate_floats(chunks * rows * size);
  const AttentionGrads grads{
      &attention, out_grad,  query_grad,  key_grad,
      value_grad, logsumexp, delta.get(), in_place ? static_cast<float*>(query_grad.data) : sums.get(),
      chunks,     chunk_keys};

  const int64_t scratch = MOREL_SIMD_CALL(backward_scratch)(attention);
  const auto run_delta = MOREL_SIMD_CALL(attention_delta);
  const auto run_chunk = MOREL_SIMD_CALL(attention_backward_chunk);
  const auto run_query_grad = MOREL_SIMD_CALL(attention_query_grad);
  parallel_for(count_tiles(attention), 16, [&](int64_t begin, int64_t end) {
    for (int64_t idx = begin; idx < end; ++idx) {
      const TileIndex tile = tile_index(attention, idx);
      run_delta(attention, out, out_grad, delta.get(), tile.batch, tile.head, tile.query,
                std::min(query_tile, attention.queries - tile.query), thread_scratch(scratch));
    }
  });
  const int64_t pair_products = attention.heads / attention.kv_heads * attention.queries * chunk_keys *
                                    (3 * attention.size + 2 * attention.value_size) +
                                1;
  parallel_for(pairs * chunks, std::max<int64_t>(1, task_products / pair_products), [&](int64_t begin, int64_t end) {
    for (int64_t idx = begin; idx < end; ++idx) {
      const int64_t pair = idx / chunks;
      run_chunk(grads, pair / attention.kv_heads, pair % attention.kv_heads, idx % chunks, thread_scratch(scratch));
    }
  });
  if (in_place) return;
  parallel_for(count_tiles(attention), 16, [&](int64_t begin, int64_t end) {
    for (int64_t idx = begin; idx < end; ++idx) {
      const TileIndex tile = tile_index(attention, idx);
      run_query_grad(grads, tile.batch, tile.head, tile.query);
    }
  });
}

}  // namespace morel::kernels
