#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "morel/base/error.h"
#include "morel/loops/evaluate.h"
#include "morel/loops/program.h"
#include "morel/loops/rewrite.h"
#include "morel/loops/scalar.h"

namespace morel::loops {
namespace {

bool is_arg(ReduceOp op) { return op == ReduceOp::ArgMin || op == ReduceOp::ArgMax; }

// Calls fn with the type tag of a value that a reduction accepts.
template <class F>
void visit_value(DType dtype, F&& fn) {
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, Float16> && !std::is_same_v<T, BFloat16>) fn(tag);
  });
}

template <class T>
T identity(ReduceOp op) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Any: return T(0);
    case ReduceOp::Prod:
    case ReduceOp::All: return T(1);
    default: break;
  }
  if constexpr (scalar::is_integer_v<T>) {
    return op == ReduceOp::Min || op == ReduceOp::ArgMin ? std::numeric_limits<T>::max()
                                                         : std::numeric_limits<T>::min();
  }
  return T(op == ReduceOp::Min || op == ReduceOp::ArgMin ? infinity : -infinity);
}

template <class T>
T combine(ReduceOp op, T x, T y) {
  if constexpr (std::is_same_v<T, bool>) {
    return op == ReduceOp::Any ? x || y : x && y;
  } else {
    if (op == ReduceOp::Sum) return scalar::add(x, y);
    if (op == ReduceOp::Prod) return scalar::mul(x, y);
    if constexpr (!scalar::is_complex_v<T>) return op == ReduceOp::Min ? scalar::min(x, y) : scalar::max(x, y);
    return x;
  }
}

template <class T>
bool before(ReduceOp op, T x, T y) {
  if constexpr (scalar::is_complex_v<T>) return false;
  else return (op == ReduceOp::ArgMin ? x < y : x > y) || (scalar::is_nan(x) && !scalar::is_nan(y));
}

// Lanes of one Rows register.
struct Lanes {
  alignas(64) std::byte value[num_lanes * 16];
  int64_t index[num_lanes];
};

template <class T>
void accumulate(ReduceOp op, Lanes& lanes, const T* x, int64_t m, int64_t j) {
  T* row = reinterpret_cast<T*>(lanes.value);
  if (is_arg(op)) {
    for (int64_t i = 0; i < m; ++i) {
      const int64_t l = i % num_lanes;
      if (lanes.index[l] < 0 || before(op, x[i], row[l])) row[l] = x[i], lanes.index[l] = j + i;
    }
    return;
  }
  const int64_t whole = m / num_lanes * num_lanes;
  if (whole) {
    T block[num_lanes];
    std::fill_n(block, num_lanes, identity<T>(op));
    for (int64_t i = 0; i < whole; ++i) block[i % num_lanes] = combine(op, block[i % num_lanes], x[i]);
    for (int l = 0; l < num_lanes; ++l) row[l] = combine(op, row[l], block[l]);
  }
  for (int64_t i = whole; i < m; ++i) row[i - whole] = combine(op, row[i - whole], x[i]);
}

template <class T>
void fold(ReduceOp op, Lanes& lanes, void* out) {
  T* row = reinterpret_cast<T*>(lanes.value);
  int64_t* index = lanes.index;
  for (int half = num_lanes / 2; half; half /= 2) {
    for (int l = 0; l < half; ++l) {
      if (!is_arg(op)) {
        row[l] = combine(op, row[l], row[l + half]);
      } else if (index[l + half] >= 0) {
        const bool same = row[l] == row[l + half] || (scalar::is_nan(row[l]) && scalar::is_nan(row[l + half]));
        if (index[l] < 0 || before(op, row[l + half], row[l]) || (same && index[l + half] < index[l])) {
          row[l] = row[l + half], index[l] = index[l + half];
        }
      }
    }
  }
  if (is_arg(op)) *static_cast<int64_t*>(out) = std::max<int64_t>(index[0], 0);
  else *static_cast<T*>(out) = row[0];
}

class Interpreter {
 public:
  Interpreter(const Program& program, const LoopArgs& args) : program_(program), args_(args) {
    for (const Statement& statement : program.statements) {
      number(statement.value);
      std::unordered_map<const ExprNode*, bool> seen;
      std::vector<Expr>& inputs = inputs_[&statement];
      visit(statement.value, seen, [&](const Expr& x) {
        if (x->op == ScalarOp::Load && program.buffers[x->index].role == BufferRole::Input) inputs.push_back(x);
      });
      if (statement.kind == Statement::Kind::Reduce) reductions_.push_back(&statement);
    }
    const int64_t width = columns() ? block_size : 1;
    for (const Statement* statement : reductions_) {
      registers_.resize(std::max<size_t>(registers_.size(), statement->target + 1));
      registers_[statement->target].resize(16 * width);
      if (columns()) indices_[statement->target].resize(block_size);
    }
    lanes_.resize(program.num_regs);
  }

