// Convolution of any element type as matrix products: each output position's receptive field becomes a column (im2col).
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/conv_paths.h"
#include "morel/kernels/gemm.h"
#include "morel/kernels/item_size.h"

namespace morel {
namespace {

template <class F>
void visit_numbers(DType dtype, F&& fn) {
  visit_dtype(dtype, [&]<class T>(TypeTag<T> tag) {
    if constexpr (!std::is_same_v<T, Float16> && !std::is_same_v<T, BFloat16> && !std::is_same_v<T, bool>) fn(tag);
  });
}

// One convolution seen group by group. `image` is the input or its gradient, `result` the output or its gradient.
class Im2Col {
 public:
  Im2Col(const Conv2d& conv, const View4& image, const View4& weight, const View4& result)
      : conv_(conv),
        image_(image),
        weight_(weight),
        result_(result),
        channels_(weight.size[1]),
        results_(weight.size[0] / conv.groups),
        taps_(weight.size[1] * weight.size[2] * weight.size[3]) {
    // Result positions of several rows form one run of columns when rows follow each other.
    const bool rows_join = result.size[2] == 1 || result.stride[2] == result.size[3] * result.stride[3];
    const int64_t row_bytes = std::max<int64_t>(1, taps_ * result.size[3] * size_of(conv.dtype));
    constexpr int64_t block_bytes = 256 * 1024;
    rows_per_block_ = rows_join ? std::clamp<int64_t>(block_bytes / row_bytes, 1, result.size[2]) : 1;
  }

  int64_t block_elements() const { return taps_ * rows_per_block_ * result_.size[3]; }

  // weight [results, taps] as a dense matrix, which it may be already.
  const void* dense_weight(const TemporaryMemory& copy) const {
    if (weight_.is_channels_first()) return weight_.data;
    kernels::visit_item_size(size_of(conv_.dtype), [&]<class T>(TypeTag<T>) {
      T* target = copy.as<T>();
      each_weight([&](int64_t place) { *target++ = static_cast<const T*>(weight_.data)[place]; });
    });
    return copy.as<void>();
  }
  void store_weight(const void* dense) const {
    kernels::visit_item_size(size_of(conv_.dtype), [&]<class T>(TypeTag<T>) {
      const T* source = static_cast<const T*>(dense);
      each_weight([&](int64_t place) { static_cast<T*>(weight_.data)[place] = *source++; });
    });
  }

  template <class F>
  void each_block(F&& fn) const {
    for (int64_t row = 0; row < result_.size[2]; row += rows_per_block_) {
      fn(row, std::min(rows_per_block_, result_.size[2] - row));
    }
  }

  // Columns [taps, rows * width] of the receptive fields of result rows [row, row + rows).
  void gather(int64_t n, int64_t group, int64_t row, int64_t rows, void* columns) const {
    kernels::visit_item_size(size_of(conv_.dtype), [&]<class T>(TypeTag<T>) {
      T* target = static_cast<T*>(columns);
      each_run(
          n, group, row, rows,
          [&](const T* line, int64_t step, int64_t begin, int64_t end, int64_t width) {
            std::fill_n(target, begin, T{});
            if (step == 1) std::copy(line + begin, line + end, target + begin);
            else
              for (int64_t x = begin; x < end; ++x) target[x] = line[x * step];
            std::fill_n(target + end, width - end, T{});
            target += width;
          },
          static_cast<const T*>(image_.data));
    });
  }
  // The reverse: adds columns to the image.
  void scatter(int64_t n, int64_t group, int64_t row, int64_t rows, const void* columns) const {
    visit_numbers(conv_.dtype, [&]<class T>(TypeTag<T>) {
      const T* source = static_cast<const T*>(columns);
      each_run(
          n, group, row, rows,
          [&](T* line, int64_t step, int64_t begin, int64_t end, int64_t width) {
            for (int64_t x = begin; x < end; ++x) line[x * step] = static_cast<T>(line[x * step] + source[x]);
            source += width;
          },
          static_cast<T*>(image_.data));
    });
  }

  // The product of two of: weight [results, taps], columns [taps, positions], result rows [results, positions].
  Gemm product(int64_t rows) const {
    Gemm out;
    out.dtype = conv_.dtype;
    out.n = rows * result_.size[3];
    out.m = results_;
    out.k = taps_;
    return out;
  }
  void* result_at(int64_t n, int64_t group, int64_t row) const {
    const int64_t place = n * result_.stride[0] + group * results_ * result_.stride[1] + row * result_.stride[2];
    return static_cast<char*>(result_.data) + place * size_of(conv_.dtype);
  }
  const void* weight_at(const void* dense, int64_t group) const {
    return static_cast<const char*>(dense) + group * results_ * taps_ * size_of(conv_.dtype);
  }

