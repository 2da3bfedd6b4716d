// Which way round a product is made.
#pragma once

#include "cpu/row_program.hpp"

namespace ashlar::cpu {

// Whether C = A B is better made as C^T = B^T A^T: where that makes C's rows contiguous, or wide
// enough for vectors. The last two axes of the epilogue's space are C's.
inline bool swaps_operands(const PointwiseProgram& epilogue) {
  constexpr std::int64_t kNarrow = 16;
  const int rank = epilogue.space.rank();
  const std::int64_t m = epilogue.space[rank - 2], n = epilogue.space[rank - 1];
  const bool narrow = n < kNarrow && m > 2 * n;
  return narrow || (m >= kNarrow &&
                    contiguous_views(epilogue, rank - 2) > contiguous_views(epilogue, rank - 1));
}

}  // namespace ashlar::cpu
