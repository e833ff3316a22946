#include "morel/codegen/c/plain.h"

#include <algorithm>
#include <span>
#include <sstream>
#include <unordered_map>

#include "morel/base/error.h"
#include "morel/codegen/c/scalar.h"
#include "morel/loops/rewrite.h"

namespace morel::codegen {
namespace {

using loops::Expr;
using loops::ExprNode;
using loops::Program;
using loops::ProgramKind;
using loops::ReduceOp;
using loops::ScalarOp;
using loops::Statement;

bool is_sum(ReduceOp op) { return op == ReduceOp::Sum || op == ReduceOp::Prod; }

// An element as it lies in memory.
std::string memory_type(DType dtype) { return dtype == DType::Float16 ? "uint16_t" : c_storage_type(dtype); }

class PlainEmitter {
 public:
  PlainEmitter(const Program& program, const PlainCall& call)
      : program_(program),
        space_(call.space),
        outer_(call.space.size() - call.pass_axes),
        operands_(call.operands),
        params_(call.params) {
    for (size_t i = outer_; i < space_.size(); ++i) length_ *= space_[i];
    add_scratch();
    merge_axes();
  }

  std::string run() {
    declare_pointers();
    std::string in = "  ";
    for (size_t i = 0; i < outer_; ++i) in = open_loop(in, i);
    for (size_t i = 0, last = program_.statements.size(); i < last;) {
      size_t end = i;
      while (end < last && program_.statements[end].stage == program_.statements[i].stage) ++end;
      emit_stage(in, {program_.statements.data() + i, end - i});
      i = end;
    }
    while (in.size() > 2) {
      in.resize(in.size() - 2);
      out_ << in << "}\n";
    }
    return out_.str();
  }

 private:
  bool columns() const { return program_.kind == ProgramKind::Columns; }
  DType storage(int64_t buffer) const { return program_.buffers[static_cast<size_t>(buffer)].dtype; }

  // Scratch buffers hold one row, which all rows share.
  void add_scratch() {
    for (size_t i = operands_.size(); i < program_.buffers.size(); ++i) {
      PlainOperand row{"scratch" + std::to_string(i), "", std::vector<int64_t>(space_.size(), 0)};
      int64_t stride = 1;
      for (size_t axis = space_.size(); axis-- > outer_; stride *= space_[axis]) row.strides[axis] = stride;
      operands_.push_back(std::move(row));
    }
  }

  // Neighbouring axes that all operands walk through as one, and axes of size 1.
  void merge_axes() {
    for (size_t i = space_.size(); i-- > 0;) {
      const bool first = i == 0 || i == outer_;
      if (space_[i] != 1 && (first || !can_merge(i))) continue;
      if (space_[i] != 1) {
        space_[i - 1] *= space_[i];
        for (PlainOperand& x : operands_)
          if (!x.strides.empty()) x.strides[i - 1] = x.strides[i];
      }
      space_.erase(space_.begin() + static_cast<int64_t>(i));
      for (PlainOperand& x : operands_)
        if (!x.strides.empty()) x.strides.erase(x.strides.begin() + static_cast<int64_t>(i));
      if (i < outer_) --outer_;
    }
  }
  bool can_merge(size_t i) const {
    return std::ranges::all_of(operands_, [&](const PlainOperand& x) {
      return x.strides.empty() || x.strides[i - 1] == x.strides[i] * space_[i];
    });
  }

  void declare_pointers() {
    for (size_t i = 0; i < operands_.size(); ++i) {
      const loops::Buffer& buffer = program_.buffers[i];
      const std::string type = memory_type(buffer.dtype), name = std::to_string(i);
      if (buffer.scratch) out_ << "  " << type << " scratch" << name << "[" << length_ << "];\n";
      if (!operands_[i].literal.empty()) continue;
      const std::string constant = buffer.role == loops::BufferRole::Input ? "const " : "";
      out_ << "  " << constant << type << "* b" << name << " = (" << constant << type << "*)" << operands_[i].pointer
           << ";\n";
    }
  }

  std::string open_loop(const std::string& in, size_t axis) {
    const std::string i = "i" + std::to_string(axis);
    out_ << in << "for (int32_t " << i << " = 0; " << i << " < " << space_[axis] << "; ++" << i << ") {\n";
    return in + "  ";
  }

  std::string element(int64_t buffer, bool in_pass) const {
    const PlainOperand& x = operands_[static_cast<size_t>(buffer)];
    std::string place;
    for (size_t axis = 0; axis < (in_pass ? space_.size() : outer_); ++axis) {
      if (x.strides[axis] == 0) continue;
      place += (place.empty() ? "i" : " + i") + std::to_string(axis);
      if (x.strides[axis] != 1) place += " * " + std::to_string(x.strides[axis]);
    }
    return "b" + std::to_string(buffer) + "[" + (place.empty() ? "0" : place) + "]";
  }

