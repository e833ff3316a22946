// The registry: every operator, by name. One function per family file adds its entries; the list of families is in
// registry.cc.
#pragma once

#include <deque>
#include <source_location>
#include <string_view>

#include "morel/loops/signature.h"
#include "morel/ops/opdef.h"

namespace morel {

class Registry {
 public:
  // Parses the schema, checks the entry, derives what follows from it.
  OpDef& add(std::string_view family, OpDef op, std::source_location where);
  const OpDef* find(std::string_view name) const;  // null when absent
  const std::deque<OpDef>& ops() const { return ops_; }

 private:
  std::deque<OpDef> ops_;  // stable addresses
};

const Registry& registry();

// Helper of the family files: `Family add(registry, "elementwise"); add({.name = "abs", ...});`
class Family {
 public:
  Family(Registry& registry, std::string_view name) : registry_(registry), name_(name) {}
  OpDef& operator()(OpDef op, std::source_location where = std::source_location::current()) {
    return registry_.add(name_, std::move(op), where);
  }

 private:
  Registry& registry_;
  std::string_view name_;
};

// Family files.
void register_elementwise(Registry& registry);
void register_compare(Registry& registry);
void register_reduce(Registry& registry);
void register_shape(Registry& registry);
void register_create(Registry& registry);
void register_linalg(Registry& registry);
void register_activation(Registry& registry);
void register_norm(Registry& registry);
void register_attention(Registry& registry);
void register_conv(Registry& registry);
void register_index(Registry& registry);
void register_sort(Registry& registry);
void register_random(Registry& registry);
void register_loss(Registry& registry);
void register_optim(Registry& registry);
void register_control(Registry& registry);

// Loop programs which the build compiles ahead of time (tools/loopgen.cc), and how the runtime names them.
std::vector<loops::Program> ahead_of_time_programs();
// The elementwise program of `op` computing in `dtype`.
loops::Program elementwise_program(const OpDef& op, DType dtype);
std::string elementwise_name(const OpDef& op, DType dtype);
// Reduction of an input of dtype `in` to results of dtype `out`.
loops::Program reduce_program(const OpDef& op, DType in, DType out, loops::ProgramKind kind);
std::string reduce_name(const OpDef& op, DType in, DType out, loops::ProgramKind kind);
// Whether the library may have that reduction; for other pairs the input is converted to `out` first.
bool has_reduce_program(const OpDef& op, DType in, DType out);
loops::Program rows_program(const OpDef& op, DType dtype);
std::string rows_name(const OpDef& op, DType dtype);
// The same for rows whose elements lie apart while those of different rows are neighbours; operators with an axis have
// it.
bool can_go_across(const OpDef& op);
loops::Program across_program(const OpDef& op, DType dtype);
std::string across_name(const OpDef& op, DType dtype);
// The companion that sums over all rows (OpDef::columns).
loops::Program columns_program(const OpDef& op, DType dtype);
std::string columns_name(const OpDef& op, DType dtype);
// What a rows or columns program reads and writes, in order of its buffers; cached.
loops::LoopSignature signature_of(const loops::Program& program);
const loops::LoopSignature& rows_signature(const OpDef& op, DType dtype);
const loops::LoopSignature& columns_signature(const OpDef& op, DType dtype);
// dtype in which an elementwise operator computes and that of its result.
DType elementwise_compute_dtype(const OpDef& op, std::span<const Value> args);
DType elementwise_result_dtype(const OpDef& op, DType compute);

// -- shared infer helpers --
Types infer_elementwise(const ArgView& call);
// (input, axis, keep_dims, [dtype]): sums and products of bool and integers are int64, others keep the dtype of input.
Types infer_reduce(const ArgView& call);
// Full outputs have the broadcast shape of all tensors, per-row outputs have 1 in place of the row axis, outputs of the
// columns program have the length of a row.
Types infer_rows(const ArgView& call);
// Shapes from the view rule, applied to a contiguous input.
Types infer_view(const ArgView& call);
// Result has the type of argument 0.
Types infer_like_first(const ArgView& call);
// Strides rules: channels-last where the channels are many enough for oneDNN to gain by it; as tensor argument 0 or 1
// lies.
std::optional<Strides> prefer_channels_last(const ArgView& call, size_t idx, const Shape& shape);
template <size_t arg>
std::optional<Strides> strides_like(const ArgView& call, size_t idx, const Shape& shape);
bool is_channels_last(const Value& value);
Strides channels_last_strides(const Shape& shape);
// Common dtype of all tensor and number arguments.
DType common_dtype(const ArgView& call);
// NumPy broadcasting; raises with the operator's name.
Shape broadcast_shapes(const OpDef& op, const Shape& a, const Shape& b);
int64_t normalize_axis(const OpDef& op, std::string_view argument, int64_t axis, int64_t rank);
// Axes of `axes` made non-negative, unique; all axes when the value is None.
Ints normalize_axes(const OpDef& op, std::string_view argument, const Value& axes, int64_t rank);
// Shape after reducing `axes` (sorted, non-negative).
Shape reduced_shape(const Shape& shape, const Ints& axes, bool keep_dims);
// TypeError unless `op` computes in `dtype`.
void check_dtype(const OpDef& op, DType dtype);
// "MatMul" for "matmul": the name as MindSpore's messages have it.
std::string display_name(const OpDef& op);

template <size_t arg>
std::optional<Strides> strides_like(const ArgView& call, size_t idx, const Shape& shape) {
  if (idx == 0 && shape.size() == 4 && is_channels_last(call.value(arg))) return channels_last_strides(shape);
  return {};
}

}  // namespace morel
