#include "morel/codegen/llvm/emit.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "morel/base/error.h"
#include "morel/codegen/llvm/control.h"
#include "morel/codegen/llvm/helpers.h"
#include "morel/codegen/llvm/lanes.h"
#include "morel/loops/rewrite.h"

namespace morel::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Value;
using loops::block_size;
using loops::BufferRole;
using loops::Expr;
using loops::ExprNode;
using loops::LoopArgs;
using loops::num_lanes;
using loops::Program;
using loops::ProgramKind;
using loops::ReduceOp;
using loops::ScalarOp;
using loops::Statement;
using Statements = std::vector<const Statement*>;

// Position-dependent statements of one stage (one pass over the inner axis) and what follows the pass.
struct Stage {
  Statements pass, rows;
};

// Loops that store past the caches do so every few lines, so that memory has work while they compute, and fetch what
// they read this many elements ahead.
constexpr int64_t stream_elements = 128, stream_ahead = 256;

// What a pass does with buffers and rare cases.
struct Uses {
  std::vector<int64_t> used;  // in order of first use
  std::set<int64_t> loaded, stored;
  bool has_rare = false;
};

class Emitter : ControlBuilder {
  enum class Mode { Usual, Search, All };

 public:
  Emitter(const Program& program, const std::string& symbol, const LlvmTarget& target, llvm::Module& module,
          llvm::IRBuilderBase& builder)
      : ControlBuilder(builder, make_function(symbol, target, module)),
        program_(program),
        ops_(b_, function_, choose_lanes(target), target) {
    for (const Statement& statement : program.statements) {
      if (statement.stage >= static_cast<int>(stages_.size())) stages_.resize(statement.stage + 1);
      Stage& stage = stages_[statement.stage];
      (statement.kind == Statement::Kind::StoreRow ? stage.rows : stage.pass).push_back(&statement);
      if (statement.kind == Statement::Kind::Reduce) reductions_[statement.target] = &statement;
    }
    find_passing_buffers();
    pad_ = !reductions_.empty() && !columns() ? num_lanes : ops_.lanes();
  }

  void run() {
    BasicBlock* head = block("head");
    b_.SetInsertPoint(head);
    load_arguments();
    allocate_blocks();
    columns() ? emit_columns() : emit_rows();
    if (std::ranges::count(streaming_, true)) if_then(stream_, [&] { ops_.call(stream_end_helper_name, {}); });
    b_.CreateRetVoid();
    b_.SetInsertPoint(&function_->getEntryBlock());
    b_.CreateBr(head);
  }

