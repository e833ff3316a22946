#include "morel/codegen/opencl/emit.h"

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "morel/codegen/c/scalar.h"

namespace morel::codegen {
namespace {

using loops::Expr;
using loops::ExprNode;
using loops::Program;
using loops::ProgramKind;
using loops::ScalarOp;
using loops::Statement;

// Halves lie in memory as their bits.
std::string element_type(DType dtype) { return is_half(dtype) ? "uint16_t" : c_storage_type(dtype); }

std::string text_of(size_t number) { return std::to_string(number); }

class Emitter {
 public:
  Emitter(const Program& program, const std::string& symbol, size_t axes)
      : program_(program), symbol_(symbol), axes_(axes), grouped_(opencl_shape(program) == OpenClShape::Group) {}

  std::string run() {
    declare_arguments();
    declare_shared();
    enter();
    for (size_t begin = 0, end; begin < program_.statements.size(); begin = end) {
      end = begin;
      while (end < program_.statements.size() && program_.statements[end].stage == program_.statements[begin].stage)
        ++end;
      emit_stage({program_.statements.data() + begin, end - begin});
    }
    out_ << "}\n";
    return out_.str();
  }

 private:
  using Statements = std::span<const Statement>;

  bool columns() const { return program_.kind == ProgramKind::Columns; }
  DType storage(int64_t buffer) const { return program_.buffers[static_cast<size_t>(buffer)].dtype; }

  void declare_arguments() {
    const std::string axes = text_of(std::max<size_t>(axes_, 1)), buffers = text_of(program_.buffers.size()),
                      params = text_of(static_cast<size_t>(std::max(program_.num_params, 1)));
    out_ << "typedef struct {\n  int64_t count, n, rows, sizes[" << axes << "], offset[" << buffers << "], stride["
         << buffers << "], row_stride[" << buffers << "], outer[" << buffers << "][" << axes << "];\n  double params["
         << params << "];\n} " << symbol_ << "_args;\n";
    out_ << "__kernel __attribute__((reqd_work_group_size(MOREL_LANES, 1, 1))) void " << symbol_ << "(";
    for (size_t i = 0; i < program_.buffers.size(); ++i) out_ << "__global char* b" << i << ", ";
    out_ << "const " << symbol_ << "_args a) {\n";
  }

  // Where the lanes of a group meet.
  void declare_shared() {
    if (!grouped_) return;
    for (const Statement& statement : program_.statements) {
      if (statement.kind != Statement::Kind::Reduce) continue;
      out_ << "  __local " << c_storage_type(statement.value.dtype()) << " x" << statement.target << "[MOREL_LANES];\n";
      if (is_arg(statement.reduce)) out_ << "  __local int64_t y" << statement.target << "[MOREL_LANES];\n";
    }
  }

  // Moves the pointers to where this work-item (or group) begins.
  void enter() {
    out_ << "  const int64_t n = a.n;\n";
    if (grouped_) {
      out_ << "  const int lane = get_local_id(0);\n  int64_t rest = get_group_id(0);\n";
    } else {
      out_ << "  const int64_t item = get_global_id(0);\n  if (item >= a.count) return;\n"
           << "  int64_t j = item, rest = 0;\n  if (a.count != n) rest = item / n, j = item - rest * n;\n";
    }
    for (size_t i = 0; i < program_.buffers.size(); ++i) out_ << "  b" << i << " += a.offset[" << i << "];\n";
    for (size_t axis = axes_; axis-- > 0;) {
      const std::string k = text_of(axis);
      out_ << "  {\n    const int64_t at = " << (axis ? "rest % a.sizes[" + k + "]" : "rest") << ";\n";
      if (axis) out_ << "    rest /= a.sizes[" << k << "];\n";
      for (size_t i = 0; i < program_.buffers.size(); ++i)
        out_ << "    b" << i << " += at * a.outer[" << i << "][" << k << "];\n";
      out_ << "  }\n";
    }
  }

  void emit_stage(Statements statements) {
    const auto is_once = [&](const Statement& statement) { return statement.kind == Statement::Kind::StoreRow; };
    const auto is_reduction = [](const Statement& statement) { return statement.kind == Statement::Kind::Reduce; };
    for (const Statement& statement : statements)
      if (is_reduction(statement)) declare_register(statement, "g");
    if (!std::ranges::all_of(statements, is_once)) emit_pass(statements, std::ranges::any_of(statements, is_reduction));
    for (const Statement& statement : statements)
      if (is_reduction(statement)) finish_register(statement);
    if (std::ranges::none_of(statements, is_once)) return;
    out_ << (grouped_ ? "  if (lane == 0) {\n" : "  {\n");
    begin_scope(columns() ? "j" : "0", "0");
    for (const Statement& statement : statements)
      if (is_once(statement)) emit_store(statement);
    out_ << "  }\n";
  }

