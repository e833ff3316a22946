// Runs a model file on a device: lite_predict MODEL.ms [INPUT.bin ...] [--threads N] [--loops N] [--shape 8,1,28,28
// ...] Inputs are raw elements (zeros where a file is missing). Writes each output to standard output, a line of
// numbers each, and how long a run takes and what memory it needs to standard error. Links libmorel_lite alone.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "morel/lite/model.h"

namespace {

struct Options {
  std::string model;
  std::vector<std::string> inputs;
  std::vector<std::vector<int64_t>> shapes;
  int threads = 0, loops = 1;
};

std::vector<int64_t> parse_shape(const char* text) {
  std::vector<int64_t> out;
  for (char* end; *text; text = *end ? end + 1 : end) out.push_back(std::strtoll(text, &end, 10));
  return out;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--threads" && i + 1 < argc) options.threads = std::atoi(argv[++i]);
    else if (arg == "--loops" && i + 1 < argc) options.loops = std::max(1, std::atoi(argv[++i]));
    else if (arg == "--shape" && i + 1 < argc) options.shapes.push_back(parse_shape(argv[++i]));
    else if (options.model.empty()) options.model = arg;
    else options.inputs.push_back(arg);
  }
  return options;
}

void fill(const morel::lite::TensorRef& tensor, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file.read(static_cast<char*>(tensor.data()), static_cast<std::streamsize>(tensor.bytes()));
  if (static_cast<size_t>(file.gcount()) != tensor.bytes())
    throw morel::Error(morel::ErrorKind::Os, path + " has less than the elements of " + tensor.name());
}

void print(const morel::lite::TensorRef& tensor) {
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.dtype() == morel::DType::Float32) std::printf("%.9g ", static_cast<double>(tensor.data<float>()[i]));
    else if (tensor.dtype() == morel::DType::Int64)
      std::printf("%lld ", static_cast<long long>(tensor.data<int64_t>()[i]));
  }
  std::printf("\n");
}

void run(const Options& options) {
  auto model = morel::lite::Model::build(options.model, {.threads = options.threads});
  if (!options.shapes.empty()) model.resize(options.shapes);
  for (size_t i = 0; i < std::min(options.inputs.size(), model.inputs().size()); ++i)
    fill(model.inputs()[i], options.inputs[i]);
  double best = 1e9;
  for (int i = 0; i < options.loops; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    model.predict();
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  for (const auto& output : model.outputs()) print(output);
  std::fprintf(stderr, "run %.4f ms, arena %zu bytes, weights %zu bytes\n", best, model.arena_bytes(),
               model.weight_bytes());
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.model.empty()) {
    std::fprintf(stderr,
                 "usage: lite_predict MODEL.ms [INPUT.bin ...] [--threads N] [--loops N] [--shape 8,1,28,28 ...]\n");
    return 2;
  }
  try {
    run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lite_predict: %s\n", error.what());
    return 1;
  }
  return 0;
}
