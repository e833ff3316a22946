// Comparisons, logic and bits, element by element.
#include "morel/ops/registry.h"

namespace morel {
namespace {

using namespace loops;  // NOLINT: the rules are formulas over loops::Expr

struct BinaryEntry {
  std::string_view name, doc;
  Expr (*loop)(const Expr&, const Expr&);
  Promotion promotion;
  DTypeSet dtypes;
  std::vector<OnnxMap> onnx = {};
};

const BinaryEntry binaries[] = {
    {"equal",
     "input == other, element by element, with broadcasting.",
     [](const Expr& x, const Expr& y) { return x == y; },
     Promotion::Compare,
     any_dtype,
     {{"Equal", 7}}},
    {"not_equal", "input != other, element by element, with broadcasting.",
     [](const Expr& x, const Expr& y) { return x != y; }, Promotion::Compare, any_dtype},
    {"less",
     "input < other, element by element, with broadcasting.",
     [](const Expr& x, const Expr& y) { return x < y; },
     Promotion::Compare,
     reals | bools,
     {{"Less", 7}}},
    {"less_equal",
     "input <= other, element by element, with broadcasting.",
     [](const Expr& x, const Expr& y) { return x <= y; },
     Promotion::Compare,
     reals | bools,
     {{"LessOrEqual", 12}}},
    {"greater",
     "input > other, element by element, with broadcasting.",
     [](const Expr& x, const Expr& y) { return x > y; },
     Promotion::Compare,
     reals | bools,
     {{"Greater", 7}}},
    {"greater_equal",
     "input >= other, element by element, with broadcasting.",
     [](const Expr& x, const Expr& y) { return x >= y; },
     Promotion::Compare,
     reals | bools,
     {{"GreaterOrEqual", 12}}},
    {"logical_and",
     "Whether both input and other are true (not zero).",
     [](const Expr& x, const Expr& y) { return x && y; },
     Promotion::Logic,
     bools,
     {{"And", 7}}},
    {"logical_or",
     "Whether input or other is true (not zero).",
     [](const Expr& x, const Expr& y) { return x || y; },
     Promotion::Logic,
     bools,
     {{"Or", 7}}},
    {"logical_xor",
     "Whether exactly one of input and other is true (not zero).",
     logical_xor,
     Promotion::Logic,
     bools,
     {{"Xor", 7}}},
    {"bitwise_and",
     "Bits that both input and other have.",
     bit_and,
     Promotion::Same,
     integers | bools,
     {{"BitwiseAnd", 18, "input, other; input is integer"}, {"And", 7, "input, other; input is bool"}}},
    {"bitwise_or",
     "Bits that input or other has.",
     bit_or,
     Promotion::Same,
     integers | bools,
     {{"BitwiseOr", 18, "input, other; input is integer"}, {"Or", 7, "input, other; input is bool"}}},
    {"bitwise_xor",
     "Bits that exactly one of input and other has.",
     bit_xor,
     Promotion::Same,
     integers | bools,
     {{"BitwiseXor", 18, "input, other; input is integer"}, {"Xor", 7, "input, other; input is bool"}}},
    {"bitwise_left_shift",
     "input * 2^other in integers; bits that leave are lost.",
     shl,
     Promotion::Same,
     integers,
     {{"BitShift", 11, "input, other; 'LEFT' <- direction, input is unsigned"},
      {"BitShift", 26, "input, other; 'LEFT' <- direction"}}},
    {"bitwise_right_shift",
     "input / 2^other in integers, rounded down.",
     shr,
     Promotion::Same,
     integers,
     {{"BitShift", 11, "input, other; 'RIGHT' <- direction, input is unsigned"},
      {"BitShift", 26, "input, other; 'RIGHT' <- direction"}}},
};

struct UnaryEntry {
  std::string_view name, doc;
  Expr (*loop)(const Expr&);
  Promotion promotion;
  DTypeSet dtypes;
  std::vector<OnnxMap> onnx = {};
};

const UnaryEntry unaries[] = {
    {"logical_not",
     "Whether input is false (zero).",
     [](const Expr& x) { return !x; },
     Promotion::Logic,
     bools,
     {{"Not", 1}}},
    {"bitwise_not",
     "Every bit of input turned over.",
     bit_not,
     Promotion::Same,
     integers | bools,
     {{"BitwiseNot", 18, "input; input is integer"}, {"Not", 1, "input; input is bool"}}},
    {"isnan", "Whether input is not a number.", isnan, Promotion::Compare, any_dtype, {{"IsNaN", 9}}},
    {"isinf",
     "Whether input is an infinity.",
     isinf,
     Promotion::Compare,
     any_dtype,
     {{"IsInf", 10, "input; 1 <- detect_negative = 1, 1 <- detect_positive = 1"}}},
    {"isfinite", "Whether input is neither infinite nor NaN.", isfinite, Promotion::Compare, any_dtype},
};

Syms isclose(const Call& c) {
  Builder& b = c.builder();
  const Sym x = c[0], y = c[1];
  const double rtol = c.number("rtol"), atol = c.number("atol");
  MOREL_CHECK(rtol >= 0 && atol >= 0, Value, "For 'IsClose', 'rtol' and 'atol' must not be negative, but got ", rtol,
              " and ", atol);
  const Sym near = b("less_equal", b("abs", x - y), b("abs", y) * rtol + atol);
  // An infinite tolerance must not make finite numbers close to infinities.
  const Sym finite = b("logical_and", b("isfinite", x), b("isfinite", y));
  const Sym close = b("logical_or", b("equal", x, y), b("logical_and", near, finite));
  if (!c.flag("equal_nan")) return {close};
  return {b("logical_or", close, b("logical_and", b("isnan", x), b("isnan", y)))};
}

}  // namespace

void register_compare(Registry& registry) {
  Family add(registry, "compare");
  for (const BinaryEntry& entry : binaries) {
    OpDef op{
        .name = entry.name, .args = "input: Tensor|number, other: Tensor|number", .doc = entry.doc, .loop = entry.loop};
    op.flags = kNoGrad;
    op.promotion = entry.promotion;
    op.dtypes = entry.dtypes;
    op.onnx = entry.onnx;
    add(std::move(op));
  }
  for (const UnaryEntry& entry : unaries) {
    OpDef op{.name = entry.name, .args = "input: Tensor|number", .doc = entry.doc, .loop = entry.loop};
    op.flags = kNoGrad;
    op.promotion = entry.promotion;
    op.dtypes = entry.dtypes;
    op.onnx = entry.onnx;
    add(std::move(op));
  }
  add({.name = "isclose",
       .args = "input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False",
       .doc = "Whether |input - other| <= atol + rtol * |other|; infinities are close to themselves, NaN only with "
              "equal_nan.",
       .compose = isclose,
       .flags = kNoGrad});
  add({.name = "allclose",
       .args = "input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False",
       .doc = "Whether all elements are close, see isclose: a bool scalar.",
       .compose = [](const Call& c) -> Syms {
         Builder& b = c.builder();
         return {b("all", b("isclose", c[0], c[1], c[2], c[3], c[4]))};
       },
       .flags = kNoGrad});
}

}  // namespace morel
