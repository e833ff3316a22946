// The ways in which conv.cc has a convolution computed. Arguments are those of conv.h, checked and not empty.
#pragma once

#include "morel/kernels/conv.h"

namespace morel {

// float32 only; false when oneDNN is absent or refuses, and then nothing was written.
bool onednn_forward(const Conv2d& conv, const View4& input, const View4& weight, const float* bias, const View4& output,
                    const Epilogue* epilogue);
bool onednn_backward_data(const Conv2d& conv, const View4& output_grad, const View4& weight, const View4& input_grad,
                          const Epilogue* epilogue);
bool onednn_backward_weight(const Conv2d& conv, const View4& input, const View4& output_grad, const View4& weight_grad,
                            float* bias_grad);

// Any dtype but Bool and the halves.
void im2col_forward(const Conv2d& conv, const View4& input, const View4& weight, const void* bias, const View4& output);
void im2col_backward_data(const Conv2d& conv, const View4& output_grad, const View4& weight, const View4& input_grad);
void im2col_backward_weight(const Conv2d& conv, const View4& input, const View4& output_grad, const View4& weight_grad,
                            void* bias_grad);

// Memory of the tensor allocator for the time of a call.
class TemporaryMemory {
 public:
  explicit TemporaryMemory(int64_t bytes);
  ~TemporaryMemory();
  TemporaryMemory(const TemporaryMemory&) = delete;
  TemporaryMemory& operator=(const TemporaryMemory&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_;
  int64_t bytes_;
};

}  // namespace morel
