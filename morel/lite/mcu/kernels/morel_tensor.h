/* What the kernels of a generated model share: tensors in memory, and how one walks over them. C99, no library but
   string.h. */
#ifndef MOREL_TENSOR_H
#define MOREL_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef MOREL_RANK
#define MOREL_RANK 6 /* most axes of a tensor; a generated model defines what it needs */
#endif
#define MOREL_NONE INT32_MIN /* a number that is not given */

typedef struct {
  void* data;                                     /* null: nobody reads this result */
  int32_t rank, item;                             /* axes; bytes of an element */
  int32_t shape[MOREL_RANK], strides[MOREL_RANK]; /* strides count elements */
} morel_tensor;

/* Elements of the axes [first, last). */
static inline int32_t morel_count(const morel_tensor* t, int32_t first, int32_t last) {
  int32_t count = 1;
  for (int32_t axis = first; axis < last; ++axis) count *= t->shape[axis];
  return count;
}

/* Where element `index` of the axes [first, last) lies, counted in their order. */
static inline int32_t morel_place(const morel_tensor* t, int32_t first, int32_t last, int32_t index) {
  int32_t place = 0;
  for (int32_t axis = last; axis-- > first;) {
    place += index % t->shape[axis] * t->strides[axis];
    index /= t->shape[axis];
  }
  return place;
}

static inline int32_t morel_axis(const morel_tensor* t, int32_t axis) { return axis < 0 ? axis + t->rank : axis; }

static inline char* morel_at(const morel_tensor* t, int32_t place) { return (char*)t->data + place * t->item; }

/* An integer of 4 or 8 bytes as an index below `size`: negative ones count from the end; none leads outside. */
static inline int32_t morel_index(const morel_tensor* t, int32_t place, int32_t size) {
  int32_t index = t->item == 8 ? (int32_t)((const int64_t*)t->data)[place] : ((const int32_t*)t->data)[place];
  if (index < 0) index += size;
  return index < 0 ? 0 : index < size ? index : size - 1;
}

/* Taps [*begin, *end) of a window, `step` apart, that lie within `size` positions; tap 0 lies at `start`. */
static inline void morel_taps(int32_t start, int32_t step, int32_t taps, int32_t size, int32_t* begin, int32_t* end) {
  *begin = start < 0 ? (-start + step - 1) / step : 0;
  *end = start < size ? (size - start + step - 1) / step : 0;
  if (*end > taps) *end = taps;
}

#endif