  void run() { columns() ? run_columns() : run_rows(); }

 private:
  bool columns() const { return program_.kind == ProgramKind::Columns; }

  // Gives each node a block; constants and parameters are filled here, once.
  void number(const Expr& x) {
    visit(x, seen_, [&](const Expr& node) {
      auto& block = blocks_[node.get()];
      block.resize(block_size * size_of(node.dtype()));
      if (node->op == ScalarOp::Const) fill_constant(*node.get(), block.data(), block_size);
      if (node->op == ScalarOp::Param) {
        const double value =
            node->index >= 0 ? args_.params[node->index] : static_cast<double>(columns() ? args_.rows : args_.n);
        const ExprNode source{ScalarOp::Cast, node.dtype(), false, {constant(0.0, DType::Float64)}, {}, 0};
        for (int64_t i = 0; i < block_size; ++i) {
          const void* operand[] = {&value};
          evaluate(source, operand, block.data() + i * size_of(node.dtype()), 1);
        }
      }
    });
  }

  const char* element(int64_t buffer, int64_t row, int64_t j) const {
    return args_.pointers[buffer] + row * args_.row_strides[buffer] + j * args_.strides[buffer];
  }

  // Starts a chunk: inputs are loaded before the first store, which may lie over one of them.
  void begin(const Statement* first, const Statement* last, int64_t row, int64_t j, int64_t m) {
    visited_.clear();
    for (const Statement* s = first; s != last; ++s) {
      if (s->kind == Statement::Kind::StoreRow) continue;
      for (const Expr& leaf : inputs_.at(s)) value(leaf, row, j, m);
    }
  }

  // Value of x at positions [j, j + m) of a row, in x's block; evaluated once per chunk.
  const void* value(const Expr& x, int64_t row, int64_t j, int64_t m) {
    visit(x, visited_, [&](const Expr& node) {
      void* out = blocks_.at(node.get()).data();
      switch (node->op) {
        case ScalarOp::Const:
        case ScalarOp::Param: break;
        case ScalarOp::Load:
          load_block(program_.buffers[node->index].dtype, element(node->index, row, j), args_.strides[node->index], out,
                     m);
          break;
        case ScalarOp::Index:
          for (int64_t i = 0; i < m; ++i) static_cast<int64_t*>(out)[i] = j + i;
          break;
        case ScalarOp::RowIndex: std::fill_n(static_cast<int64_t*>(out), m, row); break;
        case ScalarOp::Reg: {
          const size_t size = size_of(node.dtype());
          const std::byte* source = registers_[node->index].data();
          for (int64_t i = 0; i < m; ++i)
            std::memcpy(static_cast<std::byte*>(out) + i * size, source + (columns() ? i * size : 0), size);
          break;
        }
        default: {
          const void* operands[3];
          for (size_t i = 0; i < node->args.size(); ++i) operands[i] = blocks_.at(node->args[i].get()).data();
          evaluate(*node.get(), operands, out, m);
        }
      }
    });
    return blocks_.at(x.get()).data();
  }

  void store(const Statement& statement, int64_t row, int64_t j, int64_t m) {
    const void* values = value(statement.value, row, j, m);
    const int64_t buffer = statement.target;
    store_block(program_.buffers[buffer].dtype, const_cast<char*>(element(buffer, row, j)), args_.strides[buffer],
                values, m);
  }

  void run_rows() {
    for (int64_t row = 0; row < args_.rows; ++row) {
      for (auto first = program_.statements.begin(); first != program_.statements.end();) {
        const auto last =
            std::find_if(first, program_.statements.end(), [&](const Statement& s) { return s.stage != first->stage; });
        run_row_stage(&*first, &*first + (last - first), row);
        first = last;
      }
    }
  }

