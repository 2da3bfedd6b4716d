// Windows that are whole images of pixels lying together: every result is made of kPixels elements
// in a row, and memory is walked by packets whatever rows they are parts of.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_maximum.cuh"
#include "lib/ptx_shared.cuh"
#include "lib/rows.cuh"
