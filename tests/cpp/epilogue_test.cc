// Kernels call their epilogue once for every element of the result, when it is there and no later writes follow.
#include "morel/kernels/epilogue.h"

#include <atomic>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "morel/kernels/conv.h"
#include "morel/kernels/gemm.h"

namespace morel {
namespace {

// Notes what each element was when the kernel gave it, and how often it did.
class Recorder final : public Epilogue {
 public:
  Recorder(const float* result, int64_t count)
      : result_(result), calls_(static_cast<size_t>(count)), seen_(static_cast<size_t>(count)) {}
  void run(const Part& part) const override {
    for (int64_t row = 0; row < part.rows; ++row) {
      for (int64_t i = 0; i < part.n; ++i) {
        const size_t at = static_cast<size_t>(part.begin + row * part.step + i);
        calls_.at(at).fetch_add(1);
        seen_[at] = result_[at];
      }
    }
  }
  void check(const std::string& what) const {
    for (size_t i = 0; i < calls_.size(); ++i) {
      ASSERT_EQ(calls_[i].load(), 1) << what << ", element " << i;
      ASSERT_EQ(seen_[i], result_[i]) << what << ", element " << i;
    }
  }

 private:
  const float* result_;
  mutable std::vector<std::atomic<int>> calls_;
  mutable std::vector<float> seen_;
};

std::vector<float> numbers(int64_t count) {
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::sin(static_cast<float>(i));
  return out;
}

TEST(EpilogueTest, ProductsGiveEveryElementOnce) {
  const int64_t cases[][4] = {{1, 1, 1, 1},  // items of a batch, m, n, k
                              {1, 1, 5000, 300}, {1, 700, 1, 9}, {1, 5, 700, 900}, {1, 513, 777, 200}, {1, 900, 900, 2},
                              {7, 3, 5, 4},      {300, 6, 7, 5}, {24, 65, 70, 64}, {2, 300, 300, 300}};
  for (const auto& [items, m, n, k] : cases) {
    const std::vector<float> a = numbers(items * m * k), b = numbers(items * k * n);
    std::vector<float> c(static_cast<size_t>(items * m * n), NAN);
    Gemm problem = Gemm::contiguous(DType::Float32, m, n, k, a.data(), false, b.data(), false, c.data());
    if (items > 1) problem.batch.push_back({items, m * k, k * n, m * n});
    const Recorder recorder(c.data(), items * m * n);
    problem.epilogue = &recorder;
    gemm(problem);
    recorder.check(std::to_string(items) + " x " + std::to_string(m) + " x " + std::to_string(n));
  }
}

TEST(EpilogueTest, ConvolutionsGiveEveryElementOnce) {
  const int64_t cases[][5] = {
      {1, 3, 8, 40, 3}, {8, 16, 32, 12, 3}, {9, 64, 512, 7, 3}, {1, 2, 4, 3, 1}, {5, 8, 3, 9, 1}};
  for (const bool last : {false, true}) {
    for (const auto& [images, in, out, size, kernel] : cases) {
      const int64_t result = size - kernel + 1;
      std::vector<float> x = numbers(images * in * size * size), w = numbers(out * in * kernel * kernel);
      std::vector<float> y(static_cast<size_t>(images * out * result * result), NAN), dx(x.size(), NAN);
      const auto image = last ? View4::channels_last : View4::channels_first;
      const View4 input = image(x.data(), {images, in, size, size});
      const View4 output = image(y.data(), {images, out, result, result});
      const View4 weight = View4::channels_first(w.data(), {out, in, kernel, kernel});
      const std::string what = std::to_string(images) + " images, " + std::to_string(out) + " channels";
      const Recorder forward(y.data(), output.count()), backward(dx.data(), input.count());
      conv2d_forward({}, input, weight, nullptr, output, &forward);
      forward.check(what);
      conv2d_backward_data({}, output, weight, image(dx.data(), input.size), &backward);
      backward.check(what + ", backward");
    }
  }
}

}  // namespace
}  // namespace morel
