// Functions that stop in the middle and go on later, each on a stack of its own.
#pragma once

#include <cstddef>

namespace emulated {

using Jump = void* [5];  // what the compiler's setjmp keeps

// `run` is called again and again: each call of resume() runs until pause() or its end.
class Fiber {
 public:
  explicit Fiber(void (*run)());
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From the main stack.
  void resume();
  // From the fiber that runs.
  static void pause();

 private:
  static void enter();
  void (*run_)();
  Jump here_;
};

}  // namespace emulated
