// One graph -> one function of a plan.
#pragma once

#include "morel/lite/converter/tables.h"
#include "morel/ops/opdef.h"

namespace morel::lite {

inline Layout dense(const Shape& shape) { return {shape, contiguous_strides(shape), 0}; }

struct Shared {
  Plan plan;
  SizeTable sizes;
  WeightTable weights;
  Shared(const Graph& graph, const ConvertOptions& options)
      : sizes(graph, options.fixed_sizes, plan), weights(options) {}
};

class FunctionConverter {
 public:
  // Adds a function to the plan; the bodies of its nodes follow it.
  explicit FunctionConverter(Shared& shared);
  // Of a whole model: inputs and outputs have these names.
  void convert_model(const Graph& graph, const ConvertOptions& options);
  // Of a body: its inputs lie as the operands do. state: of a loop, how many results become the first inputs again.
  // Returns which inputs it changes.
  std::vector<bool> convert_body(const Graph& graph, std::span<const Layout> operands, size_t state);
  int32_t index() const { return index_; }

 private:
  // A value of the function: what rules see of it (no data), and its index.
  struct Entry {
    Tensor meta;
    int32_t idx = -1;
  };

  // -- values --
  Entry add_value(const Layout& layout, DType dtype, int32_t buffer, std::string name = "");
  Entry add_in_arena(Layout layout, DType dtype);  // in a buffer of its own
  int32_t add_buffer(const Layout& layout, DType dtype, Home home, int32_t index = 0);
  Buffer& buffer_of(int32_t value);
  const Entry& entry_of(const morel::Value& value) const;
  void mark_written(int32_t value);
  void add_input(const Node& node, const Layout& layout, std::string name);
  void add_captures(const Graph& graph);
  Entry copied(const Entry& entry, DType dtype);
  void finish();

  // -- arguments --
  struct Call {
    const Node& node;
    const OpDef& op;
    Args metas;  // what rules see: tensors without data
    std::span<const morel::Value> args() const { return {metas.data(), metas.size()}; }
  };
  morel::Value meta_of(const morel::Value& value, const ArgSpec& spec) const;
  Arg arg_of(const morel::Value& value, const ArgSpec& spec) const;
  static Arg value_arg(const Entry& entry);
  // Of an operand that a loop reads as `dtype`: converted first where it is of another type, or not dense where it
  // must.
  Arg operand_of(const morel::Value& value, DType dtype, bool dense = false);
  Arg parameter_of(const Call& call, size_t idx) const;
  std::vector<Entry> entries_of(const morel::Value& list) const;

  // -- steps --
  void add_nodes(const Graph& graph);
  void add_node(const Node& node);
  void add_elementwise(const Call& call);
  void add_view(const Call& call);
  void add_reduce(const Call& call);
  Entry reduced_last(const Entry& entry, const Ints& axes);
  void add_rows(const Call& call);
  void add_kernel(const Call& call);
  void add_if(const Call& call);
  void add_while(const Call& call);
  void add_bodies(Step& step, const Call& call, std::vector<Entry> operands, size_t state);
  void push(Step step);
  std::vector<Entry> add_results(const Call& call, Step& step);

  // -- memory --
  // Whether the result of the last step's loop may be stored over one of its operands.
  void allow_reuse(const Call& call, size_t num_inputs);
  void reuse_operands();
  bool may_share(const Step& step, int32_t idx, int32_t operand, int32_t out);
  void plan_arena();

  Function& function() { return shared_.plan.functions[static_cast<size_t>(index_)]; }

  Shared& shared_;
  int32_t index_;
  std::unordered_map<const Node*, std::vector<Entry>> entries_;
  std::vector<Entry> all_;  // of the function's values, by index
  // Of steps that are loops: for each result and operand, whether the one may lie where the other does.
  std::unordered_map<size_t, std::vector<std::vector<bool>>> reusable_;
  std::vector<bool> written_inputs_;
  std::string place_;
};

}  // namespace morel::lite
