// Elementary functions of float32 as polynomials in the loop IR. Bounds and sources: docs/math_accuracy.md.
#pragma once

#include "morel/loops/expr.h"

namespace morel::loops {

// `x` is a node whose operands are expanded already; a math function of float32 operands comes back as arithmetic,
// every other node as it is.
Expr expand_math(const Expr& x);

// e^x of x <= 0, as softmax needs it: cheaper than exp, but of half its accuracy, and float32 results below
// 2^-126.5 are 0.
Expr exp_nonpositive(const Expr& x);

}  // namespace morel::loops
