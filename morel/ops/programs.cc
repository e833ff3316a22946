// Loop programs of the registry's entries, and their names in the ahead-of-time library.
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>

#include "morel/loops/library.h"
#include "morel/ops/registry.h"

namespace morel {

using loops::Expr;

std::string elementwise_name(const OpDef& op, DType dtype) { return cat(op.name, ".", info(dtype).short_name); }

loops::Program elementwise_program(const OpDef& op, DType dtype) {
  loops::ProgramBuilder builder(elementwise_name(op, dtype));
  Expr args[8];
  int count = 0;
  for (size_t i = 0; i < op.schema.size(); ++i) {
    const ArgSpec& spec = op.schema.args[i];
    const bool condition = op.bool_args >> i & 1;
    if (spec.is_tensor_like() || spec.kinds & kNumber) {
      args[count++] = builder.input(condition ? DType::Bool : dtype);
    } else {
      args[count++] = builder.param(compute_dtype(dtype));
    }
  }
  MOREL_CHECK(count == op.loop.arity(), Internal, "operator ", op.name, ": loop takes ", op.loop.arity(),
              " operands, the schema has ", count);
  const int64_t out = builder.output(elementwise_result_dtype(op, dtype));
  builder.store(out, op.loop(args));
  return builder.finish();
}

std::string reduce_name(const OpDef& op, DType in, DType out, loops::ProgramKind kind) {
  return loops::reduction_name(op.name, in, out, kind);
}

loops::Program reduce_program(const OpDef& op, DType in, DType out, loops::ProgramKind kind) {
  using loops::ReduceOp;
  loops::ProgramBuilder builder(reduce_name(op, in, out, kind), kind);
  Expr x = builder.input(in);
  const ReduceOp reduce = *op.reduce;
  const bool positional = reduce == ReduceOp::ArgMin || reduce == ReduceOp::ArgMax;
  if (reduce == ReduceOp::Any || reduce == ReduceOp::All) {
    if (in != DType::Bool) x = x != loops::constant_like(0, x);
  } else if (!positional && compute_dtype(out) != x.dtype()) {
    x = cast(x, compute_dtype(out));
  }
  const int64_t target = builder.output(positional ? DType::Int64 : out);
  const Expr result = builder.reduce(reduce, x);
  builder.store_row(target, result);
  return builder.finish();
}

std::string rows_name(const OpDef& op, DType dtype) { return cat(op.name, ".", info(dtype).short_name); }
std::string across_name(const OpDef& op, DType dtype) { return cat(op.name, ".", info(dtype).short_name, ".across"); }
std::string columns_name(const OpDef& op, DType dtype) { return cat(op.name, ".", info(dtype).short_name, ".columns"); }

loops::Program rows_program(const OpDef& op, DType dtype) {
  loops::ProgramBuilder builder(rows_name(op, dtype));
  op.rows(builder, dtype);
  return builder.finish();
}

bool can_go_across(const OpDef& op) { return op.rows && !op.columns && op.schema.find("axis") >= 0; }

loops::Program across_program(const OpDef& op, DType dtype) {
  loops::ProgramBuilder builder(across_name(op, dtype), loops::ProgramKind::Columns, true);
  op.rows(builder, dtype);
  return builder.finish();
}

loops::Program columns_program(const OpDef& op, DType dtype) {
  loops::ProgramBuilder builder(columns_name(op, dtype), loops::ProgramKind::Columns);
  op.columns(builder, dtype);
  return builder.finish();
}

loops::LoopSignature signature_of(const loops::Program& program) {
  loops::LoopSignature out;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const loops::Buffer& buffer = program.buffers[i];
    if (buffer.role == loops::BufferRole::Input) {
      MOREL_CHECK(out.outputs.empty(), Internal, "loop program ", program.name, ": inputs come before outputs");
      out.inputs.push_back(buffer.dtype);
      continue;
    }
    if (buffer.scratch) {
      out.scratch.push_back(buffer.dtype);
      continue;
    }
    MOREL_CHECK(out.scratch.empty(), Internal, "loop program ", program.name, ": outputs come before scratch");
    bool per_row = false;
    for (const loops::Statement& statement : program.statements)
      if (statement.kind == loops::Statement::Kind::StoreRow && statement.target == static_cast<int64_t>(i))
        per_row = true;
    out.outputs.push_back({buffer.dtype, per_row});
  }
  return out;
}

namespace {

template <class Make>
const loops::LoopSignature& cached_signature(std::map<std::pair<int, DType>, loops::LoopSignature>& cache,
                                             const OpDef& op, DType dtype, Make make) {
  static std::shared_mutex mutex;
  const std::pair key(op.id, dtype);
  {
    const std::shared_lock lock(mutex);
    if (const auto found = cache.find(key); found != cache.end()) return found->second;
  }
  loops::LoopSignature made = signature_of(make(op, dtype));
  const std::unique_lock lock(mutex);
  return cache.emplace(key, std::move(made)).first->second;
}

}  // namespace

const loops::LoopSignature& rows_signature(const OpDef& op, DType dtype) {
  static auto* cache = new std::map<std::pair<int, DType>, loops::LoopSignature>;
  return cached_signature(*cache, op, dtype, rows_program);
}

const loops::LoopSignature& columns_signature(const OpDef& op, DType dtype) {
  static auto* cache = new std::map<std::pair<int, DType>, loops::LoopSignature>;
  return cached_signature(*cache, op, dtype, columns_program);
}

// Result types of the library's reductions of `in`. Sums of integers are int64 and those of halves also float32, in
// which partial sums are kept.
static std::set<DType> reduce_outputs(const OpDef& op, DType in) {
  using loops::ReduceOp;
  switch (*op.reduce) {
    case ReduceOp::Any:
    case ReduceOp::All: return {DType::Bool};
    case ReduceOp::ArgMin:
    case ReduceOp::ArgMax: return {DType::Int64};
    case ReduceOp::Sum:
    case ReduceOp::Prod:
      if (is_half(in)) return {in, DType::Float32};
      if (in == DType::Float32) return {in, DType::Float16, DType::BFloat16};
      return {is_differentiable(in) ? in : DType::Int64};
    default: return {in};
  }
}

bool has_reduce_program(const OpDef& op, DType in, DType out) { return reduce_outputs(op, in).contains(out); }

std::vector<loops::Program> ahead_of_time_programs() {
  std::vector<loops::Program> out;
  std::set<std::string> seen;
  const auto add = [&](loops::Program program) {
    if (seen.insert(program.name).second) out.push_back(std::move(program));
  };
  for (const OpDef& op : registry().ops()) {
    for (int i = 0; i < num_dtypes; ++i) {
      const DType dtype = static_cast<DType>(i);
      if (!contains(op.dtypes, dtype)) continue;
      if (op.loop && (op.promotion != Promotion::Logic || dtype == DType::Bool)) add(elementwise_program(op, dtype));
      if (op.rows) add(rows_program(op, dtype));
      if (can_go_across(op)) add(across_program(op, dtype));
      if (op.columns) add(columns_program(op, dtype));
      if (op.reduce)
        for (const DType result : reduce_outputs(op, dtype))
          for (const auto kind : {loops::ProgramKind::Rows, loops::ProgramKind::Columns})
            add(reduce_program(op, dtype, result, kind));
    }
  }
  return out;
}

}  // namespace morel
