// Import rules: recurrent layers, turn after turn.
#include "morel/io/onnx/import_rules.h"

namespace morel::onnx {
namespace {

using Activation = Sym (*)(const Sym& x, double alpha, double beta);
struct NamedActivation {
  std::string_view name;
  Activation fn;
  double alpha = 0, beta = 0;
};
const NamedActivation activations[] = {
    {"Sigmoid", [](const Sym& x, double, double) { return x.builder()("sigmoid", x); }},
    {"Tanh", [](const Sym& x, double, double) { return x.builder()("tanh", x); }},
    {"Relu", [](const Sym& x, double, double) { return x.builder()("relu", x); }},
    {"Softsign", [](const Sym& x, double, double) { return x.builder()("softsign", x); }},
    {"Affine", [](const Sym& x, double alpha, double beta) { return x * alpha + beta; }, 1},
    {"LeakyRelu", [](const Sym& x, double alpha, double) { return x.builder()("leaky_relu", x, alpha); }, 0.01},
    {"HardSigmoid",
     [](const Sym& x, double alpha, double beta) { return x.builder()("hardtanh", x * alpha + beta, 0.0, 1.0); }, 0.2,
     0.5}};

// One direction of a layer over x [S, B, I].
class Direction {
 public:
  // `functions`: those of one direction.
  Direction(const NodeCall& c, const Sym& x, int64_t idx, size_t functions)
      : c_(c), b_(c.b), x_(x), idx_(idx), size_(c[2].dim(2)) {
    const Attribute* names = c.node().find("activations");
    const Attribute *alphas = c.node().find("activation_alpha"), *betas = c.node().find("activation_beta");
    size_t alpha_at = 0, beta_at = 0;
    for (size_t i = 0; names && i < (static_cast<size_t>(idx) + 1) * functions; ++i) {
      const NamedActivation* found = nullptr;
      for (const NamedActivation& entry : activations)
        if (i < names->texts.size() && entry.name == names->texts[i]) found = &entry;
      MOREL_CHECK(found, NotImplemented, "its activation ", i, " is not supported");
      NamedActivation with = *found;
      const auto given = [](const Attribute* list, size_t& at, double& value) {
        if (list && at < list->numbers.size()) value = list->numbers[at++];
      };
      if (with.alpha != 0) given(alphas, alpha_at, with.alpha);
      if (with.beta != 0 || with.name == "Affine") given(betas, beta_at, with.beta);
      if (i >= static_cast<size_t>(idx) * functions) functions_.push_back(with);
    }
  }

  int64_t size() const { return size_; }
  Sym of_direction(size_t idx) const { return b_("select", c_[idx], 0, idx_); }
  Sym transposed(size_t idx) const { return b_("transpose", of_direction(idx), Ints{1, 0}); }
  // What it starts with; `at`: the input, [D, B, H].
  Sym start(size_t at) const { return c_.has(at) ? of_direction(at) : b_("zeros", Ints{x_.dim(1), size_}, x_.dtype()); }
  // Half `half` of the biases, for gates from `first` on.
  Sym bias(int64_t half, int64_t first, int64_t count, int64_t gates) const {
    return b_("narrow", of_direction(3), 0, (half * gates + first) * size_, count * size_);
  }
  Sym gate(const Sym& all, int64_t idx) const { return b_("narrow", all, 1, idx * size_, size_); }
  Sym activate(size_t which, Sym x, const char* otherwise) const {
    if (which < functions_.size()) return functions_[which].fn(x, functions_[which].alpha, functions_[which].beta);
    for (const NamedActivation& entry : activations)
      if (entry.name == otherwise) return entry.fn(x, entry.alpha, entry.beta);
    return x;
  }

