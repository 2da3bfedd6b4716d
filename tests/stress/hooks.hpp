// Counts what the run path must not do, and makes memory run out where a test wants it to.
// hooks.cpp replaces operator new, malloc, pthread_mutex_lock and getenv for the whole program.
#pragma once

#include <cstdint>

namespace ashlar::stress {

struct Counts {
  std::int64_t allocations = 0;
  std::int64_t locks = 0;
  std::int64_t environment_reads = 0;
};

// Of all threads, between construction and counts().
class Counting {
 public:
  Counting();
  ~Counting();
  Counts counts() const;
};

// Whether malloc is replaced too; a sanitizer keeps its own.
bool counts_malloc();

enum class Failing : std::uint8_t { once, from_then_on };

// While it lives, the `number`-th operator new of this thread (counted from 1) throws
// std::bad_alloc: that one, or it and all later ones.
class FailingAllocation {
 public:
  FailingAllocation(std::int64_t number, Failing failing);
  ~FailingAllocation();
  bool happened() const;
};

}  // namespace ashlar::stress
