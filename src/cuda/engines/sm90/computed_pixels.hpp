// Pixels of a convolution that kernels/sm90/prologue_pixels.cuh computes on the way in.
#pragma once

#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/launch/arguments.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

struct PixelShape;

struct ComputedPixels {
  PointwiseProgram program;  // over (images, spatial..., channels)
  bool rows = false;         // over (pixels, channels) instead
  int vector = 1;            // neighbouring channels that are loaded together
};

// Whether a program over [images, channels, spatial...] is work on pixels whose channels lie
// together, so that pieces of 16 bytes of its result are made of whole vectors.
bool are_computed(const PointwiseProgram& program, DType dtype);
// `pointwise`: pixels may be the rows of a matrix.
ComputedPixels compute_pixels(const PointwiseProgram& program, bool pointwise);
// As if they were in memory.
View form_of_pixels(const PointwiseProgram& program, DType dtype);

// Whether there are registers for those who compute beside the sums of a tile, and for a second
// warpgroup of them.
bool has_producer_registers(const GemmTile& tile, DType operands);
bool has_registers_for_two(const GemmTile& tile, DType operands);
// What is left of the products' speed: an estimate. `window_rows` is 0 where pixels are computed
// for each tap, of which there are so many on average.
double producer_share(const PixelShape& shape, const GemmTile& tile, std::int64_t window_rows,
                      double taps);

// What prologue_pixels.cuh wants to be told, also where nothing is computed.
std::string print_pixels(const PixelShape& shape, const Graph& graph, Arguments& arguments);

}  // namespace ashlar::cuda
