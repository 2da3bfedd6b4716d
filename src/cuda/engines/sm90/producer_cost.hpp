// What it takes that warps of a product compute its factors on the way in: dequantised weights,
// gathered rows.
#pragma once

#include "cuda/engines/sm90/matrix_shape.hpp"
#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// Stages that a warpgroup has copies of before it converts them: enough bytes on their way. `bytes`
// of shared memory are for all of them.
int raw_steps(const MatrixOperand& a, const MatrixOperand& b, const GemmTile& tile, int& bytes);

// What is left of the products' speed where factors are computed: every tile of the result computes
// those of its factors anew.
double producer_efficiency(const MatrixOperand& a, const MatrixOperand& b, const GemmTile& tile);

// What the programs read and write.
double bytes_of(const PointwiseProgram& prologue, const PointwiseProgram& epilogue = {});

// Of an engine that takes scales of blocks before the product: no where a kernel that dequantises
// each weight once, and the product of its results, are estimated to be faster.
Support is_worth_dequantizing(const Region& region, const CudaEngine& engine,
                              const DeviceProps& device);

}  // namespace ashlar::cuda
