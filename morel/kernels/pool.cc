#include "morel/kernels/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"

namespace morel::kernels {
namespace {

float load(float value) { return value; }
double load(double value) { return value; }
float load(Float16 value) { return to_float(value); }
float load(BFloat16 value) { return to_float(value); }
void store(float& to, float value) { to = value; }
void store(double& to, double value) { to = value; }
void store(Float16& to, float value) { to = to_float16(value); }
void store(BFloat16& to, float value) { to = to_bfloat16(value); }

template <class F>
void for_float_dtype(DType dtype, F&& fn) {
  switch (dtype) {
    case DType::Float32:
      return fn(TypeTag<float>{});
    case DType::Float64:
      return fn(TypeTag<double>{});
    case DType::Float16:
      return fn(TypeTag<Float16>{});
    case DType::BFloat16:
      return fn(TypeTag<BFloat16>{});
    default:
      raise(ErrorKind::Type, "pooling is not supported for ", info(dtype).name);
  }
}

// Images (n, c) are the unit of parallel work; a task takes enough of them to be worth its start.
template <class F>
void for_images(std::span<const int64_t> shape, int64_t work_per_image, F&& fn) {
  const int64_t channels = shape[1];
  parallel_for(shape[0] * channels, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, work_per_image)), [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) fn(image / channels, image % channels);
  });
}

// First and last (exclusive) step of a window that lie inside of the image.
struct Steps {
  int64_t begin, end;
};
Steps steps_inside(int64_t start, int64_t kernel, int64_t dilation, int64_t size) {
  const int64_t begin = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
  const int64_t end = start >= size ? begin : std::min(kernel, (size - start + dilation - 1) / dilation);
  return {begin, std::max(begin, end)};
}

template <class T, class I>
void max_pool_image(T* out, I* indices, const T* input, const View& out_view, const View& index_view, const ConstView& in_view,
                    const PoolWindow& w) {
  const int64_t height = in_view.shape[2], width = in_view.shape[3];
  const int64_t row = in_view.strides[2], column = in_view.strides[3];
  for (int64_t y = 0; y < out_view.shape[2]; ++y) {
    const int64_t top = y * w.stride[0] - w.before[0];
    const Steps vertical = steps_inside(top, w.kernel[0], w.dilation[0], height);
    for (int64_t x = 0; x < out_view.shape[3]; ++x) {
      const int64_t left = x * w.stride[1] - w.before[1];
      const Steps horizontal = steps_inside(left, w.kernel[1], w.dilation[1], width);
      auto best = -std::numeric_limits<decltype(load(*input))>::infinity();
      int64_t best_at = std::clamp<int64_t>(top, 0, height - 1) * width + std::clamp<int64_t>(left, 0, width - 1);
      for (int64_t i = vertical.begin; i < vertical.end; ++i) {
        const int64_t h = top + i * w.dilation[0];
        for (int64_t j = horizontal.begin; j < horizontal.end; ++j) {
          const int64_t at = left + j * w.dilation[1];
          const auto value = load(input[h * row + at * column]);
          if (value > best || (value != value && best == best)) {
            best = value;
            best_at = h * width + at;
          }
        }
      }
      store(out[y * out_view.strides[2] + x * out_view.strides[3]], best);
      if (indices) indices[y * index_view.strides[2] + x * index_view.strides[3]] = static_cast<I>(best_at);
    }
  }
}

// Number of elements by which a window's sum is divided.
double divisor_of(const AverageRule& rule, const PoolWindow& w, int64_t top, int64_t left, int64_t height, int64_t width, Steps vertical,
                  Steps horizontal) {
  if (rule.divisor) return static_cast<double>(rule.divisor);
  if (!rule.counts_padding) return static_cast<double>((vertical.end - vertical.begin) * (horizontal.end - horizontal.begin));
  const int64_t bottom = std::min(top + w.kernel[0], height + rule.after[0]), right = std::min(left + w.kernel[1], width + rule.after[1]);
  return static_cast<double>((bottom - top) * (right - left));
}

// Calls fn(y, x, top, left, vertical, horizontal, divisor) for every window.
template <class F>
void for_windows(std::span<const int64_t> out_shape, int64_t height, int64_t width, const PoolWindow& w, const AverageRule& rule, F&& fn) {
  for (int64_t y = 0; y < out_shape[2]; ++y) {
    const int64_t top = y * w.stride[0] - w.before[0];
    const Steps vertical = steps_inside(top, w.kernel[0], 1, height);
    for (int64_t x = 0; x < out_shape[3]; ++x) {
      const int64_t left = x * w.stride[1] - w.before[1];
      const Steps horizontal = steps_inside(left, w.kernel[1], 1, width);
      fn(y, x, top, left, vertical, horizontal, divisor_of(rule, w, top, left, height, width, vertical, horizontal));
    }
  }
}

}  // namespace

