// Attention of the kernel table.
#include "morel/kernels/attention.h"
#include "morel/kernels/table.h"

namespace morel {
namespace {

// The tensor itself where its last axis is dense, else a copy.
Tensor heads_tensor(const KernelCall& call, size_t idx) {
  const Tensor tensor = call.tensor(idx);
  return tensor.strides()[3] == 1 || tensor.dim(3) == 1 ? tensor : call.contiguous(idx);
}

kernels::HeadsView heads_view(const Tensor& tensor) {
  return {tensor.data(), tensor.strides()[0], tensor.strides()[1], tensor.strides()[2]};
}

struct Operands {
  Tensor query, key, value, mask;
  kernels::Attention attention;
};

// args: query, key, value, attn_mask, scale, is_causal.
Operands read_operands(const KernelCall& call) {
  Operands in{heads_tensor(call, 0), heads_tensor(call, 1), heads_tensor(call, 2), {}, {}};
  kernels::Attention& attention = in.attention;
  attention.dtype = in.query.dtype();
  attention.batch = in.query.dim(0);
  attention.heads = in.query.dim(1);
  attention.kv_heads = in.key.dim(1);
  attention.queries = in.query.dim(2);
  attention.keys = in.key.dim(2);
  attention.size = in.query.dim(3);
  attention.value_size = in.value.dim(3);
  attention.query = heads_view(in.query);
  attention.key = heads_view(in.key);
  attention.value = heads_view(in.value);
  attention.scale = static_cast<float>(call.number(4));
  attention.is_causal = call.flag(5);
  if (call.has(3)) {
    in.mask = call.tensor(3);
    attention.mask = in.mask.data();
    attention.mask_dtype = in.mask.dtype();
    const size_t rank = in.mask.shape().size();
    for (size_t i = 0; i < rank; ++i)
      if (in.mask.shape()[i] != 1) attention.mask_strides[4 - rank + i] = in.mask.strides()[i];
  }
  return in;
}

// The raw kernels know float32 and halves; float64 is rare enough to be computed by the composite.
void check_dtype(const Operands& in) {
  MOREL_CHECK(in.attention.dtype != DType::Float64, NotImplemented, "attention is not supported for Float64");
}

void attention(const KernelCall& call) {
  const Operands in = read_operands(call);
  check_dtype(in);
  kernels::attention_forward(in.attention, heads_view(call.outs[0]), call.outs[1].as<float>());
}

// args: ... as above, out, logsumexp, dout.
void attention_grad(const KernelCall& call) {
  const Operands in = read_operands(call);
  check_dtype(in);
  const Tensor out = heads_tensor(call, 6), logsumexp = call.contiguous(7), dout = heads_tensor(call, 8);
  kernels::attention_backward(in.attention, heads_view(out), logsumexp.as<float>(), heads_view(dout),
                              heads_view(call.outs[0]), heads_view(call.outs[1]), heads_view(call.outs[2]));
}

}  // namespace

std::span<const KernelEntry> attention_kernels() {
  static constexpr KernelEntry entries[] = {
      {"attention", attention},
      {"attention_grad", attention_grad},
  };
  return selected<entries>;
}

}  // namespace morel
