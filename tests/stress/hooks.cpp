// Replacements of operator new, malloc, pthread_mutex_lock and getenv; see hooks.hpp.
#include "stress/hooks.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define ASHLAR_STRESS_OWN_MALLOC 0
#else
#define ASHLAR_STRESS_OWN_MALLOC 1
#endif

namespace ashlar::stress {

namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> allocations{0}, locks{0}, environment_reads{0};

thread_local std::int64_t allocations_left = 0;  // allocations until one fails; 0: none fails
thread_local bool keeps_failing = false;
thread_local bool has_failed = false;

void count(std::atomic<std::int64_t>& what) {
  if (counting.load(std::memory_order_relaxed)) what.fetch_add(1, std::memory_order_relaxed);
}

bool should_fail() {
  if (has_failed && keeps_failing) return true;
  if (allocations_left == 0 || --allocations_left > 0) return false;
  has_failed = true;
  return true;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (should_fail()) throw std::bad_alloc();
#if !ASHLAR_STRESS_OWN_MALLOC
  count(allocations);
#endif
  const std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(std::max<std::size_t>(bytes, 1))
                     : std::aligned_alloc(alignment, rounded);
  if (!memory) throw std::bad_alloc();
  return memory;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

Counting::Counting() {
  allocations = 0;
  locks = 0;
  environment_reads = 0;
  counting = true;
}

Counting::~Counting() { counting = false; }

Counts Counting::counts() const { return {allocations, locks, environment_reads}; }

bool counts_malloc() { return ASHLAR_STRESS_OWN_MALLOC != 0; }

FailingAllocation::FailingAllocation(std::int64_t number, Failing failing) {
  has_failed = false;
  keeps_failing = failing == Failing::from_then_on;
  allocations_left = number;
}

FailingAllocation::~FailingAllocation() {
  allocations_left = 0;
  keeps_failing = false;
}

bool FailingAllocation::happened() const { return has_failed; }

}  // namespace ashlar::stress

using ashlar::stress::allocate;

void* operator new(std::size_t bytes) { return allocate(bytes, 1); }
void* operator new[](std::size_t bytes) { return allocate(bytes, 1); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocate(bytes, 1);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept {
  return operator new(bytes, nothrow);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto real = ashlar::stress::next<int(pthread_mutex_t*)>("pthread_mutex_lock");
  ashlar::stress::count(ashlar::stress::locks);
  return real(mutex);
}

char* getenv(const char* name) noexcept {
  static const auto real = ashlar::stress::next<char*(const char*)>("getenv");
  ashlar::stress::count(ashlar::stress::environment_reads);
  return real(name);
}

#if ASHLAR_STRESS_OWN_MALLOC
// glibc exports its allocator under these names for exactly this purpose.
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) noexcept {
  ashlar::stress::count(ashlar::stress::allocations);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ashlar::stress::count(ashlar::stress::allocations);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) noexcept {
  ashlar::stress::count(ashlar::stress::allocations);
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  ashlar::stress::count(ashlar::stress::allocations);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  ashlar::stress::count(ashlar::stress::allocations);
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : 12;  // ENOMEM
}
#endif

}  // extern "C"
