#include "morel/lite/step.h"

#include "morel/kernels/table.h"
#include "morel/kernels/tensor_view.h"
#include "morel/loops/library.h"
#include "morel/loops/run/elementwise.h"
#include "morel/loops/run/rows.h"
#include "morel/tensor/scalar.h"

namespace morel::lite {
namespace {

using loops::Kernel;

morel::Value argument(const Arg& arg, const Scope& scope) {
  switch (arg.tag) {
    case Arg::Tag::None:
    case Arg::Tag::Number: return {};
    case Arg::Tag::Bool: return scope.sizes(arg.size) != 0;
    case Arg::Tag::Int: return scope.sizes(arg.size);
    case Arg::Tag::Float: return arg.floats[0];
    case Arg::Tag::DType: return static_cast<DType>(arg.size.number);
    case Arg::Tag::Complex: return std::complex<double>(arg.floats[0], arg.floats[1]);
    case Arg::Tag::Str: return arg.text;
    case Arg::Tag::Value: return scope.at(arg.value);
    case Arg::Tag::Floats: return morel::Value::Floats(arg.floats.begin(), arg.floats.end());
    case Arg::Tag::Ints: {
      Ints out;
      for (const Size& size : arg.sizes) out.push_back(scope.sizes(size));
      return out;
    }
    case Arg::Tag::List: {
      morel::Value::List out;
      for (const Arg& item : arg.items) out.push_back(argument(item, scope));
      return morel::Value(std::move(out));
    }
  }
  return {};
}

template <class T, class F>
T element_as(const Tensor& tensor, F&& convert) {
  T out{};
  visit_dtype(tensor.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    if constexpr (std::is_arithmetic_v<E>) out = static_cast<T>(*tensor.as<E>());
    else if constexpr (std::is_same_v<E, Float16> || std::is_same_v<E, BFloat16>) out = convert(*tensor.as<E>());
  });
  return out;
}

morel::Value number_of(const Tensor& tensor) {
  if (tensor.rank() == 1) {
    Ints out;
    for (int64_t i = 0; i < tensor.size(); ++i) out.push_back(tensor.as<int64_t>()[i]);
    return out;
  }
  if (tensor.dtype() == DType::Bool) return *tensor.as<bool>();
  if (is_integral(tensor.dtype())) return element_as<int64_t>(tensor, [](auto half) { return to_float(half); });
  return element_as<double>(tensor, [](auto half) { return to_float(half); });
}

class KernelStep final : public BoundStep {
 public:
  KernelStep(const Step& step, const Scope& scope) : kernel_(find_kernel(step.name)) {
    MOREL_CHECK(kernel_, NotImplemented, "this library has no kernel '", step.name, "'");
    for (size_t i = 0; i < step.args.size(); ++i) {
      args_.push_back(argument(step.args[i], scope));
      if (step.args[i].tag != Arg::Tag::Number) continue;
      const Tensor& from = scope.at(step.args[i].value);
      MOREL_CHECK(from.rank() == 0 ? !is_complex(from.dtype()) : from.dtype() == DType::Int64 && from.is_contiguous(),
                  Value, "argument ", i, " of '", step.name, "' is no number");
      numbers_.emplace_back(i, from);
    }
    for (size_t i = 0; i < step.outs.size(); ++i) {
      const bool skipped = kernel_->may_skip >> i & 1 && !scope.is_read[scope.buffer_of(step.outs[i])];
      outs_.push_back(skipped ? Tensor() : scope.at(step.outs[i]));
    }
    is_new_ = kernel_->prepare && numbers_.empty();
    if (is_new_) find_constants(step, scope);
  }
  void run() override {
    if (is_new_) {  // now and not when it is bound: kernels trust shapes, which nobody has run yet
      prepared_ = kernel_->prepare(call(), constants_);
      is_new_ = false;
    }
    for (const auto& [idx, tensor] : numbers_) args_[idx] = number_of(tensor);
    kernel_->kernel(call());
  }

 private:
  KernelCall call() {
    return {.args = {args_.data(), args_.size()},
            .outs = {outs_.data(), outs_.size()},
            .epilogue = nullptr,
            .prepared = prepared_.get()};
  }
  void find_constants(const Step& step, const Scope& scope) {
    for (size_t i = 0; i < step.args.size() && i < 64; ++i)
      if (step.args[i].tag == Arg::Tag::Value &&
          scope.function.buffers[scope.buffer_of(step.args[i].value)].home == Home::Constant)
        constants_ |= uint64_t{1} << i;
  }

