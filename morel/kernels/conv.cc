#include "morel/kernels/conv.h"

#include <cstring>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/conv_paths.h"
#include "morel/kernels/gemm_block.h"
#include "morel/tensor/allocator.h"

namespace morel {

TemporaryMemory::TemporaryMemory(int64_t bytes) : data_(allocate(static_cast<size_t>(bytes))), bytes_(bytes) {}
TemporaryMemory::~TemporaryMemory() { deallocate(data_, static_cast<size_t>(bytes_)); }

namespace {

void check(const Conv2d& conv, const View4& input, const View4& weight, const View4& output) {
  MOREL_CHECK(conv.dtype != DType::Bool, NotImplemented,
              "a convolution takes integer, floating or complex images, not Bool.");
  MOREL_ASSERT(conv.groups > 0 && conv.stride[0] > 0 && conv.stride[1] > 0);
  MOREL_ASSERT(conv.dilation[0] > 0 && conv.dilation[1] > 0);
  for (const int64_t pad : conv.padding) MOREL_ASSERT(pad >= 0);
  MOREL_ASSERT(weight.size[1] * conv.groups == input.size[1] && weight.size[0] % conv.groups == 0);
  MOREL_ASSERT(output.size[0] == input.size[0] && output.size[1] == weight.size[0]);
  for (int axis : {0, 1}) {
    MOREL_ASSERT(output.size[2 + axis] == conv.output_size(axis, input.size[2 + axis], weight.size[2 + axis]));
  }
}

// A half image (or weight) as float32, in the same order of memory when it is dense.
class Widened {
 public:
  Widened(DType dtype, const View4& source, bool read)
      : dtype_(dtype), source_(source), memory_(source.count() * int64_t{sizeof(float)}) {
    float* data = memory_.as<float>();
    view_ =
        source.is_channels_last() ? View4::channels_last(data, source.size) : View4::channels_first(data, source.size);
    if (!read) return;
    if (source.is_dense()) {
      parallel_for(source.count(), run, [&](int64_t begin, int64_t end) {
        widen_halves(dtype, static_cast<const char*>(source.data) + 2 * begin, data + begin, end - begin);
      });
    } else {
      each([&](char* half, float* value) { widen_halves(dtype_, half, value, 1); });
    }
  }
  const View4& view() const { return view_; }
  // Rounds the float32 values into the half array.
  void write_back() {
    const float* data = memory_.as<float>();
    if (source_.is_dense()) {
      parallel_for(source_.count(), run, [&](int64_t begin, int64_t end) {
        narrow_halves(dtype_, data + begin, static_cast<char*>(source_.data) + 2 * begin, end - begin);
      });
    } else {
      each([&](char* half, float* value) { narrow_halves(dtype_, value, half, 1); });
    }
  }

 private:
  static constexpr int64_t run = 1 << 16;

  template <class F>
  void each(F&& fn) {
    float* value = memory_.as<float>();
    for (int64_t n = 0; n < source_.size[0]; ++n) {
      for (int64_t c = 0; c < source_.size[1]; ++c) {
        for (int64_t h = 0; h < source_.size[2]; ++h) {
          for (int64_t w = 0; w < source_.size[3]; ++w) {
            const auto& stride = source_.stride;
            fn(static_cast<char*>(source_.data) + 2 * (n * stride[0] + c * stride[1] + h * stride[2] + w * stride[3]),
               value++);
          }
        }
      }
    }
  }

