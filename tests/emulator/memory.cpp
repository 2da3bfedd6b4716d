#include "memory.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "options.hpp"

namespace emulated {

namespace {

constexpr std::size_t kAlignment = 256, kFence = 256;
constexpr unsigned char kNew = 0xcb, kGone = 0xdd, kFenceByte = 0xa7;

struct Allocation {
  std::size_t bytes;
  bool on_device;
  unsigned char* block;  // with its guard zones
};
std::mutex mutex;
std::map<std::uint64_t, Allocation> allocations;
std::size_t used = 0;

std::uint64_t allocate(std::size_t bytes, bool on_device) {
  const std::size_t whole = (bytes + 2 * kFence + kAlignment - 1) / kAlignment * kAlignment;
  auto* block = static_cast<unsigned char*>(std::aligned_alloc(kAlignment, whole));
  if (block == nullptr) return 0;
  std::memset(block, kFenceByte, kFence);
  std::memset(block + kFence, kNew, bytes);
  std::memset(block + kFence + bytes, kFenceByte, whole - kFence - bytes);
  const auto address = reinterpret_cast<std::uint64_t>(block + kFence);
  allocations[address] = {bytes, on_device, block};
  return address;
}

bool is_whole(const Allocation& allocation) {
  const auto is_fence = [](unsigned char byte) { return byte == kFenceByte; };
  const unsigned char *front = allocation.block, *back = front + kFence + allocation.bytes;
  return std::all_of(front, front + kFence, is_fence) && std::all_of(back, back + kFence, is_fence);
}

std::string damage_text(std::uint64_t address, const Allocation& allocation) {
  char text[160];
  std::snprintf(text, sizeof text, "the allocation of %zu bytes at %#llx was overrun",
                allocation.bytes, static_cast<unsigned long long>(address));
  return text;
}

}  // namespace

std::uint64_t allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex);
  if (bytes > static_cast<std::size_t>(options().memory) - used) return 0;
  const std::uint64_t address = allocate(bytes, true);
  if (address != 0) used += bytes;
  return address;
}

void* allocate_host(std::size_t bytes) {
  const std::lock_guard lock(mutex);
  return reinterpret_cast<void*>(allocate(bytes, false));
}

bool release(std::uint64_t address) {
  const std::lock_guard lock(mutex);
  const auto found = allocations.find(address);
  if (found == allocations.end()) return false;
  const Allocation allocation = found->second;
  if (!is_whole(allocation)) {
    std::fprintf(stderr, "emulated CUDA: %s\n", damage_text(address, allocation).c_str());
    std::abort();
  }
  std::memset(allocation.block + kFence, kGone, allocation.bytes);
  std::free(allocation.block);
  if (allocation.on_device) used -= allocation.bytes;
  allocations.erase(found);
  return true;
}

std::size_t free_bytes() {
  const std::lock_guard lock(mutex);
  return static_cast<std::size_t>(options().memory) - used;
}

bool is_inside(std::uint64_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  auto found = allocations.upper_bound(address);
  if (found == allocations.begin()) return false;
  --found;
  const std::uint64_t offset = address - found->first;
  return offset <= found->second.bytes && bytes <= found->second.bytes - offset;
}

std::string overrun_allocation() {
  const std::lock_guard lock(mutex);
  for (const auto& [address, allocation] : allocations)
    if (!is_whole(allocation)) return damage_text(address, allocation);
  return {};
}

}  // namespace emulated