  // One pass, and what follows it once for each row.
  void emit_stage(const std::string& in, std::span<const Statement> statements) {
    std::vector<const Statement*> pass, rows;
    for (const Statement& statement : statements)
      (statement.kind == Statement::Kind::StoreRow ? rows : pass).push_back(&statement);
    if (!pass.empty()) emit_pass(in, pass);
    if (rows.empty()) return;
    out_ << in << "{\n";
    begin(in + "  ", false);
    for (const Statement* statement : rows) store(*statement);
    out_ << body_.str() << in << "}\n";
  }

  void emit_pass(const std::string& in, const std::vector<const Statement*>& statements) {
    for (const Statement* statement : statements)
      if (statement->kind == Statement::Kind::Reduce) declare_register(in, *statement);
    const bool once = space_.size() == outer_;  // no loop is a block for its names
    begin(in + std::string(once ? 2 : 2 * (space_.size() - outer_), ' '), true);
    load_inputs(statements);
    for (const Statement* statement : statements) {
      if (statement->kind == Statement::Kind::Reduce) accumulate(*statement);
      else store(*statement);
    }
    const std::string body = body_.str();
    if (counts_) out_ << in << "int32_t at" << stage_ << " = 0;\n";
    std::string deep = in;
    for (size_t i = outer_; i < space_.size(); ++i) deep = open_loop(deep, i);
    if (once) {
      out_ << in << "{\n";
      deep += "  ";
    }
    out_ << body;
    if (counts_) out_ << deep << "++at" << stage_ << ";\n";
    while (deep.size() > in.size()) {
      deep.resize(deep.size() - 2);
      out_ << deep << "}\n";
    }
    for (const Statement* statement : statements)
      if (statement->kind == Statement::Kind::Reduce) fold(in, *statement);
    ++stage_;
  }

  // Float sums of a row go to lanes as program.h promises; the order of nothing else matters.
  bool has_lanes(const Statement& statement) const {
    return !columns() && is_sum(statement.reduce) && is_float(statement.value.dtype());
  }
  int64_t whole() const { return length_ / loops::num_lanes * loops::num_lanes; }

  static std::string register_name(const Statement& statement) { return "r" + std::to_string(statement.target); }
  std::string type_of(const Statement& statement) const { return c_type(statement.value.dtype()); }

  void declare_register(const std::string& in, const Statement& statement) {
    const std::string r = register_name(statement), type = type_of(statement),
                      start = identity(statement.reduce, statement.value.dtype());
    if (has_lanes(statement)) {
      out_ << in << type << " " << r << ", lanes_" << r << "[" << loops::num_lanes << "], block_" << r << "["
           << loops::num_lanes << "];\n"
           << in << "for (int32_t l = 0; l < " << loops::num_lanes << "; ++l) lanes_" << r << "[l] = block_" << r
           << "[l] = " << start << ";\n";
    } else if (is_arg(statement.reduce)) {
      out_ << in << type << " best_" << r << " = " << start << ";\n" << in << "int64_t " << r << " = -1;\n";
    } else {
      out_ << in << type << " " << r << " = " << start << ";\n";
    }
  }

  static std::string combined(const Statement& statement, const std::string& x, const std::string& y) {
    return combiner(statement.reduce, statement.value.dtype()) + "(" + x + ", " + y + ")";
  }

  void accumulate(const Statement& statement) {
    const std::string r = register_name(statement), value = text(statement.value);
    if (is_arg(statement.reduce)) {
      const std::string sign = statement.reduce == ReduceOp::ArgMax ? " > " : " < ", best = "best_" + r;
      const std::string nan = is_float(statement.value.dtype())
                                  ? " || (" + value + " != " + value + " && " + best + " == " + best + ")"
                                  : "";
      body_ << in_ << "if (" << r << " < 0 || " << value << sign << best << nan << ") " << best << " = " << value
            << ", " << r << " = " << position() << ";\n";
      return;
    }
    if (!has_lanes(statement)) {
      body_ << in_ << r << " = " << combined(statement, r, value) << ";\n";
      return;
    }
    const auto add = [&](const std::string& lanes) {
      const std::string lane = lanes + "[" + position() + " % " + std::to_string(loops::num_lanes) + "]";
      return lane + " = " + combined(statement, lane, value) + ";\n";
    };
    if (whole() == 0) {
      body_ << in_ << add("lanes_" + r);
      return;
    }
    if (whole() < length_)
      body_ << in_ << "if (" << position() << " >= " << whole() << ") " << add("lanes_" + r) << in_ << "else ";
    else body_ << in_;
    const std::string lane = "lanes_" + r + "[l]", block = "block_" + r + "[l]";
    body_ << add("block_" + r) << in_ << "if (" << position() << " % " << loops::block_size
          << " == " << loops::block_size - 1 << " || " << position() << " == " << whole() - 1 << ")\n"
          << in_ << "  for (int32_t l = 0; l < " << loops::num_lanes << "; ++l) " << lane << " = "
          << combined(statement, lane, block) << ", " << block << " = "
          << identity(statement.reduce, statement.value.dtype()) << ";\n";
  }

