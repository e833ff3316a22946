#include "morel/dist/trial.h"

#include <cmath>
#include <complex>
#include <cstring>

#include "morel/base/error.h"
#include "morel/dist/layer.h"
#include "morel/ops/axes.h"
#include "morel/ops/call.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/tape.h"

namespace morel::dist {
namespace {

Value copy_of(const Value& value) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor();
    const Tensor out = Tensor::empty(tensor.shape(), tensor.dtype());
    copy_into(out, tensor);
    return out;
  }
  if (!value.is_list()) return value;
  Value::List list;
  for (const Value& item : value.list()) list.push_back(copy_of(item));
  return Value(std::move(list));
}

class Recorder final : public ExecutionLayer {
 public:
  explicit Recorder(bool of_composites) : of_composites_(of_composites) {}
  bool takes(const OpDef& op, std::span<const Value>) override {
    return !inside_ && !(of_composites_ && !is_primitive(op));
  }
  Values execute(const OpDef& op, std::span<const Value> args) override {
    inside_ = true;
    Args before;
    for (const Value& arg : args) before.push_back(copy_of(arg));
    Values outs;
    try {
      outs = morel::execute(op, args);
    } catch (...) {
      inside_ = false;
      throw;
    }
    // What dense operands give: sums may be made in another order where operands are strided.
    RecordedCall call{&op, std::move(before), {}};
    Args dense;
    for (const Value& arg : call.args) dense.push_back(copy_of(arg));
    call.outs = morel::execute(op, {dense.data(), dense.size()});
    inside_ = false;
    calls.push_back(std::move(call));
    return outs;
  }
  void copy_into(const Tensor&, const Tensor&) override { MOREL_ASSERT(!"distributed tensors are not recorded"); }

  std::vector<RecordedCall> calls;

 private:
  const bool of_composites_;
  bool inside_ = false;
};

// Equal bits; with parts of sums among the operands, zeros of either sign; where calls that sum are cut, up to
// rounding.
enum class Precision { Bits, Values, Rounding };

double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::Float16: return 0x1p-10;
    case DType::BFloat16: return 0x1p-7;
    case DType::Float64:
    case DType::Complex128: return 0x1p-52;
    default: return 0x1p-23;
  }
}

std::string difference(const Tensor& got, const Tensor& wanted, Precision precision) {
  if (got.shape() != wanted.shape() || got.dtype() != wanted.dtype())
    return cat("is ", describe(got.dtype(), got.shape()), " instead of ", describe(wanted.dtype(), wanted.shape()));
  const Tensor a = contiguous(got), b = contiguous(wanted);
  if (std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size() * size_of(a.dtype()))) == 0) return {};
  if (precision == Precision::Bits) return "has other bits";
  const Tensor x = convert(a, DType::Complex128), y = convert(b, DType::Complex128);
  const auto *p = x.as<std::complex<double>>(), *q = y.as<std::complex<double>>();
  double largest = 1;
  for (int64_t i = 0; i < y.size(); ++i)
    if (std::isfinite(std::abs(q[i]))) largest = std::max(largest, std::abs(q[i]));
  const double allowed = precision == Precision::Rounding ? 64 * rounding_of(a.dtype()) * largest : 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    const bool same = p[i] == q[i] || (std::isnan(std::abs(p[i])) && std::isnan(std::abs(q[i])));
    if (!same && !(std::abs(p[i] - q[i]) <= allowed)) return cat("has ", p[i], " instead of ", q[i], " at element ", i);
  }
  return {};
}

// One call with its tensors replaced by distributed ones.
class Case {
 public:
  Case(const RecordedCall& call, std::span<const Sharding* const> shardings) : call_(call), shardings_(shardings) {
    for (const Value& arg : call.args) args_.push_back(distributed(arg));
  }

