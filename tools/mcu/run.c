/* Runs a generated model on every set of inputs in input.bin, and writes the results to output.bin, through the
   debugger's files (semihosting). TEST_... come from the command line. Prints how many runs there were, and on a
   Cortex-M how many ticks of the system timer the first one took. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#if defined(__arm__)
static volatile uint32_t* const timer = (volatile uint32_t*)0xE000E010; /* SysTick: control, reload, value */
static unsigned long ticks(void) { return 0xFFFFFF - timer[2]; }
static void start(void) {
  timer[1] = 0xFFFFFF;
  timer[2] = 0;
  timer[0] = 5; /* the processor's clock, no interrupt */
  while (timer[2] == 0) {
  }
}
#else
static unsigned long ticks(void) { return 0; }
static void start(void) {}
#endif

int main(void) {
  FILE* from = fopen("input.bin", "rb");
  FILE* to = fopen("output.bin", "wb");
  static char inputs[TEST_INPUT_BYTES + 1];
  unsigned long count = 0, taken = 0;
  if (!from || !to) return 2;
  while (fread(inputs, TEST_INPUT_BYTES, 1, from) == 1) {
    const char* at = inputs;
    TEST_COPY_INPUTS
    start();
    const unsigned long begin = ticks();
    model_run();
    if (count++ == 0) taken = ticks() - begin;
    TEST_WRITE_OUTPUTS
  }
  fclose(to);
  printf("%lu runs, %lu ticks\n", count, taken);
  exit(0);
}
