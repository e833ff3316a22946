#include "morel/kernels/batch_norm.h"

#include <algorithm>
#include <vector>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"

namespace morel::kernels {

// Count, mean and sum of squared deviations of a set of numbers.
struct Moments {
  double count = 0;
  double mean = 0;
  double square = 0;

  void join(const Moments& other) {
    const double total = count + other.count, delta = other.mean - mean;
    if (total == 0) return;
    mean += delta * (other.count / total);
    square += other.square + delta * delta * (count * other.count / total);
    count = total;
  }
};

// `count` dense runs of `size` elements, `stride` apart.
struct Planes {
  int64_t count;
  int64_t stride;
  int64_t size;
};

struct NormKernels {
  Moments (*plane_moments)(const void* input, const Planes&);
  void (*plane_affine)(void* output, const void* input, const Planes&, double mean, double scale, double shift,
                       bool relu);
  void (*plane_grad_sums)(const void* grad, const void* input, const Planes&, double mean, double scale, double shift,
                          bool relu, double* sums);
  void (*plane_input_grad)(void* out, const void* grad, const void* input, const Planes&, double mean, double scale,
                           double shift, bool relu, double a, double b, double c);
  void (*column_moments)(const void* input, int64_t rows, int64_t channels, void* means, void* squares);
  void (*column_affine)(void* output, const void* input, int64_t rows, int64_t channels, const void* means,
                        const void* scales, const void* shifts, bool relu);
  void (*column_grad_sums)(const void* grad, const void* input, int64_t rows, int64_t channels, const void* means,
                           const void* scales, const void* shifts, bool relu, void* plain, void* product);
  void (*column_input_grad)(void* out, const void* grad, const void* input, int64_t rows, int64_t channels,
                            const void* means, const void* scales, const void* shifts, bool relu, const void* a,
                            const void* b, const void* c);
};

}  // namespace morel::kernels

#define MOREL_SIMD_FILE "morel/kernels/batch_norm_simd.inc"
#include "morel/kernels/simd.h"

namespace morel::kernels {
namespace {

constexpr int64_t task_elements = 16384;
// A channel of more elements is cut in pieces where there are few channels.
constexpr int64_t piece_elements = 65536;
constexpr int64_t many_channels = 16;

// An array of the parameters' type.
class Parameters {
 public:
  Parameters(const void* data, DType dtype) : data_(const_cast<void*>(data)), is_double_(dtype == DType::Float64) {}
  explicit operator bool() const { return data_ != nullptr; }
  double get(int64_t idx, double otherwise = 0) const {
    if (!data_) return otherwise;
    return is_double_ ? static_cast<const double*>(data_)[idx]
                      : static_cast<double>(static_cast<const float*>(data_)[idx]);
  }
  void set(int64_t idx, double value) const {
    if (!data_) return;
    if (is_double_) {
      static_cast<double*>(data_)[idx] = value;
    } else {
      static_cast<float*>(data_)[idx] = static_cast<float>(value);
    }
  }

 private:
  void* data_;
  bool is_double_;
};

// Temporary arrays of the parameters' type.
class ParameterRows {
 public:
  ParameterRows(DType dtype, int64_t rows, int64_t columns)
      : dtype_(dtype), columns_(columns), bytes_(rows * columns * (dtype == DType::Float64 ? 8 : 4)) {}
  void* row(int64_t idx) { return bytes_.data() + idx * columns_ * (dtype_ == DType::Float64 ? 8 : 4); }
  Parameters values(int64_t idx) { return {row(idx), dtype_}; }

