#include "memory.hpp"

#include <cstdlib>

#include "device.hpp"

namespace ashlar::hostrt {

// Never destroyed: programs free memory in their own static destructors.
Memory& Memory::instance() {
  static auto* memory = new Memory;
  return *memory;
}

void* Memory::allocate(size_t bytes, cudaMemoryType type, unsigned int flags) {
  if (bytes > total_memory()) {
    return nullptr;
  }
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* pointer = std::aligned_alloc(kAlignment, rounded);
  if (pointer != nullptr) {
    const auto begin = reinterpret_cast<uintptr_t>(pointer);
    const std::lock_guard lock(mutex_);
    blocks_[begin] = {begin, bytes, type, false, flags};
  }
  return pointer;
}

bool Memory::release(void* pointer, bool host) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
    if (found == blocks_.end() || found->second.registered ||
        (found->second.type == cudaMemoryTypeHost) != host) {
      return false;
    }
    blocks_.erase(found);
  }
  std::free(pointer);
  return true;
}

bool Memory::enter(void* pointer, size_t bytes, unsigned int flags) {
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  const std::lock_guard lock(mutex_);
  const auto next = blocks_.lower_bound(begin);
  if ((next != blocks_.end() && next->first - begin < bytes) || find_locked(pointer)) {
    return false;
  }
  blocks_[begin] = {begin, bytes, cudaMemoryTypeHost, true, flags};
  return true;
}

bool Memory::leave(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == blocks_.end() || !found->second.registered) {
    return false;
  }
  blocks_.erase(found);
  return true;
}

std::optional<Block> Memory::find(const void* pointer) const {
  const std::lock_guard lock(mutex_);
  return find_locked(pointer);
}

std::optional<Block> Memory::find_locked(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) {
    return std::nullopt;
  }
  const Block& block = (--after)->second;
  return address - block.begin < block.bytes ? std::optional(block) : std::nullopt;
}

void Memory::release_all() {
  std::map<uintptr_t, Block> gone;
  {
    const std::lock_guard lock(mutex_);
    gone.swap(blocks_);
  }
  for (const auto& [begin, block] : gone) {
    if (!block.registered) {
      std::free(reinterpret_cast<void*>(begin));
    }
  }
}

bool usable(const void* pointer, size_t bytes) {
  if (bytes == 0) {
    return true;
  }
  if (pointer == nullptr) {
    return false;
  }
  const std::optional<Block> block = Memory::instance().find(pointer);
  return !block || bytes <= block->bytes - (reinterpret_cast<uintptr_t>(pointer) - block->begin);
}

}  // namespace ashlar::hostrt
