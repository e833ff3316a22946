// Scaled dot-product attention without the score matrix in memory, forward and backward.
//
// Method: tiles of keys with a running maximum and sum (M. Milakov, N. Gimelshein, "Online normalizer calculation for
// softmax", 2018; T. Dao et al., "FlashAttention", 2022, algorithms 1 and 2; T. Dao, "FlashAttention-2", 2023). The
// backward pass computes the probabilities again from the saved logsumexp.
#pragma once

#include <cstdint>

#include "morel/tensor/dtype.h"

namespace morel::kernels {

// An array [batch, heads, rows, size] whose last axis is dense; strides in elements.
struct HeadsView {
  void* data = nullptr;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;
};

struct Attention {
  DType dtype = DType::Float32;  // of query, key, value, out and their gradients: Float32, Float16 or BFloat16
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // divides heads; query head h reads key head h / (heads / kv_heads)
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t size = 0;        // of a query or key row
  int64_t value_size = 0;  // of a value or output row
  HeadsView query, key, value;
  float scale = 1.0f;
  // Query i sees key j only where j <= i + causal_offset (0: the corner of MindSpore and PyTorch; keys - queries: a
  // cache in front of the queries).
  bool is_causal = false;
  int64_t causal_offset = 0;
  // Optional: Bool (true: seen) or a float dtype (added to the scaled scores), strides [batch, head, query, key], 0
  // along broadcast axes.
  const void* mask = nullptr;
  DType mask_dtype = DType::Bool;
  int64_t mask_strides[4] = {0, 0, 0, 0};
};

// out [batch, heads, queries, value_size]; logsumexp: dense float [batch, heads, queries] or null. A query that sees no
// key gives zeros and -infinity.
void attention_forward(const Attention& attention, const HeadsView& out, float* logsumexp);

// out and logsumexp as the forward pass left them. Gradients are written (not added to); same shapes as their operands.
void attention_backward(const Attention& attention, const HeadsView& out, const float* logsumexp,
                        const HeadsView& out_grad, const HeadsView& query_grad, const HeadsView& key_grad,
                        const HeadsView& value_grad);

}  // namespace morel::kernels
