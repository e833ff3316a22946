// Model: what an application embeds. It reads a .ms file (or a buffer), runs it, and links neither the compiler nor the
// operators' rules: -lmorel_lite.
//
//     auto model = morel::lite::Model::build("lenet.ms", {.threads = 2});
//     std::copy_n(pixels, 28 * 28, model.inputs()[0].data<float>());
//     model.predict();
//     const float* scores = model.outputs()[0].data<float>();
//
// What goes wrong is a morel::Error (base/error.h) whose kind says whether the file, the call or this library is to
// blame. A model belongs to one thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "morel/base/file.h"
#include "morel/lite/plan.h"
#include "morel/tensor/tensor.h"

namespace morel::lite {

struct Context {
  int threads = 0;         // of the process; 0 leaves them as they are
  bool maps_file = false;  // weights stay in the file, which nobody may write to; else it is read and may change
};

// An input or output: memory of the model, contiguous. Inputs hold nothing of use until they are filled.
class TensorRef {
 public:
  TensorRef(std::string name, Tensor tensor) : name_(std::move(name)), tensor_(std::move(tensor)) {}
  const std::string& name() const { return name_; }
  DType dtype() const { return tensor_.dtype(); }
  std::span<const int64_t> shape() const { return numbers_of(tensor_.shape()); }
  int64_t size() const { return tensor_.size(); }  // number of elements
  size_t bytes() const { return static_cast<size_t>(size() * size_of(dtype())); }
  void* data() const { return tensor_.data(); }
  const Tensor& tensor() const { return tensor_; }
  template <class T>
  T* data() const {
    MOREL_CHECK(dtype_of<T> == dtype(), Type, "the elements of '", name_, "' are ", info(dtype()).name);
    return tensor_.as<T>();
  }

 private:
  std::string name_;
  Tensor tensor_;
};

class Model {
 public:
  // Reads the file, or maps it where the context says so.
  static Model build(const std::string& path, const Context& context = {});
  // The bytes stay with the caller and must outlive the model. Copied when they are not aligned to 64.
  static Model build(Bytes bytes, const Context& context = {});
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // Inputs keep what was written until the next resize; outputs hold the results of the last predict().
  std::span<const TensorRef> inputs() const;
  std::span<const TensorRef> outputs() const;
  const TensorRef& input(std::string_view name) const;
  const TensorRef& output(std::string_view name) const;
  // Other sizes of the inputs, where the model was converted for them: memory is planned again.
  void resize(std::span<const std::vector<int64_t>> shapes);
  void predict();

  const Plan& plan() const;
  size_t arena_bytes() const;   // activations
  size_t weight_bytes() const;  // in the file

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace morel::lite
