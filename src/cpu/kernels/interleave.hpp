// Interleaves rows into a panel: the transpose inside GEMM packing.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// destination[l * width + i] = rows[i][l] for i < count <= width, l < length. Up to
// kInterleaveSlack elements after the last one may be overwritten. Copies bits: T stands for any
// type of its size.
template <class T>
using InterleaveRows = void (*)(const T* const* rows, std::int64_t count, std::int64_t length,
                                std::int64_t width, T* destination);

// The best implementation for this CPU; T is float or double.
template <class T>
[[gnu::visibility("hidden")]] InterleaveRows<T> interleave_rows();

// Spare elements that a destination must have.
inline constexpr std::int64_t kInterleaveSlack = 3;

}  // namespace ashlar::cpu