  void run_row_stage(const Statement* first, const Statement* last, int64_t row) {
    using Kind = Statement::Kind;
    for (const Statement* s = first; s != last; ++s) {
      if (s->kind != Kind::Reduce) continue;
      visit_value(s->value.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        std::fill_n(reinterpret_cast<T*>(lanes_[s->target].value), num_lanes, identity<T>(s->reduce));
        std::fill_n(lanes_[s->target].index, num_lanes, -1);
      });
    }
    for (int64_t j = 0; j < args_.n; j += block_size) {
      const int64_t m = std::min(block_size, args_.n - j);
      begin(first, last, row, j, m);
      for (const Statement* s = first; s != last; ++s) {
        if (s->kind == Kind::Store) store(*s, row, j, m);
        if (s->kind != Kind::Reduce) continue;
        const void* values = value(s->value, row, j, m);
        visit_value(s->value.dtype(), [&](auto tag) {
          using T = typename decltype(tag)::type;
          accumulate<T>(s->reduce, lanes_[s->target], static_cast<const T*>(values), m, j);
        });
      }
    }
    for (const Statement* s = first; s != last; ++s) {
      if (s->kind != Kind::Reduce) continue;
      visit_value(s->value.dtype(), [&](auto tag) {
        fold<typename decltype(tag)::type>(s->reduce, lanes_[s->target], registers_[s->target].data());
      });
    }
    visited_.clear();
    for (const Statement* s = first; s != last; ++s) {
      if (s->kind == Kind::StoreRow) store(*s, row, 0, 1);
    }
  }

  void run_columns() {
    for (int64_t j = 0; j < args_.n; j += block_size) {
      const int64_t m = std::min(block_size, args_.n - j);
      for (const Statement* s : reductions_) start_column(*s);
      for (auto first = program_.statements.begin(); first != program_.statements.end();) {
        const auto last =
            std::find_if(first, program_.statements.end(), [&](const Statement& s) { return s.stage != first->stage; });
        run_column_stage(&*first, &*first + (last - first), j, m);
        first = last;
      }
    }
  }

  void start_column(const Statement& statement) {
    best_[statement.target].resize(block_size * size_of(statement.value.dtype()));
    std::fill(indices_[statement.target].begin(), indices_[statement.target].end(), -1);
    visit_value(statement.value.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::byte* target =
          is_arg(statement.reduce) ? best_[statement.target].data() : registers_[statement.target].data();
      std::fill_n(reinterpret_cast<T*>(target), block_size, identity<T>(statement.reduce));
    });
    if (is_arg(statement.reduce))
      std::fill(registers_[statement.target].begin(), registers_[statement.target].end(), std::byte{0});
  }

  void run_column_stage(const Statement* first, const Statement* last, int64_t j, int64_t m) {
    for (int64_t row = 0; row < args_.rows; ++row) {
      begin(first, last, row, j, m);
      for (const Statement* s = first; s != last; ++s) {
        if (s->kind == Statement::Kind::Store) store(*s, row, j, m);
        if (s->kind == Statement::Kind::Reduce) reduce_column(*s, value(s->value, row, j, m), row, m);
      }
    }
    visited_.clear();
    for (const Statement* s = first; s != last; ++s) {
      if (s->kind == Statement::Kind::StoreRow) store(*s, 0, j, m);
    }
  }

  void reduce_column(const Statement& statement, const void* values, int64_t row, int64_t m) {
    visit_value(statement.value.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* x = static_cast<const T*>(values);
      if (is_arg(statement.reduce)) {
        T* best = reinterpret_cast<T*>(best_[statement.target].data());
        int64_t* out = reinterpret_cast<int64_t*>(registers_[statement.target].data());
        std::vector<int64_t>& index = indices_[statement.target];
        for (int64_t i = 0; i < m; ++i) {
          if (index[i] < 0 || before(statement.reduce, x[i], best[i])) best[i] = x[i], index[i] = out[i] = row;
        }
      } else {
        T* out = reinterpret_cast<T*>(registers_[statement.target].data());
        for (int64_t i = 0; i < m; ++i) out[i] = combine(statement.reduce, out[i], x[i]);
      }
    });
  }

  const Program& program_;
  const LoopArgs& args_;
  std::unordered_map<const ExprNode*, bool> seen_, visited_;
  std::unordered_map<const ExprNode*, std::vector<std::byte>> blocks_;
  std::unordered_map<const Statement*, std::vector<Expr>> inputs_;
  std::vector<const Statement*> reductions_;
  std::vector<std::vector<std::byte>> registers_;
  std::unordered_map<int64_t, std::vector<std::byte>> best_;
  std::unordered_map<int64_t, std::vector<int64_t>> indices_;
  std::vector<Lanes> lanes_;
};

}  // namespace

void interpret(const Program& program, const LoopArgs& args) { Interpreter(program, args).run(); }

}  // namespace morel::loops
