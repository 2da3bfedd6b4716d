// Matrix products and convolutions as one thing: D[m][n] = sum over k of A[m][k] * B[n][k], where
// m, n and k are numbers written with several digits (image, row, column, ...), and coordinates of
// the three tensors are sums of multiples of digits.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/engine.hpp"

namespace ashlar::cuda {

// One per variant. Variants are products of one launch that differ in numbers only: the pixels of a
// strided gradient that see the same taps.
using PerVariant = std::vector<std::int64_t>;

enum class GemmDim : std::uint8_t { batch, m, n, k };

struct IndexTerm {
  GemmDim dim;
  int sub_index;
  PerVariant factor;
};
// base + sum of factor * digit, along one axis of a tensor. Outside of A and B are zeros, sums
// outside of D are left out.
struct Coordinate {
  PerVariant base;
  std::vector<IndexTerm> terms;
};

struct ProblemOperand {
  PointwiseProgram program;             // of A and B: how elements come to be; of D: the epilogue
  std::vector<Coordinate> coordinates;  // one per axis of the program
  DType dtype = f32;
  int slot = -1;  // of the anchor's inputs
};

// The axis along which elements lie together in the largest tensor that the program stores, or else
// loads.
int fast_axis(const PointwiseProgram& program);
// The operand with this axis of its program as the last one.
void move_axis_last(ProblemOperand& operand, int axis);

struct GemmProblem {
  std::size_t variants = 1;
  std::array<std::vector<PerVariant>, 4>
      sub_indices;  // extents by Group, the last digit varies fastest
  ProblemOperand a, b, d;
  // Of matrix products: how many rows, columns and terms each batch has, over the axes of D.
  View m_override, n_override, k_override;
  int row_axis = 0, column_axis = 0;  // of D: what the first two are lengths of
  double padding_value = 0;

  const std::vector<PerVariant>& of(GemmDim dim) const {
    return sub_indices[static_cast<std::size_t>(dim)];
  }
  std::int64_t extent(GemmDim dim, std::size_t variant = 0) const;
  std::int64_t results() const;  // of all variants and batches
  double multiply_adds() const;
  // A and B, rows and columns change places.
  void transpose();
  // The same product with this axis of D as the last one.
  void move_result_axis_last(int axis);
};

// Why the region is no such product; yes: gemm_problem() can be made of it.
Support is_gemm_problem(const Region& region);
// Columns run along the last axis of D: the one its memory has fastest, but for filter gradients
// whose columns lie by x.
GemmProblem gemm_problem(const Region& region);

}  // namespace ashlar::cuda
