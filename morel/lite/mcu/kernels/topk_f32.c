/* The k largest (or smallest) float32 elements along an axis, best first, equal ones by index. NaN counts as largest.
 */
#include "morel_tensor.h"

/* Whether a comes before b; of equal ones neither does. */
static int before(float a, float b, int32_t largest) {
  if (a != a || b != b) return largest ? a != a && b == b : a == a && b != b;
  return largest ? a > b : a < b;
}

void morel_topk_f32(const morel_tensor* x, int32_t k, int32_t axis, int32_t largest, int32_t sorted,
                    const morel_tensor* values, const morel_tensor* indices) {
  (void)sorted; /* they always are */
  axis = axis == MOREL_NONE ? x->rank - 1 : morel_axis(x, axis);
  const int32_t outer = morel_count(x, 0, axis), inner = morel_count(x, axis + 1, x->rank), step = x->strides[axis];
  for (int32_t i = 0; i < outer * inner; ++i) {
    const float* from =
        (const float*)x->data + morel_place(x, 0, axis, i / inner) + morel_place(x, axis + 1, x->rank, i % inner);
    int32_t last = -1;
    for (int32_t j = 0; j < k; ++j) {
      int32_t best = -1; /* the next one behind `last` in the order of values and indices */
      for (int32_t l = 0; l < x->shape[axis]; ++l) {
        const float value = from[l * step];
        if (last >= 0 &&
            (before(value, from[last * step], largest) || (!before(from[last * step], value, largest) && l <= last)))
          continue;
        if (best < 0 || before(value, from[best * step], largest)) best = l;
      }
      last = best;
      if (values->data)
        ((float*)values->data)[morel_place(values, 0, axis, i / inner) + j * values->strides[axis] +
                               morel_place(values, axis + 1, values->rank, i % inner)] = from[best * step];
      if (indices->data)
        ((int64_t*)indices->data)[morel_place(indices, 0, axis, i / inner) + j * indices->strides[axis] +
                                  morel_place(indices, axis + 1, indices->rank, i % inner)] = best;
    }
  }
}