 private:
  DType dtype_;
  int64_t columns_;
  std::vector<char> bytes_;
};

const char* at(const void* data, DType dtype, int64_t offset) {
  return static_cast<const char*>(data) + offset * size_of(dtype);
}
char* at(void* data, DType dtype, int64_t offset) { return static_cast<char*>(data) + offset * size_of(dtype); }

// How the planes of a channel are cut in pieces; one piece where the channels alone are tasks enough.
class Pieces {
 public:
  explicit Pieces(const NormShape& shape) : shape_(shape), segment_(shape.inner), planes_(shape.outer) {
    const int64_t per_channel = shape.outer * shape.inner;
    if (shape.channels < many_channels && per_channel > piece_elements) {
      segment_ = std::min(shape.inner, piece_elements);
      planes_ = std::max<int64_t>(1, piece_elements / shape.inner);
    }
    segments_ = (shape.inner + segment_ - 1) / segment_;
    count_ = (shape.outer + planes_ - 1) / planes_ * segments_;
  }
  int64_t count() const { return count_; }
  // Calls fn(channel, piece) in tasks.
  template <class F>
  void for_each(F&& fn) const {
    const int64_t elements = std::min(shape_.outer, planes_) * segment_;
    parallel_for(shape_.channels * count_, std::max<int64_t>(1, task_elements / elements),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t idx = begin; idx < end; ++idx) fn(idx / count_, idx % count_);
                 });
  }
  int64_t offset(int64_t channel, int64_t piece) const {
    return (piece / segments_ * planes_ * shape_.channels + channel) * shape_.inner + piece % segments_ * segment_;
  }
  Planes planes(int64_t piece) const {
    const int64_t first = piece / segments_ * planes_, begin = piece % segments_ * segment_;
    return {std::min(planes_, shape_.outer - first), shape_.channels * shape_.inner,
            std::min(segment_, shape_.inner - begin)};
  }

 private:
  NormShape shape_;
  int64_t segment_, planes_, segments_, count_;
};

// Rows of channels-last arrays that are reduced at once.
struct RowBlocks {
  explicit RowBlocks(const NormShape& shape)
      : rows(std::clamp<int64_t>(8192 / shape.channels, 16, 256)),
        total(shape.outer),
        count((shape.outer + rows - 1) / rows),
        grain(std::max<int64_t>(1, task_elements / (rows * shape.channels))) {}
  int64_t size(int64_t block) const { return std::min(rows, total - block * rows); }
  template <class F>
  void for_each(F&& fn) const {
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) fn(block);
    });
  }
  int64_t rows, total, count, grain;
};

NormKernels kernels_for(const NormShape& shape) {
  MOREL_CHECK(is_float(shape.dtype), Type, "normalisation supports floating-point inputs, but got ",
              info(shape.dtype).name, ".");
  return MOREL_SIMD_CALL(find_norm_kernels)(shape.dtype);
}

bool is_empty(const NormShape& shape) { return shape.outer * shape.channels * shape.inner == 0; }

// ---- batch_norm forward -------------------------------------------------------------------------
struct ForwardParameters {
  explicit ForwardParameters(const BatchNormForward& args)
      : gamma(args.gamma, args.shape.dtype),
        beta(args.beta, args.shape.dtype),
        mean(args.mean, args.shape.dtype),
        variance(args.variance, args.shape.dtype),
        inverse_std(args.inverse_std, args.shape.dtype),
        scales(args.scale, args.shape.dtype),
        epsilon(args.epsilon) {}
  void save(int64_t channel, double mean_value, double variance_value) const {
    mean.set(channel, mean_value);
    variance.set(channel, variance_value);
    inverse_std.set(channel, 1.0 / std::sqrt(variance_value + epsilon));
    scales.set(channel, scale(channel));
  }
  double scale(int64_t channel) const { return gamma.get(channel, 1.0) / std::sqrt(variance.get(channel) + epsilon); }
  Parameters gamma, beta, mean, variance, inverse_std, scales;
  double epsilon;
};

void normalise_planes(const BatchNormForward& args, const NormKernels& kernels, const Pieces& pieces,
                      const ForwardParameters& p, int64_t channel, int64_t piece) {
  const int64_t offset = pieces.offset(channel, piece);
  kernels.plane_affine(at(args.output, args.shape.dtype, offset), at(args.input, args.shape.dtype, offset),
                       pieces.planes(piece), p.mean.get(channel), p.scale(channel), p.beta.get(channel), args.relu);
}

