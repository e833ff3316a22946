// A strided view of a batch of images [N, C, H, W]. Two dense orders of memory matter: channels first (NCHW,
// contiguous) and channels last (NHWC).
#pragma once

#include <array>
#include <cstdint>

namespace morel {

struct View4 {
  void* data = nullptr;
  std::array<int64_t, 4> size{};
  std::array<int64_t, 4> stride{};  // in elements

  static View4 channels_first(void* data, std::array<int64_t, 4> size) {
    return {data, size, {size[1] * size[2] * size[3], size[2] * size[3], size[3], 1}};
  }
  static View4 channels_last(void* data, std::array<int64_t, 4> size) {
    return {data, size, {size[1] * size[2] * size[3], 1, size[3] * size[1], size[1]}};
  }
  // Strides of axes with one element do not matter; an array may be both.
  bool is_channels_first() const { return same_order(channels_first(data, size)); }
  bool is_channels_last() const { return same_order(channels_last(data, size)); }
  bool is_dense() const { return is_channels_first() || is_channels_last(); }
  int64_t count() const { return size[0] * size[1] * size[2] * size[3]; }

 private:
  bool same_order(const View4& other) const {
    for (int axis = 0; axis < 4; ++axis) {
      if (size[axis] != 1 && stride[axis] != other.stride[axis]) return false;
    }
    return true;
  }
};

}  // namespace morel
