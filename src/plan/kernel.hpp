// Kernel: the executable form of a region, and the context it runs with.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/view.hpp"

namespace ashlar {

inline constexpr std::int64_t kWorkspaceAlignment = 64;
// Guard mode: bytes of guard pattern before and after every reservation.
inline constexpr std::int64_t kGuardBytes = 64;

// The scratch memory of a kernel: reservations made at build time and granted by every run. They
// are named for the reports of guard mode.
class ScratchLayout {
 public:
  // Returns the index of the reservation.
  int add(std::string name, std::int64_t bytes);
  std::int64_t total_bytes() const { return total_; }

  struct Reservation {
    std::string name;
    std::int64_t offset;  // into the kernel's scratch, a multiple of kWorkspaceAlignment
    std::int64_t bytes;
  };
  std::span<const Reservation> reservations() const { return reservations_; }
  // Inserts `gap` bytes before and after every reservation (guard mode).
  void spread(std::int64_t gap);

 private:
  std::vector<Reservation> reservations_;
  std::int64_t total_ = 0;
};

// The location of a tensor's memory at run time.
struct Location {
  enum class Kind : std::uint8_t { none, bound, workspace, constant };
  Kind kind = Kind::none;
  std::int64_t index = 0;  // bound: index in the binding; workspace: byte offset
  const void* constant = nullptr;
};

class KernelContext {
 public:
  KernelContext(std::span<const Location> locations, std::span<void* const> bound,
                std::byte* workspace, void* stream)
      : locations_(locations), bound_(bound), workspace_(workspace), stream_(stream) {}

  // Start of the tensor's memory (views add their offset).
  void* pointer(TensorId tensor) const {
    const Location& location = locations_[static_cast<std::size_t>(tensor)];
    switch (location.kind) {
      case Location::Kind::bound: return bound_[static_cast<std::size_t>(location.index)];
      case Location::Kind::workspace: return workspace_ + location.index;
      case Location::Kind::constant: return const_cast<void*>(location.constant);
      case Location::Kind::none: break;
    }
    return nullptr;
  }
  // Address of a reservation of the running kernel.
  template <class T>
  T* scratch(const ScratchLayout& scratch_layout, int reservation) const {
    return reinterpret_cast<T*>(
        scratch_ + scratch_layout.reservations()[static_cast<std::size_t>(reservation)].offset);
  }
  void* stream() const { return stream_; }
  void set_scratch(std::byte* scratch) { scratch_ = scratch; }

 private:
  std::span<const Location> locations_;
  std::span<void* const> bound_;
  std::byte* workspace_;
  std::byte* scratch_ = nullptr;
  void* stream_;
};

// Immutable after build. run() is called concurrently and does no allocation, locking, hashing,
// formatting or environment access.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelContext& context) const = 0;
  // Called at most once, before the scratch layout is read and before any run, if the plan has
  // constant inputs. `constants` returns their memory, and null for all other tensors. The kernel
  // stores what it derives from them (packed weights) and may then reserve less scratch.
  virtual void keep_constants(const KernelContext& constants) { static_cast<void>(constants); }
  ScratchLayout& scratch_layout() { return scratch_layout_; }
  const ScratchLayout& scratch_layout() const { return scratch_layout_; }

 protected:
  ScratchLayout scratch_layout_;
};

}  // namespace ashlar
