// Shared memory as instructions see it: addresses of 32 bits, first what the system takes of every
// block, then what kernels declare, then what launches ask for. Pointers are equal to them in the
// bits below 1024, so that kernels may align either.
#include <cstdint>

#include "running.hpp"

namespace emulated {

namespace {

constexpr unsigned kOfSystem = 1024, kAlignment = 1024;

unsigned static_begin() {
  const auto pointer = reinterpret_cast<std::uintptr_t>(now.launch->image->shared_begin);
  return kOfSystem + static_cast<unsigned>(pointer % kAlignment);
}
// Of the block that runs, the image's own; of others, their copies.
unsigned char* statics_of(Block& block) {
  return &block == now.block ? now.launch->image->shared_begin : block.statics.data();
}

}  // namespace

std::size_t static_bytes() {
  return static_cast<std::size_t>(now.launch->image->shared_end - now.launch->image->shared_begin);
}

// A multiple of 16, of 1024 where the kernel declares nothing.
unsigned dynamic_begin() {
  if (static_bytes() == 0) return kOfSystem;
  return (static_begin() + static_cast<unsigned>(static_bytes()) + 15) / 16 * 16;
}

unsigned shared_address(const void* pointer) {
  const auto* byte = static_cast<const unsigned char*>(pointer);
  const unsigned char *shared = now.block->shared, *statics = now.launch->image->shared_begin;
  if (byte >= shared && byte <= shared + now.launch->shared_bytes)
    return dynamic_begin() + static_cast<unsigned>(byte - shared);
  if (byte >= statics && byte <= statics + static_bytes())
    return static_begin() + static_cast<unsigned>(byte - statics);
  stop("an address that is not of shared memory");
}

unsigned char* shared_bytes_at(Block& block, unsigned address, unsigned bytes) {
  const unsigned dynamic = dynamic_begin(), statics = static_begin();
  if (address >= dynamic && address + bytes <= dynamic + now.launch->shared_bytes)
    return block.shared + (address - dynamic);
  if (address >= statics && address + bytes <= statics + static_bytes())
    return statics_of(block) + (address - statics);
  stop("bytes from " + std::to_string(address) + " to " + std::to_string(address + bytes) +
       " of shared memory, which has " + std::to_string(now.launch->shared_bytes) + " from " +
       std::to_string(dynamic) + " on");
}
unsigned char* shared_bytes_at(unsigned address, unsigned bytes) {
  return shared_bytes_at(*now.block, address, bytes);
}

unsigned rank_in_cluster() { return now.block->index % now.launch->cluster; }

Block& block_of_cluster(unsigned rank) {
  if (rank >= now.launch->cluster) stop("a block that the cluster does not have");
  Block& block = *now.cluster[now.block->index - rank_in_cluster() + rank];
  if (block.live == 0) stop("a block of the cluster that has ended");
  return block;
}

void* cluster_address(void* address, unsigned rank) {
  Block& block = block_of_cluster(rank);
  return &block == now.block ? address : shared_bytes_at(block, shared_address(address), 0);
}

}  // namespace emulated
