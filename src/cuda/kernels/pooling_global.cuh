// Windows that are whole images of pixels lying together: every result is made of kPixels elements
// in a row, and memory is walked by packets whatever rows they are parts of.
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_maximum.cuh"
#include "lib/ptx_shared.cuh"
#include "lib/rows.cuh"

// x / kPixels, rounded once: the product with the reciprocal, put right by what it leaves over.
__device__ inline R mean_of(R sum) {
  const R reciprocal = (R)1 / (R)kPixels, guess = sum * reciprocal;
  if ((kPixels & (kPixels - 1)) == 0) return guess;
  const R result = guess + (sum - guess * (R)kPixels) * reciprocal;
  return result == result ? result : guess;
}
