/* The smallest program that holds a model: what it takes of flash and RAM. */
#include "model.h"

int main(void) {
  for (;;) model_run();
}
