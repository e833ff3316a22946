#include "morel/codegen/c/emit.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <unordered_map>

#include "morel/base/error.h"
#include "morel/codegen/c/scalar.h"
#include "morel/loops/rewrite.h"

namespace morel::codegen {
namespace {

using loops::Buffer;
using loops::Expr;
using loops::ExprNode;
using loops::Program;
using loops::ProgramKind;
using loops::ReduceOp;
using loops::ScalarOp;
using loops::Statement;

std::string reduction_name(const Statement& statement) {
  return std::string(loops::reduce_name(statement.reduce)) + "_" +
         std::string(info(statement.value.dtype()).short_name);
}

// Position-dependent statements of one stage (one pass over the inner axis) and what follows the pass.
struct Stage {
  std::vector<const Statement*> pass;
  std::vector<const Statement*> rows;
};

class Emitter {
  enum class Mode { Usual, Search, All };

 public:
  Emitter(const Program& program, std::string symbol) : program_(program), symbol_(std::move(symbol)) {
    for (const Statement& statement : program.statements) {
      if (statement.stage >= static_cast<int>(stages_.size())) stages_.resize(statement.stage + 1);
      Stage& stage = stages_[statement.stage];
      (statement.kind == Statement::Kind::StoreRow ? stage.rows : stage.pass).push_back(&statement);
      if (statement.kind == Statement::Kind::Reduce) reductions_[statement.target] = &statement;
    }
    find_passing_buffers();
    choose_pad();
  }

  std::string run() {
    out_ << "void " << symbol_ << "(const morel_loop_args* a) {\n";
    out_ << "  enum { pad = " << pad_ << " };\n  const int64_t n = a->n;\n";
    declare_params();
    declare_buffers();
    const std::string head = out_.str();
    out_.str("");
    columns() ? emit_columns() : emit_rows();
    if (std::ranges::count(streaming_, true)) out_ << "  if (a->stream) morel_stream_end();\n";
    out_ << "}\n";
    return head + constants_.str() + out_.str();
  }

 private:
  bool columns() const { return program_.kind == ProgramKind::Columns; }
  DType storage(int64_t buffer) const { return program_.buffers[buffer].dtype; }
  // float16 blocks are converted on their way in and out.
  bool always_block(int64_t buffer) const { return storage(buffer) == DType::Float16; }
  bool per_row(int64_t buffer) const { return program_.buffers[buffer].per_row; }
  int64_t element_size(int64_t buffer) const { return size_of(storage(buffer)); }

  // A Rows program reads an input of one element for each row in front of its passes.
  bool once_per_row(int64_t buffer) const { return program_.buffers[buffer].per_row && !columns(); }

  // Buffers that a pass reads or writes at every position (others are touched once per row).
  void find_passing_buffers() {
    passing_.assign(program_.buffers.size(), false);
    streaming_.assign(program_.buffers.size(), false);
    for (const Statement& statement : program_.statements) {
      if (statement.kind == Statement::Kind::StoreRow && !columns()) continue;
      if (statement.kind != Statement::Kind::Reduce) passing_[statement.target] = true;
      if (statement.kind == Statement::Kind::Store) streaming_[statement.target] = !always_block(statement.target);
      std::unordered_map<const ExprNode*, bool> seen;
      visit(statement.value, seen, [&](const Expr& x) {
        if (x->op == ScalarOp::Load && !per_row(x->index)) passing_[x->index] = true;
        if (x->op == ScalarOp::Load) streaming_[x->index] = false;
      });
    }
  }

  // Whole vectors of the widest machine (64 bytes) for the narrowest element; as many as the lanes of a reduction.
  void choose_pad() {
    int64_t narrowest = 4;
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      if (passing_[i]) narrowest = std::min(narrowest, size_of(compute_dtype(storage(i))));
      if (passing_[i] && storage(i) == DType::BFloat16) narrowest = std::min<int64_t>(narrowest, 2);
    }
    pad_ = !reductions_.empty() && !columns() ? loops::num_lanes : 64 / narrowest;
  }