  const KernelEntry* kernel_;
  std::unique_ptr<Prepared> prepared_;
  bool is_new_ = false;
  uint64_t constants_ = 0;  // a bit for each argument
  SmallVector<morel::Value, 8> args_;
  std::vector<std::pair<size_t, Tensor>> numbers_;
  SmallVector<Tensor, 2> outs_;
};

std::unique_ptr<Kernel> loop_kernel(const std::string& name) {
  const loops::LoopFn compiled = loops::find_loop(name);
  MOREL_CHECK(compiled, NotImplemented, "this library has no loop '", name, "'");
  return std::make_unique<Kernel>(compiled);
}

bool broadcasts_to(const Shape& shape, const Shape& space) {
  if (shape.size() > space.size()) return false;
  const size_t shift = space.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1 && shape[i] != space[i + shift]) return false;
  return true;
}

// Operands and parameters of a loop that runs over `space`.
template <size_t max>
void gather(const Step& step, const Scope& scope, const Shape& space, loops::Operands<max>& in) {
  const size_t count = step.signature.inputs.size();
  MOREL_CHECK(count <= max && step.args.size() - count <= max, Value, "the loop '", step.name, "' has ", count,
              " operands");
  for (const Arg& arg : step.args) {
    const morel::Value value = argument(arg, scope);
    if (in.count == count) {
      in.params[in.num_params++] = value.number();
      continue;
    }
    const DType dtype = step.signature.inputs[in.count];
    if (value.is_tensor()) {
      const Tensor& tensor = scope.at(arg.value);
      MOREL_CHECK(tensor.dtype() == dtype && broadcasts_to(tensor.shape(), space), Value, "operand ", in.count,
                  " of the loop '", step.name, "' is ", describe(tensor.dtype(), tensor.shape()));
      in.tensors[in.count] = tensor.get();
    } else {
      store_scalar(value, dtype, in.scalars[in.count].data());
    }
    ++in.count;
  }
}

class ElementwiseStep final : public BoundStep {
 public:
  ElementwiseStep(const Step& step, const Scope& scope)
      : kernel_(loop_kernel(step.name)), out_(scope.at(step.outs[0])) {
    MOREL_CHECK(
        step.outs.size() == 1 && step.signature.outputs.size() == 1 && out_.dtype() == step.signature.outputs[0].dtype,
        Value, "the loop '", step.name, "' gives another type");
    gather(step, scope, out_.shape(), in_);
  }
  void run() override { loops::run_elementwise(*kernel_, in_, out_); }

 private:
  std::unique_ptr<Kernel> kernel_;
  loops::ElementOperands in_;  // of tensors that the session keeps
  Tensor out_;
};

class LibraryReduction final : public loops::Reduction {
 public:
  LibraryReduction(loops::ReduceOp reduce, std::string name) : Reduction(reduce), name_(std::move(name)) {}
  const Kernel& kernel(DType in, DType out, loops::ProgramKind kind) const override {
    for (const Found& found : found_)
      if (found.in == in && found.out == out && found.kind == kind) return *found.kernel;
    found_.push_back({in, out, kind, loop_kernel(loops::reduction_name(name_, in, out, kind))});
    return *found_.back().kernel;
  }

 private:
  struct Found {
    DType in, out;
    loops::ProgramKind kind;
    std::unique_ptr<Kernel> kernel;
  };
  std::string name_;
  mutable std::vector<Found> found_;
};

class ReduceStep final : public BoundStep {
 public:
  ReduceStep(const Step& step, const Scope& scope)
      : reduction_(step.reduce, step.name), in_(scope.at(step.args[0].value)), out_(scope.at(step.outs[0])) {
    keep_dims_ = in_.rank() == out_.rank();
    Shape wanted;
    size_t next = 0;
    for (int64_t axis = 0; axis < in_.rank(); ++axis) {
      const bool reduced = next < step.axes.size() && step.axes[next] == axis;
      if (!reduced) wanted.push_back(in_.dim(axis));
      else if (keep_dims_) wanted.push_back(1);
      next += reduced;
    }
    for (const int32_t axis : step.axes) axes_.push_back(axis);
    MOREL_CHECK(next == step.axes.size() && wanted == out_.shape(), Value, "the reduction '", step.name, "' gives ",
                to_string(wanted), ", not ", to_string(out_.shape()));
    MOREL_CHECK(!reduction_.is_positional() || loops::can_merge(in_, axes_), Value, "the axes of '", step.name,
                "' are not one piece of memory");
    // Found now, that a lack of them is noticed; a pass may still need those between partial results.
    for (const auto kind : {loops::ProgramKind::Rows, loops::ProgramKind::Columns})
      reduction_.kernel(in_.dtype(), out_.dtype(), kind);
  }
  void run() override { loops::reduce(reduction_, in_, axes_, out_, keep_dims_); }