  void fold(const std::string& in, const Statement& statement) {
    const std::string r = register_name(statement);
    if (is_arg(statement.reduce)) {
      out_ << in << "if (" << r << " < 0) " << r << " = 0;\n" << in << "(void)best_" << r << ";\n";
      return;
    }
    if (!has_lanes(statement)) return;
    const std::string lane = "lanes_" + r + "[l]";
    out_ << in << "(void)block_" << r << ";\n"
         << in << "for (int32_t half = " << loops::num_lanes / 2 << "; half > 0; half /= 2)\n"
         << in << "  for (int32_t l = 0; l < half; ++l) " << lane << " = "
         << combined(statement, lane, "lanes_" + r + "[l + half]") << ";\n"
         << in << r << " = lanes_" << r << "[0];\n";
  }

  void begin(std::string in, bool in_pass) {
    in_ = std::move(in);
    in_pass_ = in_pass;
    counts_ = false;
    names_.clear();
    body_.str("");
  }

  // Before the first store, which may lie over one of them.
  void load_inputs(const std::vector<const Statement*>& statements) {
    std::unordered_map<const ExprNode*, bool> seen;
    for (const Statement* statement : statements)
      loops::visit(statement->value, seen, [&](const Expr& x) {
        if (x->op == ScalarOp::Load && program_.buffers[static_cast<size_t>(x->index)].role == loops::BufferRole::Input)
          text(x);
      });
  }

  void store(const Statement& statement) {
    const std::string value = text(statement.value);
    const DType dtype = storage(statement.target);
    const std::string stored =
        is_half(dtype) ? "morel_to_" + std::string(info(dtype).short_name) + "(" + value + ")" : value;
    body_ << in_ << element(statement.target, in_pass_) << " = " << stored << ";\n";
  }

  std::string position() {
    if (space_.size() == outer_) return "0";
    if (space_.size() - outer_ == 1) return "i" + std::to_string(outer_);
    counts_ = true;
    return "at" + std::to_string(stage_);
  }

  // The name of a value, computed in front of what reads it.
  std::string text(const Expr& x) {
    if (const auto found = names_.find(x.get()); found != names_.end()) return found->second;
    if (x->op == ScalarOp::Const) return c_literal(x->value, x.dtype());
    if (x->op == ScalarOp::Reg) return "r" + std::to_string(x->index);
    std::string value;
    if (x->args.empty()) {
      value = leaf(x);
    } else if (x->op == ScalarOp::SelectRare && x->args[1]->args.size() == 1) {
      const std::string operand[] = {text(x->args[1]->args[0])};  // computed only where it is needed
      value = text(x->args[0]) + " ? " + c_operation(*x->args[1].get(), operand) + " : " + text(x->args[2]);
    } else {
      std::vector<std::string> args;
      for (const Expr& arg : x->args) args.push_back(text(arg));
      value = c_operation(*x.get(), args);
    }
    const std::string name = "v" + std::to_string(names_.size());
    body_ << in_ << "const " << c_type(x.dtype()) << " " << name << " = " << value << ";\n";
    return names_[x.get()] = name;
  }

  std::string leaf(const Expr& x) {
    switch (x->op) {
      case ScalarOp::Param: {
        const double value = x->index < 0 ? static_cast<double>(length_) : params_[static_cast<size_t>(x->index)];
        return c_literal(value, x.dtype());
      }
      case ScalarOp::Index:
        MOREL_CHECK(!columns(), NotImplemented, "the loop '", program_.name,
                    "' counts along an axis it does not reduce");
        return position();
      case ScalarOp::RowIndex: return position();
      default: break;
    }
    const PlainOperand& operand = operands_[static_cast<size_t>(x->index)];
    if (!operand.literal.empty()) return operand.literal;
    const DType dtype = storage(x->index);
    const std::string read = element(x->index, in_pass_);
    if (is_half(dtype)) return "morel_from_" + std::string(info(dtype).short_name) + "(" + read + ")";
    return dtype == DType::Bool ? read + " != 0" : read;
  }

  const Program& program_;
  std::vector<int64_t> space_;
  size_t outer_;
  std::vector<PlainOperand> operands_;
  std::vector<double> params_;
  int64_t length_ = 1;  // of a pass
  int stage_ = 0;
  std::ostringstream out_;
  // The scope that is being written.
  std::ostringstream body_;
  std::string in_;
  bool in_pass_ = true, counts_ = false;  // counts_: it needs the position along several axes
  std::unordered_map<const ExprNode*, std::string> names_;
};

}  // namespace

std::string plain_loops(const Program& program, const PlainCall& call) { return PlainEmitter(program, call).run(); }

}  // namespace morel::codegen