  void declare_params() {
    std::unordered_map<const ExprNode*, bool> seen;
    std::set<std::string> declared;
    for (const Statement& statement : program_.statements) {
      visit(statement.value, seen, [&](const Expr& x) {
        if (x->op != ScalarOp::Param || !declared.insert(param_name(*x.get())).second) return;
        const std::string value = x->index >= 0 ? "a->params[" + std::to_string(x->index) + "]"
                                  : columns()   ? "(double)a->rows"
                                                : "(double)n";
        ExprNode source{ScalarOp::Cast, x.dtype(), false, {loops::param(x->index, DType::Float64)}, {}, 0};
        const std::string one[] = {value};
        out_ << "  const " << c_type(x.dtype()) << " " << param_name(*x.get()) << " = "
             << (x.dtype() == DType::Float64 ? value : c_operation(source, one)) << ";\n";
      });
    }
  }
  static std::string param_name(const ExprNode& node) {
    return (node.index < 0 ? "length" : "p" + std::to_string(node.index)) + "_" +
           std::string(info(node.dtype).short_name);
  }

  void declare_buffers() {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      if (!passing_[i]) continue;
      out_ << "  const int64_t s" << i << " = a->strides[" << i << "];\n";
      if (!always_block(i)) {
        const std::string stream = streaming_[i] ? " && !a->stream" : "";
        out_ << "  const int d" << i << " = s" << i << " == " << element_size(i) << stream << ";\n";
      }
      out_ << "  MOREL_ARRAY " << c_storage_type(storage(i)) << " t" << i << "[MOREL_BLOCK];\n";
    }
    for (const auto& [reg, statement] : reductions_) {
      if (!columns() && !reduced_in_place(*statement)) {
        out_ << "  MOREL_ARRAY " << c_storage_type(statement->value.dtype()) << " w" << reg << "[MOREL_BLOCK];\n";
      }
    }
  }

  // A reduction of a buffer's own elements reads the buffer (or its block).
  bool reduced_in_place(const Statement& statement) const {
    const Expr& value = statement.value;
    if (value->op != ScalarOp::Load || storage(value->index) == DType::BFloat16 || per_row(value->index)) return false;
    const bool output = program_.buffers[value->index].role == loops::BufferRole::Output;
    if (output) return !is_half(storage(value->index));
    for (const Statement* other : stages_[statement.stage].pass) {
      if (other->kind == Statement::Kind::Store) return false;  // which may lie over the input
    }
    return true;
  }