void train_planes(const BatchNormForward& args, const NormKernels& kernels) {
  const Pieces pieces(args.shape);
  const ForwardParameters p(args);
  const auto moments_of = [&](int64_t channel, int64_t piece) {
    return kernels.plane_moments(at(args.input, args.shape.dtype, pieces.offset(channel, piece)), pieces.planes(piece));
  };
  if (pieces.count() == 1) {  // the second pass finds the channel in the second-level cache
    return pieces.for_each([&](int64_t channel, int64_t piece) {
      const Moments moments = moments_of(channel, piece);
      p.save(channel, moments.mean, moments.square / moments.count);
      if (args.output) normalise_planes(args, kernels, pieces, p, channel, piece);
    });
  }
  std::vector<Moments> partial(args.shape.channels * pieces.count());
  pieces.for_each(
      [&](int64_t channel, int64_t piece) { partial[channel * pieces.count() + piece] = moments_of(channel, piece); });
  for (int64_t channel = 0; channel < args.shape.channels; ++channel) {
    Moments all;
    for (int64_t piece = 0; piece < pieces.count(); ++piece) all.join(partial[channel * pieces.count() + piece]);
    p.save(channel, all.mean, all.square / all.count);
  }
  if (args.output)
    pieces.for_each(
        [&](int64_t channel, int64_t piece) { normalise_planes(args, kernels, pieces, p, channel, piece); });
}

void normalise_columns(const BatchNormForward& args, const NormKernels& kernels) {
  const int64_t channels = args.shape.channels;
  const ForwardParameters p(args);
  ParameterRows rows(args.shape.dtype, 2, channels);
  for (int64_t channel = 0; channel < channels; ++channel) {
    rows.values(0).set(channel, p.scale(channel));
    rows.values(1).set(channel, p.beta.get(channel));
  }
  const RowBlocks blocks(args.shape);
  blocks.for_each([&](int64_t block) {
    const int64_t offset = block * blocks.rows * channels;
    kernels.column_affine(at(args.output, args.shape.dtype, offset), at(args.input, args.shape.dtype, offset),
                          blocks.size(block), channels, args.mean, rows.row(0), rows.row(1), args.relu);
  });
}

void train_columns(const BatchNormForward& args, const NormKernels& kernels) {
  const int64_t channels = args.shape.channels;
  const ForwardParameters p(args);
  const RowBlocks blocks(args.shape);
  ParameterRows means(args.shape.dtype, blocks.count, channels), squares(args.shape.dtype, blocks.count, channels);
  blocks.for_each([&](int64_t block) {
    kernels.column_moments(at(args.input, args.shape.dtype, block * blocks.rows * channels), blocks.size(block),
                           channels, means.row(block), squares.row(block));
  });
  const double total = static_cast<double>(args.shape.outer);
  parallel_for(channels, 64, [&](int64_t begin, int64_t end) {
    std::vector<double> mean(end - begin, 0.0), square(end - begin, 0.0);
    for (int64_t block = 0; block < blocks.count; ++block) {
      const double weight = static_cast<double>(blocks.size(block)) / total;
      for (int64_t channel = begin; channel < end; ++channel)
        mean[channel - begin] += means.values(block).get(channel) * weight;
    }
    for (int64_t block = 0; block < blocks.count; ++block) {
      const double count = static_cast<double>(blocks.size(block));
      for (int64_t channel = begin; channel < end; ++channel) {
        const double delta = means.values(block).get(channel) - mean[channel - begin];
        square[channel - begin] += squares.values(block).get(channel) + delta * delta * count;
      }
    }
    for (int64_t channel = begin; channel < end; ++channel)
      p.save(channel, mean[channel - begin], square[channel - begin] / total);
  });
  if (args.output) normalise_columns(args, kernels);
}

}  // namespace

