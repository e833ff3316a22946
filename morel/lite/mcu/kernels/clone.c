/* A copy without gaps. */
#include "morel_tensor.h"

void morel_clone(const morel_tensor* x, const morel_tensor* y) {
  const int32_t count = morel_count(y, 0, y->rank);
  for (int32_t i = 0; i < count; ++i)
    memcpy(morel_at(y, morel_place(y, 0, y->rank, i)), morel_at(x, morel_place(x, 0, x->rank, i)), (size_t)y->item);
}
