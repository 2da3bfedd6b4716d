// Memory owned by a plan for intermediates and scratch that exceed the workspace limit.
#pragma once

#include <atomic>
#include <vector>

#include "plan/backend.hpp"

namespace ashlar {

// One slot per concurrent run. On the CPU, address space is reserved up front and pages are
// committed on first use, so unused slots cost nothing. On a GPU, a stream that leases a slot waits
// for the last stream that used it. Exception: a stream under capture does not wait, so a graph
// captured from a plan with an arena must not run concurrently with other runs of that plan.
class Arena {
 public:
  // Throws Error(out_of_memory).
  Arena(const Backend& backend, const DeviceProps& device, std::int64_t slot_bytes);

  // Acquires a free slot without lock or allocation; blocks while all slots are in use.
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
  std::vector<std::unique_ptr<Marker>> last_uses_;  // by slot; null if the device has no streams
  std::atomic<std::uint64_t> taken_;                // one bit per slot
};

}  // namespace ashlar
