// Skinny GEMM with TMA loads: weights that are loaded before the programmatic dependent launch
// (PDL) wait, while the previous launch still runs.
#pragma once

// Stages whose weights may be loaded before the PDL wait: none unless the weights are constant.
// Only half of the stages, because loads of x, which must wait, queue behind the ones issued
// before.
__device__ inline int stages_before_pdl_wait(const Args& args) {
  return args.weights_never_change ? (kStages + 1) / 2 : 0;
}