  void clear_image(int64_t n, int64_t group) const {
    kernels::visit_item_size(size_of(conv_.dtype), [&]<class T>(TypeTag<T>) {
      T* base = static_cast<T*>(image_.data) + n * image_.stride[0] + group * channels_ * image_.stride[1];
      for (int64_t c = 0; c < channels_; ++c) {
        for (int64_t y = 0; y < image_.size[2]; ++y) {
          T* line = base + c * image_.stride[1] + y * image_.stride[2];
          for (int64_t x = 0; x < image_.size[3]; ++x) line[x * image_.stride[3]] = T{};
        }
      }
    });
  }
  void fill_bias(int64_t n, int64_t group, const void* bias) const {
    kernels::visit_item_size(size_of(conv_.dtype), [&]<class T>(TypeTag<T>) {
      for (int64_t c = 0; c < results_; ++c) {
        const T value = static_cast<const T*>(bias)[group * results_ + c];
        for (int64_t y = 0; y < result_.size[2]; ++y) {
          T* line = static_cast<T*>(result_at(n, group, y)) + c * result_.stride[1];
          for (int64_t x = 0; x < result_.size[3]; ++x) line[x * result_.stride[3]] = value;
        }
      }
    });
  }

  int64_t taps() const { return taps_; }
  int64_t results() const { return results_; }
  int64_t result_row() const { return result_.stride[1]; }
  int64_t result_column() const { return result_.stride[3]; }

 private:
  template <class F>
  void each_weight(F&& fn) const {
    for (int64_t o = 0; o < weight_.size[0]; ++o) {
      for (int64_t c = 0; c < weight_.size[1]; ++c) {
        for (int64_t y = 0; y < weight_.size[2]; ++y) {
          for (int64_t x = 0; x < weight_.size[3]; ++x) {
            fn(o * weight_.stride[0] + c * weight_.stride[1] + y * weight_.stride[2] + x * weight_.stride[3]);
          }
        }
      }
    }
  }

  // For each tap and result row: the image line that it reads, with the positions [begin, end) of the row that fall
  // inside.
  template <class T, class F>
  void each_run(int64_t n, int64_t group, int64_t row, int64_t rows, F&& fn, T* image) const {
    const int64_t width = result_.size[3], step = conv_.stride[1] * image_.stride[3];
    for (int64_t c = 0; c < channels_; ++c) {
      T* plane = image + n * image_.stride[0] + (group * channels_ + c) * image_.stride[1];
      for (int64_t ky = 0; ky < weight_.size[2]; ++ky) {
        for (int64_t kx = 0; kx < weight_.size[3]; ++kx) {
          const int64_t first = kx * conv_.dilation[1] - conv_.padding[2];
          const int64_t begin = std::clamp<int64_t>((-first + conv_.stride[1] - 1) / conv_.stride[1], 0, width);
          const int64_t last = image_.size[3] - 1 - first;
          const int64_t end = last < 0 ? begin : std::clamp<int64_t>(last / conv_.stride[1] + 1, begin, width);
          for (int64_t y = row; y < row + rows; ++y) {
            const int64_t line = y * conv_.stride[0] - conv_.padding[0] + ky * conv_.dilation[0];
            const bool inside = line >= 0 && line < image_.size[2];
            fn(inside ? plane + line * image_.stride[2] + first * image_.stride[3] : plane, step,
               inside ? begin : width, inside ? end : width, width);
          }
        }
      }
    }
  }

