// Memory a plan keeps for its intermediates when the caller grants no workspace.
#pragma once

#include <atomic>
#include <vector>

#include "plan/backend.hpp"

namespace ashlar {

// One slot per concurrent run. A processor reserves address space at once and takes pages on first
// use, so slots that are never used cost nothing. On a GPU a slot that is handed to another stream
// makes that stream wait for its last user. (Not while a stream is being captured: graphs that were
// captured from one plan must not run side by side unless they were granted workspaces.)
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
  struct Slot {
    std::unique_ptr<Marker> last_use;
    void* last_stream = nullptr;
  };
  std::int64_t slot_bytes_;
  OwnedMemory memory_;
  std::vector<Slot> slots_;
  std::atomic<std::uint64_t> taken_;  // one bit per slot
};

}  // namespace ashlar