 private:
  LibraryReduction reduction_;
  Tensor in_, out_;
  Ints axes_;
  bool keep_dims_;
};

class RowsStep final : public BoundStep {
 public:
  RowsStep(const Step& step, const Scope& scope) : axis_(static_cast<size_t>(step.axis)) {
    kernel_.signature = step.signature;
    kernel_.rows = loop_kernel(step.name);
    if (step.has_across) kernel_.across = loop_kernel(step.name + ".across");
    if (step.has_columns) {
      kernel_.columns = loop_kernel(step.name + ".columns");
      kernel_.sum = &sum_.emplace(loops::ReduceOp::Sum, "sum");
    }
    for (const int32_t out : step.outs) outs_.push_back(scope.at(out));
    find_space(step, scope);
    gather(step, scope, space_, in_);
    const auto& outputs = step.signature.outputs;
    MOREL_CHECK(outs_.size() >= outputs.size() && (step.has_columns || outs_.size() == outputs.size()) &&
                    in_.count + outs_.size() + step.signature.scratch.size() <= loops::max_row_buffers,
                Value, "the loop '", step.name, "' has ", outs_.size(), " results");
    for (size_t i = 0; i < outs_.size(); ++i) {
      Shape wanted = space_;
      if (i < outputs.size() && outputs[i].per_row) wanted[axis_] = 1;
      if (i >= outputs.size()) wanted = {space_[axis_]};
      MOREL_CHECK(outs_[i].is_contiguous() && outs_[i].size() == num_elements(wanted) &&
                      (i >= outputs.size() || outs_[i].dtype() == outputs[i].dtype),
                  Value, "result ", i, " of the loop '", step.name, "' is ",
                  describe(outs_[i].dtype(), outs_[i].shape()));
    }
    for (size_t i = 0; i < in_.count; ++i)
      MOREL_CHECK(!step.has_columns || !in_.tensors[i] || in_.tensors[i]->contiguous, Value, "operand ", i,
                  " of the loop '", step.name, "' is not contiguous");
  }
  void run() override { loops::run_rows(kernel_, in_, space_, axis_, {outs_.data(), outs_.size()}); }

 private:
  // The shape to which all operands broadcast.
  void find_space(const Step& step, const Scope& scope) {
    for (size_t i = 0; i < step.signature.inputs.size(); ++i) {
      if (step.args[i].tag != Arg::Tag::Value) continue;
      const Shape& shape = scope.at(step.args[i].value).shape();
      while (space_.size() < shape.size()) space_.insert(space_.begin(), Dim(1));
      for (size_t k = 0; k < shape.size(); ++k) {
        Dim& size = space_[space_.size() - shape.size() + k];
        if (size == 1) size = shape[k];
      }
    }
    if (space_.empty()) space_.push_back(1);
    MOREL_CHECK(step.axis >= 0 && axis_ < space_.size() && space_.size() < loops::max_row_rank, Value, "the loop '",
                step.name, "' runs along axis ", step.axis, " of ", space_.size());
  }

  loops::RowsKernel kernel_;
  std::optional<LibraryReduction> sum_;
  loops::RowOperands in_;
  Shape space_;
  size_t axis_;
  SmallVector<Tensor, 2> outs_;
};

class CopyStep final : public BoundStep {
 public:
  CopyStep(const Step& step, const Scope& scope) : in_(scope.at(step.args[0].value)), out_(scope.at(step.outs[0])) {
    MOREL_CHECK(broadcasts_to(in_.shape(), out_.shape()), Value, to_string(in_.shape()), " does not fit into ",
                to_string(out_.shape()));
  }
  void run() override { kernels::copy_tensor(out_, in_); }

 private:
  Tensor in_, out_;
};

}  // namespace

std::unique_ptr<BoundStep> bind_step(const Step& step, const Scope& scope) {
  switch (step.kind) {
    case StepKind::Kernel: return std::make_unique<KernelStep>(step, scope);
    case StepKind::Elementwise: return std::make_unique<ElementwiseStep>(step, scope);
    case StepKind::Rows: return std::make_unique<RowsStep>(step, scope);
    case StepKind::Reduce: return std::make_unique<ReduceStep>(step, scope);
    case StepKind::Copy: return std::make_unique<CopyStep>(step, scope);
    case StepKind::If:
    case StepKind::While: break;
  }
  raise(ErrorKind::Internal, "internal error: '", step.name, "' has bodies");
}

bool is_true(const Tensor& tensor) {
  return element_as<bool>(tensor, [](auto half) { return to_float(half) != 0; });
}

}  // namespace morel::lite
