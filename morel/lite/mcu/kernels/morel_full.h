/* A tensor of one number; defines the function `NAME` for elements of type `ELEMENT`, of a number of type `NUMBER`. */
#include "morel_tensor.h"

void NAME(const int32_t* size, NUMBER value, int32_t dtype, const morel_tensor* y) {
  (void)size, (void)dtype; /* those of y */
  for (int32_t i = morel_count(y, 0, y->rank); i-- > 0;) ((ELEMENT*)y->data)[i] = (ELEMENT)value;
}
