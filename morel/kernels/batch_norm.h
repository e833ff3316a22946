// Normalisation over a batch per channel (batch_norm) and over groups of channels per sample (group_norm,
// instance_norm).
//
// Arrays are dense. Channels first: [outer, channels, inner] (NCHW: inner = height * width); channels last: inner = 1
// and outer counts all other axes (NHWC: batch * height * width). Statistics and parameters are float for Float32 and
// the half types, double for Float64; below they are `void*` of that type.
//
// Moments are stable: mean and squared deviations of blocks that fit the cache, in two passes each, joined pairwise in
// double (T. Chan, G. Golub, R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances",
// 1982).
#pragma once

#include <cstdint>

#include "morel/tensor/dtype.h"

namespace morel::kernels {

struct NormShape {
  DType dtype;  // of input, output and their gradients
  int64_t outer;
  int64_t channels;
  int64_t inner;
};

struct BatchNormForward {
  NormShape shape;
  const void* input;
  const void* gamma;  // null: ones
  const void* beta;   // null: zeros
  double epsilon;
  bool relu;              // output = max(0, normalised)
  void* output;           // null: only the statistics are wanted (training)
  void* mean;             // [channels]: written when training, read otherwise
  void* variance;         // [channels], biased: written when training, read otherwise
  void* inverse_std;      // [channels]: written when training; may be null otherwise
  void* scale = nullptr;  // [channels]: by which input - mean is multiplied, written when training; null: not wanted
};
void batch_norm_training(const BatchNormForward& args);
void batch_norm_inference(const BatchNormForward& args);

struct BatchNormBackward {
  NormShape shape;
  const void* input;
  const void* output_grad;
  const void* gamma;  // null: ones
  const void* beta;   // read when relu; null: zeros
  const void* mean;
  const void* inverse_std;
  bool relu;         // the forward pass had it
  bool is_training;  // false: mean and variance were constants
  void* input_grad;  // null: not wanted
  void* gamma_grad;  // [channels]; null: not wanted
  void* beta_grad;
};
void batch_norm_backward(const BatchNormBackward& args);

// One mean and variance per sample and group of channels / groups channels; instance_norm: groups = channels.
struct GroupNormForward {
  NormShape shape;  // outer = batch
  int64_t groups;
  const void* input;
  const void* gamma;
  const void* beta;
  double epsilon;
  void* output;
  void* mean;         // [outer, groups], written
  void* inverse_std;  // [outer, groups], written
};
void group_norm(const GroupNormForward& args);

struct GroupNormBackward {
  NormShape shape;
  int64_t groups;
  const void* input;
  const void* output_grad;
  const void* gamma;
  const void* mean;
  const void* inverse_std;
  void* input_grad;
  void* gamma_grad;
  void* beta_grad;
};
void group_norm_backward(const GroupNormBackward& args);

}  // namespace morel::kernels