  void row_pointers(const std::string& row) {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      out_ << indent_ << "char* b" << i << " = a->pointers[" << i << "]";
      if (row != "0") out_ << " + " << row << " * a->row_strides[" << i << "]";
      out_ << ";\n";
    }
  }

  void emit_rows() {
    out_ << "  for (int64_t row = 0; row < a->rows; ++row) {\n";
    indent_ = "    ";
    row_pointers("row");
    for (const Stage& stage : stages_) {
      find_prefetched(stage);
      emit_row_stage(stage);
    }
    out_ << "  }\n";
  }

  // The first stage of a row waits for memory, later ones work in the cache: during the second one the next row's
  // inputs are fetched. (Processors do not fetch ahead past a page, which is often where a row ends.)
  void find_prefetched(const Stage& stage) {
    prefetched_.clear();
    if (stages_.size() < 2 || &stage != &stages_[1] || stage.pass.empty()) return;
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      if (!passing_[i] || always_block(i) || program_.buffers[i].role == loops::BufferRole::Output) continue;
      prefetched_.push_back(i);
      const std::string idx = std::to_string(i);
      out_ << indent_ << "const int ahead" << idx << " = d" << idx << " && a->row_strides[" << idx
           << "] != 0 && row + 1 < a->rows;\n";
    }
  }

  void emit_row_stage(const Stage& stage) {
    for (const Statement* statement : stage.pass) {
      if (statement->kind == Statement::Kind::Reduce) {
        out_ << indent_ << c_type(loops::reduce_dtype(statement->reduce, statement->value.dtype())) << " r"
             << statement->target << ";\n";
      }
    }
    if (!stage.pass.empty()) {
      out_ << indent_ << "{\n";
      for (const Statement* statement : stage.pass) {
        if (statement->kind == Statement::Kind::Reduce) declare_lanes(*statement);
      }
      emit_pass(stage.pass, "0", "n", "j");
      for (const Statement* statement : stage.pass) {
        if (statement->kind != Statement::Kind::Reduce) continue;
        const int64_t reg = statement->target;
        out_ << indent_ << "  r" << reg << " = morel_fold_" << reduction_name(*statement) << "(g" << reg
             << (is_arg(statement->reduce) ? ", k" + std::to_string(reg) : "") << ");\n";
      }
      out_ << indent_ << "}\n";
    }
    if (!stage.rows.empty()) emit_row_stores(stage.rows);
  }

  void declare_lanes(const Statement& statement) {
    const DType dtype = statement.value.dtype();
    out_ << indent_ << "  MOREL_ARRAY " << c_storage_type(dtype) << " g" << statement.target << "[MOREL_LANES];\n";
    if (is_arg(statement.reduce))
      out_ << indent_ << "  MOREL_ARRAY int64_t k" << statement.target << "[MOREL_LANES];\n";
    out_ << indent_ << "  " << c_storage_type(dtype) << " start" << statement.target << " = "
         << identity(statement.reduce, dtype) << ";\n"
         << indent_ << "  MOREL_HIDE(start" << statement.target << ");\n";
    out_ << indent_ << "  for (int l = 0; l < MOREL_LANES; ++l) g" << statement.target << "[l] = start"
         << statement.target << (is_arg(statement.reduce) ? ", k" + std::to_string(statement.target) + "[l] = -1" : "")
         << ";\n";
  }

  void emit_row_stores(const std::vector<const Statement*>& statements) {
    out_ << indent_ << "{\n";
    begin_scope(/*once=*/true);
    for (const Statement* statement : statements) {
      const std::string value = text(statement->value);
      const int64_t buffer = statement->target;
      const std::string type = storage(buffer) == DType::Float16 ? "uint16_t" : c_storage_type(storage(buffer));
      uniform_ << indent_ << "  *(" << type << "*)b" << buffer << " = " << to_storage(buffer, value) << ";\n";
    }
    out_ << uniform_.str() << indent_ << "}\n";
  }

  // A Columns program: tiles of inner positions, whose registers are arrays; each stage runs over all rows.
  void emit_columns() {
    for (const auto& [reg, statement] : reductions_) {
      const DType dtype = statement->value.dtype();
      out_ << "  MOREL_ARRAY " << c_storage_type(dtype) << " g" << reg << "[MOREL_BLOCK];\n";
      if (is_arg(statement->reduce)) out_ << "  MOREL_ARRAY int64_t k" << reg << "[MOREL_BLOCK];\n";
    }
    out_ << "  for (int64_t j = 0, tile; j < n; j += tile) {\n    tile = morel_chunk(n - j, MOREL_BLOCK, pad);\n";
    if (!reductions_.empty()) out_ << "    const int64_t width = morel_padded(tile, pad);\n";
    for (const auto& [reg, statement] : reductions_) {
      out_ << "    for (int64_t i = 0; i < width; ++i) g" << reg
           << "[i] = " << identity(statement->reduce, statement->value.dtype())
           << (is_arg(statement->reduce) ? ", k" + std::to_string(reg) + "[i] = -1" : "") << ";\n";
    }
    for (const Stage& stage : stages_) {
      if (!stage.pass.empty()) {
        out_ << "    for (int64_t row = 0; row < a->rows; ++row) {\n";
        indent_ = "      ";
        row_pointers("row");
        emit_pass(stage.pass, "j", "j + tile", "c");
        out_ << "    }\n";
      }
      if (!stage.rows.empty()) {
        out_ << "    {\n";
        indent_ = "      ";
        row_pointers("0");
        emit_pass(stage.rows, "j", "j + tile", "c");
        out_ << "    }\n";
      }
    }
    out_ << "  }\n";
  }

  // One pass over inner positions [begin, end) in chunks that start at `j`. Where the pass has rare cases it looks for
  // one first, and has a second loop that treats them.
  void emit_pass(const std::vector<const Statement*>& statements, const std::string& begin, const std::string& end,
                 const std::string& j) {
    begin_scope(/*once=*/false);
    inner_ = indent_ + "      ";
    position_ = j;
    const std::string usual = emit_body(statements, Mode::Usual);
    const std::string search = has_rare_ ? emit_body(statements, Mode::Search) : "";
    const std::string all = has_rare_ ? emit_body(statements, Mode::All) : "";
    find_streamed();
    const std::string in = indent_ + "  ", deep = indent_ + "    ";
    const std::string loop = deep + "for (int64_t i = 0; i < padded; ++i) {\n";
    out_ << uniform_.str();
    fill_broadcasts(in, begin, end);
    out_ << in << "const int64_t limit = " << pass_limit(statements) << ";\n";
    out_ << in << "for (int64_t " << j << " = " << begin << ", m; " << j << " < " << end << "; " << j << " += m) {\n";
    out_ << deep << "m = morel_chunk(" << end << " - " << j << ", limit, pad);\n";
    out_ << deep << "const int64_t padded = morel_padded(m, pad);\n";
    open_blocks(deep);
    if (has_rare_) {
      out_ << deep << "int rare = 0;\n" << deep << "MOREL_INDEPENDENT\n" << loop << search << deep << "}\n";
      out_ << deep << "if (__builtin_expect(rare, 0))\n" << loop << all << deep << "}\n" << deep << "else\n";
    }
    if (!usual.empty() && (!prefetched_.empty() || !streamed_.empty())) {
      emit_by_lanes(deep, usual);
    } else if (!usual.empty()) {
      out_ << deep << "MOREL_INDEPENDENT\n" << loop << usual << deep << "}\n";
    }
    close_blocks(deep, statements);
    out_ << in << "}\n";
  }

  // Where chunks are padded to all lanes, and no second loop treats rare cases.
  void find_streamed() {
    streamed_.clear();
    if (columns() || reductions_.empty() || has_rare_) return;
    for (const int64_t buffer : stored_here_)
      if (streaming_[buffer]) streamed_.push_back(buffer);
  }

  // A loop over parts of the chunk, between which it fetches ahead and stores past the caches, so that memory has work
  // while more is computed.
  void emit_by_lanes(const std::string& deep, const std::string& body) {
    out_ << deep << "for (int64_t from = 0; from < padded; from += MOREL_LANES) {\n";
    for (const size_t i : prefetched_) {
      const std::string idx = std::to_string(i), size = std::to_string(element_size(i));
      out_ << deep << "  if (ahead" << idx << ") morel_prefetch(b" << idx << " + a->row_strides[" << idx << "] + ("
           << position_ << " + from) * " << size << ", MOREL_LANES * " << size << ");\n";
    }
    out_ << deep << "  MOREL_INDEPENDENT\n"
         << deep << "  for (int64_t i = from; i < from + MOREL_LANES; ++i) {\n"
         << body;
    out_ << deep << "  }\n";
    for (const int64_t i : streamed_) {
      out_ << deep << "  if (past" << i << ") morel_stream_lines(b" << i << " + (" << position_ << " + from) * "
           << element_size(i) << ", (const char*)(t" << i << " + from), MOREL_LANES * " << element_size(i) << ");\n";
    }
    out_ << deep << "}\n";
  }

  // Usual: rare cases do not occur. Search: only their conditions. All: every case.
  std::string emit_body(const std::vector<const Statement*>& statements, Mode mode) {
    mode_ = mode;
    names_.clear(), forward_.clear();
    body_.str("");
    if (mode == Mode::Search) {
      emit_search(statements);
    } else {
      load_inputs(statements);
      for (const Statement* statement : statements) emit_statement(*statement);
    }
    return body_.str();
  }

  void emit_search(const std::vector<const Statement*>& statements) {
    std::unordered_map<const ExprNode*, bool> seen;
    for (const Statement* statement : statements) {
      visit(statement->value, seen, [&](const Expr& x) {
        if (x->op != ScalarOp::SelectRare || !positional(x)) return;
        const std::string condition = text(x->args[0]);
        body_ << inner_ << "rare |= " << condition << ";\n";
      });
      if (statement->kind != Statement::Kind::Reduce) forward_[statement->target] = statement->value;
    }
  }

  // Inputs are loaded before the first store, which may lie over one of them.
  void load_inputs(const std::vector<const Statement*>& statements) {
    std::unordered_map<const ExprNode*, bool> seen;
    for (const Statement* statement : statements) {
      if (statement->kind == Statement::Kind::Reduce && !columns() && reduced_in_place(*statement)) continue;
      visit(statement->value, seen, [&](const Expr& x) {
        if (x->op == ScalarOp::Load && program_.buffers[x->index].role == loops::BufferRole::Input) text(x);
      });
    }
  }

  std::string pass_limit(const std::vector<const Statement*>& statements) const {
    if (has_rare_ || columns()) return "MOREL_BLOCK";
    for (const Statement* statement : statements) {
      if (statement->kind == Statement::Kind::Reduce) return "MOREL_BLOCK";
    }
    std::string direct;
    for (int64_t buffer : used_) {
      if (always_block(buffer)) return "MOREL_BLOCK";
      direct += (direct.empty() ? "d" : " & d") + std::to_string(buffer);
    }
    return direct.empty() ? "MOREL_BLOCK" : "(" + direct + ") ? n : MOREL_BLOCK";
  }

  std::string loader(int64_t buffer) const {
    return always_block(buffer) ? "f16" : std::to_string(element_size(buffer));
  }

  // A buffer without a stride fills its block once per row.
  void fill_broadcasts(const std::string& in, const std::string& begin, const std::string& end) {
    if (!loaded_.empty()) out_ << in << "const int64_t count = morel_block_count(" << end << " - " << begin << ");\n";
    for (int64_t buffer : loaded_) {
      const std::string i = std::to_string(buffer);
      out_ << in << "if (s" << i << " == 0) morel_load_" << loader(buffer) << "(t" << i << ", b" << i
           << ", 0, count, (count + (pad - 1)) & -(int64_t)pad);\n";
    }
  }

  void open_blocks(const std::string& in) {
    for (int64_t buffer : used_) {
      const std::string i = std::to_string(buffer), type = c_storage_type(storage(buffer));
      const bool load = loaded_.contains(buffer);
      const std::string block = !load ? "t" + i
                                      : "s" + i + " == 0 ? t" + i + " : (" + type + "*)morel_load_" + loader(buffer) +
                                            "(t" + i + ", b" + i + " + " + position_ + " * s" + i + ", s" + i +
                                            ", m, padded)";
      out_ << in << type << "* q" << i << " = ";
      if (!always_block(buffer))
        out_ << "d" << i << " & (m == padded) ? (" << type << "*)b" << i << " + " << position_ << " : ";
      out_ << block << ";\n";
    }
    for (const int64_t buffer : streamed_) {
      const std::string i = std::to_string(buffer), size = std::to_string(element_size(buffer));
      out_ << in << "const int past" << i << " = a->stream && s" << i << " == " << size
           << " && m == padded && ((uintptr_t)(b" << i << " + " << position_ << " * " << size << ") & 63) == 0;\n";
    }
  }

  void close_blocks(const std::string& in, const std::vector<const Statement*>& statements) {
    for (const Statement* statement : statements) {
      const std::string i = std::to_string(statement->target);
      if (statement->kind != Statement::Kind::Reduce) {
        const std::string place = "b" + i + " + " + position_ + " * s" + i,
                          size = std::to_string(element_size(statement->target));
        const bool streamed = std::ranges::count(streamed_, statement->target) != 0;
        out_ << in << "if (q" << i << " == t" << i << (streamed ? " && !past" + i : "") << ") ";
        if (streaming_[statement->target]) {
          out_ << "a->stream && s" << i << " == " << size << " ? morel_stream(" << place << ", (const char*)t" << i
               << ", m * " << size << ") : ";
        }
        out_ << "morel_save_" << loader(statement->target) << "(" << place << ", s" << i << ", t" << i << ", m);\n";
      } else if (!columns()) {
        const std::string source =
            reduced_in_place(*statement) ? "q" + std::to_string(statement->value->index) : "w" + i;
        out_ << in << "morel_reduce_" << reduction_name(*statement) << "(g" << i
             << (is_arg(statement->reduce) ? ", k" + i : "") << ", " << source << ", m"
             << (is_arg(statement->reduce) ? ", " + position_ : "") << ");\n";
      }
    }
  }

  void emit_statement(const Statement& statement) {
    if (statement.kind == Statement::Kind::Reduce && !columns() && reduced_in_place(statement)) {
      const int64_t buffer = statement.value->index;
      if (!stored_here_.contains(buffer)) loaded_.insert(buffer), used_.insert(buffer);
      return;
    }
    const std::string value = text(statement.value);
    const std::string i = std::to_string(statement.target);
    if (statement.kind != Statement::Kind::Reduce) {
      used_.insert(statement.target);
      stored_here_.insert(statement.target);
      const std::string stored = always_block(statement.target) ? value : to_storage(statement.target, value);
      body_ << inner_ << "q" << i << "[i] = " << stored << ";\n";
      forward_[statement.target] = statement.value;
    } else if (!columns()) {
      body_ << inner_ << "w" << i << "[i] = " << value << ";\n";
    } else if (is_arg(statement.reduce)) {
      const std::string best = "g" + i + "[i]", index = "k" + i + "[i]", name = "better" + i;
      body_ << inner_ << "const int " << name << " = (" << index << " < 0) | "
            << combiner(statement.reduce, statement.value.dtype()) << "(" << value << ", " << best << ") | (MOREL_NAN("
            << value << ") & !MOREL_NAN(" << best << "));\n";
      body_ << inner_ << best << " = " << name << " ? " << value << " : " << best << ";\n";
      body_ << inner_ << index << " = " << name << " ? row : " << index << ";\n";
    } else {
      body_ << inner_ << "g" << i << "[i] = " << combiner(statement.reduce, statement.value.dtype()) << "(g" << i
            << "[i], " << value << ");\n";
    }
  }

  std::string to_storage(int64_t buffer, const std::string& value) const {
    if (storage(buffer) == DType::BFloat16) return "morel_to_bf16(" + value + ")";
    if (storage(buffer) == DType::Float16) return "morel_to_f16(" + value + ")";
    return value;
  }

  void begin_scope(bool once) {
    once_ = once, has_rare_ = false, mode_ = Mode::Usual;
    names_.clear(), uniform_names_.clear();
    positional_.clear();
    forward_.clear();
    used_.clear(), loaded_.clear(), stored_here_.clear();
    body_.str(""), uniform_.str("");
  }

  // Whether the value changes along a pass; the others are computed once, in front of it.
  bool positional(const Expr& x) {
    if (once_) return false;
    if (auto it = positional_.find(x.get()); it != positional_.end()) return it->second;
    bool out = (x->op == ScalarOp::Load && !per_row(x->index)) || x->op == ScalarOp::Index ||
               (x->op == ScalarOp::Reg && columns());
    for (const Expr& arg : x->args) out = positional(arg) || out;
    return positional_[x.get()] = out;
  }

  std::string text(const Expr& x) {
    const bool inside = positional(x);
    auto& names = inside ? names_ : uniform_names_;
    if (auto it = names.find(x.get()); it != names.end()) return it->second;
    if (x->op == ScalarOp::Const) return c_literal(x->value, x.dtype());
    if (x->op == ScalarOp::Param) return param_name(*x.get());
    if (x->op == ScalarOp::Reg && !columns()) return "r" + std::to_string(x->index);
    std::string value;
    if (x->args.empty()) {
      value = leaf(x);
    } else if (x->op == ScalarOp::SelectRare && inside && mode_ != Mode::All) {
      has_rare_ = true;
      return names[x.get()] = text(x->args[2]);
    } else if (x->op == ScalarOp::SelectRare && x->args[1]->args.size() == 1) {
      // The rare operand, a call of libm, is evaluated only where it is needed.
      const std::string operand[] = {text(x->args[1]->args[0])};
      value = text(x->args[0]) + " ? " + c_operation(*x->args[1].get(), operand) + " : " + text(x->args[2]);
    } else {
      std::vector<std::string> args;
      for (const Expr& arg : x->args) args.push_back(hidden(x, arg) ? hide(arg) : text(arg));
      value = limit_text(*x.get(), args);
      if (value.empty()) value = c_operation(*x.get(), args);
    }
    const std::string name = (inside ? "v" : "u") + std::to_string(names.size());
    (inside ? body_ : uniform_) << (inside ? inner_ : indent_ + "  ") << "const " << c_type(x.dtype()) << " " << name
                                << " = " << value << ";\n";
    return names[x.get()] = name;
  }

  // Constants of float selections and comparisons (see MOREL_HIDE).
  static bool hidden(const Expr& x, const Expr& arg) {
    const bool selection = x->op == ScalarOp::Select || x->op == ScalarOp::Min || x->op == ScalarOp::Max;
    const bool comparison = x->op >= ScalarOp::Eq && x->op <= ScalarOp::Ge;
    return arg->op == ScalarOp::Const && is_float(arg.dtype()) && (selection || comparison);
  }
  std::string hide(const Expr& x) {
    auto [it, fresh] = hidden_.emplace(x.get(), "h" + std::to_string(hidden_.size()));
    if (fresh) {
      constants_ << "  " << c_type(x.dtype()) << " " << it->second << " = " << c_literal(x->value, x.dtype())
                 << ";\n  MOREL_HIDE(" << it->second << ");\n";
    }
    return it->second;
  }

  // min and max with a constant that is not NaN: one instruction.
  static std::string limit_text(const ExprNode& node, const std::vector<std::string>& args) {
    if ((node.op != ScalarOp::Min && node.op != ScalarOp::Max) || !is_float(node.dtype)) return "";
    const Expr& limit = node.args[1];
    if (limit->op != ScalarOp::Const || limit->value != limit->value) return "";
    return args[1] + (node.op == ScalarOp::Min ? " < " : " > ") + args[0] + " ? " + args[1] + " : " + args[0];
  }

  std::string leaf(const Expr& x) {
    const std::string i = std::to_string(x->index);
    if (x->op == ScalarOp::Index) return position_ + " + i";
    if (x->op == ScalarOp::RowIndex) return "row";
    if (x->op == ScalarOp::Reg) {
      const bool arg = is_arg(reductions_.at(x->index)->reduce);
      if (arg) return "(k" + i + "[i] < 0 ? 0 : k" + i + "[i])";
      return "g" + i + "[i]" + (x.dtype() == DType::Bool ? " != 0" : "");
    }
    if (auto it = forward_.find(x->index); it != forward_.end()) {
      const std::string value = text(it->second);
      return is_half(storage(x->index))
                 ? "morel_round_" + std::string(info(storage(x->index)).short_name) + "(" + value + ")"
                 : value;
    }
    std::string element;
    if (once_ || per_row(x->index)) {
      const std::string type = always_block(x->index) ? "uint16_t" : c_storage_type(storage(x->index));
      element = "*(const " + type + "*)b" + i;
      if (always_block(x->index)) return "morel_from_f16(" + element + ")";
    } else {
      used_.insert(x->index), loaded_.insert(x->index);
      element = "q" + i + "[i]";
    }
    if (storage(x->index) == DType::BFloat16) return "morel_from_bf16(" + element + ")";
    return element + (storage(x->index) == DType::Bool ? " != 0" : "");
  }

  const Program& program_;
  const std::string symbol_;
  std::vector<Stage> stages_;
  std::map<int64_t, const Statement*> reductions_;
  std::vector<bool> passing_;
  std::vector<size_t> prefetched_;  // buffers that the pass at hand fetches ahead
  std::vector<int64_t> streamed_;   // buffers whose whole lines it may store past the caches as it goes
  std::vector<bool> streaming_;     // outputs that the program itself does not read
  int64_t pad_ = loops::num_lanes;
  std::ostringstream out_, constants_;
  std::unordered_map<const ExprNode*, std::string> hidden_;
  std::string indent_ = "  ";
  // The pass that is being written.
  bool once_ = false;
  std::string inner_, position_;
  std::ostringstream body_, uniform_;
  Mode mode_ = Mode::Usual;
  bool has_rare_ = false;
  std::unordered_map<const ExprNode*, std::string> names_, uniform_names_;
  std::unordered_map<const ExprNode*, bool> positional_;
  std::unordered_map<int64_t, Expr> forward_;  // outputs stored in this pass: their value
  std::set<int64_t> used_, loaded_, stored_here_;
};

}  // namespace

