// Non-temporal stores and prefetch.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// Copies `bytes` bytes with non-temporal stores for whole cache lines of the destination: no
// read-for-ownership, no cache pollution. Partial lines at both ends use ordinary stores.
// Prefetches the `prefetch_bytes` bytes at `prefetch` into L1 meanwhile (the address may be
// invalid). parallel_for() fences these stores before it returns.
void stream_row(const void* source, std::int64_t bytes, void* destination,
                const void* prefetch = nullptr, std::int64_t prefetch_bytes = 0);

// Prefetches memory into L1; the address may be invalid.
void prefetch_to_l1(const void* prefetch, std::int64_t bytes);

}  // namespace ashlar::cpu
