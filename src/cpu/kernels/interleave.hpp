// Rows to panels: the transposition inside packing.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// destination[l * width + i] = rows[i][l] for i < count, l < length, with count <= width. Up to
// three elements after the last one written may be overwritten. Moves bits: T is any type of its
// size.
template <class T>
using InterleaveRows = void (*)(const T* const* rows, std::int64_t count, std::int64_t length,
                                std::int64_t width, T* destination);

// The best for this processor; for float, double and std::int32_t.
template <class T>
InterleaveRows<T> interleave_rows();

// Elements a destination must have to spare.
inline constexpr std::int64_t kInterleaveSlack = 3;

}  // namespace ashlar::cpu