  std::string run(Trial& trial) const {
    take_notes();
    Values outs;
    try {
      outs = morel::execute(*call_.op, {args_.data(), args_.size()});
    } catch (const Error& error) {
      return "raises " + error.message();
    }
    const CallNotes notes = take_notes();
    bool parts = false;
    for (const Sharding* sharding : shardings_) parts = parts || !sharding->partial().empty();
    const Precision precision = notes.cuts_reduction ? Precision::Rounding
                                : parts              ? Precision::Values
                                                     : Precision::Bits;
    trial.exact += !notes.cuts_reduction;
    trial.gathering += notes.gathers;
    trial.derived = trial.derived && !notes.underived;
    for (size_t i = 0; i < outs.size(); ++i) {
      const Tensor out = outs[i].tensor();
      const std::string text = difference(out->shards ? full_tensor(out) : out, call_.outs[i].tensor(), precision);
      if (!text.empty())
        return cat("result ", i, " ", text, out->shards ? cat(" from ", to_string(*sharding_of(out))) : "");
    }
    return {};
  }

 private:
  Value distributed(const Value& value) {
    if (value.is_tensor()) return distribute(value.tensor(), shardings_[next_++]);
    if (!value.is_list()) return value;
    Value::List list;
    for (const Value& item : value.list()) list.push_back(distributed(item));
    return Value(std::move(list));
  }

  const RecordedCall& call_;
  std::span<const Sharding* const> shardings_;
  size_t next_ = 0;
  Args args_;
};

// All orders of mesh axes, cut by cut.
void extend(const Mesh* mesh, int mesh_axis, AxisLists& lists, Axes& partial, bool with_parts,
            std::vector<const Sharding*>& out) {
  if (mesh_axis == mesh->num_axes()) return out.push_back(Sharding::get(mesh, lists, partial));
  extend(mesh, mesh_axis + 1, lists, partial, with_parts, out);
  for (Axes& list : lists) {
    for (size_t place = 0; place <= list.size(); ++place) {
      const Axes before = list;
      list.insert(list.begin() + place, mesh_axis);
      extend(mesh, mesh_axis + 1, lists, partial, with_parts, out);
      list = before;
    }
  }
  if (!with_parts) return;
  partial.push_back(mesh_axis);
  extend(mesh, mesh_axis + 1, lists, partial, with_parts, out);
  partial.pop_back();
}

}  // namespace

std::vector<RecordedCall> record_calls(const std::function<void()>& fn, bool of_composites) {
  Recorder recorder(of_composites);
  ExecutionLayer* before = set_execution_layer(&recorder);
  try {
    fn();
  } catch (...) {
    set_execution_layer(before);
    throw;
  }
  set_execution_layer(before);
  return std::move(recorder.calls);
}

std::vector<const Sharding*> all_shardings(const Mesh* mesh, size_t rank, bool with_parts) {
  std::vector<const Sharding*> out;
  AxisLists lists(rank);
  Axes partial;
  extend(mesh, 0, lists, partial, with_parts, out);
  return out;
}

Trial try_shardings(const RecordedCall& call, const Mesh* mesh, int64_t limit) {
  Trial trial;
  const GradDepth pause(0);
  std::vector<std::vector<const Sharding*>> options;
  double total = 1;
  for (const Value& value : tensors_of(*call.op, {call.args.data(), call.args.size()})) {
    const Tensor tensor = value.tensor();
    options.push_back(all_shardings(mesh, tensor.shape().size(), tensor.dtype() != DType::Bool));
    total *= static_cast<double>(options.back().size());
  }
  if (options.empty()) return trial;
  const bool all = total <= static_cast<double>(limit);
  uint64_t state = 1;
  SmallVector<size_t, 8> at(options.size(), 0);
  std::vector<const Sharding*> chosen(options.size());
  for (int64_t count = 0; count < (all ? static_cast<int64_t>(total) : limit); ++count) {
    for (size_t i = 0; i < options.size(); ++i) {
      if (!all) at[i] = (state = state * 6364136223846793005ull + 1442695040888963407ull) >> 33;
      chosen[i] = options[i][at[i] % options[i].size()];
    }
    ++trial.cases;
    const std::string text = Case(call, chosen).run(trial);
    if (!text.empty()) {
      std::string where;
      for (size_t i = 0; i < chosen.size(); ++i) where += cat(i ? " x " : "", to_string(*chosen[i]));
      trial.failures.push_back(cat(call.op->name, " on ", to_string(*mesh), " of ", where, ": ", text));
    }
    for (size_t i = options.size(); all && i-- > 0;) {
      if (++at[i] < options[i].size()) break;
      at[i] = 0;
    }
  }
  return trial;
}

}  // namespace morel::dist
