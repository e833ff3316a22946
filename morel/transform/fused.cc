#include "morel/transform/fused.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "morel/ops/call.h"

namespace morel {
namespace {

using loops::Expr;

// Rows of at most this many elements run side by side.
constexpr int64_t short_row = 32;
// Fewer rows than this are cut into pieces where they have that many elements.
constexpr int64_t few_rows = 64, long_row = 65536;

bool is_scalar_argument(const OpDef& op, size_t i) {
  return !op.schema.args[i].is_tensor_like() && !(op.schema.args[i].kinds & kNumber);
}

// A number that is the same whatever sizes the graph is called with.
bool is_constant(const Value& arg) { return arg.is_number() && arg.tag() != Value::Tag::Size; }

// Elementwise: whether no operand is converted on the way.
bool is_element(const Node& node) {
  const OpDef& op = *node.op;
  if (!op.is_elementwise() || is_complex(node.types[0].dtype)) return false;
  const DType compute = elementwise_compute_dtype(op, {node.args.data(), node.args.size()});
  if (is_complex(compute)) return false;
  for (size_t i = 0; i < node.args.size(); ++i) {
    const Value& arg = node.args[i];
    const bool is_node = arg.tag() == Value::Tag::Node;
    if (is_scalar_argument(op, i)) {
      if (is_node || !is_constant(arg)) return false;
    } else if (is_node) {
      if (dtype_of_value(arg) != (op.bool_args >> i & 1 ? DType::Bool : compute)) return false;
    } else if (!is_constant(arg)) {
      return false;
    }
  }
  return true;
}

// Conversions that the loops do as the conversion kernels do.
bool is_conversion(const Node& node) {
  if (!node.op->has(kConverts)) return false;
  const auto narrow = [](DType dtype) { return dtype == DType::Float32 || is_half(dtype); };
  return narrow(node.types[0].dtype) &&
         (narrow(type_of(node.args[0]).dtype) || type_of(node.args[0]).dtype == DType::Bool);
}

DType rows_dtype(const Node& node) {
  for (const Value& arg : node.args)
    if (node_of(arg)) return dtype_of_value(arg);
  return DType::Float32;
}

// Row-wise along the last axis, with operands as its program takes them.
bool is_row(const Node& node, Shape& space) {
  const OpDef& op = *node.op;
  if (!op.rows) return false;
  space.clear();
  size_t operand = 0;
  const loops::LoopSignature& signature = rows_signature(op, rows_dtype(node));
  for (size_t i = 0; i < node.args.size(); ++i) {
    if (is_scalar_argument(op, i)) {
      if (!is_constant(node.args[i])) return false;
      continue;
    }
    const DType wanted = signature.inputs[operand++];
    if (!node_of(node.args[i])) {
      if (!is_constant(node.args[i])) return false;
      continue;
    }
    const Type type = type_of(node.args[i]);
    if (type.dtype != wanted && !(is_half(type.dtype) && wanted == DType::Float32)) return false;
    space = broadcast_shapes(op, space, type.shape);
  }
  const int axis = op.schema.find("axis");
  const int64_t rank = static_cast<int64_t>(space.size());
  return rank > 0 &&
         (axis < 0 || normalize_axis(op, "axis", node.args[static_cast<size_t>(axis)].integer(), rank) == rank - 1);
}

Part reduction_part(const Node& node, Shape& space) {
  const OpDef& op = *node.op;
  if (!op.reduce || *op.reduce == loops::ReduceOp::ArgMin || *op.reduce == loops::ReduceOp::ArgMax) return Part::None;
  const Type type = type_of(node.args[0]);
  if (is_complex(type.dtype) || !has_reduce_program(op, type.dtype, node.types[0].dtype)) return Part::None;
  space = type.shape;
  const int64_t rank = static_cast<int64_t>(space.size());
  const Ints axes = normalize_axes(op, "axis", node.args[1], rank);
  if (axes.empty()) return Part::None;
  return axes == Ints{rank - 1} && has_plain_rows(space) ? Part::RowReduce : Part::Reduce;
}

}  // namespace

Part part_of(const Node& node, Shape& space) {
  if (has_effect(*node.op)) return Part::None;
  if (is_element(node) || is_conversion(node)) {
    space = node.types[0].shape;
    return Part::Element;
  }
  if (node.op->rows) return is_row(node, space) && has_plain_rows(space) ? Part::Row : Part::None;
  return reduction_part(node, space);
}

bool same(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](Dim x, Dim y) { return x.identical(y); });
}

Shape row_shape(const Shape& space) {
  Shape out = space;
  out.end()[-1] = 1;
  return out;
}

