// Stores that go past the caches.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// Copies `bytes` bytes; whole cache lines of the destination are written to memory without being
// read first and without displacing others. The rest, at either end, is stored as usual. While it
// goes it fetches the `prefetch_bytes` bytes at `ahead` into L1 (they need not exist).
// parallel_for() orders these stores before its return.
void stream_row(const void* source, std::int64_t bytes, void* destination,
                const void* prefetch = nullptr, std::int64_t prefetch_bytes = 0);

// Fetches memory into L1 that is soon to be read; it need not exist.
void prefetch_to_l1(const void* prefetch, std::int64_t bytes);

}  // namespace ashlar::cpu
