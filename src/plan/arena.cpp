#include "plan/arena.hpp"

#include <sys/mman.h>

#include <bit>

#include "base/checked.hpp"

namespace ashlar {

namespace {
constexpr std::int64_t kPage = 4096;
}

Arena::Arena(std::int64_t slot_bytes)
    : slot_bytes_(checked_add(slot_bytes, kPage - 1) / kPage * kPage) {
  const std::int64_t total = checked_mul(slot_bytes_, kSlots);
  void* memory = mmap(nullptr, static_cast<std::size_t>(total), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    fail(ErrorCode::out_of_memory,
         "plan: {} bytes for its intermediates could not be reserved; grant it a workspace", total);
  base_ = static_cast<std::byte*>(memory);
}

Arena::~Arena() { munmap(base_, static_cast<std::size_t>(slot_bytes_ * kSlots)); }

Arena::Lease::Lease(Arena& arena) : arena_(arena) {
  std::uint64_t taken = arena.taken_.load(std::memory_order_relaxed);
  while (true) {
    if (taken == ~std::uint64_t{0}) {
      arena.taken_.wait(taken, std::memory_order_relaxed);
      taken = arena.taken_.load(std::memory_order_relaxed);
      continue;
    }
    slot_ = std::countr_one(taken);
    if (arena.taken_.compare_exchange_weak(taken, taken | std::uint64_t{1} << slot_,
                                           std::memory_order_acquire))
      break;
  }
  memory_ = arena.base_ + slot_ * arena.slot_bytes_;
}

Arena::Lease::~Lease() {
  arena_.taken_.fetch_and(~(std::uint64_t{1} << slot_), std::memory_order_release);
  arena_.taken_.notify_one();
}

}  // namespace ashlar
