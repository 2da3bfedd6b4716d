// Memory a plan keeps for its intermediates when the caller grants no workspace.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ashlar {

// One slot per concurrent run. Address space is reserved at once, pages are taken from the system
// on first use, so slots that are never used cost nothing.
class Arena {
 public:
  explicit Arena(std::int64_t slot_bytes);  // throws Error(out_of_memory)
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Takes a free slot without lock or allocation; waits while kSlots runs are under way.
  class Lease {
   public:
    explicit Lease(Arena& arena);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    std::byte* memory() const { return memory_; }

   private:
    Arena& arena_;
    int slot_;
    std::byte* memory_;
  };

  static constexpr int kSlots = 64;

 private:
  std::int64_t slot_bytes_;
  std::byte* base_;
  std::atomic<std::uint64_t> taken_{0};  // one bit per slot
};

}  // namespace ashlar
