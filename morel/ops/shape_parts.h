// The files of the shape family: shape.cc (other shapes and orders of axes), slice.cc (views that pick elements),
// array.cc (what copies elements).
#pragma once

#include "morel/ops/registry.h"

namespace morel {

bool is_row_major(const Layout& layout);
// Strides over a row-major example, as strides over a batch of them.
Ints strides_of_batch(const Shape& example, const Ints& strides);
void register_slices(Family& add);
void register_array(Family& add);

}  // namespace morel