void batch_norm_training(const BatchNormForward& args) {
  const NormKernels kernels = kernels_for(args.shape);
  MOREL_CHECK(!is_empty(args.shape) || args.shape.channels == 0, Value,
              "batch_norm needs at least one value per channel in training.");
  if (is_empty(args.shape)) return;
  args.shape.inner == 1 ? train_columns(args, kernels) : train_planes(args, kernels);
}

void batch_norm_inference(const BatchNormForward& args) {
  const NormKernels kernels = kernels_for(args.shape);
  if (is_empty(args.shape)) return;
  if (args.shape.inner == 1) return normalise_columns(args, kernels);
  const Pieces pieces(args.shape);
  const ForwardParameters p(args);
  pieces.for_each([&](int64_t channel, int64_t piece) { normalise_planes(args, kernels, pieces, p, channel, piece); });
}

// ---- batch_norm backward ------------------------------------------------------------------------
namespace {

// input_grad = a * grad + b * (input - mean) + c, with xhat = (input - mean) * inverse_std:
//   gamma * inverse_std * (grad - mean(grad) - xhat * mean(grad * xhat))     (S. Ioffe, C. Szegedy, 2015, section 3)
struct GradLine {
  double a, b, c;
};
GradLine grad_line(double gamma, double inverse_std, double sum, double sum_product, double count) {
  const double a = gamma * inverse_std;
  return {a, -a * inverse_std * inverse_std * sum_product / count, -a * sum / count};
}

struct BackwardParameters {
  explicit BackwardParameters(const BatchNormBackward& args)
      : gamma(args.gamma, args.shape.dtype),
        beta(args.beta, args.shape.dtype),
        mean(args.mean, args.shape.dtype),
        inverse_std(args.inverse_std, args.shape.dtype),
        gamma_grad(args.gamma_grad, args.shape.dtype),
        beta_grad(args.beta_grad, args.shape.dtype),
        count(static_cast<double>(args.shape.outer * args.shape.inner)),
        is_training(args.is_training) {}
  double scale(int64_t channel) const { return gamma.get(channel, 1.0) * inverse_std.get(channel); }
  void save(int64_t channel, const double* sums) const {
    beta_grad.set(channel, sums[0]);
    gamma_grad.set(channel, sums[1] * inverse_std.get(channel));
  }
  GradLine line(int64_t channel, const double* sums) const {
    if (!is_training) return {scale(channel), 0, 0};
    return grad_line(gamma.get(channel, 1.0), inverse_std.get(channel), sums[0], sums[1], count);
  }
  Parameters gamma, beta, mean, inverse_std, gamma_grad, beta_grad;
  double count;
  bool is_training;
};

void backward_planes(const BatchNormBackward& args, const NormKernels& kernels) {
  const Pieces pieces(args.shape);
  const BackwardParameters p(args);
  const DType dtype = args.shape.dtype;
  const auto sums_of = [&](int64_t channel, int64_t piece, double* sums) {
    const int64_t offset = pieces.offset(channel, piece);
    kernels.plane_grad_sums(at(args.output_grad, dtype, offset), at(args.input, dtype, offset), pieces.planes(piece),
                            p.mean.get(channel), p.scale(channel), p.beta.get(channel), args.relu, sums);
  };
  const auto input_grad_of = [&](int64_t channel, int64_t piece, const double* sums) {
    if (!args.input_grad) return;
    const int64_t offset = pieces.offset(channel, piece);
    const GradLine line = p.line(channel, sums);
    kernels.plane_input_grad(at(args.input_grad, dtype, offset), at(args.output_grad, dtype, offset),
                             at(args.input, dtype, offset), pieces.planes(piece), p.mean.get(channel), p.scale(channel),
                             p.beta.get(channel), args.relu, line.a, line.b, line.c);
  };
  if (pieces.count() == 1) {
    return pieces.for_each([&](int64_t channel, int64_t piece) {
      double sums[2];
      sums_of(channel, piece, sums);
      p.save(channel, sums);
      input_grad_of(channel, piece, sums);
    });
  }
  std::vector<double> partial(2 * args.shape.channels * pieces.count()), totals(2 * args.shape.channels, 0.0);
  pieces.for_each([&](int64_t channel, int64_t piece) {
    sums_of(channel, piece, &partial[2 * (channel * pieces.count() + piece)]);
  });
  for (int64_t channel = 0; channel < args.shape.channels; ++channel) {
    for (int64_t piece = 0; piece < pieces.count(); ++piece) {
      totals[2 * channel] += partial[2 * (channel * pieces.count() + piece)];
      totals[2 * channel + 1] += partial[2 * (channel * pieces.count() + piece) + 1];
    }
    p.save(channel, &totals[2 * channel]);
  }
  pieces.for_each([&](int64_t channel, int64_t piece) { input_grad_of(channel, piece, &totals[2 * channel]); });
}

void backward_columns(const BatchNormBackward& args, const NormKernels& kernels) {
  const int64_t channels = args.shape.channels;
  const DType dtype = args.shape.dtype;
  const BackwardParameters p(args);
  const RowBlocks blocks(args.shape);
  ParameterRows plain(dtype, blocks.count, channels), product(dtype, blocks.count, channels), lines(dtype, 5, channels);
  for (int64_t channel = 0; channel < channels; ++channel) {
    lines.values(0).set(channel, p.scale(channel));
    lines.values(1).set(channel, p.beta.get(channel));
  }
  blocks.for_each([&](int64_t block) {
    const int64_t offset = block * blocks.rows * channels;
    kernels.column_grad_sums(at(args.output_grad, dtype, offset), at(args.input, dtype, offset), blocks.size(block),
                             channels, args.mean, lines.row(0), lines.row(1), args.relu, plain.row(block),
                             product.row(block));
  });
  parallel_for(channels, 64, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(2 * (end - begin), 0.0);
    for (int64_t block = 0; block < blocks.count; ++block) {
      for (int64_t channel = begin; channel < end; ++channel) {
        sums[2 * (channel - begin)] += plain.values(block).get(channel);
        sums[2 * (channel - begin) + 1] += product.values(block).get(channel);
      }
    }
    for (int64_t channel = begin; channel < end; ++channel) {
      const double* of_channel = &sums[2 * (channel - begin)];
      p.save(channel, of_channel);
      const GradLine line = p.line(channel, of_channel);
      lines.values(2).set(channel, line.a);
      lines.values(3).set(channel, line.b);
      lines.values(4).set(channel, line.c);
    }
  });
  if (!args.input_grad) return;
  blocks.for_each([&](int64_t block) {
    const int64_t offset = block * blocks.rows * channels;
    kernels.column_input_grad(at(args.input_grad, dtype, offset), at(args.output_grad, dtype, offset),
                              at(args.input, dtype, offset), blocks.size(block), channels, args.mean, lines.row(0),
                              lines.row(1), args.relu, lines.row(2), lines.row(3), lines.row(4));
  });
}

}  // namespace

