#include "morel/lite/verify.h"

#include <array>

#include "morel/lite/container.h"
#include "morel/lite/sizes.h"

namespace morel::lite {
namespace {

constexpr size_t max_rank = 16;

class Verifier {
 public:
  Verifier(const Plan& plan, int64_t weight_bytes) : plan_(plan), weight_bytes_(weight_bytes) {}

  void run() {
    need(!plan_.functions.empty(), "there is no function");
    check_sizes();
    const std::vector<int64_t> symbols = planned_symbols(plan_);
    sizes_ = SizeValues(plan_, symbols);
    uses_.assign(plan_.functions.size(), 0);
    for (at_ = 0; at_ < plan_.functions.size(); ++at_) check(plan_.functions[at_]);
    for (size_t i = 0; i < uses_.size(); ++i) need(uses_[i] == (i > 0), "a function is used ", uses_[i], " times");
    std::string why;
    need(serves(plan_, sizes_, symbols, why), why);
  }

 private:
  template <class... Args>
  static void need(bool condition, const Args&... text) {
    if (!condition) raise(ErrorKind::Value, text...);
  }
  template <class T>
  static bool is_index(int64_t idx, const std::vector<T>& list) {
    return idx >= 0 && idx < static_cast<int64_t>(list.size());
  }

  void check_size(const Size& size, size_t known) const {
    need(size.expr < 0 || static_cast<size_t>(size.expr) < known, "a size refers to an expression that is not there");
  }
  void check_size(const Size& size) const { check_size(size, plan_.exprs.size()); }

  void check_sizes() const {
    const Function& model = plan_.functions[0];
    for (size_t i = 0; i < plan_.exprs.size(); ++i)
      for (const SizeTerm& term : plan_.exprs[i].terms)
        for (const SizeAtom& atom : term.atoms) {
          need(atom.symbol < 0 || is_index(atom.symbol, plan_.symbols), "a size refers to a symbol that is not there");
          check_size(atom.a, i);
          check_size(atom.b, i);
        }
    for (const Guard& guard : plan_.guards) check_size(guard.size);
    for (const Symbol& symbol : plan_.symbols) {
      need(is_index(symbol.input, model.inputs) &&
               is_index(model.inputs[static_cast<size_t>(symbol.input)], model.values),
           "a symbol is the size of an input that is not there");
      const Value& input = model.values[static_cast<size_t>(model.inputs[static_cast<size_t>(symbol.input)])];
      need(is_index(symbol.axis, input.shape), "a symbol is the size of an axis that is not there");
    }
  }

  void check(const Function& function) {
    for (const Buffer& buffer : function.buffers) check(function, buffer);
    for (const Value& value : function.values) check(function, value);
    for (const std::vector<int32_t>* list : {&function.inputs, &function.outputs})
      for (const int32_t idx : *list) need(is_index(idx, function.values), "a value is not there");
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      const Buffer& buffer = buffer_of(function, function.inputs[i]);
      need(buffer.home == Home::Input && buffer.index == static_cast<int32_t>(i), "input ", i, " lies elsewhere");
    }
    for (const Step& step : function.steps) check(function, step);
  }

  void check(const Function& function, const Buffer& buffer) const {
    check_size(buffer.bytes);
    const int64_t bytes = sizes_(buffer.bytes);
    need(bytes >= 0 && buffer.offset >= 0, "a buffer has ", bytes, " bytes at ", buffer.offset);
    switch (buffer.home) {
      case Home::Input: return need(is_index(buffer.index, function.inputs), "an input is not there");
      case Home::Constant:
      case Home::Variable:
        need(buffer.bytes.expr < 0 && buffer.offset % static_cast<int64_t>(weight_alignment) == 0 &&
                 bytes <= weight_bytes_ && buffer.offset <= weight_bytes_ - bytes,
             "a constant of ", bytes, " bytes at ", buffer.offset, " does not lie within the weights");
        return;
      case Home::Arena:
        need(buffer.offset % static_cast<int64_t>(weight_alignment) == 0 && bytes <= function.arena_bytes &&
                 buffer.offset <= function.arena_bytes - bytes,
             "a buffer of ", bytes, " bytes at ", buffer.offset, " does not lie within the arena");
        need(buffer.first >= 0 && buffer.first <= buffer.last &&
                 buffer.last <= static_cast<int32_t>(function.steps.size()),
             "a buffer lives from step ", buffer.first, " to ", buffer.last);
        return;
    }
  }

  const Buffer& buffer_of(const Function& function, int32_t value) const {
    return function.buffers[static_cast<size_t>(function.values[static_cast<size_t>(value)].buffer)];
  }

  void check(const Function& function, const Value& value) const {
    need(is_index(value.buffer, function.buffers), "the value '", value.name, "' has no buffer");
    need(value.shape.size() == value.strides.size() && value.shape.size() <= max_rank, "the value '", value.name,
         "' has ", value.shape.size(), " sizes and ", value.strides.size(), " strides");
    for (const Size& size : value.shape) check_size(size);
    for (const Size& size : value.strides) check_size(size);
    check_size(value.offset);
    const Buffer& buffer = function.buffers[static_cast<size_t>(value.buffer)];
    layout_of(value, sizes_, sizes_(buffer.bytes));
    if (!value.quantisation) return;
    const Quantisation& q = *value.quantisation;
    const int64_t count = q.axis < 0                      ? 1
                          : is_index(q.axis, value.shape) ? sizes_(value.shape[static_cast<size_t>(q.axis)])
                                                          : -1;
    need(static_cast<int64_t>(q.scales.size()) == count && q.zero_points.size() == q.scales.size(), "the value '",
         value.name, "' has ", q.scales.size(), " scales");
  }

