// Products with few rows whose weights the copy engine brings: what is asked for while the launch
// before has not ended.
#pragma once

// Stages of weights, where these never change. Not all of them: x, which has to wait, comes behind
// what was asked for first.
__device__ inline int stages_before_pdl_wait(const Args& args) {
  return args.weights_never_change ? (kStages + 1) / 2 : 0;
}