  DType dtype_;
  View4 source_;
  TemporaryMemory memory_;
  View4 view_;
};

View4 vector_view(const void* data, int64_t count) {
  return View4::channels_first(const_cast<void*>(data), {1, 1, 1, count});
}

void fill_zero(DType dtype, const View4& view) {
  const int64_t size = size_of(dtype);
  for (int64_t n = 0; n < view.size[0]; ++n) {
    for (int64_t c = 0; c < view.size[1]; ++c) {
      for (int64_t h = 0; h < view.size[2]; ++h) {
        for (int64_t w = 0; w < view.size[3]; ++w) {
          const int64_t place = n * view.stride[0] + c * view.stride[1] + h * view.stride[2] + w * view.stride[3];
          std::memset(static_cast<char*>(view.data) + size * place, 0, static_cast<size_t>(size));
        }
      }
    }
  }
}

Conv2d in_float32(Conv2d conv) {
  conv.dtype = DType::Float32;
  return conv;
}

}  // namespace

void conv2d_forward(const Conv2d& conv, const View4& input, const View4& weight, const void* bias, const View4& output,
                    const Epilogue* epilogue) {
  check(conv, input, weight, output);
  if (output.count() == 0) return;
  if (is_half(conv.dtype)) {
    const Widened x(conv.dtype, input, true), w(conv.dtype, weight, true);
    const Widened b(conv.dtype, vector_view(bias, bias ? output.size[1] : 0), bias != nullptr);
    Widened y(conv.dtype, output, false);
    conv2d_forward(in_float32(conv), x.view(), w.view(), bias ? b.view().data : nullptr, y.view());
    y.write_back();
  } else if (conv.dtype == DType::Float32 && weight.count() > 0 &&
             onednn_forward(conv, input, weight, static_cast<const float*>(bias), output, epilogue)) {
    return;
  } else {
    im2col_forward(conv, input, weight, bias, output);
  }
  run_epilogue(epilogue, output.count());
}

void conv2d_backward_data(const Conv2d& conv, const View4& output_grad, const View4& weight, const View4& input_grad,
                          const Epilogue* epilogue) {
  check(conv, input_grad, weight, output_grad);
  if (input_grad.count() == 0) return;
  if (output_grad.count() == 0) {
    fill_zero(conv.dtype, input_grad);
  } else if (is_half(conv.dtype)) {
    const Widened dy(conv.dtype, output_grad, true), w(conv.dtype, weight, true);
    Widened dx(conv.dtype, input_grad, false);
    conv2d_backward_data(in_float32(conv), dy.view(), w.view(), dx.view());
    dx.write_back();
  } else if (conv.dtype == DType::Float32 && onednn_backward_data(conv, output_grad, weight, input_grad, epilogue)) {
    return;
  } else {
    im2col_backward_data(conv, output_grad, weight, input_grad);
  }
  run_epilogue(epilogue, input_grad.count());
}

void conv2d_backward_weight(const Conv2d& conv, const View4& input, const View4& output_grad, const View4& weight_grad,
                            void* bias_grad) {
  check(conv, input, weight_grad, output_grad);
  if (weight_grad.size[0] == 0) return;
  if (output_grad.count() == 0 || weight_grad.count() == 0) {
    fill_zero(conv.dtype, weight_grad);
    if (bias_grad && output_grad.count() == 0) std::memset(bias_grad, 0, weight_grad.size[0] * size_of(conv.dtype));
    if (output_grad.count() == 0 || !bias_grad) return;
  }
  if (is_half(conv.dtype)) {
    const Widened x(conv.dtype, input, true), dy(conv.dtype, output_grad, true);
    Widened dw(conv.dtype, weight_grad, false);
    Widened db(conv.dtype, vector_view(bias_grad, bias_grad ? weight_grad.size[0] : 0), false);
    conv2d_backward_weight(in_float32(conv), x.view(), dy.view(), dw.view(), bias_grad ? db.view().data : nullptr);
    dw.write_back();
    return db.write_back();
  }
  if (conv.dtype == DType::Float32 && weight_grad.count() > 0 &&
      onednn_backward_weight(conv, input, output_grad, weight_grad, static_cast<float*>(bias_grad))) {
    return;
  }
  im2col_backward_weight(conv, input, output_grad, weight_grad, bias_grad);
}

}  // namespace morel
