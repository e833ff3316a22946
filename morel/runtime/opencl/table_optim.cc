// Optimiser updates: one launch for each tensor, in the arithmetic of kernels/optim.h.
#include "morel/runtime/opencl/support.h"

namespace morel::opencl {
namespace {

constexpr const char* source = R"C(
typedef struct { double rate, momentum, fresh, decay; int64_t has_momentum, nesterov, first, maximize; } sgd_args;
KERNEL sgd(TENSOR(T, p), TENSOR(const T, g), TENSOR(T, v), const int64_t count, const sgd_args o) {
  const int64_t i = get_global_id(0);
  if (i >= count) return;
  const A p0 = LOAD(p + p_at + i), momentum = (A)o.momentum;
  const A g0 = fma((A)o.decay, p0, o.maximize ? -LOAD(g + g_at + i) : LOAD(g + g_at + i));
  A step = g0;
  if (o.has_momentum) {
    const A v0 = o.first ? g0 : fma(momentum, LOAD(v + v_at + i), (A)o.fresh * g0);
    STORE(v + v_at + i, v0);
    step = o.nesterov ? fma(momentum, v0, g0) : v0;
  }
  STORE(p + p_at + i, fma((A)-o.rate, step, p0));
}
typedef struct { double beta1, beta2, fresh1, fresh2, epsilon, l2, keep, step, scale; int64_t nesterov, maximize; } adam_args;
KERNEL adam(TENSOR(T, p), TENSOR(const T, g), TENSOR(T, m), TENSOR(T, v), TENSOR(T, largest), const int64_t count,
            const adam_args o) {
  const int64_t i = get_global_id(0);
  if (i >= count) return;
  const A p0 = LOAD(p + p_at + i), beta1 = (A)o.beta1;
  const A g0 = fma((A)o.l2, p0, o.maximize ? -LOAD(g + g_at + i) : LOAD(g + g_at + i));
  const A m0 = fma(beta1, LOAD(m + m_at + i), (A)o.fresh1 * g0);
  A v0 = fma((A)o.beta2, LOAD(v + v_at + i), (A)o.fresh2 * (g0 * g0));
  STORE(m + m_at + i, m0);
  STORE(v + v_at + i, v0);
  if (largest) {
    const A old = LOAD(largest + largest_at + i);
    v0 = v0 > old ? v0 : old;
    STORE(largest + largest_at + i, v0);
  }
  const A u = o.nesterov ? fma(beta1, m0, (A)o.fresh1 * g0) : m0;
  STORE(p + p_at + i, fma((A)-o.step, u / fma(sqrt(v0), (A)o.scale, (A)o.epsilon), (A)o.keep * p0));
}
)C";

// Item `i` of a list argument, as the kernels write it; null where the list is empty.
Tensor written(const KernelCall& call, size_t arg, size_t i) {
  const Value::List& list = call.args[arg].list();
  if (list.empty()) return Tensor();
  const Tensor tensor = list[i].tensor();
  MOREL_CHECK(tensor.is_contiguous() && tensor.dtype() == call.args[0].list()[i].tensor().dtype(), NotImplemented,
              "optimisers on ", to_string(current_device()),
              " need contiguous parameters and states of one dtype, but got ",
              describe(tensor.dtype(), tensor.shape()));
  tensor->storage->bump_version();
  return tensor;
}

template <class Options>
struct Update {
  const KernelCall& call;
  const char* name;
  Options options;
  // states: positions of the state lists among the arguments
  template <class... States>
  void operator()(States... states) const {
    OpenClDevice& device = active_device();
    for (size_t i = 0; i < call.args[0].list().size(); ++i) {
      const Tensor param = written(call, 0, i), grad = dense(call.args[1].list()[i].tensor(), param.dtype());
      device.launch(device.kernel(source, param.dtype(), name), param.size(), param, grad,
                    written(call, static_cast<size_t>(states), i)..., static_cast<int64_t>(param.size()), options);
    }
  }
};

void sgd_(const KernelCall& call) {
  struct Options {
    double rate, momentum, fresh, decay;
    int64_t has_momentum, nesterov, first, maximize;
  };
  const Options options{call.number(3),      call.number(4), 1 - call.number(5), call.number(6),
                        call.number(4) != 0, call.flag(7),   call.flag(8),       call.flag(9)};
  Update<Options>{call, "sgd", options}(2);
}

void adam_(const KernelCall& call) {
  struct Options {
    double beta1, beta2, fresh1, fresh2, epsilon, l2, keep, step, scale;
    int64_t nesterov, maximize;
  };
  const Options options{call.number(5),  call.number(6), 1 - call.number(5), 1 - call.number(6),
                        call.number(7),  call.number(8), call.number(9),     call.number(10),
                        call.number(11), call.flag(12),  call.flag(13)};
  Update<Options>{call, "adam", options}(2, 3, 4);
}

}  // namespace

std::span<const KernelEntry> optim_kernels() {
  static constexpr KernelEntry entries[] = {{"sgd_", sgd_}, {"adam_", adam_}};
  return entries;
}

}  // namespace morel::opencl
