#include "fiber.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>

namespace emulated {

namespace {

constexpr std::size_t kStackBytes = 256 << 10, kPageBytes = 4096;

Jump main_stack;
Fiber* running = nullptr;

// __builtin_setjmp/longjmp: no system call, minimal register state. longjmp must be called from a
// different function.
[[noreturn, gnu::noipa]] void jump(Jump& to) { __builtin_longjmp(to, 1); }
[[gnu::noipa]] void change(Jump& from, Jump& to) {
  if (__builtin_setjmp(from) == 0) jump(to);
}

// Lives as long as the process; a guard page below catches overflows.
char* new_stack() {
  void* memory = mmap(nullptr, kStackBytes + kPageBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kPageBytes, PROT_NONE) != 0) {
    std::fprintf(stderr, "emulated CUDA: out of memory for thread stacks\n");
    std::abort();
  }
  return static_cast<char*>(memory) + kPageBytes;
}

[[gnu::noipa]] void start(ucontext_t& context) {
  if (__builtin_setjmp(main_stack) == 0) setcontext(&context);
}

}  // namespace

Fiber::Fiber(void (*run)()) : run_(run), here_{} {
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = new_stack();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, &Fiber::enter, 0);
  running = this;
  start(context);
}

void Fiber::enter() {
  Fiber* self = running;
  for (;;) {
    change(self->here_, main_stack);
    self->run_();
  }
}

void Fiber::resume() {
  running = this;
  change(main_stack, here_);
}

void Fiber::pause() { change(running->here_, main_stack); }

}  // namespace emulated
