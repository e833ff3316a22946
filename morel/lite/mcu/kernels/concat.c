/* Tensors one after another along an axis. */
#include "morel_tensor.h"

void morel_concat(const morel_tensor* const* parts, int32_t count, int32_t axis, const morel_tensor* y) {
  axis = morel_axis(y, axis);
  const int32_t outer = morel_count(y, 0, axis), inner = morel_count(y, axis + 1, y->rank);
  for (int32_t part = 0, first = 0; part < count; first += parts[part++]->shape[axis]) {
    const morel_tensor* x = parts[part];
    for (int32_t i = 0; i < outer; ++i)
      for (int32_t j = 0; j < x->shape[axis]; ++j)
        for (int32_t k = 0; k < inner; ++k)
          memcpy(morel_at(y, morel_place(y, 0, axis, i) + (first + j) * y->strides[axis] +
                                 morel_place(y, axis + 1, y->rank, k)),
                 morel_at(x, morel_place(x, 0, axis, i) + j * x->strides[axis] + morel_place(x, axis + 1, x->rank, k)),
                 (size_t)y->item);
  }
}