  void declare_register(const Statement& statement, const std::string& name) {
    const int64_t reg = statement.target;
    out_ << "  " << c_storage_type(statement.value.dtype()) << " " << name << reg << " = "
         << identity(statement.reduce, statement.value.dtype()) << ";\n";
    if (is_arg(statement.reduce) && name == "g") out_ << "  int64_t k" << reg << " = -1;\n";
  }

  // One pass over the inner axis, or over the rows of a Columns program.
  void emit_pass(Statements statements, bool reduces) {
    const bool blocks = grouped_ && reduces;
    if (columns()) {
      out_ << "  for (int64_t row = 0; row < a.rows; ++row) {\n";
      begin_scope("j", "row");
    } else if (blocks) {
      out_ << "  for (int64_t begin = 0, end; begin < n; begin = end) {\n"
           << "    end = n - begin >= MOREL_BLOCK ? begin + MOREL_BLOCK : n - begin >= MOREL_LANES ? n & "
              "-(int64_t)MOREL_LANES : n;\n";
      for (const Statement& statement : statements)
        if (statement.kind == Statement::Kind::Reduce && !is_arg(statement.reduce)) declare_register(statement, "  p");
      out_ << "    for (int64_t j = begin + lane; j < end; j += MOREL_LANES) {\n";
      begin_scope("j", "0");
    } else if (grouped_) {
      out_ << "  for (int64_t j = lane; j < n; j += MOREL_LANES) {\n";
      begin_scope("j", "0");
    } else {
      out_ << "  {\n";
      begin_scope("j", "0");
    }
    for (const Statement& statement : statements) {
      if (statement.kind == Statement::Kind::Reduce) emit_reduction(statement, blocks ? "p" : "g");
      if (statement.kind == Statement::Kind::Store) emit_store(statement);
    }
    if (blocks) {
      out_ << "    }\n";
      for (const Statement& statement : statements)
        if (statement.kind == Statement::Kind::Reduce && !is_arg(statement.reduce))
          combine("    ", statement, "g", "p" + std::to_string(statement.target));
    }
    out_ << "  }\n";
  }

  void combine(const std::string& in, const Statement& statement, const std::string& name, const std::string& value) {
    const std::string reg = name + std::to_string(statement.target);
    out_ << in << reg << " = " << combiner(statement.reduce, statement.value.dtype()) << "(" << reg << ", " << value
         << ");\n";
  }

  void emit_reduction(const Statement& statement, const std::string& name) {
    const std::string value = text(statement.value), reg = std::to_string(statement.target);
    if (!is_arg(statement.reduce)) return combine("    ", statement, name, value);
    keep_better("    ", statement, {value, columns() ? "row" : "j"}, {"g" + reg, "k" + reg}, "");
  }

  struct Place {
    std::string value, index;
  };
  // best = the better one of two positions; NaN wins.
  void keep_better(const std::string& in, const Statement& statement, const Place& given, const Place& best,
                   const std::string& tie) {
    const std::string before = combiner(statement.reduce, statement.value.dtype());
    out_ << in << "if (" << best.index << " < 0 || " << before << "(" << given.value << ", " << best.value
         << ") || (MOREL_NAN(" << given.value << ") && !MOREL_NAN(" << best.value << "))" << tie << ") " << best.value
         << " = " << given.value << ", " << best.index << " = " << given.index << ";\n";
  }

  // The register that later stages read: r.
  void finish_register(const Statement& statement) {
    const std::string reg = std::to_string(statement.target);
    const bool arg = is_arg(statement.reduce);
    const std::string type = arg ? "int64_t" : c_storage_type(statement.value.dtype());
    if (!grouped_) {
      out_ << "  const " << type << " r" << reg << " = " << (arg ? "k" + reg + " < 0 ? 0 : k" : "g") << reg << ";\n";
      return;
    }
    const Place best{"x" + reg + "[lane]", "y" + reg + "[lane]"},
        other{"x" + reg + "[lane + half]", "y" + reg + "[lane + half]"};
    out_ << "  " << best.value << " = g" << reg << ";\n";
    if (arg) out_ << "  " << best.index << " = k" << reg << ";\n";
    out_ << "  for (int half = MOREL_LANES / 2; half > 0; half /= 2) {\n    barrier(CLK_LOCAL_MEM_FENCE);\n";
    if (arg) {
      out_ << "    if (lane < half && " << other.index << " >= 0)\n";
      keep_better("      ", statement, other, best,
                  " || ((" + other.value + " == " + best.value + " || (MOREL_NAN(" + other.value + ") && MOREL_NAN(" +
                      best.value + "))) && " + other.index + " < " + best.index + ")");
    } else {
      out_ << "    if (lane < half) " << best.value << " = " << combiner(statement.reduce, statement.value.dtype())
           << "(" << best.value << ", " << other.value << ");\n";
    }
    out_ << "  }\n  barrier(CLK_LOCAL_MEM_FENCE);\n";
    out_ << "  const " << type << " r" << reg << " = " << (arg ? "y" + reg + "[0] < 0 ? 0 : y" : "x") << reg
         << "[0];\n";
  }

