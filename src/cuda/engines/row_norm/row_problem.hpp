// A norm or softmax over rows: its operands over merged axes, the last of which is the row.
#pragma once

#include <string>
#include <vector>

#include "plan/region.hpp"

namespace ashlar::cuda {

struct RowProblem {
  enum class Kind : std::uint8_t { norm_forward, norm_backward, softmax_forward, softmax_backward };

  // `refusal` says why a region is not supported.
  explicit RowProblem(const Region& region);

  Kind kind = Kind::norm_forward;
  std::string refusal;
  bool is_other_operation = false;
  bool is_centred = true;  // the mean is subtracted
  bool is_log = false;     // softmax
  double epsilon = 0;

  // Empty programs: absent operands.
  PointwiseProgram first;  // x; softmax_backward: y
  // softmax_forward: the prologue is evaluated once and its results stay in registers: the kernel
  // passes over a row three times, and several raw operands would take no fewer registers.
  bool materialises_prologue = false;
  PointwiseProgram second;  // dy
  PointwiseProgram scale, bias, mean, inv_variance;
  PointwiseProgram stored;  // norm_forward: stores of x itself, where x is an output too
  PointwiseProgram result;  // epilogue: y; dx
  // Statistics: mean and inv_variance, or softmax's stats. Gradients: dscale and dbias.
  PointwiseProgram output1, output2;
  PointwiseProgram epsilon_program;  // has its own shape

  Dims space;
  std::int64_t rows = 0, length = 0;
  std::int64_t sets = 1;  // parameter sets: row r uses set r / (rows / sets)
  DType precision = f32;

  // Number of column sums: none, one of dscale and dbias, or both.
  int column_sums() const {
    if (kind != Kind::norm_backward) return 0;
    return (output1.empty() ? 0 : 1) + (output2.empty() ? 0 : 1);
  }
  std::int64_t register_bytes() const { return precision == f64 ? 8 : 4; }
  // The non-empty programs over `space`.
  std::vector<const PointwiseProgram*> programs() const;

 private:
  void take_norm(const Region& region);
  void take_softmax(const Region& region);
  void arrange(Dims statistics, Dims parameters);
  std::vector<PointwiseProgram*> slots() {
    return {&first,        &second, &scale,  &bias,    &mean,
            &inv_variance, &stored, &result, &output1, &output2};
  }
};

}  // namespace ashlar::cuda
