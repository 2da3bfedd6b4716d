// Pixels of a convolution that producer warps compute (kernels/sm90/prologue_pixels.cuh).
#pragma once

#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/launch/arguments.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

struct PixelShape;

struct ComputedPixels {
  PointwiseProgram program;  // over (images, spatial..., channels)
  bool rows = false;         // over (pixels, channels) instead
  int vector = 1;            // contiguous channels per load
};

// Whether a program over [images, channels, spatial...] reads memory that is contiguous along
// channels, so that 16-byte pieces of its result are computed from whole vectors.
bool are_computed(const PointwiseProgram& program, DType dtype);
// `pointwise`: pixels may be the rows of a matrix.
ComputedPixels compute_pixels(const PointwiseProgram& program, bool pointwise);
// The layout that the pixels would have in memory.
View form_of_pixels(const PointwiseProgram& program, DType dtype);

// Whether registers suffice for a producer warpgroup that computes besides the accumulators of the
// tile, and for a second one.
bool has_producer_registers(const GemmTile& tile, DType operands);
bool has_registers_for_two(const GemmTile& tile, DType operands);
// Estimated share of the tensor-core rate that remains. `window_rows` is 0 where pixels are
// computed for each tap; `taps` is their average number.
double producer_share(const PixelShape& shape, const GemmTile& tile, std::int64_t window_rows,
                      double taps);

// Generates what prologue_pixels.cuh needs, also where nothing is computed.
std::string print_pixels(const PixelShape& shape, const Graph& graph, Arguments& arguments);

}  // namespace ashlar::cuda