std::set<std::string> c_requirements(const Program& program) {
  std::set<std::string> lines;
  if (program.kind == ProgramKind::Columns) return lines;
  for (const Statement& statement : program.statements) {
    if (statement.kind != Statement::Kind::Reduce) continue;
    const DType dtype = statement.value.dtype();
    const bool largest = statement.reduce == ReduceOp::Max || statement.reduce == ReduceOp::ArgMax;
    const std::string head = reduction_name(statement) + ", " + c_storage_type(dtype) + ", ";
    const std::string group = size_of(dtype) == 8 ? "int64_t, " : "int32_t, ";
    const std::string start = identity(statement.reduce, dtype) + ", " + combiner(statement.reduce, dtype);
    const bool extreme = statement.reduce == ReduceOp::Min || statement.reduce == ReduceOp::Max;
    if (is_arg(statement.reduce)) {
      lines.insert("MOREL_ARG(" + head + group + (largest ? "MOREL_GREATER" : "MOREL_LESS") + ")\n");
    } else if (extreme && is_float(dtype)) {
      const std::string beyond = largest ? "MOREL_LARGER" : "MOREL_SMALLER";
      lines.insert("MOREL_EXTREME(" + head + group + start + ", " + beyond + ")\n");
    } else {
      lines.insert("MOREL_REDUCE(" + head + start + ")\n");
    }
  }
  return lines;
}

std::string c_symbol(std::string_view program_name, std::string_view isa) {
  std::string symbol = "morel_";
  for (char c : program_name) symbol += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return symbol + "_" + std::string(isa);
}

std::string c_function(const Program& program, const std::string& symbol) { return Emitter(program, symbol).run(); }

}  // namespace morel::codegen