bool has_plain_rows(const Shape& space) {
  if (space.empty()) return false;
  const Dim length = space.end()[-1], rows = num_elements(row_shape(space));
  if (length.is_symbolic()) return true;
  return length > short_row && (length < long_row || rows.is_symbolic() || rows >= few_rows);
}

FusedBody describe_fused(const Graph& body) {
  FusedBody out;
  for (const Ref<Node>& node : body.nodes) {
    Shape space;
    const Part part = part_of(*node, space);
    if (part == Part::Row || part == Part::RowReduce) out.kind = FusedBody::Kind::Rows;
    if (part == Part::Reduce) out.kind = FusedBody::Kind::Reduction, out.reduce = node.get();
    if (node->op->columns) out.columns = node.get();
    out.space = broadcast_shapes(*node->op, out.space, space);
  }
  return out;
}

bool comes_last(const Node& node, uint32_t output) {
  if (node.op->columns)
    return output >= node.types.size() - columns_signature(*node.op, rows_dtype(node)).outputs.size();
  Shape space;
  return node.op->reduce && part_of(node, space) == Part::Reduce;
}

const Node* producer_of(const Graph& body) {
  const Node* first = body.nodes.empty() ? nullptr : body.nodes[0].get();
  return first && first->op->has(kEpilogue) ? first : nullptr;
}

EpilogueParts split_epilogue(const Node& fused) {
  const Graph& body = *static_cast<Graph*>(fused.args[0].graph());
  const Value::List& given = fused.args[1].list();
  std::unordered_map<const Node*, Value> outer;
  for (size_t i = 0; i < given.size(); ++i) outer[body.parameters[i].get()] = given[i];
  EpilogueParts out{producer_of(body), {}, make_ref<Graph>(), {}};
  out.loop->name = body.name;
  for (const Value& arg : out.producer->args)
    out.args.push_back(map_inputs(arg, [&](const Value& input) { return outer.at(node_of(input)); }));
  const auto is_product = [&](const Node* node) {
    return node == out.producer || (node->op && node->op->view && node_of(node->args[0]) == out.producer);
  };
  std::unordered_map<const Node*, Value> inner;
  const auto map = [&](const Value& input) {
    const Node* node = node_of(input);
    const bool product = is_product(node);
    if (!product && node->op) return static_cast<Node*>(inner.at(node).node())->output(input.output());
    Value& known = inner[product ? out.producer : node];
    if (known.is_none()) {
      if (product) out.product = out.operands.size();
      out.operands.push_back(product ? Value() : outer.at(node));
      known = out.loop->add_parameter(type_of(input));
    }
    return known;
  };
  for (const Ref<Node>& node : body.nodes) {
    if (is_product(node.get())) continue;
    Args args;
    for (const Value& arg : node->args) args.push_back(map_inputs(arg, map));
    inner[node.get()] = out.loop->add_node(*node->op, node->name, std::move(args), node->types, node->place).output(0);
  }
  for (const Value& result : body.results) {
    if (node_of(result) == out.producer) out.outputs.push_back(result.output());
    else out.loop->results.push_back(map(result));
  }
  return out;
}

namespace {

// Writes the members of a body into a program.
class Writer {
 public:
  Writer(const Graph& body, loops::ProgramKind kind = loops::ProgramKind::Rows)
      : body_(body), shape_(describe_fused(body)), builder_("fused", kind) {
    const bool rows = shape_.kind == FusedBody::Kind::Rows;
    for (const Ref<Node>& parameter : body.parameters) {
      const Type& type = parameter->types[0];
      const bool per_row = rows && (type.shape.empty() || type.shape.end()[-1].identical(1));
      values_[{parameter.get(), 0}] = per_row ? builder_.row_input(type.dtype) : builder_.input(type.dtype);
    }
  }

  loops::Program write() {
    for (const Value& result : body_.results) {
      const Node* node = node_of(result);
      if (comes_last(*node, result.output())) continue;
      outputs_[{node, result.output()}] = builder_.output(node->types[result.output()].dtype);
    }
    for (const Ref<Node>& node : body_.nodes)
      if (node.get() != shape_.reduce) add(*node);
    for (const Value& result : body_.results) {
      const Key key{node_of(result), result.output()};
      if (outputs_.contains(key) && !stored_.contains(key)) store(key, outputs_.at(key));
    }
    if (shape_.reduce) {
      const DType dtype = compute_dtype(shape_.reduce->types[0].dtype);
      const int64_t output = builder_.output(dtype);
      builder_.store_row(output, reduce(*shape_.reduce));
    }
    return builder_.finish();
  }

  loops::Program write_columns() {
    call(*shape_.columns, shape_.columns->op->columns);
    uint32_t first = 0;
    while (!comes_last(*shape_.columns, first)) ++first;
    for (const Value& result : body_.results) {
      if (!comes_last(*node_of(result), result.output())) continue;
      const int64_t output = builder_.output(shape_.columns->types[result.output()].dtype);
      builder_.store_row(output, values_.at({shape_.columns, result.output() - first}));
    }
    return builder_.finish();
  }

