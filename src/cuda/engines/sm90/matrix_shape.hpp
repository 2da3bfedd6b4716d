// A GEMM as kernels/sm90/load_matrix.cuh loads it: batches of D = A B', every matrix with one
// contiguous axis.
#pragma once

#include <optional>

#include "cuda/engines/gemm_tails.hpp"
#include "cuda/engines/sm90/computed_operand.hpp"
#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/launch/tensor_map.hpp"

namespace ashlar::cuda {

struct MatrixOperand {
  DType math = bf16;                        // tensor-core operand type; f32: tf32
  std::optional<ComputedOperand> computed;  // replaces all that follows but `transpose`
  View view;                                // of the tensor
  bool transpose = false;                   // M/N-major: contiguous along rows, not along K
  std::int64_t pitch = 0;                   // between lines of contiguous elements
  std::int64_t batch = 0;                   // between matrices; 0: one for all

  // Null where it is not dequantised by half2 conversion.
  const DequantizedOperand* converted() const {
    return computed && computed->converted ? &*computed->converted : nullptr;
  }
  // Bytes per element loaded from global memory.
  double loaded_bytes() const {
    return bit_width(converted() ? converted()->numbers.dtype : math) / 8.0;
  }
};

struct MatrixShape {
  std::int64_t batches = 1, rows = 1, columns = 1, depth = 1;
  MatrixOperand a, b;
  PointwiseProgram epilogue;  // its last axis is the columns
  bool rounds_f32 = false;    // operands of f32 are multiplied as tf32
  // Lengths of each batch, over the batches; results past them are the padding value.
  View row_lengths, column_lengths, k_lengths;
  double padding_value = 0;
  std::vector<TailAxis> axes;  // of the result

  bool computes() const { return a.computed || b.computed; }
  bool has_lengths() const {
    return row_lengths.present() || column_lengths.present() || k_lengths.present();
  }
};

// Describes an operand whose math type is known: loaded by TMA where possible and `may_use_tma`,
// otherwise computed, by half2 conversion where `may_convert`. `dims` are those of the result.
Support describe_operand(const PointwiseProgram& prologue, DType dtype, int row_axis,
                         int depth_axis, const Dims& dims, MatrixOperand& factor,
                         bool may_use_tma = true, bool may_convert = false);
// Contiguous columns that a thread may process at a time: all in bounds or none.
int max_vector(std::int64_t columns);

// Fills in `shape`, or returns the reason of a refusal.
Support describe(const Region& region, MatrixShape& shape);

// TMA map of the operand tile of a stage; `rows` are those of the tile.
TensorMapForm map_of(const MatrixOperand& factor, std::int64_t lines, std::int64_t depth,
                     std::int64_t batches, int rows);

}  // namespace ashlar::cuda
