#include <cmath>
#include <iomanip>
#include <sstream>
#include <unordered_map>

#include "morel/loops/program.h"
#include "morel/loops/rewrite.h"

namespace morel::loops {
namespace {

// Nodes that several others use get a name (%0, %1 ...) and a line of their own; the rest is printed in place.
class Printer {
 public:
  Printer(const Program& program, std::ostream& out) : program_(program), out_(out) {
    std::unordered_map<const ExprNode*, bool> seen;
    for (const Statement& statement : program.statements) {
      ++uses_[statement.value.get()];
      visit(statement.value, seen, [&](const Expr& x) {
        for (const Expr& arg : x->args) ++uses_[arg.get()];
      });
    }
  }

  std::string text(const Expr& x) {
    if (auto it = names_.find(x.get()); it != names_.end()) return it->second;
    if (x->args.empty()) return leaf(x);
    std::string line(op_name(x->op));
    if (x->op == ScalarOp::Cast || x->op == ScalarOp::Bitcast) line += "." + std::string(info(x.dtype()).short_name);
    if (x->op == ScalarOp::RoundTo) line += "." + std::string(info(static_cast<DType>(x->index)).short_name);
    line += "(";
    for (size_t i = 0; i < x->args.size(); ++i) line += (i ? ", " : "") + text(x->args[i]);
    line += ")";
    if (uses_[x.get()] < 2) return line;
    const std::string name = "%" + std::to_string(names_.size());
    out_ << "  " << name << " = " << line << "\n";
    return names_[x.get()] = name;
  }

 private:
  std::string leaf(const Expr& x) const {
    std::ostringstream text;
    switch (x->op) {
      case ScalarOp::Load: {
        const bool output = x->index < static_cast<int64_t>(program_.buffers.size()) &&
                            program_.buffers[x->index].role == BufferRole::Output;
        text << (output ? "out" : "in") << x->index;
        break;
      }
      case ScalarOp::Reg: text << "r" << x->index; break;
      case ScalarOp::Param:
        x->index < 0 ? text << "length" : text << "p" << x->index;
        if (x.dtype() != DType::Float64) text << ":" << info(x.dtype()).short_name;
        break;
      case ScalarOp::Index: text << "j"; break;
      case ScalarOp::RowIndex: text << "row"; break;
      default:
        text << std::setprecision(is_float(x.dtype()) && size_of(x.dtype()) == 4 ? 9 : 17);
        if (is_complex(x.dtype())) {
          text << "(" << x->value.real() << "," << x->value.imag() << ")";
        } else {
          text << x->value.real();
        }
        text << ":" << info(x.dtype()).short_name;
    }
    return text.str();
  }

  const Program& program_;
  std::ostream& out_;
  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_map<const ExprNode*, std::string> names_;
};

}  // namespace

std::string print(const Program& program) {
  std::ostringstream out;
  out << (program.kind == ProgramKind::Rows ? "rows " : "columns ") << program.name << "(";
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    out << (i ? ", " : "") << (buffer.role == BufferRole::Input ? "in" : "out") << i << ": "
        << info(buffer.dtype).short_name;
  }
  out << ")\n";
  Printer printer(program, out);
  for (const Statement& statement : program.statements) {
    const std::string value = printer.text(statement.value);
    out << "  " << statement.stage << ": ";
    switch (statement.kind) {
      case Statement::Kind::Reduce:
        out << "r" << statement.target << " = " << reduce_name(statement.reduce) << " " << value;
        break;
      case Statement::Kind::Store: out << "out" << statement.target << " = " << value; break;
      case Statement::Kind::StoreRow: out << "row out" << statement.target << " = " << value; break;
    }
    out << "\n";
  }
  return out.str();
}

}  // namespace morel::loops
