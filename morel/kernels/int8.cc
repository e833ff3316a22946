#include "morel/kernels/int8.h"

#include <algorithm>
#include <array>
#include <vector>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"

#define MOREL_SIMD_FILE "morel/kernels/int8_simd.inc"
#include "morel/kernels/simd.h"

namespace morel {
namespace {

constexpr int64_t task_products = 1 << 17;  // that are worth a task

// Vectors of int16 that begin on whole ones: k rounded up, the rest zeros.
constexpr int64_t padded(int64_t k) { return (k + 31) & ~int64_t{31}; }

std::vector<int16_t> widened(const int8_t* source, int64_t rows, int64_t k) {
  std::vector<int16_t> out(static_cast<size_t>(rows * padded(k)));
  for (int64_t row = 0; row < rows; ++row)
    std::copy(source + row * k, source + (row + 1) * k, out.begin() + row * padded(k));
  return out;
}

int8_t result_of(int32_t sum, const int32_t* bias, const Requantisation& to, int64_t channel) {
  const int32_t all = bias ? sum + bias[channel] : sum;
  const int32_t scaled = requantised(all, to.multiplier[channel], to.shift[channel]);
  return static_cast<int8_t>(std::clamp(scaled + to.output_zero, -128, 127));
}

int64_t rows_of_task(int64_t products) { return std::max<int64_t>(1, task_products / std::max<int64_t>(1, products)); }

// The inputs of one output position of a convolution, less their zero, as a row of the weight has them.
class Patch {
 public:
  Patch(const Conv2d& conv, const View4& input, const int64_t (&kernel)[2], int64_t channels, int32_t zero)
      : conv_(conv), input_(input), kernel_{kernel[0], kernel[1]}, channels_(channels), zero_(zero) {}

  void gather(int64_t image, int64_t first_channel, int64_t y, int64_t x, int16_t* out) const {
    const int8_t* source = static_cast<const int8_t*>(input_.data) + image * input_.stride[0];
    const int64_t top = y * conv_.stride[0] - conv_.padding[0], left = x * conv_.stride[1] - conv_.padding[2];
    for (int64_t c = first_channel; c < first_channel + channels_; ++c) {
      for (int64_t i = 0; i < kernel_[0]; ++i) {
        const int64_t row = top + i * conv_.dilation[0];
        for (int64_t j = 0; j < kernel_[1]; ++j) {
          const int64_t column = left + j * conv_.dilation[1];
          const bool inside = row >= 0 && row < input_.size[2] && column >= 0 && column < input_.size[3];
          const int64_t place = c * input_.stride[1] + row * input_.stride[2] + column * input_.stride[3];
          *out++ = static_cast<int16_t>(inside ? source[place] - zero_ : 0);
        }
      }
    }
  }

 private:
  const Conv2d& conv_;
  const View4& input_;
  const std::array<int64_t, 2> kernel_;
  const int64_t channels_;
  const int32_t zero_;
};

}  // namespace

Int8Operands::Int8Operands(const KernelCall& call, size_t first)
    : weight_(call.contiguous(1, DType::Int8)),
      bias_(call.has(2) ? call.contiguous(2, DType::Int32) : Tensor()),
      multiplier_(call.contiguous(first, DType::Int32)),
      shift_(call.contiguous(first + 1, DType::Int32)),
      to_{multiplier_.as<int32_t>(), shift_.as<int32_t>(), static_cast<int32_t>(call.integer(first + 2)),
          static_cast<int32_t>(call.integer(first + 3))} {
  const Tensor input = call.tensor(0);
  MOREL_CHECK(input.dtype() == DType::Int8, Type, "products of int8 take an int8 input, but got ",
              describe(input.dtype(), input.shape()));
  MOREL_CHECK(multiplier_.size() == weight_.dim(0) && shift_.size() == weight_.dim(0), Value,
              "products of int8 take a multiplier and a shift for each of ", weight_.dim(0), " channels, but got ",
              multiplier_.size(), " and ", shift_.size());
}

void int8_dense(const int8_t* x, const int8_t* weight, const int32_t* bias, const Requantisation& to, int64_t rows,
                int64_t k, int64_t n, int8_t* out) {
  const std::vector<int16_t> wide = widened(weight, n, k);
  parallel_for(rows, rows_of_task(n * k), [&](int64_t begin, int64_t end) {
    std::vector<int16_t> row(static_cast<size_t>(padded(k)));
    std::vector<int32_t> sums(static_cast<size_t>(n));
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < k; ++j) row[j] = static_cast<int16_t>(x[i * k + j] - to.input_zero);
      MOREL_SIMD_CALL(int16_products)(row.data(), wide.data(), padded(k), n, sums.data());
      for (int64_t j = 0; j < n; ++j) out[i * n + j] = result_of(sums[j], bias, to, j);
    }
  });
}

void int8_convolution(const Conv2d& conv, const View4& input, const int8_t* weight, const int64_t (&kernel)[2],
                      const int32_t* bias, const Requantisation& to, const View4& output) {
  const int64_t channels = input.size[1] / conv.groups, outputs = output.size[1] / conv.groups;
  const int64_t k = channels * kernel[0] * kernel[1], height = output.size[2], width = output.size[3];
  const std::vector<int16_t> wide = widened(weight, output.size[1], k);
  const Patch patch(conv, input, kernel, channels, to.input_zero);
  parallel_for(output.size[0] * height, rows_of_task(width * output.size[1] * k), [&](int64_t begin, int64_t end) {
    std::vector<int16_t> taps(static_cast<size_t>(padded(k)));
    std::vector<int32_t> sums(static_cast<size_t>(outputs));
    for (int64_t row = begin; row < end; ++row) {
      const int64_t image = row / height, y = row % height;
      for (int64_t x = 0; x < width; ++x) {
        for (int64_t group = 0; group < conv.groups; ++group) {
          patch.gather(image, group * channels, y, x, taps.data());
          MOREL_SIMD_CALL(int16_products)
          (taps.data(), wide.data() + group * outputs * padded(k), padded(k), outputs, sums.data());
          for (int64_t c = 0; c < outputs; ++c) {
            const int64_t channel = group * outputs + c;
            static_cast<int8_t*>(output.data)[image * output.stride[0] + channel * output.stride[1] +
                                              y * output.stride[2] + x * output.stride[3]] =
                result_of(sums[c], bias, to, channel);
          }
        }
      }
    }
  });
}

void int8_add(const int8_t* x, const int8_t* y, const Int8Sum& sum, const Requantisation& to, int64_t n, int8_t* out) {
  parallel_for(n, task_products, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out[i] = result_of((x[i] - sum.x_zero) * sum.x_factor + (y[i] - sum.y_zero) * sum.y_factor, nullptr, to, 0);
  });
}

}  // namespace morel