  void emit_store(const Statement& statement) {
    std::string value = text(statement.value);
    const DType dtype = storage(statement.target);
    if (is_half(dtype)) value = "morel_to_" + std::string(info(dtype).short_name) + "(" + value + ")";
    out_ << "    *(__global " << element_type(dtype) << "*)" << place(statement.target) << " = " << value << ";\n";
  }

  std::string place(int64_t buffer) const {
    const std::string i = std::to_string(buffer);
    std::string out = "(b" + i;
    if (position_ != "0") out += " + " + position_ + " * a.stride[" + i + "]";
    if (row_ != "0") out += " + " + row_ + " * a.row_stride[" + i + "]";
    return out + ")";
  }

  void begin_scope(std::string position, std::string row) {
    position_ = std::move(position), row_ = std::move(row);
    names_.clear();
  }

  std::string text(const Expr& x) {
    if (const auto found = names_.find(x.get()); found != names_.end()) return found->second;
    if (x->op == ScalarOp::Const) return c_literal(x->value, x.dtype());
    std::string value;
    if (x->args.empty()) {
      value = leaf(x);
    } else {
      std::vector<std::string> args;
      // The rare operand, a call of libm, is evaluated only where it is needed.
      const bool late = x->op == ScalarOp::SelectRare && x->args[1]->args.size() == 1;
      for (size_t i = 0; i < x->args.size(); ++i) {
        if (!late || i != 1) {
          args.push_back(text(x->args[i]));
          continue;
        }
        const std::string operand[] = {text(x->args[1]->args[0])};
        args.push_back("(" + c_operation(*x->args[1].get(), operand) + ")");
      }
      value = c_operation(*x.get(), args);
    }
    const std::string name = "v" + text_of(values_++);
    out_ << "    const " << c_type(x.dtype()) << " " << name << " = " << value << ";\n";
    return names_[x.get()] = name;
  }

  std::string leaf(const Expr& x) const {
    const std::string i = std::to_string(x->index);
    switch (x->op) {
      case ScalarOp::Index: return position_;
      case ScalarOp::RowIndex: return row_;
      case ScalarOp::Reg: return "r" + i + (x.dtype() == DType::Bool ? " != 0" : "");
      case ScalarOp::Param: {
        const std::string number =
            x->index >= 0 ? "a.params[" + i + "]" : std::string("(double)") + (columns() ? "a.rows" : "n");
        const ExprNode source{ScalarOp::Cast, x.dtype(), false, {loops::param(x->index, DType::Float64)}, {}, 0};
        const std::string one[] = {number};
        return x.dtype() == DType::Float64 ? number : c_operation(source, one);
      }
      default: break;
    }
    const DType dtype = storage(x->index);
    const std::string element = "*(__global const " + element_type(dtype) + "*)" + place(x->index);
    if (is_half(dtype)) return "morel_from_" + std::string(info(dtype).short_name) + "(" + element + ")";
    return element + (dtype == DType::Bool ? " != 0" : "");
  }

  const Program& program_;
  const std::string symbol_;
  const size_t axes_;
  const bool grouped_;
  std::ostringstream out_;
  std::string position_, row_;  // where the statements at hand are
  std::unordered_map<const ExprNode*, std::string> names_;
  size_t values_ = 0;
};

}  // namespace

OpenClShape opencl_shape(const Program& program) {
  if (program.kind == ProgramKind::Columns) return OpenClShape::Element;
  const bool elements = std::ranges::all_of(
      program.statements, [](const Statement& statement) { return statement.kind == Statement::Kind::Store; });
  return elements ? OpenClShape::Element : OpenClShape::Group;
}

std::string opencl_kernel(const Program& program, const std::string& symbol, size_t outer_axes) {
  return Emitter(program, symbol, outer_axes).run();
}

}  // namespace morel::codegen
