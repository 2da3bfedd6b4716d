// Arena: slots of owned memory for concurrent runs of a plan.
#include "plan/arena.hpp"

#include <bit>

#include "base/checked.hpp"

namespace ashlar {

namespace {
constexpr std::int64_t kPage = 4096;
}

Arena::Arena(const Backend& backend, const DeviceProps& device, std::int64_t slot_bytes)
    : slot_bytes_(checked_add(slot_bytes, kPage - 1) / kPage * kPage),
      last_uses_(static_cast<std::size_t>(backend.owned_slots())),
      taken_(last_uses_.size() == 64 ? 0 : ~std::uint64_t{0} << last_uses_.size()) {
  memory_ = OwnedMemory(backend, device,
                        checked_mul(slot_bytes_, static_cast<std::int64_t>(last_uses_.size())));
  for (auto& last_use : last_uses_) last_use = backend.marker(device);
}

Arena::Lease::Lease(Arena& arena, void* stream) : arena_(arena), stream_(stream) {
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
  memory_ = arena.memory_.data() + slot_ * arena.slot_bytes_;
  if (Marker* last_use = arena.last_uses_[static_cast<std::size_t>(slot_)].get())
    last_use->stream_wait(stream);
}

Arena::Lease::~Lease() {
  // A destructor must not throw; a device error shows up in this run or in the next one.
  try {
    if (Marker* last_use = arena_.last_uses_[static_cast<std::size_t>(slot_)].get())
      last_use->record(stream_);
  } catch (const Error&) {
  }
  arena_.taken_.fetch_and(~(std::uint64_t{1} << slot_), std::memory_order_release);
  arena_.taken_.notify_one();
}

}  // namespace ashlar
