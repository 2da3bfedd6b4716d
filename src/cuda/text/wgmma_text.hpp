// Prints the wgmma instructions (warpgroup MMA, sm_90a) that a kernel asks for.
#pragma once

#include <string>

#include "ashlar/dtype.hpp"

namespace ashlar::cuda {

// D (64 x n) += A B', A 64 x k and B n x k, with k of 32 bytes.
struct Wgmma {
  DType a = bf16, b = bf16;  // f32: as tf32
  int n = 64;                // a multiple of 8, at most 256
  // M/N-major in shared memory: contiguous along rows, not along K. Only types of 16 bits.
  bool transpose_a = false, transpose_b = false;
};

// struct NAME, one per instruction shape of a kernel (lib/ptx_wgmma.cuh describes operands):
//   Accum                      float, or int for integers
//   kN, kK                     extents of the instruction in elements
//   Fragment                   Accum[kN / 2], the accumulators of a thread
//   multiply(accum, a, b, accumulate)  A and B in shared memory, or A in registers; `accumulate`:
//                              false overwrites the accumulators
std::string print_wgmma(const std::string& name, const Wgmma& wgmma);

}  // namespace ashlar::cuda