 private:
  using Key = std::pair<const Node*, uint64_t>;

  static Expr rounded(const Expr& value, DType dtype) { return is_half(dtype) ? loops::cast(value, dtype) : value; }

  Expr operand(const Value& arg, DType wanted) const {
    const Node* node = node_of(arg);
    return node ? values_.at({node, arg.output()}) : loops::cast(loops::constant(arg.complex(), wanted), wanted);
  }

  void add(const Node& node) {
    const OpDef& op = *node.op;
    if (op.rows) return call(node, op.rows);
    if (op.reduce) {
      if (readers({node_of(node.args[0]), node.args[0].output()}) > 1) keep(node.args[0]);
      values_[{&node, 0}] = rounded(reduce(node), node.types[0].dtype);
      return;
    }
    if (op.has(kConverts)) {
      values_[{&node, 0}] = loops::cast(operand(node.args[0], DType::Float32), node.types[0].dtype);
      return;
    }
    const DType compute = elementwise_compute_dtype(op, {node.args.data(), node.args.size()});
    Expr args[8];
    for (size_t i = 0; i < node.args.size(); ++i) {
      const bool scalar = is_scalar_argument(op, i);
      args[i] = operand(node.args[i], op.bool_args >> i & 1 ? DType::Bool : scalar ? compute_dtype(compute) : compute);
    }
    values_[{&node, 0}] = rounded(op.loop(args), node.types[0].dtype);
  }

  Expr reduce(const Node& node) {
    const loops::ReduceOp op = *node.op->reduce;
    Expr x = operand(node.args[0], DType::Float32);
    const bool logical = op == loops::ReduceOp::Any || op == loops::ReduceOp::All;
    if (logical && x.dtype() != DType::Bool) x = x != loops::constant_like(0, x);
    if (!logical) x = loops::cast(x, compute_dtype(node.types[0].dtype));
    return builder_.reduce(op, x);
  }

  // Writes a rule of a row-wise member, whose stages read its operands several times.
  void call(const Node& node, RowsRule rule) {
    const OpDef& op = *node.op;
    const DType dtype = rows_dtype(node);
    const loops::LoopSignature& signature = rows_signature(op, dtype);
    std::vector<Expr> inputs, params;
    for (size_t i = 0; i < node.args.size(); ++i) {
      if (!is_scalar_argument(op, i)) {
        keep(node.args[i]);
        inputs.push_back(operand(node.args[i], signature.inputs[inputs.size()]));
      } else if (op.schema.args[i].name != "axis") {
        params.push_back(loops::constant(node.args[i].number(), DType::Float64));
      }
    }
    builder_.begin_call(std::move(inputs), std::move(params));
    rule(builder_, dtype);
    const std::vector<Expr> outs = builder_.end_call();
    for (size_t i = 0; i < outs.size(); ++i) values_[{&node, i}] = outs[i];
  }

  // An operand of a stage that is computed here and read again later is stored and read back.
  void keep(const Value& arg) {
    const Node* node = node_of(arg);
    const Key key{node, arg.output()};
    if (!node || !node->op || !same(node->types[arg.output()].shape, shape_.space) || stored_.contains(key)) return;
    const auto output = outputs_.find(key);
    store(key, output != outputs_.end() ? output->second : builder_.scratch(node->types[arg.output()].dtype));
  }

  // Members that read a value.
  size_t readers(const Key& key) const {
    size_t count = 0;
    for (const Ref<Node>& node : body_.nodes)
      for_each_input(*node, [&](const Value& input) { count += Key{node_of(input), input.output()} == key; });
    return count;
  }

  void store(const Key& key, int64_t output) {
    stored_.insert(key);
    Expr& value = values_.at(key);
    const Shape& shape = key.first->types[key.second].shape;
    if (shape_.kind != FusedBody::Kind::Rows || same(shape, shape_.space)) value = builder_.store(output, value);
    else builder_.store_row(output, value);
  }

  const Graph& body_;
  FusedBody shape_;
  loops::ProgramBuilder builder_;
  std::map<Key, Expr> values_;
  std::map<Key, int64_t> outputs_;
  std::set<Key> stored_;
};

}  // namespace

loops::Program fused_program(const Graph& body) { return Writer(body).write(); }
loops::Program fused_columns_program(const Graph& body) {
  return Writer(body, loops::ProgramKind::Columns).write_columns();
}
loops::Program fused_reduction_program(const Graph& body, loops::ProgramKind kind) {
  return Writer(body, kind).write();
}

}  // namespace morel
