// The 32-bit shared-memory window: system-reserved bytes, then static, then dynamic shared memory.
// Addresses and pointers agree in the bits below 1024, so that kernels may align either.
#include <cstdint>

#include "running.hpp"

namespace emulated {

namespace {

constexpr unsigned kOfSystem = 1024, kAlignment = 1024;

unsigned static_begin() {
  const auto pointer = reinterpret_cast<std::uintptr_t>(now.launch->image->shared_begin);
  return kOfSystem + static_cast<unsigned>(pointer % kAlignment);
}
// The running CTA uses the image's memory, others their saved copies.
unsigned char* statics_of(Block& block) {
  return &block == now.block ? now.launch->image->shared_begin : block.statics.data();
}

}  // namespace

std::size_t static_bytes() {
  return static_cast<std::size_t>(now.launch->image->shared_end - now.launch->image->shared_begin);
}

// A multiple of 16; of 1024 without static shared memory.
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
  stop("the address is not in shared memory");
}

unsigned char* shared_bytes_at(Block& block, unsigned address, unsigned bytes) {
  const unsigned dynamic = dynamic_begin(), statics = static_begin();
  if (address >= dynamic && address + bytes <= dynamic + now.launch->shared_bytes)
    return block.shared + (address - dynamic);
  if (address >= statics && address + bytes <= statics + static_bytes())
    return statics_of(block) + (address - statics);
  stop("bytes from " + std::to_string(address) + " to " + std::to_string(address + bytes) +
       " of shared memory are out of range: it has " + std::to_string(now.launch->shared_bytes) +
       " bytes from " + std::to_string(dynamic) + " on");
}
unsigned char* shared_bytes_at(unsigned address, unsigned bytes) {
  return shared_bytes_at(*now.block, address, bytes);
}

unsigned rank_in_cluster() { return now.block->index % now.launch->cluster; }

Block& block_of_cluster(unsigned rank) {
  if (rank >= now.launch->cluster) stop("the CTA rank is outside the cluster");
  Block& block = *now.cluster[now.block->index - rank_in_cluster() + rank];
  if (block.live == 0) stop("the CTA of the cluster has exited");
  return block;
}

void* cluster_address(void* address, unsigned rank) {
  Block& block = block_of_cluster(rank);
  return &block == now.block ? address : shared_bytes_at(block, shared_address(address), 0);
}

}  // namespace emulated
