#include "morel/loops/program.h"

#include <algorithm>
#include <unordered_map>

#include "morel/base/error.h"
#include "morel/loops/math.h"
#include "morel/loops/rewrite.h"

namespace morel::loops {

std::string_view reduce_name(ReduceOp op) {
  constexpr std::string_view names[] = {"sum", "prod", "min", "max", "any", "all", "argmin", "argmax"};
  return names[static_cast<int>(op)];
}

DType reduce_dtype(ReduceOp op, DType value) {
  const bool ordered = is_integral(value) || is_float(value);
  bool good = false;
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Prod: good = value != DType::Bool; break;
    case ReduceOp::Any:
    case ReduceOp::All: good = value == DType::Bool; break;
    default: good = ordered; break;
  }
  MOREL_CHECK(good, Internal, "internal error: loop reduction '", reduce_name(op), "' has no meaning for ",
              info(value).name);
  return op == ReduceOp::ArgMin || op == ReduceOp::ArgMax ? DType::Int64 : value;
}

ProgramBuilder::ProgramBuilder(std::string name, ProgramKind kind, bool across) : across_(across) {
  MOREL_ASSERT(!across || kind == ProgramKind::Columns);
  program_.name = std::move(name);
  program_.kind = kind;
}

Expr ProgramBuilder::input(DType dtype) {
  if (call_) return call_->inputs.at(call_->next_input++);
  program_.buffers.push_back({dtype, BufferRole::Input});
  return load(static_cast<int64_t>(program_.buffers.size()) - 1, dtype);
}

int64_t ProgramBuilder::add_output(DType dtype) {
  program_.buffers.push_back({dtype, BufferRole::Output});
  return static_cast<int64_t>(program_.buffers.size()) - 1;
}

int64_t ProgramBuilder::output(DType dtype) {
  if (!call_) return add_output(dtype);
  call_->dtypes.push_back(dtype);
  call_->outputs.emplace_back();
  return -static_cast<int64_t>(call_->outputs.size());  // no buffer
}

Expr ProgramBuilder::row_input(DType dtype) {
  const Expr out = input(dtype);
  if (!call_) program_.buffers.back().per_row = !across_;
  return out;
}

int64_t ProgramBuilder::scratch(DType dtype) {
  const int64_t out = add_output(dtype);
  program_.buffers.back().scratch = true;
  return out;
}

void ProgramBuilder::begin_call(std::vector<Expr> inputs, std::vector<Expr> params) {
  MOREL_ASSERT(!call_);
  call_.emplace();
  call_->inputs = std::move(inputs);
  call_->params = std::move(params);
}

std::vector<Expr> ProgramBuilder::end_call() {
  std::vector<Expr> out = std::move(call_->outputs);
  call_.reset();
  return out;
}

Expr ProgramBuilder::record(int64_t output, const Expr& value) {
  const size_t idx = static_cast<size_t>(-output - 1);
  const DType dtype = call_->dtypes.at(idx);
  const Expr typed = value->weak ? constant(value->value, dtype) : value;
  return call_->outputs[idx] = is_half(dtype) ? cast(typed, dtype) : typed;
}

Expr ProgramBuilder::position() { return across_ ? row_index() : inner_index(); }

Expr ProgramBuilder::param(DType dtype) {
  return call_ ? cast(call_->params.at(call_->next_param++), dtype) : loops::param(program_.num_params++, dtype);
}

Expr ProgramBuilder::row_length() { return loops::param(-1, DType::Float64); }

Expr ProgramBuilder::reduce(ReduceOp op, const Expr& value) {
  MOREL_ASSERT(!value->weak);
  if (value.dtype() == DType::Bool && op == ReduceOp::Min) op = ReduceOp::All;
  if (value.dtype() == DType::Bool && op == ReduceOp::Max) op = ReduceOp::Any;
  const int64_t reg = program_.num_regs++;
  program_.statements.push_back({Statement::Kind::Reduce, value, op, reg, 0});
  auto node = std::make_shared<ExprNode>();
  node->op = ScalarOp::Reg;
  node->dtype = reduce_dtype(op, value.dtype());
  node->index = reg;
  return Expr(std::move(node));
}

Expr ProgramBuilder::store(int64_t output, const Expr& value) {
  if (output < 0) return record(output, value);
  const DType dtype = program_.buffers.at(output).dtype;
  const Expr typed = value->weak ? constant(value->value, dtype) : value;
  program_.statements.push_back({Statement::Kind::Store, typed, ReduceOp::Sum, output, 0});
  return load(output, dtype);
}

void ProgramBuilder::store_row(int64_t output, const Expr& value) {
  if (output < 0) return void(record(output, value));
  const Expr typed = value->weak ? constant(value->value, program_.buffers.at(output).dtype) : value;
  program_.statements.push_back({Statement::Kind::StoreRow, typed, ReduceOp::Sum, output, 0});
}

Program ProgramBuilder::finish() {
  Rewriter expand(expand_math);
  std::unordered_map<int64_t, int> reg_stage, store_stage;
  int stage = 0;
  for (Statement& statement : program_.statements) {
    statement.value = expand(statement.value);
    stage = 0;
    std::unordered_map<const ExprNode*, bool> seen;
    visit(statement.value, seen, [&](const Expr& x) {
      // A StoreRow runs after the pass of its stage, so it may read the registers of that stage.
      const int later = statement.kind == Statement::Kind::StoreRow ? 0 : 1;
      if (x->op == ScalarOp::Reg && reg_stage.contains(x->index))
        stage = std::max(stage, reg_stage.at(x->index) + later);
      if (x->op == ScalarOp::Load && store_stage.contains(x->index)) stage = std::max(stage, store_stage.at(x->index));
    });
    statement.stage = stage;
    (statement.kind == Statement::Kind::Reduce ? reg_stage : store_stage)[statement.target] = stage;
  }
  std::stable_sort(program_.statements.begin(), program_.statements.end(), [](const Statement& a, const Statement& b) {
    const bool row_a = a.kind == Statement::Kind::StoreRow, row_b = b.kind == Statement::Kind::StoreRow;
    return a.stage != b.stage ? a.stage < b.stage : row_a < row_b;
  });
  verify(program_);
  return std::move(program_);
}

bool can_store_over(const Program& program, int64_t input, int64_t output) {
  if (program.buffers[input].dtype != program.buffers[output].dtype) return false;
  int stored = -1;
  for (const Statement& statement : program.statements) {
    if (statement.kind != Statement::Kind::Reduce && statement.target == output) {
      if (statement.kind == Statement::Kind::StoreRow) return false;
      stored = statement.stage;
    }
  }
  bool good = true;
  std::unordered_map<const ExprNode*, bool> seen;
  for (const Statement& statement : program.statements) {
    const bool late =
        statement.stage > stored || (statement.stage == stored && statement.kind == Statement::Kind::StoreRow);
    if (!late) continue;
    visit(statement.value, seen,
          [&](const Expr& x) { good = good && !(x->op == ScalarOp::Load && x->index == input); });
  }
  // In a Columns program one row's store may come before another row's load only in a later stage, which is excluded
  // above.
  return good;
}

}  // namespace morel::loops
