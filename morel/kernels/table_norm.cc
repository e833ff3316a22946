// Adapters of the kernels of normalisation and of the weights of classes.
#include "morel/base/error.h"
#include "morel/kernels/batch_norm.h"
#include "morel/kernels/table.h"
#include "morel/kernels/tensor_view.h"

namespace morel {
namespace {

// Parameters and statistics are of the compute type; keeps what it converted alive.
class Parameters {
 public:
  Parameters(const KernelCall& call, DType dtype) : call_(call), dtype_(compute_dtype(dtype)) {}
  const void* operator()(size_t idx) {
    if (!call_.has(idx)) return nullptr;
    kept_.push_back(call_.contiguous(idx, dtype_));
    return kept_.end()[-1].data();
  }

 private:
  const KernelCall& call_;
  DType dtype_;
  SmallVector<Tensor, 4> kept_;
};

kernels::NormShape norm_shape(const Tensor& input) {
  int64_t inner = 1;
  for (int64_t axis = 2; axis < input.rank(); ++axis) inner *= input.dim(axis);
  return {input.dtype(), input.dim(0), input.dim(1), inner};
}

// batch_norm takes channels-last images as they lie: results that the caller allocated so say that they do.
bool is_channels_last(const Tensor& tensor) { return tensor.rank() == 4 && !tensor.is_contiguous(); }

kernels::NormShape batch_shape(const Tensor& input, bool channels_last) {
  if (!channels_last) return norm_shape(input);
  return {input.dtype(), input.dim(0) * input.dim(2) * input.dim(3), input.dim(1), 1};
}

// Argument idx with the strides of `like`.
Tensor ordered_like(const KernelCall& call, size_t idx, const Tensor& like) {
  if (like.is_contiguous()) return call.contiguous(idx, like.dtype());
  const Tensor given = call.tensor(idx);
  if (given.strides() == like.strides() && given.dtype() == like.dtype()) return given;
  const Tensor out = Tensor::empty_strided(like.shape(), like.strides(), like.dtype());
  kernels::copy(kernels::view_of(out), kernels::view_of(given));
  return out;
}

void batch_norm_training(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor input = ordered_like(call, 0, out);
  Parameters parameter(call, input.dtype());
  kernels::batch_norm_training({batch_shape(input, is_channels_last(out)), input.data(), parameter(1), parameter(2),
                                call.number(3), false, out.data(), call.outs[1].data(), call.outs[2].data(),
                                call.outs[3].data()});
}

// The order of the sums follows how the images lie, as in batch_norm_training.
void batch_norm_statistics(const KernelCall& call) {
  const Tensor given = call.tensor(0);
  const Shape& shape = given.shape();
  const bool as_it_lies = is_channels_last(given) &&
                          given.strides() == Strides{shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1], shape[1]};
  const Tensor input = as_it_lies ? given : call.contiguous(0);
  Parameters parameter(call, input.dtype());
  kernels::batch_norm_training({batch_shape(input, as_it_lies), input.data(), parameter(1), nullptr, call.number(2),
                                false, nullptr, call.outs[0].data(), call.outs[1].data(), call.outs[2].data(),
                                call.outs[3].data()});
}

void batch_norm_grad(const KernelCall& call) {
  const Tensor& out = call.outs[0];
  const Tensor input = ordered_like(call, 1, out), dout = ordered_like(call, 0, out);
  Parameters parameter(call, input.dtype());
  const void* gamma = parameter(2);
  const void* mean = parameter(3);
  const void* inverse_std = parameter(4);
  kernels::batch_norm_backward({batch_shape(input, is_channels_last(out)), input.data(), dout.data(), gamma, nullptr,
                                mean, inverse_std, false, true, out.data(), call.outs[1].data(), call.outs[2].data()});
}

void group_norm_forward(const KernelCall& call) {
  const Tensor input = call.contiguous(0);
  Parameters parameter(call, input.dtype());
  kernels::group_norm({norm_shape(input), call.integer(3), input.data(), parameter(1), parameter(2), call.number(4),
                       call.outs[0].data(), call.outs[1].data(), call.outs[2].data()});
}

void group_norm_grad(const KernelCall& call) {
  const Tensor input = call.contiguous(1), dout = call.contiguous(0, input.dtype());
  Parameters parameter(call, input.dtype());
  const void* gamma = parameter(2);
  const void* mean = parameter(3);
  const void* inverse_std = parameter(4);
  kernels::group_norm_backward({norm_shape(input), call.integer(5), input.data(), dout.data(), gamma, mean, inverse_std,
                                call.outs[0].data(), call.outs[1].data(), call.outs[2].data()});
}

void running_update(const KernelCall& call) {
  const Tensor running = call.tensor(0);
  const double momentum = call.number(2), count = call.number(3);
  const double scale = count > 1 ? count / (count - 1) : 1.0;
  MOREL_CHECK(running.size() == call.tensor(1).size(), Value, "For 'BatchNorm', running statistics ",
              to_string(call.args[0]), " do not fit those of the batch, ", to_string(call.args[1]));
  const Tensor batch = call.contiguous(1, DType::Float64), old = kernels::converted(running, DType::Float64);
  double* values = old.as<double>();
  for (int64_t i = 0; i < old.size(); ++i)
    values[i] = (1 - momentum) * values[i] + momentum * scale * batch.as<double>()[i];
  kernels::copy(kernels::view_of(running), kernels::view_of(old));
}

// 0 for the ignored class, else the weight of the class (1 without weights).
void class_weights(const KernelCall& call) {
  const Tensor target = call.contiguous(0, DType::Int64);
  const int64_t classes = call.integer(2), ignored = call.integer(3);
  const Tensor& out = call.outs[0];
  const Tensor weight = call.has(1) ? call.contiguous(1, out.dtype()) : Tensor();
  visit_dtype(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T>) {
      for (int64_t i = 0; i < target.size(); ++i) {
        const int64_t label = target.as<int64_t>()[i];
        if (label == ignored) {
          out.as<T>()[i] = 0;
          continue;
        }
        MOREL_CHECK(label >= 0 && label < classes, Value, "For 'CrossEntropy', 'target' has class ", label,
                    " at position ", i, ", but there are ", classes, " classes and class ", ignored, " is ignored");
        out.as<T>()[i] = weight ? weight.as<T>()[label] : T(1);
      }
    }
  });
}

}  // namespace

std::span<const KernelEntry> norm_kernels() {
  static constexpr KernelEntry entries[] = {
      {"batch_norm_training", batch_norm_training},
      {"batch_norm_statistics", batch_norm_statistics},
      {"batch_norm_grad", batch_norm_grad},
      {"group_norm_forward", group_norm_forward},
      {"group_norm_grad", group_norm_grad},
      {"running_update_", running_update},
      {"class_weights", class_weights},
  };
  return selected<entries>;
}

}  // namespace morel