void batch_norm_backward(const BatchNormBackward& args) {
  const NormKernels kernels = kernels_for(args.shape);
  if (is_empty(args.shape)) {
    const BackwardParameters p(args);
    const double zeros[2] = {0, 0};
    for (int64_t channel = 0; channel < args.shape.channels; ++channel) p.save(channel, zeros);
    return;
  }
  args.shape.inner == 1 ? backward_columns(args, kernels) : backward_planes(args, kernels);
}

// ---- group_norm ---------------------------------------------------------------------------------
void group_norm(const GroupNormForward& args) {
  const NormKernels kernels = kernels_for(args.shape);
  if (is_empty(args.shape)) return;
  const int64_t group = args.shape.channels / args.groups, inner = args.shape.inner;
  const DType dtype = args.shape.dtype;
  const Parameters gamma(args.gamma, dtype), beta(args.beta, dtype), mean(args.mean, dtype),
      inverse_std(args.inverse_std, dtype);
  parallel_for(
      args.shape.outer * args.groups, std::max<int64_t>(1, task_elements / (group * inner)),
      [&](int64_t begin, int64_t end) {
        for (int64_t idx = begin; idx < end; ++idx) {
          const int64_t first = idx * group;  // sample * channels + channel
          const Moments moments = kernels.plane_moments(at(args.input, dtype, first * inner), {1, 0, group * inner});
          mean.set(idx, moments.mean);
          inverse_std.set(idx, 1.0 / std::sqrt(moments.square / moments.count + args.epsilon));
          for (int64_t plane = first; plane < first + group; ++plane) {
            const int64_t channel = plane % args.shape.channels;
            kernels.plane_affine(at(args.output, dtype, plane * inner), at(args.input, dtype, plane * inner),
                                 {1, 0, inner}, mean.get(idx), gamma.get(channel, 1.0) * inverse_std.get(idx),
                                 beta.get(channel), false);
          }
        }
      });
}