void max_pool2d(const View& out, const View& indices, const ConstView& input, const PoolWindow& window) {
  for_float_dtype(input.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_images(out.shape, out.shape[2] * out.shape[3] * window.kernel[0] * window.kernel[1], [&](int64_t n, int64_t c) {
      T* to = static_cast<T*>(out.data) + n * out.strides[0] + c * out.strides[1];
      const T* from = static_cast<const T*>(input.data) + n * input.strides[0] + c * input.strides[1];
      const int64_t at = indices.data ? n * indices.strides[0] + c * indices.strides[1] : 0;
      if (indices.dtype == DType::Int64) {
        int64_t* positions = static_cast<int64_t*>(indices.data);
        max_pool_image(to, positions ? positions + at : nullptr, from, out, indices, input, window);
      } else {
        int32_t* positions = static_cast<int32_t*>(indices.data);
        max_pool_image(to, positions ? positions + at : nullptr, from, out, indices, input, window);
      }
    });
  });
}

void max_pool2d_backward(const View& input_grad, const ConstView& grad, const ConstView& indices) {
  const int64_t width = input_grad.shape[3];
  fill_zero(input_grad);
  for_float_dtype(grad.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_images(grad.shape, grad.shape[2] * grad.shape[3] * 4, [&](int64_t n, int64_t c) {
      T* to = static_cast<T*>(input_grad.data) + n * input_grad.strides[0] + c * input_grad.strides[1];
      const T* from = static_cast<const T*>(grad.data) + n * grad.strides[0] + c * grad.strides[1];
      const int64_t base = n * indices.strides[0] + c * indices.strides[1];
      for (int64_t y = 0; y < grad.shape[2]; ++y) {
        for (int64_t x = 0; x < grad.shape[3]; ++x) {
          const int64_t place = base + y * indices.strides[2] + x * indices.strides[3];
          const int64_t at = indices.dtype == DType::Int64 ? static_cast<const int64_t*>(indices.data)[place]
                                                           : static_cast<const int32_t*>(indices.data)[place];
          T& target = to[at / width * input_grad.strides[2] + at % width * input_grad.strides[3]];
          store(target, load(target) + load(from[y * grad.strides[2] + x * grad.strides[3]]));
        }
      }
    });
  });
}

void average_pool2d(const View& out, const ConstView& input, const PoolWindow& window, const AverageRule& rule) {
  const int64_t height = input.shape[2], width = input.shape[3];
  for_float_dtype(input.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Compute = decltype(load(T{}));
    for_images(out.shape, out.shape[2] * out.shape[3] * window.kernel[0] * window.kernel[1], [&](int64_t n, int64_t c) {
      T* to = static_cast<T*>(out.data) + n * out.strides[0] + c * out.strides[1];
      const T* from = static_cast<const T*>(input.data) + n * input.strides[0] + c * input.strides[1];
      for_windows(out.shape, height, width, window, rule,
                  [&](int64_t y, int64_t x, int64_t top, int64_t left, Steps vertical, Steps horizontal, double divisor) {
                    Compute sum = 0;
                    for (int64_t i = vertical.begin; i < vertical.end; ++i)
                      for (int64_t j = horizontal.begin; j < horizontal.end; ++j)
                        sum += load(from[(top + i) * input.strides[2] + (left + j) * input.strides[3]]);
                    store(to[y * out.strides[2] + x * out.strides[3]], sum / static_cast<Compute>(divisor));
                  });
    });
  });
}

void average_pool2d_backward(const View& input_grad, const ConstView& grad, const PoolWindow& window, const AverageRule& rule) {
  const int64_t height = input_grad.shape[2], width = input_grad.shape[3];
  fill_zero(input_grad);
  for_float_dtype(grad.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Compute = decltype(load(T{}));
    for_images(grad.shape, grad.shape[2] * grad.shape[3] * window.kernel[0] * window.kernel[1], [&](int64_t n, int64_t c) {
      T* to = static_cast<T*>(input_grad.data) + n * input_grad.strides[0] + c * input_grad.strides[1];
      const T* from = static_cast<const T*>(grad.data) + n * grad.strides[0] + c * grad.strides[1];
      for_windows(grad.shape, height, width, window, rule,
                  [&](int64_t y, int64_t x, int64_t top, int64_t left, Steps vertical, Steps horizontal, double divisor) {
                    const Compute share = load(from[y * grad.strides[2] + x * grad.strides[3]]) / static_cast<Compute>(divisor);
                    for (int64_t i = vertical.begin; i < vertical.end; ++i) {
                      for (int64_t j = horizontal.begin; j < horizontal.end; ++j) {
                        T& target = to[(top + i) * input_grad.strides[2] + (left + j) * input_grad.strides[3]];
                        store(target, load(target) + share);
                      }
                    }
                  });
    });
  });
}

}  // namespace morel::kernels
