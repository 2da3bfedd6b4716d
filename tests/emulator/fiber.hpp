// Fibers: functions that can suspend and resume, each on its own stack.
#pragma once

#include <cstddef>

namespace emulated {

using Jump = void* [5];  // buffer of __builtin_setjmp

// `run` is called repeatedly; each resume() runs it until pause() or until it returns.
class Fiber {
 public:
  explicit Fiber(void (*run)());
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Called from the main stack.
  void resume();
  // Called from the running fiber.
  static void pause();

 private:
  static void enter();
  void (*run_)();
  Jump here_;
};

}  // namespace emulated
