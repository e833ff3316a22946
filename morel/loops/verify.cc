#include <unordered_map>

#include "morel/base/error.h"
#include "morel/loops/program.h"
#include "morel/loops/rewrite.h"

namespace morel::loops {
namespace {

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  void run() {
    if (program_.name.empty()) fail("it has no name");
    int last = 0;
    for (statement_ = 0; statement_ < program_.statements.size(); ++statement_) {
      const Statement& statement = program_.statements[statement_];
      if (statement.value.get() == nullptr) fail("a statement has no value");
      if (statement.stage < last) fail("statements are not ordered by stage");
      last = statement.stage;
      visit(statement.value, seen_, [&](const Expr& x) { check_node(x); });
      check_leaves(statement);
      check_target(statement);
    }
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      if (program_.buffers[i].role == BufferRole::Output && !stored_.contains(i))
        fail(cat("output ", i, " is never stored"));
    }
  }

 private:
  struct Place {
    int stage;
    DType dtype;
    bool row;
  };

  [[noreturn]] void fail(const std::string& why) const {
    raise(ErrorKind::Internal, "internal error: loop program '", program_.name, "', statement ", statement_, ": ", why);
  }

  void check_node(const Expr& x) const {
    if (x->weak) fail("an untyped constant is left");
    if (is_half(x.dtype())) fail("a value has a half type");
    if (static_cast<int>(x->args.size()) != arity(x->op))
      fail(cat("'", op_name(x->op), "' has ", x->args.size(), " operands"));
    if (x->op == ScalarOp::Load && !(x->index >= 0 && x->index < static_cast<int64_t>(program_.buffers.size()))) {
      fail(cat("buffer ", x->index, " is not declared"));
    }
    if (x->op == ScalarOp::Load && x.dtype() != compute_dtype(program_.buffers[x->index].dtype)) {
      fail(cat("a load of buffer ", x->index, " has type ", info(x.dtype()).name));
    }
    if (x->op == ScalarOp::Param && !(x->index >= -1 && x->index < program_.num_params)) {
      fail(cat("parameter ", x->index, " is not declared"));
    }
  }

  // Leaves whose meaning depends on the statement that reads them.
  void check_leaves(const Statement& statement) const {
    const bool row = statement.kind == Statement::Kind::StoreRow;
    std::unordered_map<const ExprNode*, bool> seen;
    visit(statement.value, seen, [&](const Expr& x) {
      if (x->op == ScalarOp::Index && row && program_.kind == ProgramKind::Rows)
        fail("a row store reads the inner position");
      if (x->op == ScalarOp::RowIndex && (row || program_.kind == ProgramKind::Rows))
        fail("only passes of Columns programs know their row");
      if (x->op == ScalarOp::Reg) {
        const auto it = regs_.find(x->index);
        if (it == regs_.end()) fail(cat("register ", x->index, " is read before it is computed"));
        if (it->second.dtype != x.dtype()) fail(cat("register ", x->index, " is read as ", info(x.dtype()).name));
        if (it->second.stage + (row ? 0 : 1) > statement.stage)
          fail(cat("register ", x->index, " is read in its own stage"));
      }
      if (x->op == ScalarOp::Load && program_.buffers[x->index].role == BufferRole::Output) {
        const auto it = stored_.find(x->index);
        if (it == stored_.end()) fail(cat("output ", x->index, " is read before it is stored"));
        if (it->second.row) fail(cat("output ", x->index, ", stored once per row, is read back"));
      }
    });
  }

  void check_target(const Statement& statement) {
    const DType value = statement.value.dtype();
    if (statement.kind == Statement::Kind::Reduce) {
      if (statement.target < 0 || statement.target >= program_.num_regs)
        fail(cat("register ", statement.target, " is not declared"));
      const Place place{statement.stage, reduce_dtype(statement.reduce, value), false};
      if (!regs_.emplace(statement.target, place).second)
        fail(cat("register ", statement.target, " is computed twice"));
      return;
    }
    if (statement.target < 0 || statement.target >= static_cast<int64_t>(program_.buffers.size()) ||
        program_.buffers[statement.target].role != BufferRole::Output) {
      fail(cat("buffer ", statement.target, " is not an output"));
    }
    const DType storage = program_.buffers[statement.target].dtype;
    if (value != compute_dtype(storage)) {
      fail(cat("a ", info(value).name, " value is stored to an output of type ", info(storage).name));
    }
    const Place place{statement.stage, value, statement.kind == Statement::Kind::StoreRow};
    if (!stored_.emplace(statement.target, place).second) fail(cat("output ", statement.target, " is stored twice"));
  }

  const Program& program_;
  size_t statement_ = 0;
  std::unordered_map<const ExprNode*, bool> seen_;
  std::unordered_map<int64_t, Place> regs_;
  std::unordered_map<int64_t, Place> stored_;
};

}  // namespace

void verify(const Program& program) { Verifier(program).run(); }

}  // namespace morel::loops
