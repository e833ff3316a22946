// What loop programs compute on a device beside the CPU: copies, fills and reductions. Elementwise and row-wise
// operators gather their operands as on the CPU (elementwise.cc, rows.cc).
#include <cstring>
#include <map>
#include <mutex>

#include "morel/kernels/tensor_view.h"
#include "morel/loops/run/elementwise.h"
#include "morel/ops/registry.h"
#include "morel/runtime/device.h"
#include "morel/runtime/eager.h"
#include "morel/runtime/reduce.h"
#include "morel/tensor/scalar.h"

namespace morel {
namespace {

using loops::ProgramKind;
using loops::ReduceOp;

// Long rows are reduced in chunks of this many elements, as on the CPU.
constexpr int64_t chunk_elements = 16384;
// So many results side by side, and more, are reduced by a work-item each where they are closer than what is reduced.
constexpr int64_t wide_columns = 32;
constexpr size_t max_scalars = 4096;

// Bits of a type, moved without a look at them.
DType bits_of(DType dtype) {
  switch (size_of(dtype)) {
    case 1: return DType::UInt8;
    case 2: return DType::UInt16;
    case 4: return DType::UInt32;
    default: return DType::UInt64;
  }
}

std::string copy_name(DType from, DType to) { return cat("copy.", info(from).short_name, ".", info(to).short_name); }

loops::Program copy_program(DType from, DType to) {
  loops::ProgramBuilder builder(copy_name(from, to));
  const loops::Expr value = builder.input(from);
  const int64_t out = builder.output(to);
  builder.store(out, loops::cast(value, compute_dtype(to)));
  return builder.finish();
}

// Elements of 16 bytes as pairs along one more axis.
void split_pairs(DeviceLoop& loop) {
  loop.space.push_back(2);
  for (DeviceOperand& operand : loop.operands) operand.strides.push_back(8);
}

// The axes that are kept, then those that are reduced, of both sides, in bytes.
struct Split {
  Shape kept, reduced;
  Strides kept_in, kept_out, reduced_in;
};

Split split_axes(const Tensor& input, const Ints& axes, const Tensor& out, bool keep_dims) {
  Split split;
  const int64_t item = size_of(input.dtype()), out_item = size_of(out.dtype());
  size_t next = 0, out_axis = 0;
  for (size_t axis = 0; axis < input.shape().size(); ++axis) {
    const bool reduced = next < axes.size() && axes[next] == static_cast<int64_t>(axis);
    if (reduced) {
      ++next;
      split.reduced.push_back(input.shape()[axis]);
      split.reduced_in.push_back(input.strides()[axis] * item);
    } else {
      split.kept.push_back(input.shape()[axis]);
      split.kept_in.push_back(input.strides()[axis] * item);
      split.kept_out.push_back(out.strides()[out_axis] * out_item);
    }
    if (!reduced || keep_dims) ++out_axis;
  }
  return split;
}

// The reduced axes as one: its size and stride; nothing where they do not lie so.
struct Line {
  int64_t size = 1, stride = 0;
};
std::optional<Line> merged(const Split& split) {
  Line line;
  bool first = true;
  for (size_t i = split.reduced.size(); i-- > 0;) {
    if (split.reduced[i] == 1) continue;
    if (first) line.stride = split.reduced_in[i];
    else if (split.reduced_in[i] != line.stride * line.size) return std::nullopt;
    line.size *= split.reduced[i];
    first = false;
  }
  return line;
}

// One reduction of lines; the operands begin at byte offsets of their storages.
class LineReduction {
 public:
  LineReduction(const OpDef& op, DType in, DType out) : op_(op), in_(in), out_(out) {}

  void run(const Split& split, const Line& line, const DeviceOperand& input, const DeviceOperand& output,
           Device device) const {
    const bool positional = *op_.reduce == ReduceOp::ArgMin || *op_.reduce == ReduceOp::ArgMax;
    if (const std::optional<size_t> inner = side_by_side(split, line))
      return columns(split, line, *inner, input, output, device);
    if (line.size > chunk_elements && !positional) return chunks(split, line, input, output, device);
    rows(split, line, input, output, device);
  }

 private:
  // The kept axis along which results lie closer than what each of them reduces.
  static std::optional<size_t> side_by_side(const Split& split, const Line& line) {
    std::optional<size_t> best;
    for (size_t i = 0; i < split.kept.size(); ++i)
      if (split.kept[i] >= wide_columns && split.kept_in[i] != 0 && (!best || split.kept_in[i] < split.kept_in[*best]))
        best = i;
    return best && line.size > 1 && split.kept_in[*best] < line.stride ? best : std::nullopt;
  }

  void launch(ProgramKind kind, Shape space, const DeviceOperand& input, const DeviceOperand& output,
              Device device) const {
    DeviceLoop loop{reduce_name(op_, in_, out_, kind),
                    [this, kind] { return reduce_program(op_, in_, out_, kind); },
                    std::move(space),
                    {},
                    {}};
    loop.operands.push_back(input);
    loop.operands.push_back(output);
    device_runtime(device).run(loop);
  }

  void rows(const Split& split, const Line& line, DeviceOperand input, DeviceOperand output, Device device) const {
    Shape space = split.kept;
    space.push_back(line.size);
    input.strides = split.kept_in;
    input.strides.push_back(line.stride);
    output.strides = split.kept_out;
    output.strides.push_back(0);
    launch(ProgramKind::Rows, std::move(space), input, output, device);
  }

