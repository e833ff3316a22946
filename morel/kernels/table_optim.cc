// Optimiser updates of the kernel table: lists of tensors in the order of the operators' schemas.
#include <vector>

#include "morel/kernels/optim.h"
#include "morel/kernels/table.h"

namespace morel {
namespace {

using kernels::OptimTensor;
using kernels::OptimTypes;

// The lists of a call as the kernels take them: tensors that are not contiguous are refused where they are written,
// copied where they are read.
class Group {
 public:
  // states: argument positions of the state lists; empty lists are left out.
  Group(const KernelCall& call, std::initializer_list<size_t> states) {
    const Value::List& params = call.args[0].list();
    const Value::List& grads = call.args[1].list();
    for (size_t i = 0; i < params.size(); ++i) {
      const Tensor param = params[i].tensor();
      OptimTensor entry{};
      entry.parameter = written(param);
      entry.grad = read(grads[i].tensor(), param.dtype());
      entry.size = param.size();
      size_t slot = 0;
      for (const size_t arg : states) {
        const Value::List& list = call.args[arg].list();
        if (!list.empty()) {
          types_.state_dtype = list[i].tensor().dtype();
          entry.states[slot] = written(list[i].tensor());
        }
        ++slot;
      }
      types_.dtype = param.dtype();
      dtypes_.push_back(types_);
      tensors_.push_back(entry);
    }
  }

  // Runs update(tensors, types) for each run of equal dtypes.
  template <class F>
  void run(F&& update) {
    for (size_t begin = 0; begin < tensors_.size();) {
      size_t end = begin + 1;
      while (end < tensors_.size() && dtypes_[end].dtype == dtypes_[begin].dtype &&
             dtypes_[end].state_dtype == dtypes_[begin].state_dtype)
        ++end;
      update(std::span<const OptimTensor>(tensors_.data() + begin, end - begin), dtypes_[begin]);
      begin = end;
    }
    for (const Tensor& tensor : changed_) tensor->storage->bump_version();
  }

 private:
  void* written(const Tensor& tensor) {
    MOREL_CHECK(tensor.is_contiguous(), NotImplemented,
                "optimisers need contiguous parameters and states, but got a strided ",
                describe(tensor.dtype(), tensor.shape()));
    changed_.push_back(tensor);
    return tensor.data();
  }
  const void* read(const Tensor& tensor, DType dtype) {
    const Value value = tensor;
    kept_.push_back(KernelCall{{&value, 1}, {}}.contiguous(0, dtype));
    return kept_.back().data();
  }

  std::vector<OptimTensor> tensors_;
  std::vector<OptimTypes> dtypes_;
  std::vector<Tensor> kept_, changed_;
  OptimTypes types_;
};

std::vector<kernels::DenseArray> dense_arrays(const Value& list, std::vector<Tensor>& kept) {
  std::vector<kernels::DenseArray> out;
  for (const Value& item : list.list()) {
    kept.push_back(KernelCall{{&item, 1}, {}}.contiguous(0));
    out.push_back({kept.back().data(), kept.back().dtype(), kept.back().size()});
  }
  return out;
}

void sgd_(const KernelCall& call) {
  kernels::Sgd options{call.number(3)};
  options.momentum = call.number(4);
  options.dampening = call.number(5);
  options.weight_decay = call.number(6);
  options.nesterov = call.flag(7);
  options.is_first_step = call.flag(8);
  options.maximize = call.flag(9);
  Group(call, {2}).run([&](auto tensors, OptimTypes types) { kernels::sgd(tensors, types, options); });
}

void adam_(const KernelCall& call) {
  kernels::Adam options;
  options.beta1 = call.number(5);
  options.beta2 = call.number(6);
  options.epsilon = call.number(7);
  options.l2 = call.number(8);
  options.keep = call.number(9);
  options.step_size = call.number(10);
  options.v_scale = call.number(11);
  options.amsgrad = !call.args[4].list().empty();
  options.nesterov = call.flag(12);
  options.maximize = call.flag(13);
  Group(call, {2, 3, 4}).run([&](auto tensors, OptimTypes types) { kernels::adam(tensors, types, options); });
}

void rmsprop_(const KernelCall& call) {
  kernels::RmsProp options{call.number(5)};
  options.decay = call.number(6);
  options.momentum = call.number(7);
  options.epsilon = call.number(8);
  options.weight_decay = call.number(9);
  options.centered = call.flag(10);
  options.epsilon_in_root = call.flag(11);
  options.rate_in_momentum = call.flag(12);
  Group(call, {2, 3, 4}).run([&](auto tensors, OptimTypes types) { kernels::rmsprop(tensors, types, options); });
}

void adagrad_(const KernelCall& call) {
  kernels::Adagrad options{call.number(3)};
  options.epsilon = call.number(4);
  options.weight_decay = call.number(5);
  options.update_sum = call.flag(6);
  Group(call, {2}).run([&](auto tensors, OptimTypes types) { kernels::adagrad(tensors, types, options); });
}

void lamb_(const KernelCall& call) {
  kernels::Lamb options{call.number(4)};
  options.beta1 = call.number(5);
  options.beta2 = call.number(6);
  options.epsilon = call.number(7);
  options.weight_decay = call.number(8);
  options.step = call.integer(9);
  // Room for the update of each tensor.
  Value::List room;
  for (const Value& param : call.args[0].list())
    room.push_back(Tensor::empty(param.tensor().shape(), call.args[2].list()[0].tensor().dtype()));
  Args args(call.args.begin(), call.args.end());
  args.push_back(Value(std::move(room)));
  Group({{args.data(), args.size()}, {}}, {2, 3, 10}).run([&](auto tensors, OptimTypes types) {
    kernels::lamb(tensors, types, options);
  });
}

void sum_of_squares(const KernelCall& call) {
  std::vector<Tensor> kept;
  *call.outs[0].as<float>() = static_cast<float>(kernels::sum_of_squares(dense_arrays(call.args[0], kept)));
}

void scale_(const KernelCall& call) {
  std::vector<kernels::DenseArray> arrays;
  for (const Value& item : call.args[0].list()) {
    const Tensor tensor = item.tensor();
    MOREL_CHECK(tensor.is_contiguous(), NotImplemented, "scaling in place needs contiguous tensors");
    arrays.push_back({tensor.data(), tensor.dtype(), tensor.size()});
    tensor->storage->bump_version();
  }
  kernels::scale_in_place(arrays, call.number(1));
}

void all_finite(const KernelCall& call) {
  std::vector<Tensor> kept;
  *call.outs[0].as<bool>() = kernels::all_finite(dense_arrays(call.args[0], kept));
}

}  // namespace

std::span<const KernelEntry> optim_kernels() {
  static constexpr KernelEntry entries[] = {
      {"sgd_", sgd_},         {"adam_", adam_},           {"rmsprop_", rmsprop_},
      {"adagrad_", adagrad_}, {"lamb_", lamb_},           {"sum_of_squares", sum_of_squares},
      {"scale_", scale_},     {"all_finite", all_finite},
  };
  return selected<entries>;
}

}  // namespace morel
