// Counts operations that the run path must not perform, and injects allocation failures. hooks.cpp
// replaces operator new, malloc, pthread_mutex_lock and getenv for the whole program.
#pragma once

#include <cstdint>

namespace ashlar::stress {

struct Counts {
  std::int64_t allocations = 0;
  std::int64_t locks = 0;
  std::int64_t environment_reads = 0;
};

// Counts of all threads, between construction and counts().
class Counting {
 public:
  Counting();
  ~Counting();
  Counts counts() const;
};

// Whether malloc is replaced too; sanitizers keep their own.
bool counts_malloc();

enum class Failing : std::uint8_t { once, from_then_on };

// While alive, makes the `number`-th operator new of this thread (counted from 1) throw
// std::bad_alloc: only that one, or it and all later ones.
class FailingAllocation {
 public:
  FailingAllocation(std::int64_t number, Failing failing);
  ~FailingAllocation();
  bool happened() const;
};

}  // namespace ashlar::stress
