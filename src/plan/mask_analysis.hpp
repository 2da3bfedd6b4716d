// Recognises a boolean expression over row and column indices as an attention mask.
#pragma once

#include <optional>

#include "plan/graph_editor.hpp"

namespace ashlar {

// Unlike the bounds of attention, these may have any sign.
struct MaskBounds {
  std::optional<std::int64_t> left_bound, right_bound;
  bool bottom_right = false;
  TensorId seq_len_q = kNoTensor, seq_len_kv = kNoTensor;
};

// Adds the constraints of `predicate` (true = visible) to `bounds`. Returns false unless it is a
// conjunction of
//   row + c >= col,  col + c > row  (also with kv_length - q_length added to row),  row < q_length,
//   col < kv_length
// with terms in any order. `row_axis` and `col_axis` are the axes of the scores.
bool analyse_mask(const GraphEditor& editor, TensorId predicate, int row_axis, int col_axis,
                  MaskBounds& bounds);

}  // namespace ashlar
