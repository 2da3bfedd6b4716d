// Registry of all memory that the host runtime allocated or registered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "cuda_runtime_api.h"

namespace ashlar::hostrt {

struct Block {
  uintptr_t begin;
  size_t bytes;
  cudaMemoryType type;
  bool registered;     // the program's own memory, registered by cudaHostRegister
  unsigned int flags;  // of cudaHostAlloc or cudaHostRegister
};

class Memory {
 public:
  static constexpr size_t kAlignment = 512;  // bytes: what programs rely on with a GPU

  static Memory& instance();

  // Null when memory is exhausted.
  void* allocate(size_t bytes, cudaMemoryType type, unsigned int flags = 0);
  // Frees the block that starts at `pointer`; false when there is none of that kind (host or
  // other).
  bool release(void* pointer, bool host);

  // Registers a range; false when it overlaps a known block.
  bool enter(void* pointer, size_t bytes, unsigned int flags);
  bool leave(void* pointer);

  std::optional<Block> find(const void* pointer) const;
  void release_all();  // frees all allocations

 private:
  std::optional<Block> find_locked(const void* pointer) const;

  mutable std::mutex mutex_;
  std::map<uintptr_t, Block> blocks_;
};

// Whether the `bytes` bytes at `pointer` lie inside one known block, or outside all of them. The
// latter is the program's own memory, which the device may access too (pageableMemoryAccess).
bool usable(const void* pointer, size_t bytes);

// Checks a cudaMemAdvise or prefetch call. There is one memory, so nothing moves.
cudaError_t advise(const void* pointer, size_t bytes, cudaStream_t stream);

}  // namespace ashlar::hostrt
