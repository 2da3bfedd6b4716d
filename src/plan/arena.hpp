// Memory a plan keeps for its intermediates when the caller grants no workspace.
#pragma once

#include <atomic>
#include <vector>

#include "plan/backend.hpp"

namespace ashlar {

// One slot per concurrent run. A processor reserves address space at once and takes pages on first
// use, so slots that are never used cost nothing. On a GPU a stream that is given a slot waits for
// the slot's last user. (Not while it is being captured: a graph that was captured from a plan with
// an arena must not run beside other runs of that plan.)
class Arena {
 public:
  Arena(const DeviceProps& device, std::int64_t slot_bytes);  // throws Error(out_of_memory)

  // Takes a free slot without lock or allocation; waits while all slots are taken.
  class Lease {
   public:
    Lease(Arena& arena, void* stream);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    std::byte* memory() const { return memory_; }

   private:
    Arena& arena_;
    int slot_;
    void* stream_;
    std::byte* memory_;
  };

 private:
  std::int64_t slot_bytes_;
  OwnedMemory memory_;
  std::vector<std::unique_ptr<Marker>> last_uses_;  // by slot; null where there is nothing to order
  std::atomic<std::uint64_t> taken_;                // one bit per slot
};

}  // namespace ashlar
