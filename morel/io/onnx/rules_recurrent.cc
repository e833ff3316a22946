// Import rules: recurrent layers, turn after turn.
#include "morel/io/onnx/import_rules.h"

namespace morel::onnx {
namespace {

constexpr int64_t most_turns = 256;

// One direction of an LSTM over x [S, B, I]: the hidden states in the order of x, the last one, the last cell state.
struct Direction {
  Syms hidden;
  Sym last, cell;
};
Direction run_direction(const NodeCall& c, int64_t direction, bool backwards, int64_t size) {
  Builder& b = c.b;
  const auto of_direction = [&](size_t idx) { return b("select", c[idx], 0, direction); };
  const auto transposed = [&](const Sym& matrix) { return b("transpose", matrix, Ints{1, 0}); };
  const int64_t turns = c[0].dim(0);
  Sym gates = b("matmul", c[0], transposed(of_direction(1)));
  if (c.has(3)) {
    const Sym bias = of_direction(3);
    gates = gates + (b("narrow", bias, 0, 0, 4 * size) + b("narrow", bias, 0, 4 * size, 4 * size));
  }
  const Sym recurrent = transposed(of_direction(2));
  const Sym zeros = b("zeros", Ints{c[0].dim(1), size}, c[0].dtype());
  Direction out{Syms(static_cast<size_t>(turns)), c.has(5) ? of_direction(5) : zeros,
                c.has(6) ? of_direction(6) : zeros};
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t at = backwards ? turns - 1 - turn : turn;
    const Sym all = b("select", gates, 0, at) + b("matmul", out.last, recurrent);
    const auto gate = [&](int64_t idx) { return b("narrow", all, 1, idx * size, size); };
    const Sym input = b("sigmoid", gate(0)), output = b("sigmoid", gate(1)), forget = b("sigmoid", gate(2));
    out.cell = forget * out.cell + input * b("tanh", gate(3));
    out.last = output * b("tanh", out.cell);
    out.hidden[static_cast<size_t>(at)] = out.last;
  }
  return out;
}

std::optional<Items> lstm(const NodeCall& c) {
  Builder& b = c.b;
  const std::string direction = c.text("direction", "forward");
  for (const char* name : {"activations", "activation_alpha", "activation_beta", "clip"})
    if (c.node().find(name)) return {};
  if (c.attribute("layout", 0) || c.attribute("input_forget", 0) || c.has(4) || c.has(7)) return {};
  if (c[0].dim(0).is_symbolic() || c[0].dim(0) > most_turns || c[0].dim(0) == 0) return {};
  const int64_t size = c[2].dim(2), directions = c[1].dim(0);
  Syms hidden, last, cell;
  std::vector<Direction> all;
  for (int64_t i = 0; i < directions; ++i) {
    all.push_back(run_direction(c, i, direction == "reverse" || i == 1, size));
    last.push_back(all.back().last);
    cell.push_back(all.back().cell);
    hidden.push_back(b("stack", all.back().hidden, 0));
  }
  return Items{item_of(b("stack", hidden, 1).value()), item_of(b("stack", last, 0).value()),
               item_of(b("stack", cell, 0).value())};
}

constexpr ImportEntry entries[] = {{"LSTM", lstm, 3}};

}  // namespace

std::span<const ImportEntry> recurrent_rules() { return entries; }

}  // namespace morel::onnx
