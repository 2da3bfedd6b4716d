// A matrix product as kernels/sm90/load_matrix.cuh wants it: batches of D = A B', every matrix with
// one contiguous axis.
#pragma once

#include <optional>

#include "cuda/engines/gemm_tails.hpp"
#include "cuda/engines/sm90/computed_operand.hpp"
#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/launch/tensor_map.hpp"

namespace ashlar::cuda {

struct MatrixOperand {
  DType math = bf16;                        // what is multiplied; f32: tf32
  std::optional<ComputedOperand> computed;  // instead of all that follows but `transpose`
  View view;                                // of the tensor
  bool transpose = false;                   // its rows are contiguous, not their depth
  std::int64_t pitch = 0;                   // from one line of contiguous elements to the next
  std::int64_t batch = 0;                   // from one matrix to the next; 0: one for all

  // Null where it is not converted by pairs.
  const DequantizedOperand* converted() const {
    return computed && computed->converted ? &*computed->converted : nullptr;
  }
  // Of an element on its way into shared memory.
  double loaded_bytes() const {
    return bit_width(converted() ? converted()->numbers.dtype : math) / 8.0;
  }
};

struct MatrixShape {
  std::int64_t batches = 1, rows = 1, columns = 1, depth = 1;
  MatrixOperand a, b;
  PointwiseProgram epilogue;  // its last axis is the columns
  bool rounds_f32 = false;    // operands of f32 are multiplied as tf32
  // Of each batch, over the batches, where they have their own; past them is the padding value.
  View row_lengths, column_lengths, k_lengths;
  double padding_value = 0;
  std::vector<TailAxis> axes;  // of the result

  bool computes() const { return a.computed || b.computed; }
  bool has_lengths() const {
    return row_lengths.present() || column_lengths.present() || k_lengths.present();
  }
};

// A factor whose math is known: by the copy engine where that can take it and `may_use_tma`, else
// computed, by pairs where `may_convert`. `dims` are those of the result.
Support describe_operand(const PointwiseProgram& prologue, DType dtype, int row_axis,
                         int depth_axis, const Dims& dims, MatrixOperand& factor,
                         bool may_use_tma = true, bool may_convert = false);
// Neighbouring columns that a thread may take at a time: all of them are inside or none.
int max_vector(std::int64_t columns);

// Fills in `shape`, or says why not.
Support describe(const Region& region, MatrixShape& shape);

// Of the tile that a stage holds of a factor; `rows` of the tile.
TensorMapForm map_of(const MatrixOperand& factor, std::int64_t lines, std::int64_t depth,
                     std::int64_t batches, int rows);

}  // namespace ashlar::cuda
