// Whole numbers held as float -> pairs of 16-bit integers, as the integer product takes them.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

struct PairRows {
  // pairs[i] = (x[2 i], x[2 i + 1])
  void (*neighbours)(const float* x, std::int64_t pairs, std::int32_t* destination);
  // pairs[i] = (low[i], high[i])
  void (*zip)(const float* low, const float* high, std::int64_t pairs, std::int32_t* destination);
};

// The table for this processor.
const PairRows& pair_rows();

}  // namespace ashlar::cpu
