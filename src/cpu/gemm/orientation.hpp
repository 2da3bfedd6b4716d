// Whether to compute C or its transpose.
#pragma once

#include "cpu/row_program.hpp"

namespace ashlar::cpu {

// Whether to compute C^T = B^T A^T instead of C = A B: if that makes rows of C contiguous, or wide
// enough for vectors. The last two axes of the epilogue's space are those of C.
inline bool swaps_operands(const PointwiseProgram& epilogue) {
  constexpr std::int64_t kNarrow = 16;
  const int rank = epilogue.space.rank();
  const std::int64_t m = epilogue.space[rank - 2], n = epilogue.space[rank - 1];
  const bool narrow = n < kNarrow && m > 2 * n;
  return narrow || (m >= kNarrow &&
                    contiguous_views(epilogue, rank - 2) > contiguous_views(epilogue, rank - 1));
}

}  // namespace ashlar::cpu
