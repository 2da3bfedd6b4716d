// Tuned row layouts: the fastest of thousands timed on an H200, by row length.
#pragma once

#include "cuda/engines/row_norm/row_layout.hpp"

namespace ashlar::cuda {

// A row layout, independent of the row length.
struct TunedRowLayout {
  int element_bytes;  // of the first operand
  double row_bytes;   // bytes per row of the first operand
  double thread_bytes;
  int groups, unroll, blocks, ahead, stages;
  bool parameters_in_registers = true;
  int slices = 1;
  bool shared_sums = false;
};

// The tuned layout of the most similar measured rows.
const TunedRowLayout& tuned_layout_for(const RowProblem& problem);

// Distance between a layout and a tuned one in log2 steps: twice the threads per row is 1.
double distance(const RowProblem& problem, const RowLayout& layout, const TunedRowLayout& recipe);

}  // namespace ashlar::cuda
