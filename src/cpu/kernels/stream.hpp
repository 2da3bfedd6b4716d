// Stores that go past the caches.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// Copies `bytes` bytes; whole cache lines of the destination are written to memory without being
// read first and without displacing others. The rest, at either end, is stored as usual. While it
// goes it fetches the `ahead_bytes` bytes at `ahead` into L1 (they need not exist).
// parallel_for() orders these stores before its return.
void stream_row(const void* source, std::int64_t bytes, void* destination,
                const void* ahead = nullptr, std::int64_t ahead_bytes = 0);

// Fetches memory into L1 that is soon to be read; it need not exist.
void fetch_ahead(const void* ahead, std::int64_t bytes);

}  // namespace ashlar::cpu