void group_norm_backward(const GroupNormBackward& args) {
  const NormKernels kernels = kernels_for(args.shape);
  const int64_t group = args.shape.channels / args.groups, inner = args.shape.inner, channels = args.shape.channels;
  const DType dtype = args.shape.dtype;
  const Parameters gamma(args.gamma, dtype), mean(args.mean, dtype), inverse_std(args.inverse_std, dtype),
      gamma_grad(args.gamma_grad, dtype), beta_grad(args.beta_grad, dtype);
  std::vector<double> sums(2 * args.shape.outer * channels, 0.0);  // per plane: of grad, of grad * (input - mean)
  parallel_for(args.shape.outer * args.groups,
               std::max<int64_t>(1, task_elements / std::max<int64_t>(1, group * inner)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t idx = begin; idx < end; ++idx) {
                   double sum = 0, sum_product = 0;
                   for (int64_t plane = idx * group; plane < (idx + 1) * group && inner > 0; ++plane) {
                     const int64_t offset = plane * inner;
                     kernels.plane_grad_sums(at(args.output_grad, dtype, offset), at(args.input, dtype, offset),
                                             {1, 0, inner}, mean.get(idx), 1, 0, false, &sums[2 * plane]);
                     sum += gamma.get(plane % channels, 1.0) * sums[2 * plane];
                     sum_product += gamma.get(plane % channels, 1.0) * sums[2 * plane + 1];
                   }
                   if (!args.input_grad) continue;
                   const GradLine line =
                       grad_line(1.0, inverse_std.get(idx), sum, sum_product, static_cast<double>(group * inner));
                   for (int64_t plane = idx * group; plane < (idx + 1) * group && inner > 0; ++plane) {
                     const int64_t offset = plane * inner;
                     kernels.plane_input_grad(at(args.input_grad, dtype, offset), at(args.output_grad, dtype, offset),
                                              at(args.input, dtype, offset), {1, 0, inner}, mean.get(idx), 1, 0, false,
                                              line.a * gamma.get(plane % channels, 1.0), line.b, line.c);
                   }
                 }
               });
  for (int64_t channel = 0; channel < channels; ++channel) {
    double beta_sum = 0, gamma_sum = 0;
    for (int64_t sample = 0; sample < args.shape.outer; ++sample) {
      const int64_t plane = sample * channels + channel;
      beta_sum += sums[2 * plane];
      gamma_sum += sums[2 * plane + 1] * inverse_std.get(plane / group);
    }
    beta_grad.set(channel, beta_sum);
    gamma_grad.set(channel, gamma_sum);
  }
}

}  // namespace morel::kernels
