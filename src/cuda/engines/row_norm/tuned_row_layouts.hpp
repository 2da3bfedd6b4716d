// Layouts of rows that were the fastest of thousands timed on an H200, by the length of rows.
#pragma once

#include "cuda/engines/row_norm/row_layout.hpp"

namespace ashlar::cuda {

// A layout told without the length of the rows.
struct TunedRowLayout {
  int element_bytes;  // of the operand that the operation reads first
  double row_bytes;   // of it
  double thread_bytes;
  int groups, unroll, blocks, ahead, stages;
  bool parameters_in_registers = true;
  int slices = 1;
  bool shared_sums = false;
};

// Of the measured rows those that are most like the problem's.
const TunedRowLayout& tuned_layout_for(const RowProblem& problem);

// How far a layout is from a recipe, in steps: twice as many threads of a row are one.
double distance(const RowProblem& problem, const RowLayout& layout, const TunedRowLayout& recipe);

}  // namespace ashlar::cuda
