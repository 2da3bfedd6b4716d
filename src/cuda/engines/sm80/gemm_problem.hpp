// Matmul and convolution as one GEMM problem: D[m][n] = sum over k of A[m][k] * B[n][k]. The
// indices m, n and k decompose into mixed-radix sub-indices (image, row, column, ...), and the
// coordinates of the three tensors are affine in these sub-indices.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/engine.hpp"

namespace ashlar::cuda {

// One value per variant. Variants are GEMMs of one launch that differ only in extents and
// coefficients: in strided backward-data, one per residue of the pixels modulo the stride.
using PerVariant = std::vector<std::int64_t>;

enum class GemmDim : std::uint8_t { batch, m, n, k };

struct IndexTerm {
  GemmDim dim;
  int sub_index;
  PerVariant factor;
};
// A coordinate along one axis of a tensor: base + sum of factor * sub-index. A and B read as zero
// out of bounds; results out of bounds of D are skipped.
struct Coordinate {
  PerVariant base;
  std::vector<IndexTerm> terms;
};

struct ProblemOperand {
  PointwiseProgram program;             // of A and B: the prologue; of D: the epilogue
  std::vector<Coordinate> coordinates;  // one per axis of the program
  DType dtype = f32;
  int slot = -1;  // of the anchor's inputs
};

// The axis with the smallest stride in the largest tensor that the program stores, or else loads.
int fast_axis(const PointwiseProgram& program);
// Moves this axis of the operand's program to the end.
void move_axis_last(ProblemOperand& operand, int axis);

struct GemmProblem {
  std::size_t variants = 1;
  std::array<std::vector<PerVariant>, 4>
      sub_indices;  // extents by GemmDim, the last varies fastest
  ProblemOperand a, b, d;
  // Matmul: M, N and K of each batch, over the axes of D.
  View m_override, n_override, k_override;
  int row_axis = 0, column_axis = 0;  // of D: the axes that m_override and n_override limit
  double padding_value = 0;

  const std::vector<PerVariant>& of(GemmDim dim) const {
    return sub_indices[static_cast<std::size_t>(dim)];
  }
  std::int64_t extent(GemmDim dim, std::size_t variant = 0) const;
  std::int64_t results() const;  // of all variants and batches
  double multiply_adds() const;
  // Swaps A and B, and m and n.
  void transpose();
  // Moves this axis of D to the end.
  void move_result_axis_last(int axis);
};

// Whether gemm_problem() applies to the region, or the reason why not.
Support is_gemm_problem(const Region& region);
// n runs along the last axis of D, the one with the smallest stride; in filter gradients n may
// follow the layout of x instead.
GemmProblem gemm_problem(const Region& region);

}  // namespace ashlar::cuda
