// All memory that the stand-in gave or was told of.
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
  bool registered;     // the program's own memory, made known by cudaHostRegister
  unsigned int flags;  // of cudaHostAlloc or cudaHostRegister
};

class Memory {
 public:
  static constexpr size_t kAlignment = 512;  // bytes: as far as programs rely on with a GPU

  static Memory& instance();

  // Null when there is not enough of it.
  void* allocate(size_t bytes, cudaMemoryType type, unsigned int flags = 0);
  // Whether there was a block of that kind (host, or anything else) that begins here.
  bool release(void* pointer, bool host);

  // Whether the range overlaps no known block.
  bool enter(void* pointer, size_t bytes, unsigned int flags);
  bool leave(void* pointer);

  std::optional<Block> find(const void* pointer) const;
  void release_all();  // all that was allocated

 private:
  std::optional<Block> find_locked(const void* pointer) const;

  mutable std::mutex mutex_;
  std::map<uintptr_t, Block> blocks_;
};

// Whether `bytes` bytes can be used from here on: they lie in one known block, or where no block is
// known. That is the program's own memory, which the device can use as well (pageableMemoryAccess).
bool usable(const void* pointer, size_t bytes);

// Advice and prefetching say where memory should be; there is one place.
cudaError_t advise(const void* pointer, size_t bytes, cudaStream_t stream);

}  // namespace ashlar::hostrt
