#include "morel/kernels/gemm_onednn.h"

#if MOREL_HAVE_ONEDNN
#include <algorithm>

#include "morel/kernels/onednn.inc"

namespace morel {
namespace {

bool multiply_float32(const GemmBlock& g) {
  SerialOpenMp serial;
  const bool transpose_a = g.a_col != 1, transpose_b = g.b_col != 1;
  float* c = static_cast<float*>(g.c);
  const dnnl_status_t status =
      dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', g.m, g.n, g.k, static_cast<float>(g.alpha),
                 static_cast<const float*>(g.a), transpose_a ? g.a_col : g.a_row, static_cast<const float*>(g.b),
                 transpose_b ? g.b_col : g.b_row, static_cast<float>(g.beta), c, g.c_row);
  if (status != dnnl_success) return false;
  if (!g.bias && !g.relu) return true;
  const float* bias = static_cast<const float*>(g.bias);
  for (int64_t i = 0; i < g.m; ++i, c += g.c_row) {
    for (int64_t j = 0; j < g.n; ++j) {
      const float value = bias ? c[j] + bias[j] : c[j];
      c[j] = g.relu && value < 0 ? 0.0f : value;
    }
  }
  return true;
}

struct MatmulKey {
  int64_t m, n, k, a_row, a_col, b_row, b_col, c_row, has_bias;
};

struct Matmul {
  dnnl::matmul primitive;
  dnnl::memory::desc a, b, c, bias, scratchpad;
};

std::shared_ptr<const Matmul> make_matmul(const MatmulKey& key) {
  constexpr auto type = dnnl::memory::data_type::bf16;
  const dnnl::memory::desc a({key.m, key.k}, type, dnnl::memory::dims{key.a_row, key.a_col});
  const dnnl::memory::desc b({key.k, key.n}, type, dnnl::memory::dims{key.b_row, key.b_col});
  const dnnl::memory::desc c({key.m, key.n}, type, dnnl::memory::dims{key.c_row, 1});
  const auto bias =
      key.has_bias ? dnnl::memory::desc({1, key.n}, type, dnnl::memory::dims{key.n, 1}) : dnnl::memory::desc();
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::primitive_desc desc({a, b, bias, c}, attr, onednn_engine());
  return std::make_shared<Matmul>(Matmul{dnnl::matmul(desc), a, b, c, bias, desc.scratchpad_desc()});
}

bool multiply_bfloat16(const GemmBlock& g) {
  static OneDnnCache<Matmul>& cache = *new OneDnnCache<Matmul>;  // outlives the threads that use it at exit
  SerialOpenMp serial;
  const MatmulKey key{g.m, g.n, g.k, g.a_row, g.a_col, g.b_row, g.b_col, g.c_row, g.bias != nullptr};
  const auto found = cache.get(onednn_key(key), [&] { return make_matmul(key); });
  if (!found) return false;
  const auto memory = [](const dnnl::memory::desc& desc, const void* data) {
    return dnnl::memory(desc, onednn_engine(), const_cast<void*>(data));
  };
  const size_t bytes = found->scratchpad.get_size();
  void* scratchpad = gemm_scratch(ScratchSlot::PackedB, static_cast<int64_t>(bytes));
  std::unordered_map<int, dnnl::memory> arguments{{DNNL_ARG_SRC, memory(found->a, g.a)},
                                                  {DNNL_ARG_WEIGHTS, memory(found->b, g.b)},
                                                  {DNNL_ARG_DST, memory(found->c, g.c)},
                                                  {DNNL_ARG_SCRATCHPAD, memory(found->scratchpad, scratchpad)}};
  if (g.bias) arguments.emplace(DNNL_ARG_BIAS, memory(found->bias, g.bias));
  found->primitive.execute(onednn_stream(), arguments);
  return true;
}

}  // namespace

bool gemm_onednn_multiplies_bfloat16() {
  static const bool has = [] {
    const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    return isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx;
  }();
  return has;
}

GemmOneDnnFn gemm_onednn_kernel(const Gemm& p, int64_t tile_m, int64_t tile_n) {
  const bool has_runs = (p.a_row == 1 || p.a_col == 1) && (p.b_row == 1 || p.b_col == 1) && p.c_col == 1;
  if (!has_runs) return nullptr;
  const int64_t work = tile_m * tile_n * p.k;
  // Measured on AVX-512: from about 200^3 on oneDNN is 1.05 to 1.2 times as fast as our kernel, below it is slower.
  if (p.dtype == DType::Float32 && std::min({tile_m, tile_n, p.k}) >= 64 && work >= int64_t{8} << 20) {
    return multiply_float32;
  }
  // Measured with AMX: 4 to 8 times as fast as our float32 kernel between conversions, from 64^3 on.
  const bool plain = p.alpha == 1 && p.beta == 0 && p.activation == GemmActivation::None;
  if (p.dtype == DType::BFloat16 && plain && work >= int64_t{1} << 18 && gemm_onednn_multiplies_bfloat16()) {
    return multiply_bfloat16;
  }
  return nullptr;
}

}  // namespace morel

#else

namespace morel {

bool gemm_onednn_multiplies_bfloat16() { return false; }
GemmOneDnnFn gemm_onednn_kernel(const Gemm&, int64_t, int64_t) { return nullptr; }

}  // namespace morel
#endif