 private:
  const NodeCall& c_;
  Builder& b_;
  Sym x_;
  int64_t idx_, size_;
  std::vector<NamedActivation> functions_;
};

// The states after each turn, one list for each state: the first is what the layer gives.
using States = std::vector<Syms>;
using RunDirection = States (*)(const NodeCall& c, const Direction& d, const Sym& x, const Ints& turns);

States run_rnn(const NodeCall& c, const Direction& d, const Sym& x, const Ints& turns) {
  Builder& b = c.b;
  Sym inputs = b("matmul", x, d.transposed(1)), last = d.start(5);
  if (c.has(3)) inputs = inputs + (d.bias(0, 0, 1, 1) + d.bias(1, 0, 1, 1));
  const Sym recurrent = d.transposed(2);
  States out(1);
  for (const Dim turn : turns) {
    last = d.activate(0, b("select", inputs, 0, turn) + b("matmul", last, recurrent), "Tanh");
    out[0].push_back(last);
  }
  return out;
}

// Gates: update, reset, hidden.
States run_gru(const NodeCall& c, const Direction& d, const Sym& x, const Ints& turns) {
  Builder& b = c.b;
  const bool is_linear_first = c.attribute("linear_before_reset", 0);
  Sym inputs = b("matmul", x, d.transposed(1)), last = d.start(5);
  if (c.has(3)) inputs = inputs + d.bias(0, 0, 3, 3);
  const Sym recurrent = d.transposed(2);
  const auto narrowed = [&](int64_t first, int64_t count) {
    return b("narrow", recurrent, 1, first * d.size(), count * d.size());
  };
  const Sym of_gates = narrowed(0, 2), of_hidden = narrowed(2, 1);
  States out(1);
  for (const Dim turn : turns) {
    const Sym now = b("select", inputs, 0, turn);
    Sym gates = b("narrow", now, 1, 0, 2 * d.size()) + b("matmul", last, of_gates);
    if (c.has(3)) gates = gates + d.bias(1, 0, 2, 3);
    const Sym update = d.activate(0, d.gate(gates, 0), "Sigmoid"), reset = d.activate(0, d.gate(gates, 1), "Sigmoid");
    Sym hidden = b("matmul", is_linear_first ? last : reset * last, of_hidden);
    if (c.has(3)) hidden = hidden + d.bias(1, 2, 1, 3);
    if (is_linear_first) hidden = reset * hidden;
    hidden = d.activate(1, d.gate(now, 2) + hidden, "Tanh");
    last = hidden + update * (last - hidden);
    out[0].push_back(last);
  }
  return out;
}

// Gates: input, output, forget, cell.
States run_lstm(const NodeCall& c, const Direction& d, const Sym& x, const Ints& turns) {
  Builder& b = c.b;
  Sym inputs = b("matmul", x, d.transposed(1)), last = d.start(5), cell = d.start(6);
  if (c.has(3)) inputs = inputs + (d.bias(0, 0, 4, 4) + d.bias(1, 0, 4, 4));
  const Sym recurrent = d.transposed(2);
  const auto peephole = [&](const Sym& gate, int64_t idx) {
    return c.has(7) ? gate + b("narrow", d.of_direction(7), 0, idx * d.size(), d.size()) * cell : gate;
  };
  States out(2);
  for (const Dim turn : turns) {
    const Sym all = b("select", inputs, 0, turn) + b("matmul", last, recurrent);
    const Sym input = d.activate(0, peephole(d.gate(all, 0), 0), "Sigmoid"),
              forget =
                  c.attribute("input_forget", 0) ? 1.0 - input : d.activate(0, peephole(d.gate(all, 2), 2), "Sigmoid");
    cell = forget * cell + input * d.activate(1, d.gate(all, 3), "Tanh");
    last = d.activate(0, peephole(d.gate(all, 1), 1), "Sigmoid") * d.activate(2, cell, "Tanh");
    out[0].push_back(last);
    out[1].push_back(cell);
  }
  return out;
}

// x [S, B, I] (layout 1: [B, S, I]); gives [S, D, B, H] and the last states [D, B, H].
template <RunDirection run, size_t functions, size_t states>
Result recurrent(const NodeCall& c) {
  Builder& b = c.b;
  const std::string direction = c.text("direction", "forward");
  const bool is_batch_first = c.attribute("layout", 0);
  if (c.node().find("clip") || (is_batch_first && (c.has(5) || c.has(6)))) return {};
  for (const size_t idx : {0, 1, 2})
    if (c[idx].rank() != 3) return {};
  const Sym x = is_batch_first ? b("transpose", c[0], Ints{1, 0, 2}) : c[0];
  const int64_t length = x.dim(0);
  if (length > most_turns || length == 0) return {};
  if (c.has(4) && std::ranges::any_of(c.ints(4), [&](Dim size) { return size != length; })) return {};
  Syms hidden;
  std::vector<Syms> last(states);
  for (int64_t i = 0; i < c[1].dim(0); ++i) {
    const bool is_backwards = direction == "reverse" || i == 1;
    Ints turns;
    for (int64_t turn = 0; turn < length; ++turn) turns.push_back(is_backwards ? length - 1 - turn : turn);
    States all = run(c, Direction(c, x, i, functions), x, turns);
    for (size_t k = 0; k < states; ++k) last[k].push_back(all[k].back());
    if (is_backwards) std::reverse(all[0].begin(), all[0].end());
    hidden.push_back(b("stack", all[0], 0));
  }
  const Sym sequence = b("stack", hidden, 1);
  Items out{item_of((is_batch_first ? b("transpose", sequence, Ints{2, 0, 1, 3}) : sequence).value())};
  for (const Syms& state : last) out.push_back(item_of(b("stack", state, is_batch_first ? 1 : 0).value()));
  return out;
}

constexpr ImportEntry entries[] = {
    {"RNN", recurrent<run_rnn, 1, 1>, 3}, {"GRU", recurrent<run_gru, 2, 1>, 3}, {"LSTM", recurrent<run_lstm, 3, 2>, 3}};

}  // namespace

std::span<const ImportEntry> recurrent_rules() { return entries; }

}  // namespace morel::onnx