  const Conv2d& conv_;
  const View4 &image_, &weight_, &result_;
  int64_t channels_, results_, taps_;
  int64_t rows_per_block_;
};

int64_t weight_bytes(const Conv2d& conv, const View4& weight) { return weight.count() * size_of(conv.dtype); }

}  // namespace

void im2col_forward(const Conv2d& conv, const View4& input, const View4& weight, const void* bias,
                    const View4& output) {
  const Im2Col plan(conv, input, weight, output);
  const TemporaryMemory weight_copy(weight.is_channels_first() ? 0 : weight_bytes(conv, weight));
  const void* dense = plan.dense_weight(weight_copy);
  parallel_tasks(input.size[0] * conv.groups, [&](int64_t task) {
    const int64_t n = task / conv.groups, group = task % conv.groups;
    const TemporaryMemory columns(plan.block_elements() * size_of(conv.dtype));
    if (bias) plan.fill_bias(n, group, bias);
    plan.each_block([&](int64_t row, int64_t rows) {
      plan.gather(n, group, row, rows, columns.as<void>());
      Gemm product = plan.product(rows);
      product.a = plan.weight_at(dense, group);
      product.a_row = plan.taps();
      product.b = columns.as<void>();
      product.b_row = product.n;
      product.c = plan.result_at(n, group, row);
      product.c_row = plan.result_row();
      product.c_col = plan.result_column();
      product.beta = bias ? 1 : 0;
      gemm(product);
    });
  });
}

void im2col_backward_data(const Conv2d& conv, const View4& output_grad, const View4& weight, const View4& input_grad) {
  const Im2Col plan(conv, input_grad, weight, output_grad);
  const TemporaryMemory weight_copy(weight.is_channels_first() ? 0 : weight_bytes(conv, weight));
  const void* dense = plan.dense_weight(weight_copy);
  parallel_tasks(input_grad.size[0] * conv.groups, [&](int64_t task) {
    const int64_t n = task / conv.groups, group = task % conv.groups;
    const TemporaryMemory columns(plan.block_elements() * size_of(conv.dtype));
    plan.clear_image(n, group);
    plan.each_block([&](int64_t row, int64_t rows) {
      Gemm product = plan.product(rows);
      product.m = plan.taps();
      product.k = plan.results();
      product.a = plan.weight_at(dense, group);
      product.a_row = 1;
      product.a_col = plan.taps();
      product.b = plan.result_at(n, group, row);
      product.b_row = plan.result_row();
      product.b_col = plan.result_column();
      product.c = columns.as<void>();
      product.c_row = product.n;
      gemm(product);
      plan.scatter(n, group, row, rows, columns.as<void>());
    });
  });
}

void im2col_backward_weight(const Conv2d& conv, const View4& input, const View4& output_grad, const View4& weight_grad,
                            void* bias_grad) {
  const Im2Col plan(conv, input, weight_grad, output_grad);
  const int64_t chunks = std::min<int64_t>(input.size[0], 4), bytes = weight_bytes(conv, weight_grad);
  const TemporaryMemory partial(chunks * bytes);
  const auto part = [&](int64_t chunk) { return partial.as<char>() + chunk * bytes; };
  parallel_tasks(chunks * conv.groups, [&](int64_t task) {
    const int64_t chunk = task / conv.groups, group = task % conv.groups;
    const TemporaryMemory columns(plan.block_elements() * size_of(conv.dtype));
    bool first = true;
    for (int64_t n = input.size[0] * chunk / chunks; n < input.size[0] * (chunk + 1) / chunks; ++n) {
      plan.each_block([&](int64_t row, int64_t rows) {
        plan.gather(n, group, row, rows, columns.as<void>());
        Gemm product = plan.product(rows);
        std::swap(product.n, product.k);
        product.a = plan.result_at(n, group, row);
        product.a_row = plan.result_row();
        product.a_col = plan.result_column();
        product.b = columns.as<void>();
        product.b_row = 1;
        product.b_col = product.k;
        product.c = const_cast<void*>(plan.weight_at(part(chunk), group));
        product.c_row = plan.taps();
        product.beta = first ? 0 : 1;
        gemm(product);
        first = false;
      });
    }
  });
  visit_numbers(conv.dtype, [&]<class T>(TypeTag<T>) {
    T* sum = reinterpret_cast<T*>(part(0));
    for (int64_t chunk = 1; chunk < chunks; ++chunk) {
      const T* other = reinterpret_cast<const T*>(part(chunk));
      for (int64_t idx = 0; idx < weight_grad.count(); ++idx) sum[idx] = static_cast<T>(sum[idx] + other[idx]);
    }
    if (!bias_grad) return;
    parallel_tasks(output_grad.size[1], [&](int64_t channel) {
      T total{};
      for (int64_t n = 0; n < output_grad.size[0]; ++n) {
        for (int64_t y = 0; y < output_grad.size[2]; ++y) {
          const T* line = static_cast<const T*>(output_grad.data) + n * output_grad.stride[0] +
                          channel * output_grad.stride[1] + y * output_grad.stride[2];
          for (int64_t x = 0; x < output_grad.size[3]; ++x)
            total = static_cast<T>(total + line[x * output_grad.stride[3]]);
        }
      }
      static_cast<T*>(bias_grad)[channel] = total;
    });
  });
  plan.store_weight(part(0));
}

}  // namespace morel
