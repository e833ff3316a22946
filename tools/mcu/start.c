/* Start of a program on a Cortex-M: vectors, memory, FPU, main, exit. */
#include <stdint.h>

extern uint32_t data_source, data_begin, data_end, bss_begin, bss_end;
void stack_top(void); /* an address, which the first vector holds */
int main(void);
/* Of the C library; there where the program itself uses files and ends. */
void initialise_monitor_handles(void) __attribute__((weak));
void exit(int status) __attribute__((weak, noreturn));

void _init(void) {}
void _fini(void) {}

static void halt(void) {
  for (;;) {
  }
}

void reset(void) {
#if defined(__ARM_FP)
  *(volatile uint32_t*)0xE000ED88 |= 0xFu << 20; /* CPACR: coprocessors 10 and 11 */
  __asm__ volatile("dsb\n isb");
#endif
  for (uint32_t *to = &data_begin, *from = &data_source; to < &data_end;) *to++ = *from++;
  for (uint32_t* to = &bss_begin; to < &bss_end;) *to++ = 0;
  if (initialise_monitor_handles) initialise_monitor_handles();
  const int status = main();
  if (exit) exit(status);
  halt();
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    stack_top, reset, halt, halt, halt, halt, halt, 0, 0, 0, 0, halt, halt, 0, halt, halt};