  void columns(const Split& split, const Line& line, size_t inner, DeviceOperand input, DeviceOperand output,
               Device device) const {
    Shape space;
    input.strides.clear(), output.strides.clear();
    const auto push = [&](Dim size, Dim in, Dim out) {
      space.push_back(size);
      input.strides.push_back(in);
      output.strides.push_back(out);
    };
    for (size_t i = 0; i < split.kept.size(); ++i)
      if (i != inner) push(split.kept[i], split.kept_in[i], split.kept_out[i]);
    push(line.size, line.stride, 0);
    push(split.kept[inner], split.kept_in[inner], split.kept_out[inner]);
    launch(ProgramKind::Columns, std::move(space), input, output, device);
  }

  // Partial results, in the type in which sums are kept, and then theirs.
  void chunks(const Split& split, const Line& line, const DeviceOperand& input, const DeviceOperand& output,
              Device device) const {
    const bool adds = *op_.reduce == ReduceOp::Sum || *op_.reduce == ReduceOp::Prod;
    const DType mid = adds ? compute_dtype(out_) : out_;
    const int64_t whole = line.size / chunk_elements, rest = line.size % chunk_elements, item = size_of(mid);
    Shape partial_shape = split.kept;
    partial_shape.push_back(whole + (rest ? 1 : 0));
    const Tensor partial = Tensor::empty(partial_shape, mid, device);
    Split first = split, second = split;
    for (size_t i = 0; i < split.kept.size(); ++i)
      first.kept_out[i] = second.kept_in[i] = contiguous_strides(partial_shape)[i] * item;
    const LineReduction to_partial(op_, in_, mid);
    if (rest) {
      DeviceOperand tail = input;
      tail.offset += whole * chunk_elements * line.stride;
      to_partial.rows(first, {rest, line.stride}, tail, {partial->storage.get(), whole * item, {}}, device);
    }
    first.kept.push_back(whole);
    first.kept_in.push_back(chunk_elements * line.stride);
    first.kept_out.push_back(item);
    to_partial.rows(first, {chunk_elements, line.stride}, input, {partial->storage.get(), 0, {}}, device);
    LineReduction(op_, mid, out_)
        .run(second, {partial_shape.back(), item}, {partial->storage.get(), 0, {}}, output, device);
  }

  const OpDef& op_;
  DType in_, out_;
};

}  // namespace

Tensor device_scalar(Device device, const Value& number, DType dtype) {
  std::array<char, 16> bytes{};
  store_scalar(number, dtype, bytes.data());
  using Key = std::tuple<Device, DType, std::array<char, 16>>;
  const auto less = [](const Key& x, const Key& y) {
    const auto plain = [](const Key& key) {
      const Device at = std::get<0>(key);
      return std::tuple(at.kind, at.index, std::get<1>(key), std::get<2>(key));
    };
    return plain(x) < plain(y);
  };
  static std::mutex mutex;
  // Never destroyed: a driver may be gone by then.
  static auto& known = *new std::map<Key, Tensor, decltype(less)>(less);
  const std::lock_guard lock(mutex);
  if (known.size() >= max_scalars) known.clear();
  Tensor& found = known[Key(device, dtype, bytes)];
  if (!found) {
    found = Tensor::empty({}, dtype, device);
    device_memory(device).write(*found->storage, 0, static_cast<size_t>(size_of(dtype)), bytes.data());
  }
  return found;
}

DeviceOperand device_operand(const TensorImpl* tensor, const Shape& space) {
  return {tensor->storage.get(), tensor->layout.offset * size_of(tensor->dtype),
          loops::broadcast_strides(tensor, space)};
}

void copy_on_device(const Tensor& target, const Tensor& source) {
  if (source == target) return;
  if (source->storage == target->storage) {  // they may overlap
    const Tensor apart = Tensor::empty(source.shape(), source.dtype(), source.device());
    copy_on_device(apart, source);
    return copy_on_device(target, apart);
  }
  const bool same = source.dtype() == target.dtype();
  const DType from = same ? bits_of(source.dtype()) : source.dtype(), to = same ? from : target.dtype();
  DeviceLoop loop{copy_name(from, to), [=] { return copy_program(from, to); }, target.shape(), {}, {}};
  Strides strides = kernels::copy_strides(source, target.shape());
  for (Dim& stride : strides) stride = stride * size_of(source.dtype());
  loop.operands.push_back({source->storage.get(), source->layout.offset * size_of(source.dtype()), std::move(strides)});
  loop.operands.push_back(device_operand(target.get(), target.shape()));
  if (same && size_of(source.dtype()) == 16) split_pairs(loop);
  device_runtime(target.device()).run(loop);
}

void fill_on_device(const Tensor& target, const Value& number) {
  copy_on_device(target, device_scalar(target.device(), number, target.dtype()));
}

void reduce_on_device(const OpDef& op, const Tensor& input, const Ints& axes, const Tensor& out, bool keep_dims) {
  const Device device = out.device();
  Tensor source = input;
  Split split = split_axes(source, axes, out, keep_dims);
  std::optional<Line> line = merged(split);
  if (!line) {
    source = contiguous(input.with_layout(loops::reduced_last(input->layout, axes)));
    Ints last;
    for (int64_t axis = input.rank() - static_cast<int64_t>(axes.size()); axis < input.rank(); ++axis)
      last.push_back(axis);
    const Strides kept_out = split.kept_out;
    split = split_axes(source, last, out, false);
    split.kept_out = kept_out;
    line = merged(split);
  }
  if (input.size() == 0) line->size = 0;
  LineReduction(op, source.dtype(), out.dtype())
      .run(split, *line, {source->storage.get(), source->layout.offset * size_of(source.dtype()), {}},
           {out->storage.get(), out->layout.offset * size_of(out.dtype()), {}}, device);
}

}  // namespace morel