  void check(const Function& function, const Arg& arg) const {
    check_size(arg.size);
    for (const Size& size : arg.sizes) check_size(size);
    for (const Arg& item : arg.items) check(function, item);
    switch (arg.tag) {
      case Arg::Tag::Value: return need(is_index(arg.value, function.values), "an argument is not there");
      case Arg::Tag::Number:
        need(is_index(arg.value, function.values) && function.values[static_cast<size_t>(arg.value)].shape.size() <= 1,
             "an argument that is to be a number is none");
        return;
      case Arg::Tag::DType:
        return need(arg.size.expr < 0 && arg.size.number >= 0 && arg.size.number < num_dtypes,
                    "there is no such dtype");
      case Arg::Tag::Float: return need(arg.floats.size() == 1, "a number has ", arg.floats.size(), " parts");
      case Arg::Tag::Complex: return need(arg.floats.size() == 2, "a number has ", arg.floats.size(), " parts");
      default: return;
    }
  }

  void check(const Function& function, const Step& step) {
    for (const Arg& arg : step.args) check(function, arg);
    for (const int32_t out : step.outs) {
      need(is_index(out, function.values), "a result of '", step.name, "' is not there");
      need(buffer_of(function, out).home != Home::Constant, "'", step.name, "' writes into a constant");
    }
    const auto values = [&](size_t count) {
      need(step.args.size() >= count, "'", step.name, "' has ", step.args.size(), " arguments");
      for (size_t i = 0; i < count; ++i)
        need(step.args[i].tag == Arg::Tag::Value, "an argument of '", step.name, "' is no value");
    };
    switch (step.kind) {
      case StepKind::Kernel:
        // What changes in place or talks has its tensors, one or a list, first.
        need(!step.outs.empty() ||
                 (!step.args.empty() && (step.args[0].tag == Arg::Tag::Value || step.args[0].tag == Arg::Tag::List)),
             "'", step.name, "' has neither results nor tensors");
        break;
      case StepKind::Elementwise:
      case StepKind::Rows: check_loop(step); break;
      case StepKind::Reduce:
        values(1);
        need(step.outs.size() == 1, "a reduction has one result");
        break;
      case StepKind::Copy:
        values(1);
        need(step.outs.size() == 1, "a copy has one result");
        break;
      case StepKind::If:
        values(step.args.size());
        check_bodies(function, step, {1, 1}, step.args.size() - 1);
        break;
      case StepKind::While:
        values(step.args.size());
        check_bodies(function, step, {0, 1}, step.args.size());
        break;
    }
    need(step.bodies.empty() || step.kind == StepKind::If || step.kind == StepKind::While, "'", step.name,
         "' has bodies");
  }

  static void check_loop(const Step& step) {
    need(step.args.size() >= step.signature.inputs.size() && !step.signature.inputs.empty() && !step.outs.empty(),
         "the loop '", step.name, "' has ", step.args.size(), " arguments and ", step.outs.size(), " results");
    for (size_t i = 0; i < step.args.size(); ++i) {
      const Arg::Tag tag = step.args[i].tag;
      const bool operand = i < step.signature.inputs.size();
      need((operand && (tag == Arg::Tag::Value || tag == Arg::Tag::Complex)) || tag == Arg::Tag::Bool ||
               tag == Arg::Tag::Int || tag == Arg::Tag::Float,
           "argument ", i, " of the loop '", step.name, "' is of the wrong kind");
    }
  }

  // gives_state: of each body, whether its results are those of the step; else it gives one truth.
  void check_bodies(const Function& function, const Step& step, std::array<bool, 2> gives_state, size_t operands) {
    need(step.bodies.size() == 2 && is_index(step.workspace, function.buffers) &&
             function.buffers[static_cast<size_t>(step.workspace)].home == Home::Arena,
         "'", step.name, "' has ", step.bodies.size(), " bodies");
    need(step.kind == StepKind::If ? !step.args.empty() : step.outs.size() <= operands, "'", step.name, "' has ",
         operands, " operands");
    for (size_t i = 0; i < 2; ++i) {
      const int32_t body = step.bodies[i];
      need(is_index(body, plan_.functions) && static_cast<size_t>(body) > at_, "a body of '", step.name,
           "' is not there");
      ++uses_[static_cast<size_t>(body)];
      const Function& callee = plan_.functions[static_cast<size_t>(body)];
      need(callee.inputs.size() == operands && callee.outputs.size() == (gives_state[i] ? step.outs.size() : 1),
           "a body of '", step.name, "' takes ", callee.inputs.size(), " values and gives ", callee.outputs.size());
    }
  }

  const Plan& plan_;
  int64_t weight_bytes_;
  SizeValues sizes_;
  std::vector<int> uses_;  // of the functions, as bodies
  size_t at_ = 0;
};

}  // namespace

void verify(const Plan& plan, size_t weight_bytes, const std::string& name, uint64_t offset) {
  try {
    Verifier(plan, static_cast<int64_t>(weight_bytes)).run();
  } catch (const Error& error) {
    raise_bad_file(name, offset, "the plan is wrong: ", error.message());
  }
}

}  // namespace morel::lite