 private:
  static llvm::Function* make_function(const std::string& symbol, const LlvmTarget& target, llvm::Module& module) {
    llvm::LLVMContext& context = module.getContext();
    llvm::Type* pointer = llvm::PointerType::get(context, 0);
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer}, false);
    auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
    const std::string width = std::to_string(8 * target.vector_bytes);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    function->addFnAttr("target-features", target.features);
    function->addFnAttr("prefer-vector-width", width);
    function->addFnAttr("min-legal-vector-width", width);
    BasicBlock::Create(context, "entry", function);  // for allocations
    return function;
  }

  // As many lanes as one register has of the widest type that passes compute with: then no value needs two.
  int choose_lanes(const LlvmTarget& target) {
    int64_t widest = 0;
    for (const Statement& statement : program_.statements) {
      if (statement.kind == Statement::Kind::StoreRow && !columns()) continue;
      std::unordered_map<const ExprNode*, bool> seen;
      visit(statement.value, seen, [&](const Expr& x) {
        if (positional(x) && x.dtype() != DType::Bool) widest = std::max(widest, size_of(real_dtype(x.dtype())));
      });
    }
    return static_cast<int>(target.vector_bytes / std::max<int64_t>(widest, 1));
  }

  // ---------------------------------------------------------------------------------------------- facts about buffers

  bool columns() const { return program_.kind == ProgramKind::Columns; }
  DType storage(int64_t buffer) const { return program_.buffers[buffer].dtype; }
  bool per_row(int64_t buffer) const { return program_.buffers[buffer].per_row; }
  int64_t element_size(int64_t buffer) const { return size_of(storage(buffer)); }

  // Buffers that a pass reads or writes at every position (others are touched once per row).
  void find_passing_buffers() {
    passing_.assign(program_.buffers.size(), false);
    streaming_.assign(program_.buffers.size(), false);
    for (const Statement& statement : program_.statements) {
      if (statement.kind == Statement::Kind::StoreRow && !columns()) continue;
      if (statement.kind != Statement::Kind::Reduce) passing_[statement.target] = true;
      if (statement.kind == Statement::Kind::Store) streaming_[statement.target] = true;
      std::unordered_map<const ExprNode*, bool> seen;
      visit(statement.value, seen, [&](const Expr& x) {
        if (x->op == ScalarOp::Load && !per_row(x->index)) passing_[x->index] = true;
        if (x->op == ScalarOp::Load) streaming_[x->index] = false;
      });
    }
  }

  // A reduction of a buffer's own elements reads the buffer (or its block).
  bool reduced_in_place(const Statement& statement) const {
    const Expr& value = statement.value;
    if (value->op != ScalarOp::Load || is_half(storage(value->index)) || per_row(value->index)) return false;
    if (program_.buffers[value->index].role == BufferRole::Output) return true;
    for (const Statement* other : stages_[statement.stage].pass) {
      if (other->kind == Statement::Kind::Store) return false;  // which may lie over the input
    }
    return true;
  }

  // Whether the value changes along a pass; the others are computed once, in front of it.
  bool positional(const Expr& x) {
    if (auto it = positional_.find(x.get()); it != positional_.end()) return it->second;
    bool out = (x->op == ScalarOp::Load && !per_row(x->index)) || x->op == ScalarOp::Index ||
               (x->op == ScalarOp::Reg && columns());
    for (const Expr& arg : x->args) out = positional(arg) || out;
    return positional_[x.get()] = out;
  }

  Uses find_uses(const Statements& statements) {
    Uses out;
    const auto use = [&](int64_t buffer) {
      if (std::ranges::count(out.used, buffer) == 0) out.used.push_back(buffer);
    };
    for (const Statement* statement : statements) {
      std::unordered_map<const ExprNode*, bool> seen;
      visit(statement->value, seen, [&](const Expr& x) {
        if (x->op == ScalarOp::SelectRare && positional(x)) out.has_rare = true;
        if (x->op != ScalarOp::Load || per_row(x->index) || out.stored.contains(x->index)) return;
        use(x->index);
        out.loaded.insert(x->index);
      });
      if (statement->kind == Statement::Kind::Reduce) continue;
      use(statement->target);
      out.stored.insert(statement->target);
    }
    return out;
  }

  // ---------------------------------------------------------------------------------------------- arguments, blocks

  Value* field(size_t offset, llvm::Type* type) {
    return b_.CreateLoad(type, at(function_->getArg(0), static_cast<int64_t>(offset)));
  }
  Value* element(Value* array, size_t i, llvm::Type* type) {
    return b_.CreateLoad(type, at(array, static_cast<int64_t>(8 * i)));
  }

  void load_arguments() {
    rows_ = field(offsetof(LoopArgs, rows), b_.getInt64Ty());
    n_ = field(offsetof(LoopArgs, n), b_.getInt64Ty());
    Value* pointers = field(offsetof(LoopArgs, pointers), b_.getPtrTy());
    Value* row_strides = field(offsetof(LoopArgs, row_strides), b_.getPtrTy());
    Value* strides = field(offsetof(LoopArgs, strides), b_.getPtrTy());
    stream_ = b_.CreateIsNotNull(field(offsetof(LoopArgs, stream), b_.getInt8Ty()));
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      pointers_.push_back(element(pointers, i, b_.getPtrTy()));
      row_strides_.push_back(element(row_strides, i, b_.getInt64Ty()));
      strides_.push_back(passing_[i] ? element(strides, i, b_.getInt64Ty()) : nullptr);
      direct_.push_back(passing_[i] ? b_.CreateICmpEQ(strides_[i], i64(element_size(i))) : nullptr);
      if (streaming_[i]) direct_[i] = b_.CreateAnd(direct_[i], b_.CreateNot(stream_));
    }
    Value* params = program_.num_params ? field(offsetof(LoopArgs, params), b_.getPtrTy()) : nullptr;
    for (int i = 0; i < program_.num_params; ++i)
      params_.push_back(element(params, static_cast<size_t>(i), b_.getDoubleTy()));
  }

  void allocate_blocks() {
    for (size_t i = 0; i < program_.buffers.size(); ++i)
      blocks_.push_back(passing_[i] ? ops_.allocate(block_size * element_size(i), "block") : nullptr);
    const ControlBuilder& control = *this;
    for (const auto& [reg, statement] : reductions_) {
      const int64_t size = size_of(statement->value.dtype());
      if (columns()) {
        columns_[reg] = ops_.allocate(block_size * size, "column");
        if (is_arg(statement->reduce)) indices_[reg] = ops_.allocate(block_size * 8, "index");
        continue;
      }
      rows_reduced_.try_emplace(reg, control, ops_, statement->reduce, statement->value.dtype());
      if (!reduced_in_place(*statement)) reduced_[reg] = ops_.allocate(block_size * size, "reduced");
    }
  }

  void row_pointers(Value* row) {
    bases_ = pointers_;
    for (size_t i = 0; row && i < bases_.size(); ++i) bases_[i] = at(pointers_[i], b_.CreateMul(row, row_strides_[i]));
  }

  // ---------------------------------------------------------------------------------------------- Rows

  void emit_rows() {
    while_loop(i64(0), rows_, [&](Value* row) -> Value* {
      row_pointers(row);
      Value* next = b_.CreateNSWAdd(row, i64(1));
      for (const Stage& stage : stages_) {
        ahead_.assign(program_.buffers.size(), nullptr);
        if (stages_.size() > 1 && &stage == &stages_[1]) find_ahead(b_.CreateICmpSLT(next, rows_));
        emit_row_stage(stage);
      }
      return next;
    });
  }

  // The first stage of a row waits for memory, later ones work in the cache: during the second one the next row's
  // inputs are fetched. Without a next row this one's are, which costs little and is never wrong.
  void find_ahead(Value* more) {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      if (!passing_[i] || program_.buffers[i].role == BufferRole::Output) continue;
      ahead_[i] = at(bases_[i], b_.CreateSelect(more, row_strides_[i], i64(0)));
    }
  }

  void emit_row_stage(const Stage& stage) {
    if (!stage.pass.empty()) {
      for (const Statement* statement : stage.pass) {
        if (statement->kind == Statement::Kind::Reduce) rows_reduced_.at(statement->target).start();
      }
      emit_pass(stage.pass, i64(0), n_);
      for (const Statement* statement : stage.pass) {
        if (statement->kind == Statement::Kind::Reduce)
          registers_[statement->target] = rows_reduced_.at(statement->target).fold();
      }
    }
    if (!stage.rows.empty()) emit_row_stores(stage.rows);
  }

  void emit_row_stores(const Statements& statements) {
    begin_scope(nullptr);
    for (const Statement* statement : statements)
      ops_.store_one(storage(statement->target), bases_[statement->target], value(statement->value));
  }

  // ---------------------------------------------------------------------------------------------- Columns

  // Tiles of inner positions, whose registers are arrays; each stage runs over all rows.
  void emit_columns() {
    while_loop(i64(0), n_, [&](Value* j) -> Value* {
      Value* tile = chunk(b_.CreateNSWSub(n_, j), i64(block_size));
      Value* end = b_.CreateNSWAdd(j, tile);
      if (!reductions_.empty()) start_columns(padded(tile));
      for (const Stage& stage : stages_) {
        ahead_.assign(program_.buffers.size(), nullptr);
        if (!stage.pass.empty()) {
          while_loop(i64(0), rows_, [&](Value* row) -> Value* {
            row_ = row;
            row_pointers(row);
            emit_pass(stage.pass, j, end);
            return b_.CreateNSWAdd(row, i64(1));
          });
        }
        if (!stage.rows.empty()) {
          row_pointers(nullptr);
          emit_pass(stage.rows, j, end);
        }
      }
      return end;
    });
  }

  void start_columns(Value* width) {
    step_loop(width, ops_.lanes(), {}, [&](Value* i, const Values&) {
      for (const auto& [reg, statement] : reductions_) {
        const DType dtype = statement->value.dtype();
        ops_.store(dtype, at(columns_[reg], i, size_of(dtype)), ops_.identity(statement->reduce, dtype));
        if (is_arg(statement->reduce))
          ops_.store(DType::Int64, at(indices_[reg], i, 8), ops_.constant(-1.0, DType::Int64));
      }
      return Values{};
    });
  }

  void reduce_column(const Statement& statement, const Vector& x) {
    const DType dtype = statement.value.dtype();
    Value* place = at(columns_[statement.target], i_, size_of(dtype));
    const Vector old = ops_.load(dtype, place);
    if (!is_arg(statement.reduce)) return ops_.store(dtype, place, ops_.combine(statement.reduce, dtype, old, x));
    Value* index_place = at(indices_[statement.target], i_, 8);
    const Vector index = ops_.load(DType::Int64, index_place);
    Value* better = b_.CreateOr(b_.CreateICmpSLT(index.re, ops_.constant(0.0, DType::Int64).re),
                                ops_.before(statement.reduce, dtype, x, old));
    ops_.store(dtype, place, ops_.select(better, x, old));
    ops_.store(DType::Int64, index_place, ops_.select(better, ops_.splat(row_), index));
  }

  // ---------------------------------------------------------------------------------------------- passes

  Value* padded(Value* m) { return b_.CreateAnd(b_.CreateNSWAdd(m, i64(pad_ - 1)), i64(-pad_)); }
  // Elements of a pass that are treated together: whole vectors, or the rest of the row.
  Value* chunk(Value* left, Value* limit) {
    Value* whole = smaller(b_.CreateAnd(left, i64(-pad_)), limit);
    return b_.CreateSelect(b_.CreateICmpSLT(left, i64(pad_)), left, whole);
  }

  // One pass over inner positions [begin, end) in chunks. Where the pass has rare cases it looks for one first, and has
  // a second loop that treats them.
  void emit_pass(const Statements& statements, Value* begin, Value* end) {
    uses_ = find_uses(statements);
    BasicBlock *uniform = block("uniform"), *pass = block("pass");
    b_.CreateBr(uniform);
    begin_scope(uniform);
    b_.SetInsertPoint(pass);
    fill_broadcasts(b_.CreateNSWSub(end, begin));
    Value* limit = pass_limit(statements);
    while_loop(begin, end, [&](Value* j) -> Value* {
      position_ = j;
      Value* m = chunk(b_.CreateNSWSub(end, j), limit);
      Value* width = padded(m);
      open_blocks(m, width);
      emit_loops(statements, width);
      close_blocks(statements, m);
      return b_.CreateNSWAdd(j, m);
    });
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(uniform);
    b_.CreateBr(pass);
  }

  void emit_loops(const Statements& statements, Value* width) {
    if (!uses_.has_rare) return emit_usual_loop(statements, width);
    begin_body(Mode::Search);
    const Values found = step_loop(width, ops_.lanes(), {ops_.constant(0.0, DType::Bool).re},
                                   [&](Value* i, const Values& carried) -> Values {
                                     i_ = i;
                                     return {search(statements, carried[0])};
                                   });
    BasicBlock *all = block("all"), *usual = block("usual"), *done = block("done");
    b_.CreateCondBr(ops_.any(found[0]), all, usual);
    b_.SetInsertPoint(all);
    emit_loop(statements, width, Mode::All);
    b_.CreateBr(done);
    b_.SetInsertPoint(usual);
    emit_loop(statements, width, Mode::Usual);
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
  }

  void emit_usual_loop(const Statements& statements, Value* width) {
    if (stages_.size() > 1 || columns() || std::ranges::count(streaming_, true) == 0)
      return emit_loop(statements, width, Mode::Usual);
    const auto loop = [&]() -> Values {
      emit_loop(statements, width, Mode::Usual);
      return {};
    };
    const auto fetching = [&]() -> Values {
      for (const int64_t buffer : uses_.loaded)
        ahead_[buffer] =
            at(bases_[buffer], b_.CreateSelect(direct_[buffer], i64(stream_ahead * element_size(buffer)), i64(0)));
      loop();
      ahead_.assign(program_.buffers.size(), nullptr);
      return {};
    };
    choose(stream_, fetching, loop);
  }

  void emit_loop(const Statements& statements, Value* width, Mode mode) {
    const bool idle = std::ranges::all_of(statements, [&](const Statement* statement) {
      return statement->kind == Statement::Kind::Reduce && !columns() && reduced_in_place(*statement);
    });
    if (idle) return;
    begin_body(mode);
    step_loop(width, ops_.lanes(), {}, [&](Value* i, const Values&) {
      i_ = i;
      load_inputs(statements);
      for (const Statement* statement : statements) emit_statement(*statement);
      return Values{};
    });
  }

  Value* search(const Statements& statements, Value* found) {
    std::unordered_map<const ExprNode*, bool> seen;
    for (const Statement* statement : statements) {
      visit(statement->value, seen, [&](const Expr& x) {
        if (x->op == ScalarOp::SelectRare && positional(x)) found = b_.CreateOr(found, value(x->args[0]).re);
      });
      if (statement->kind != Statement::Kind::Reduce) forward_[statement->target] = statement->value;
    }
    return found;
  }

  // Inputs are loaded before the first store, which may lie over one of them.
  void load_inputs(const Statements& statements) {
    std::unordered_map<const ExprNode*, bool> seen;
    for (const Statement* statement : statements) {
      if (statement->kind == Statement::Kind::Reduce && !columns() && reduced_in_place(*statement)) continue;
      visit(statement->value, seen, [&](const Expr& x) {
        if (x->op == ScalarOp::Load && program_.buffers[x->index].role == BufferRole::Input) value(x);
      });
    }
    for (int64_t buffer : uses_.used) {
      if (!ahead_[buffer]) continue;
      Value* step = b_.CreateSelect(direct_[buffer], i64(element_size(buffer)), i64(0));
      Value* place = at(ahead_[buffer], b_.CreateMul(b_.CreateNSWAdd(position_, i_), step));
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                         {place, b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
    }
  }

  void emit_statement(const Statement& statement) {
    const bool reduce = statement.kind == Statement::Kind::Reduce;
    if (reduce && !columns() && reduced_in_place(statement)) return;
    const Vector x = value(statement.value);
    if (!reduce) {
      const int64_t buffer = statement.target;
      ops_.store(storage(buffer), at(places_[buffer], i_, element_size(buffer)), x);
      forward_[buffer] = statement.value;
    } else if (columns()) {
      reduce_column(statement, x);
    } else {
      const DType dtype = statement.value.dtype();
      ops_.store(dtype, at(reduced_[statement.target], i_, size_of(dtype)), x);
    }
  }

  Value* pass_limit(const Statements& statements) {
    if (uses_.has_rare || columns()) return i64(block_size);
    for (const Statement* statement : statements) {
      if (statement->kind == Statement::Kind::Reduce) return i64(block_size);
    }
    Value* direct = nullptr;
    for (int64_t buffer : uses_.used) direct = direct ? b_.CreateAnd(direct, direct_[buffer]) : direct_[buffer];
    Value* blocked = b_.CreateSelect(stream_, i64(stream_elements), i64(block_size));
    return direct ? b_.CreateSelect(direct, n_, blocked) : blocked;
  }

  Value* load_block(int64_t buffer, Value* from, Value* stride, Value* m, Value* width) {
    ops_.call(load_helper_name(element_size(buffer)), Values{blocks_[buffer], from, stride, m, width});
    return blocks_[buffer];
  }

  // A buffer without a stride fills its block once per row.
  void fill_broadcasts(Value* length) {
    Value* count = smaller(length, i64(block_size));
    for (int64_t buffer : uses_.loaded) {
      if_then(b_.CreateICmpEQ(strides_[buffer], i64(0)),
              [&] { load_block(buffer, bases_[buffer], i64(0), count, padded(count)); });
    }
  }

  void open_blocks(Value* m, Value* width) {
    places_.assign(program_.buffers.size(), nullptr);
    Value* whole = b_.CreateICmpEQ(m, width);
    for (int64_t buffer : uses_.used) {
      const auto block = [&]() -> Values {
        if (!uses_.loaded.contains(buffer)) return {blocks_[buffer]};
        if_then(b_.CreateICmpNE(strides_[buffer], i64(0)), [&] { fill_block(buffer, m, width); });
        return {blocks_[buffer]};
      };
      const auto direct = [&]() -> Values { return {at(bases_[buffer], position_, element_size(buffer))}; };
      places_[buffer] = choose(b_.CreateAnd(direct_[buffer], whole), direct, block)[0];
    }
  }

  // Of a contiguous buffer only the end of a row passes through its block.
  void fill_block(int64_t buffer, Value* m, Value* width) {
    Value* from = at(bases_[buffer], b_.CreateNSWMul(position_, strides_[buffer]));
    const auto call = [&] { load_block(buffer, from, strides_[buffer], m, width); };
    if (!ops_.can_mask(storage(buffer))) return call();
    const auto masked = [&]() -> Values {
      for (int64_t first = 0; first < pad_; first += ops_.lanes()) {
        const int64_t offset = first * element_size(buffer);
        ops_.load_some(storage(buffer), at(blocks_[buffer], offset), at(from, offset), ops_.below(first, m));
      }
      return {};
    };
    choose(direct_[buffer], masked, [&]() -> Values {
      call();
      return {};
    });
  }

  void close_blocks(const Statements& statements, Value* m) {
    for (const Statement* statement : statements) {
      const int64_t target = statement->target;
      if (statement->kind != Statement::Kind::Reduce) {
        if_then(b_.CreateICmpEQ(places_[target], blocks_[target]), [&] { save_block(target, m); });
      } else if (!columns()) {
        Value* source = reduced_in_place(*statement) ? places_[statement->value->index] : reduced_[target];
        rows_reduced_.at(target).add(source, m, position_);
      }
    }
  }

  void save_block(int64_t buffer, Value* m) {
    Value* stride = strides_[buffer];
    Value* place = at(bases_[buffer], b_.CreateNSWMul(position_, stride));
    const auto call = [&]() -> Values {
      ops_.call(save_helper_name(element_size(buffer)), Values{place, stride, blocks_[buffer], m});
      return {};
    };
    const auto masked = [&]() -> Values {
      for (int64_t first = 0; first < pad_; first += ops_.lanes()) {
        const int64_t offset = first * element_size(buffer);
        ops_.store_some(storage(buffer), at(place, offset), at(blocks_[buffer], offset), ops_.below(first, m));
      }
      return {};
    };
    const auto save = [&]() -> Values {
      return ops_.can_mask(storage(buffer)) ? choose(direct_[buffer], masked, call) : call();
    };
    if (!streaming_[buffer]) {
      save();
      return;
    }
    const auto stream = [&]() -> Values {
      stream_block(place, blocks_[buffer], b_.CreateNSWMul(m, i64(element_size(buffer))));
      return {};
    };
    choose(b_.CreateAnd(stream_, b_.CreateICmpEQ(stride, i64(element_size(buffer)))), stream, save);
  }

  // Whole cache lines go to memory without being read into the cache first.
  void stream_block(Value* to, Value* from, Value* bytes) {
    Value* address = b_.CreatePtrToInt(to, b_.getInt64Ty());
    Value* head = smaller(b_.CreateAnd(b_.CreateNeg(address), i64(63)), bytes);
    Value* lines = b_.CreateAnd(b_.CreateNSWSub(bytes, head), i64(-64));
    Value* done = b_.CreateNSWAdd(head, lines);
    const auto copy = [&](Value* begin, Value* count) {
      ops_.call(save_helper_name(1), Values{at(to, begin), i64(1), at(from, begin), count});
    };
    if_then(b_.CreateICmpNE(head, i64(0)), [&] { copy(i64(0), head); });
    if_then(b_.CreateICmpNE(lines, i64(0)), [&] {
      step_loop(lines, 64, {}, [&](Value* i, const Values&) {
        Value* offset = b_.CreateNSWAdd(head, i);
        ops_.stream_line(at(to, offset), at(from, offset));
        return Values{};
      });
    });
    if_then(b_.CreateICmpNE(done, bytes), [&] { copy(done, b_.CreateNSWSub(bytes, done)); });
  }

  // ---------------------------------------------------------------------------------------------- values

  // Values that do not change along a pass go into `uniform`; without one, all values are of that kind.
  void begin_scope(BasicBlock* uniform) {
    uniform_ = uniform;
    uniform_names_.clear();
    begin_body(Mode::All);
  }
  void begin_body(Mode mode) {
    mode_ = mode;
    names_.clear(), forward_.clear();
  }

  Vector value(const Expr& x) {
    if (x->op == ScalarOp::Const) return ops_.constant(x->value, x.dtype());
    if (x->op == ScalarOp::Reg && !columns()) return registers_.at(x->index);
    const bool inside = uniform_ && positional(x);
    auto& names = inside ? names_ : uniform_names_;
    if (auto it = names.find(x.get()); it != names.end()) return it->second;
    if (inside || !uniform_) return names[x.get()] = compute(x, inside);
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(uniform_);
    return names[x.get()] = compute(x, false);
  }

  Vector compute(const Expr& x, bool inside) {
    if (x->args.empty()) return leaf(x);
    if (x->op == ScalarOp::SelectRare && inside) {
      if (mode_ != Mode::All) return value(x->args[2]);
      if (x->args[1]->args.size() == 1) return rare(x);
    }
    std::vector<Vector> args;
    for (const Expr& arg : x->args) args.push_back(value(arg));
    return ops_.apply(*x.get(), args, !inside);
  }

  // The rare operand, a call of libm, is evaluated only where one of the lanes needs it.
  Vector rare(const Expr& x) {
    const Vector condition = value(x->args[0]), usual = value(x->args[2]), operand[] = {value(x->args[1]->args[0])};
    const Values out = choose(
        ops_.any(condition.re),
        [&]() -> Values {
          return {ops_.select(condition.re, ops_.apply(*x->args[1].get(), operand, false), usual).re};
        },
        [&]() -> Values { return {usual.re}; });
    return {out[0]};
  }

  Vector leaf(const Expr& x) {
    switch (x->op) {
      case ScalarOp::Index: return ops_.positions(b_.CreateNSWAdd(position_, i_));
      case ScalarOp::RowIndex: return ops_.splat(row_);
      case ScalarOp::Param: return param(x);
      case ScalarOp::Reg: return column_register(x);
      default: break;
    }
    const int64_t buffer = x->index;
    if (auto it = forward_.find(buffer); it != forward_.end()) {
      const Vector stored = value(it->second);
      return is_half(storage(buffer)) ? ops_.round_to(storage(buffer), stored) : stored;
    }
    if (!uniform_ || per_row(buffer)) return ops_.load_one(storage(buffer), bases_[buffer]);
    return ops_.load(storage(buffer), at(places_[buffer], i_, element_size(buffer)));
  }

  Vector param(const Expr& x) {
    Value* count = x->index >= 0 ? nullptr : b_.CreateSIToFP(columns() ? rows_ : n_, b_.getDoubleTy());
    const Vector wide = ops_.splat(count ? count : params_[static_cast<size_t>(x->index)]);
    if (x.dtype() == DType::Float64) return wide;
    const ExprNode source{ScalarOp::Cast, x.dtype(), false, {loops::param(x->index, DType::Float64)}, {}, 0};
    return ops_.apply(source, {&wide, 1}, true);
  }

  Vector column_register(const Expr& x) {
    const Statement& statement = *reductions_.at(x->index);
    if (!is_arg(statement.reduce)) return ops_.load(x.dtype(), at(columns_[x->index], i_, size_of(x.dtype())));
    const Vector index = ops_.load(DType::Int64, at(indices_[x->index], i_, 8));
    const Vector none = ops_.constant(0.0, DType::Int64);
    return ops_.select(b_.CreateICmpSLT(index.re, none.re), none, index);
  }

  const Program& program_;
  std::unordered_map<const ExprNode*, bool> positional_;
  VectorBuilder ops_;
  std::vector<Stage> stages_;
  std::map<int64_t, const Statement*> reductions_;
  std::vector<bool> passing_;
  std::vector<bool> streaming_;  // outputs that the program itself does not read
  int64_t pad_ = num_lanes;

  // Values of the function, by buffer or register.
  Value *rows_ = nullptr, *n_ = nullptr, *stream_ = nullptr;
  Values pointers_, row_strides_, strides_, direct_, params_, blocks_;
  std::map<int64_t, Value*> columns_, indices_, reduced_;
  std::map<int64_t, RowReduction> rows_reduced_;
  std::map<int64_t, Vector> registers_;
  Values bases_;  // of the row at hand
  Values ahead_;  // what the pass at hand fetches

  // The pass that is being written.
  Uses uses_;
  Mode mode_ = Mode::Usual;
  BasicBlock* uniform_ = nullptr;
  Values places_;
  Value *row_ = nullptr, *position_ = nullptr, *i_ = nullptr;
  std::unordered_map<const ExprNode*, Vector> names_, uniform_names_;
  std::unordered_map<int64_t, Expr> forward_;  // outputs stored in this pass: their value
};

}  // namespace

std::unique_ptr<llvm::Module> llvm_module(const Program& program, const std::string& symbol, const LlvmTarget& target,
                                          llvm::LLVMContext& context) {
  auto module = std::make_unique<llvm::Module>("morel", context);
  llvm::IRBuilder<> builder(context);
  Emitter(program, symbol, target, *module, builder).run();
  return module;
}

}  // namespace morel::codegen
