// Trains a small MLP on Fashion-MNIST from C++, without Python.
//   mlp [folder of the IDX files] [epochs] [training images]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "morel/morel.h"

using morel::DType;
using morel::ops;
using morel::Tensor;
using morel::var;
using morel::Var;

namespace {

struct Data {
  Tensor images;  // float32 [n, 784] in [0, 1]
  Tensor labels;  // int32 [n]
};

Data load(const std::string& folder, const std::string& part) {
  const Tensor images = morel::read_idx(folder + "/" + part + "-images-idx3-ubyte.gz");
  const Tensor labels = morel::read_idx(folder + "/" + part + "-labels-idx1-ubyte.gz");
  const Var pixels = ops("cast", ops("reshape", images, morel::Ints{images.dim(0), 784}), DType::Float32) / 255.0;
  return {pixels.value().tensor(), ops("cast", labels, DType::Int32).value().tensor()};
}

// A weight matrix as nn.Dense initialises it: uniform in +-1 / sqrt(inputs).
Tensor weight(int64_t outputs, int64_t inputs) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(inputs));
  return ops("random_uniform", morel::Ints{outputs, inputs}, -bound, bound).value().tensor();
}

class Mlp {
 public:
  Mlp() {
    const int64_t sizes[] = {784, 128, 64, 10};
    for (int layer = 0; layer < 3; ++layer) {
      parameters_.push_back(weight(sizes[layer + 1], sizes[layer]));
      parameters_.push_back(Tensor::full({sizes[layer + 1]}, DType::Float32, 0));
    }
    for (const Tensor& parameter : parameters_)
      for (auto* moments : {&first_, &second_}) moments->push_back(Tensor::full(parameter.shape(), DType::Float32, 0));
  }

  Var operator()(Var x) const {
    for (size_t i = 0; i < parameters_.size(); i += 2) {
      if (i) x = ops("relu", x);
      x = ops("dense", x, parameters_[i], parameters_[i + 1]);
    }
    return x;
  }

  // One step of Adam; returns the loss.
  float step(const Var& x, const Var& labels) {
    const auto [loss, gradients] =
        morel::value_and_grad([&] { return ops("cross_entropy", (*this)(x), labels); }, parameters_);
    ++steps_;
    const double beta1 = 0.9, beta2 = 0.999, rate = 1e-3;
    const double size = rate * std::sqrt(1 - std::pow(beta2, steps_)) / (1 - std::pow(beta1, steps_));
    const auto list = [](const std::vector<Tensor>& tensors) {
      return morel::Value(morel::Value::List(tensors.begin(), tensors.end()));
    };
    morel::call("adam_", {list(parameters_), list(gradients), list(first_), list(second_), list({}), beta1, beta2, 1e-8,
                          0.0, 1.0, size, 1.0});
    return *loss.as<float>();
  }

 private:
  std::vector<Tensor> parameters_, first_, second_;
  int steps_ = 0;
};

double accuracy(const Mlp& network, const Data& data) {
  const Var guesses = ops("argmax", network(var(data.images)), 1);
  const Var right = ops("mean", ops("cast", ops("equal", guesses, data.labels), DType::Float32));
  return *right.value().tensor().as<float>();
}

void run(const std::string& folder, int epochs, int64_t images) {
  constexpr int64_t batch = 64;
  morel::default_generator().set_seed(1);
  const Data train = load(folder, "train"), test = load(folder, "t10k");
  Mlp network;
  const int64_t count = std::min(images, train.images.dim(0));
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const auto begin = std::chrono::steady_clock::now();
    const Var order = ops("random_permutation", count);
    double sum = 0;
    for (int64_t at = 0; at + batch <= count; at += batch) {
      const Var chosen = ops("narrow", order, 0, at, batch);
      sum += network.step(ops("gather", train.images, chosen, 0), ops("gather", train.labels, chosen, 0));
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("epoch %d: loss %.4f, test accuracy %.4f, %.0f images/s\n", epoch + 1,
                sum / static_cast<double>(count / batch), accuracy(network, test),
                static_cast<double>(count) / seconds.count());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist", argc > 2 ? std::stoi(argv[2]) : 3,
        argc > 3 ? std::stoll(argv[3]) : 60000);
    return 0;
  } catch (const morel::Error& error) {
    std::fprintf(stderr, "mlp: %s\n", error.what());
    return 1;
  }
}
