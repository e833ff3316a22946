// The tiles of a matrix product that oneDNN computes faster than our own kernels.
#pragma once

#include "morel/kernels/gemm.h"
#include "morel/kernels/gemm_block.h"

namespace morel {

// Whether this CPU multiplies bfloat16 in hardware and oneDNN is there to do it.
bool gemm_onednn_multiplies_bfloat16();

// Computes one tile of a product on this thread; false when oneDNN refuses, and then nothing was written.
using GemmOneDnnFn = bool (*)(const GemmBlock& block);
// What computes tiles of that size, null when our own kernels are to.
GemmOneDnnFn gemm_onednn_kernel(const Gemm& problem, int64_t tile_m, int64_t tile_n);

}  // namespace morel
