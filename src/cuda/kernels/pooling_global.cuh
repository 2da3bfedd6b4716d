// Global pooling of NCHW tensors: every result reduces kPixels contiguous elements, and memory is
// read as packets that may span several images. Headers shared by forward and backward.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_maximum.cuh"
#include "lib/ptx_shared.cuh"
#include "lib/rows.cuh"
